"""`edit` and `live`: a change by hand, and what the running program gets now."""

import json
from typing import Annotated, Any

import typer

from filmroom.session import Json, Session, say, say_json
from store.records import TARGETS


def register(app: typer.Typer) -> None:
    app.command()(edit)
    app.command()(live)


def edit(
    context: typer.Context,
    target: Annotated[str, typer.Argument(help="context, memory or tooling.")],
    verb: Annotated[
        str, typer.Argument(help="add, edit or retire; memory: add or forget; tooling also: ticket_resolve.")
    ],
    id: Annotated[str, typer.Argument(help="The rule, fact, ticket or tool; left out: a new one.")] = "",
    value: Annotated[str, typer.Option(help="What it says, as a JSON object; for a rule a sentence does.")] = "",
    reason: Annotated[str, typer.Option(help="Why; it is kept with the change.")] = "",
    as_json: Json = False,
) -> None:
    """Add, edit, retire or forget one thing by hand, signed by you. It is live at once, and undo takes it back."""
    from flows.edit import edit as by_hand

    session: Session = context.obj
    with session.workspace() as workspace:
        done = by_hand(workspace, target, verb, key=id, value=read_value(target, value), reason=reason)
    key = done.operations[0].key
    if as_json:
        say_json({"change": done.id, "id": key, "version": done.after, "release": done.release_id})
        return
    say(f"{key}: live, change {done.id}")
    say(f"to take it back: filmroom undo {done.id}")


def live(
    context: typer.Context,
    target: Annotated[str, typer.Argument(help="context, memory, tooling or weights; left out: all.")] = "",
    user: Annotated[str | None, typer.Option(help="Only this user's facts and the global ones.")] = None,
    tenant: Annotated[str | None, typer.Option(help="With --user: this tenant's facts as well.")] = None,
    as_json: Json = False,
) -> None:
    """What the running program gets now, entry by entry, with the ids that `edit` takes."""
    from filmroom.live_state import live_state

    if target and target not in TARGETS:
        raise typer.BadParameter(f"{target!r} is not one of {', '.join(TARGETS)}")
    session: Session = context.obj
    with session.workspace() as workspace:
        found = live_state(workspace, user=user, tenant=tenant)
    shown = {name: found[name] for name in TARGETS if not target or name == target}
    if as_json:
        say_json({"release": found["release"], **shown})
        return
    say(f"release {found['release']}")
    for name, entries in shown.items():
        say(f"{name}:" if entries else f"{name}: nothing")
        for each in entries:
            say(f"  {each['id']}  {each['text']}{_marks(each)}")


def read_value(target: str, text: str) -> dict[str, Any]:
    """The object in a text; for the context a sentence is an `instruct`.

    >>> read_value("context", "Be brief."), read_value("tooling", '{"retries": 2}')
    ({'action': 'instruct', 'argument': 'Be brief.'}, {'retries': 2})
    """
    if target == "context" and text and not text.lstrip().startswith("{"):
        return {"action": "instruct", "argument": text.strip()}
    if not text:
        return {}
    try:
        found = json.loads(text)
    except ValueError as error:
        raise typer.BadParameter(f"not a JSON object: {error}", param_hint="--value") from error
    if not isinstance(found, dict):
        raise typer.BadParameter("not a JSON object", param_hint="--value")
    return found


def _marks(each: dict[str, Any]) -> str:
    return "".join(f"  [{mark}]" for mark in each["marks"])
