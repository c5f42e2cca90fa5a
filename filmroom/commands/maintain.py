"""`rollback` and `doctor`: back to an earlier release, and whether all is well."""

from typing import Annotated

import typer

from filmroom.session import Json, Session, say, say_json


def register(app: typer.Typer) -> None:
    app.command()(rollback)
    app.command()(doctor)


def rollback(
    context: typer.Context,
    release: Annotated[
        str,
        typer.Argument(
            help="The release to go back to (`filmroom release` lists them), a router version (`filmroom router`), or `rules`."
        ),
    ],
    reason: Annotated[str, typer.Option(help="Why; it is kept in the history.")] = "",
    as_json: Json = False,
) -> None:
    """Serve the state of an earlier release again, as a new release; or let an earlier version of the router decide again."""
    from flows.rollback import rollback as go_back
    from flows.rollback import rollback_router
    from flows.router_undo import is_router

    session: Session = context.obj
    back = rollback_router if is_router(release) else go_back
    with session.workspace() as workspace:
        done = back(workspace, release, reason=reason)
    if as_json:
        say_json(done.model_dump(mode="json"))
        return
    said = (
        f"{done.undone[0]} no longer routes"
        if is_router(release)
        else f"live is {done.release}, with the state of {release}"
    )
    say(said)
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
