"""What an erased user said, and their name, out of what was decided: proposals, changes, reviews, releases, the history, and
the rules, examples, notes and tickets that quote them. Ids and decisions stay."""

from collections.abc import Iterator
from typing import Any

from sqlalchemy import ColumnElement, Connection, select, update

from store.bodies import bodies_of, drop_bodies, encode, in_parts
from store.bulk import listed
from store.console_tables import audit, opinions, saved_filters
from store.ledger import record_event
from store.own_words import ERASED, without
from store.records import Record, Release, Version
from store.releases import live_release, move_live, put_version
from store.replays import replayed
from store.tables import (
    bodies,
    changes,
    clusters,
    corrections,
    failures,
    ledger,
    live,
    releases,
    replays,
    retrains,
    reviews,
    routes,
    turns,
    versions,
)

_QUOTES = {"rules": ("argument",), "examples": ("input", "output"), "notes": ("text",), "policies": ("expected",),
           "tickets": ("title", "call", "error")}  # fmt: skip
"""Sections of what is served, and the fields of their entries in which somebody may be quoted."""
_TOLD: tuple[tuple[Any, Any, Any], ...] = (
    (routes.c.id, routes.c.decision, routes.c.correction_id),
    (reviews.c.id, reviews.c.reason, reviews.c.correction_id),
    (opinions.c.id, opinions.c.reason, opinions.c.correction_id),
    (clusters.c.id, clusters.c.name, clusters.c.id),
    (clusters.c.id, clusters.c.fingerprint, clusters.c.id),
    (failures.c.id, failures.c.fingerprint, failures.c.trace_id),
    (replays.c.id, replays.c.sentence, replays.c.correction_id),
    (releases.c.id, releases.c.reason, releases.c.id),
    (audit.c.seq, audit.c.detail, audit.c.subject),
    (ledger.c.seq, ledger.c.detail, ledger.c.subject),
    (ledger.c.seq, ledger.c.reason, ledger.c.subject),
    (retrains.c.id, retrains.c.record, retrains.c.id),
    (turns.c.id, turns.c.summary, turns.c.id),
    (saved_filters.c.id, saved_filters.c.query, saved_filters.c.id),
)
"""Columns that may quote somebody: the key of the table, the column, and the id it is about."""
_TOOL_ACTIONS = ("use_tool", "do_not_use_tool")


class Own(Record):
    """What is a user's own, to be taken out of decisions."""

    names: tuple[str, ...]
    pseudonym: str
    traces: tuple[str, ...]
    facts: tuple[str, ...]
    clusters: tuple[str, ...]
    """Clusters that their failures are in."""
    words: tuple[str, ...]
    """All texts of their traces, feedback and facts, the longest first: taken out of what was decided of these."""
    spoken: tuple[str, ...]
    """Those they said themselves and that hardly anybody else says so: taken out everywhere."""

    def out_of(self, value: Any, *, near: bool) -> Any:
        """The value without them. `near`: it was decided of their failures or facts."""
        return without(value, self.words if near else self.spoken, self.names, self.pseudonym)


def quoting(connection: Connection, project: str, own: Own) -> dict[str, Any]:
    """Versions of context and tooling that quote them: by id, the content without."""
    found = {}
    statement = select(versions.c.id, versions.c.content).where(
        versions.c.project == project, versions.c.target.in_(("context", "tooling"))
    )
    for id_, content in connection.execute(statement):
        cleaned = _unquoted(content, own)
        if cleaned != content:
            found[id_] = cleaned
    return found


def unquote(connection: Connection, project: str, own: Own, *, at_us: int, actor: str) -> None:
    """Take their words and name out of all that was decided, in the caller's transaction.

    Where the live release quotes them, another one that does not is served in its place.
    """
    near = _near(connection, project, own)
    drop_bodies(connection, replayed(connection, own.traces))
    _clean_bodies(connection, project, own, near)
    for key, column, subject in _TOLD:
        statement = select(key, column, subject).where(column.table.c.project == project)
        for id_, value, about in connection.execute(statement).all():
            cleaned = own.out_of(value, near=about in near)
            if cleaned != value:
                connection.execute(update(column.table).where(key == id_).values({column: cleaned}))
    _clean_served(connection, project, own, at_us=at_us, actor=actor)


def _near(connection: Connection, project: str, own: Own) -> set[str]:
    """Ids of what was decided of their failures or facts, and of these themselves."""
    decided = _ids(
        connection, select(corrections.c.id).where(_among(connection, corrections.c.cluster_id, own.clusters))
    )
    changed = _ids(connection, select(changes.c.id).where(_among(connection, changes.c.correction_id, decided)))
    memory = _ids(connection, select(changes.c.id).where(changes.c.project == project, changes.c.target == "memory"))
    known = set(own.facts)
    changed += [id_ for id_, value in _bodies(connection, memory) if known & {each["key"] for each in value}]
    reviewed = _ids(connection, select(reviews.c.id).where(_among(connection, reviews.c.correction_id, decided)))
    judged = _ids(connection, select(opinions.c.id).where(_among(connection, opinions.c.correction_id, decided)))
    served = _ids(connection, select(changes.c.release_id).where(_among(connection, changes.c.id, changed)))
    return {*own.traces, *own.facts, *own.clusters, *decided, *changed, *reviewed, *judged, *served}


def _clean_bodies(connection: Connection, project: str, own: Own, near: set[str]) -> None:
    for table in (corrections, changes, reviews, opinions):
        ids = _ids(connection, select(table.c.id).where(table.c.project == project))
        for id_, value in _bodies(connection, ids):
            cleaned = own.out_of(_facts_emptied(value, own), near=id_ in near)
            if cleaned != value:
                connection.execute(update(bodies).where(bodies.c.id == id_).values(data=encode(cleaned)))


def _facts_emptied(value: Any, own: Own) -> Any:
    """The value with nothing said in facts about them, however short it is."""
    if isinstance(value, list):
        return [_facts_emptied(item, own) for item in value]
    if not isinstance(value, dict):
        return value
    if value.get("scope") == "user" and value.get("scope_id") in own.names and "value" in value:
        return {**value, "value": ERASED}
    return {name: _facts_emptied(item, own) for name, item in value.items()}


def _clean_served(connection: Connection, project: str, own: Own, *, at_us: int, actor: str) -> None:
    cleaned = quoting(connection, project, own)
    if not cleaned:
        return
    if connection.execute(select(live.c.project).where(live.c.project == project)).first() is not None:
        _serve_anew(connection, live_release(connection, project), cleaned, at_us=at_us, actor=actor)
    for id_, content in cleaned.items():
        connection.execute(update(versions).where(versions.c.id == id_).values(content=content))


def _serve_anew(connection: Connection, current: Release, cleaned: dict[str, Any], *, at_us: int, actor: str) -> None:
    """A release whose parts quote them no more, so that programs which hold the live one take it."""
    new: dict[str, Any] = {}
    for target in ("context", "tooling"):
        before = current.context if target == "context" else current.tooling
        if before in cleaned:
            made = Version(
                project=current.project, target=target, content=cleaned[before], parent=before, created_us=at_us
            )
            new[target] = put_version(connection, made)
    if not new:
        return
    reason = "a user was erased: what quoted them does no more"
    update_ = {**new, "parent": current.id, "number": current.number + 1, "created_us": at_us, "actor": actor}
    following = current.model_copy(update={**update_, "reason": reason})
    move_live(connection, current, following)
    record_event(
        connection, current.project, at_us=at_us, actor=actor, event="released", subject=following.id, reason=reason,
        causes=[current.id],
    )  # fmt: skip


def _unquoted(content: Any, own: Own) -> Any:
    """The content of a context or tooling version without their words where somebody may be quoted, and without their name."""
    return {
        section: [_entry(each, _QUOTES.get(section, ()), own) for each in entries]
        for section, entries in content.items()
    }


def _entry(entry: dict[str, Any], fields: tuple[str, ...], own: Own) -> dict[str, Any]:
    near = bool(set(own.traces) & set(entry.get("trace_ids", ())))
    scoped = {"scope": without(entry["scope"], (), own.names, own.pseudonym)} if "scope" in entry else {}
    quoted = () if entry.get("action") in _TOOL_ACTIONS else fields
    return {**entry, **scoped, **{name: own.out_of(entry[name], near=near) for name in quoted if name in entry}}


def _bodies(connection: Connection, ids: list[str]) -> Iterator[tuple[str, Any]]:
    for part in in_parts(ids, 500):
        yield from bodies_of(connection, part).items()


def _among(connection: Connection, column: ColumnElement[Any], ids: Any) -> ColumnElement[bool]:
    return column.in_(listed(connection, ids))


def _ids(connection: Connection, statement: Any) -> list[str]:
    return list(connection.execute(statement).scalars())
