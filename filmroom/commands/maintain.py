"""`rollback` and `doctor`: back to an earlier release, and whether all is well."""

from typing import Annotated

import typer

from filmroom.session import Json, Session, say, say_json


def register(app: typer.Typer) -> None:
    app.command()(rollback)
    app.command()(doctor)


def rollback(
    context: typer.Context,
    release: Annotated[str, typer.Argument(help="The release to go back to; `filmroom release` lists them.")],
    reason: Annotated[str, typer.Option(help="Why; it is kept in the history.")] = "",
    as_json: Json = False,
) -> None:
    """Serve the state of an earlier release again, as a new release."""
    from flows.rollback import rollback as go_back

    session: Session = context.obj
    with session.workspace() as workspace:
        done = go_back(workspace, release, reason=reason)
    if as_json:
        say_json(done.model_dump(mode="json"))
        return
    say(f"live is {done.release}, with the state of {release}")
    say(f"next: {done.next}")


def doctor(context: typer.Context, as_json: Json = False) -> None:
    """Check settings, store, log, tools file, training files and the environment; exits 1 when something is wrong."""
    from filmroom.health import checks

    session: Session = context.obj
    found = checks(session)
    well = all(check["ok"] for check in found)
    if as_json:
        say_json({"ok": well, "checks": found})
    for check in () if as_json else found:
        say(f"{'ok  ' if check['ok'] else 'FAIL'}  {check['name']:14s} {check['detail']}")
    if not well:
        raise typer.Exit(1)
