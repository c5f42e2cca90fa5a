"""What is live, entry by entry: its id, its words, how often it was used, and whether it holds."""

from typing import Any

from filmroom.rule_text import rule_text
from flows.rule_use import rule_use
from flows.workspace import Workspace
from models.steps import text_of
from models.write_gate import shown, stale_ids
from store.changes import holds_by_key
from store.facts import facts_at
from store.records import Fact, Hold
from store.releases import live_release, version


def live_state(workspace: Workspace, *, user: str | None = None, tenant: str | None = None) -> dict[str, Any]:
    """The live release: `{"release", "context", "memory", "tooling", "weights"}`, each a list of `{"id", "text", "marks", ...}`."""
    with workspace.store.read() as connection:
        release = live_release(connection, workspace.project)
        context: Any = version(connection, release.context).content
        tooling: Any = version(connection, release.tooling).content
        facts = facts_at(connection, workspace.project, release.memory, workspace.clock(), user=user, tenant=tenant)
        holds = holds_by_key(connection, workspace.project)
        used = rule_use(connection, workspace.project, release)
    return {
        "release": release.id,
        "context": [_context(each, holds, used) for section in context.values() for each in section],
        "memory": _facts(facts, holds),
        "tooling": [_tooling(each, holds) for section in tooling.values() for each in section],
        "weights": [{"id": id_, "text": name, "marks": []} for name, id_ in sorted(release.models.items())],
    }


def recurrence(hold: Hold | None, *, undone: bool = False) -> str:
    """How a change does, in words, or how it did until it was `undone`; empty where nothing is watched.

    >>> recurrence(None)
    ''
    """
    if hold is None:
        return ""
    of = "" if hold.needed is None or hold.state != "holding" else f" of {hold.needed}"
    before = "baseline not measured" if hold.baseline is None else f"baseline {hold.baseline:.0%}"
    if undone:
        ended = "" if hold.state == "holding" else f"{hold.state}, then "
        return f"{ended}undone: while it was live it recurred {hold.recurrences} times in {hold.exposures} exposures, {before}"
    return f"{hold.state}: recurred {hold.recurrences} times in {hold.exposures}{of} exposures, {before}"


def _context(each: dict[str, Any], holds: dict[str, Hold], used: dict[str, int]) -> dict[str, Any]:
    where = ", ".join(f"{key} {value}" for key, value in each["scope"].items())
    if "action" in each:
        text = rule_text(each["action"], each["argument"])
    else:
        text = f"note: {each['text']}" if "text" in each else f"example: {each['input']} -> {each['output']}"
    marks = [f"when {where}"] if where else []
    marks += [f"by {each['author']}"]
    marks += [f"in scope of {used[each['id']]} traces"] if each["id"] in used else []
    return {**each, "text": text, "marks": [*marks, *_held(holds, each["id"])], "used": used.get(each["id"])}


def _facts(facts: list[Fact], holds: dict[str, Hold]) -> list[dict[str, Any]]:
    stale = stale_ids(facts)
    found = []
    for fact in facts:
        whose = "everybody" if fact.scope == "global" else f"{fact.scope} {fact.scope_id}"
        rests = ["stale: what it rests on is no longer in force"] if fact.id in stale else []
        marks = [f"by {fact.source}", *rests, *_held(holds, fact.id)]
        value = {"id": fact.id, "text": f"{whose}: {shown(fact)}", "marks": marks, "stale": fact.id in stale}
        found.append({**fact.model_dump(mode="json"), **value})
    return found


def _tooling(each: dict[str, Any], holds: dict[str, Hold]) -> dict[str, Any]:
    if "title" in each:
        state = "resolved" if each.get("resolved") else "open"
        return {**each, "text": f"ticket: {each['title']}", "marks": [state, *_held(holds, each["id"])]}
    said = {name: value for name, value in each.items() if name != "tool"}
    return {**each, "id": each["tool"], "text": text_of(said), "marks": _held(holds, each["tool"])}


def _held(holds: dict[str, Hold], key: str) -> list[str]:
    said = recurrence(holds.get(key))
    return [said] if said else []
