"""`compare`: two versions or releases side by side."""

from typing import TYPE_CHECKING, Any

import typer

from filmroom.session import Json, Session, say, say_json

if TYPE_CHECKING:
    from flows.compare import Comparison

SHOWN = 20
"""Rows named of each kind."""


def register(app: typer.Typer) -> None:
    app.command()(compare)


def compare(context: typer.Context, before: str, after: str, as_json: Json = False) -> None:
    """What changes from one version (ver_...) or release (rel_...) to another: entries, facts, and how models answer."""
    from flows.compare import Comparison
    from flows.compare_releases import compare_any

    session: Session = context.obj
    with session.workspace() as workspace:
        found = compare_any(workspace, before, after)
    if as_json:
        say_json(found.model_dump(mode="json"))
        return
    if isinstance(found, Comparison):
        _say(found)
        return
    parts = [each for each in (found.context, found.memory, found.tooling, *found.models) if each is not None]
    for each in parts:
        say(f"{each.target}{f' {each.model}' if each.model else ''}: {each.before} -> {each.after}")
        _say(each)
    for mark, names in (("+", found.models_added), ("-", found.models_removed)):
        for name in names:
            say(f"{mark} model {name}")
    if not parts and not found.models_added and not found.models_removed:
        say("the same in all four places")


def _say(found: "Comparison") -> None:
    if found.rows is not None:
        say(f"{found.newly_right} newly right, {found.newly_wrong} newly wrong of {found.rows} labelled rows")
    for mark, rows in (("+", found.right), ("-", found.wrong)):
        for row in rows[:SHOWN]:
            say(f"{mark} {row.label}: {row.before} -> {row.after}: {row.text}")
    for mark, entries in (("-", found.removed), ("+", found.added)):
        for each in entries:
            say(f"{mark} {each['section']}: {_text(each)}")
    if found.rows is None and not found.added and not found.removed:
        say("the same")


def _text(entry: dict[str, Any]) -> str:
    import json

    said = {name: value for name, value in entry.items() if name not in ("section", "text")}
    return str(entry["text"]) if entry["section"] == "facts" else json.dumps(said, ensure_ascii=False)
