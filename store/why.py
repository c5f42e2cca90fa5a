"""Why: from any id back to the traces and people that caused it, and forward to what it changed."""

from collections import Counter
from collections.abc import Iterator
from typing import Any

from sqlalchemy import Connection, select

from store.changes import hold_of, hold_of_change, is_undone
from store.erasure import tombstones
from store.errors import NotFound
from store.ids import ENTRIES, changes_of_entry, whole_id
from store.ledger import causes_of, effects_of, story_of
from store.served_answer import served_answer
from store.tables import ledger, links, traces

KINDS = {
    "trc": "trace",
    "spn": "span",
    "fbk": "feedback",
    "fail": "failure",
    "clu": "cluster",
    "cor": "correction",
    "rte": "route",
    "rtr": "router version",
    "router": "router",
    "rev": "review",
    "chg": "change",
    "ver": "version",
    "rel": "release",
    "ret": "retrain",
    "hld": "hold",
    "run": "run",
    **ENTRIES,
}
MAX_DEPTH = 12
MAX_BREADTH = 50
"""Ids shown a level, those of rare kinds first; the rest is counted."""


def why(connection: Connection, project: str, subject: str) -> dict[str, Any]:
    """The chain of causes and of effects: `{"id", "kind", "events", "causes": [...], "effects": [...]}`, nested down to
    trace ids.

    `subject`: any id, also a shortened one; an entry of what is served was caused by the changes that made it. Of a trace also
    `served_by`: the versions of all four targets that answered it, and what made them; of a correction or change its `hold`,
    and whether that change is `undone`. Raises NotFound for an id that history does not know.
    """
    subject = whole_id(connection, project, subject)
    made = changes_of_entry(connection, project, subject)
    if not made and not _known(connection, project, subject):
        raise NotFound(
            f"history knows no {subject}: `filmroom history`, `filmroom live`, `filmroom review list` and `filmroom release` "
            "show ids"
        )
    found = {
        **_node(subject),
        "events": story_of(connection, project, subject),
        "causes": _caused(connection, project, subject, made),
        "effects": _walk(connection, project, subject, effects_of, "effects", {subject}, MAX_DEPTH),
    }
    served = served_answer(connection, project, subject)
    if served is not None:
        seen = {subject}
        back = [_from(connection, project, each, seen) for each in [*served["models"].values(), *served["changes"]]]
        found["served_by"] = {**served, "causes": back}
    held = _recurrence(connection, subject)
    if held is not None:
        found["hold"], found["undone"] = held, is_undone(connection, held["change_id"])
    _mark_erased(connection, project, found)
    return found


def _caused(connection: Connection, project: str, subject: str, made: list[str]) -> list[dict[str, Any]]:
    """What caused it, after the changes that made it, where it is an entry of what is served."""
    seen = {subject, *made}
    first = [_from(connection, project, each, seen) for each in made]
    return first + [each for each in _walk(connection, project, subject, causes_of, "causes", seen, MAX_DEPTH)
                    if each["id"] not in made]  # fmt: skip


def _from(connection: Connection, project: str, subject: str, seen: set[str]) -> dict[str, Any]:
    """A node with what caused it."""
    return {**_node(subject), "causes": _walk(connection, project, subject, causes_of, "causes", seen, MAX_DEPTH)}


def _recurrence(connection: Connection, subject: str) -> dict[str, Any] | None:
    """The hold of a correction, or of the correction that a change applied."""
    held = hold_of(connection, subject) if subject.startswith("cor_") else None
    held = hold_of_change(connection, subject) if subject.startswith("chg_") else held
    return None if held is None else held.model_dump(mode="json")


def _mark_erased(connection: Connection, project: str, found: dict[str, Any]) -> None:
    """Say of the traces that were erased that they were: there is nothing more to see."""
    nodes = list(_nodes(found))
    gone = tombstones(connection, project, {node["id"] for node in nodes if node["kind"] == "trace"})
    for node in nodes:
        if node["id"] in gone:
            node["erased"] = True


def _nodes(node: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield node
    for name in ("causes", "effects"):
        for each in (*node.get(name, ()), *node.get("served_by", {}).get(name, ())):
            yield from _nodes(each)


def _walk(
    connection: Connection, project: str, subject: str, step: Any, name: str, seen: set[str], depth: int
) -> list[dict[str, Any]]:
    following = step(connection, project, subject)
    if depth == 0 or not following:
        return []
    if len(following) > MAX_BREADTH:
        many = Counter(map(_kind, following))
        following = sorted(following, key=lambda each: many[_kind(each)])
    shown: list[dict[str, Any]] = []
    for each in following[:MAX_BREADTH]:
        again = each in seen
        seen.add(each)
        further = [] if again else _walk(connection, project, each, step, name, seen, depth - 1)
        shown.append({**_node(each), name: further})
    if len(following) > MAX_BREADTH:
        shown.append({"id": "", "kind": f"and {len(following) - MAX_BREADTH} more", name: []})
    return shown


def _node(subject: str) -> dict[str, Any]:
    return {"id": subject, "kind": _kind(subject)}


def _kind(subject: str) -> str:
    return KINDS.get(subject.split("_", 1)[0], "record")


def _known(connection: Connection, project: str, subject: str) -> bool:
    caused = select(links.c.cause).where(links.c.project == project, links.c.cause == subject)
    led = select(links.c.cause).where(links.c.project == project, links.c.effect.between(subject, subject))
    told = select(ledger.c.seq).where(ledger.c.project == project, ledger.c.subject == subject)
    served = select(traces.c.id).where(traces.c.project == project, traces.c.id == subject)
    return any(connection.execute(each.limit(1)).first() is not None for each in (caused, led, told, served))
