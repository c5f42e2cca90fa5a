"""`router`: which router decides, how far its decisions have been checked, and what that guarantees."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from filmroom.session import Json, Session, say, say_json, table, time_text

if TYPE_CHECKING:
    from flows.calibration import Calibration


def register(app: typer.Typer) -> None:
    app.command()(router)


def router(
    context: typer.Context,
    pinned: Annotated[
        bool | None,
        typer.Option(
            "--pin/--unpin", help="Let the rules decide, whatever is learned; or let what is learned decide again."
        ),
    ] = None,
    reason: Annotated[str, typer.Option(help="Why; it is kept in the history.")] = "",
    as_json: Json = False,
) -> None:
    """The router's version, its gate and shadow, what it is calibrated on per target, what it learnt last, its history."""
    from filmroom.router_view import SHOWN, described
    from flows.calibration import calibrate
    from flows.router_undo import pin
    from store.ways import waiting_for

    session: Session = context.obj
    with session.workspace() as workspace:
        if pinned is not None:
            pin(workspace, pinned=pinned, reason=reason)
        with workspace.store.read() as connection:
            calibrated = calibrate(workspace, connection)
            found = described(calibrated)
            for target, row in found["targets"].items():
                row["to_decide"] = (
                    [] if row["certified"] else waiting_for(connection, workspace.project, target, limit=SHOWN)
                )
    if as_json:
        say_json(found)
        return
    _say(found, calibrated)


def _say(found: dict[str, Any], calibrated: "Calibration") -> None:
    from filmroom.router_view import SHOWN

    say(f"router {found['reason']}")
    say(f"{found['decided']} decided clusters, {found['coverage']:.0%} of them at or above a certified threshold")
    if found["calibration_error"] is not None:
        say(f"what it says and what was right are {found['calibration_error']:.0%} apart (expected calibration error)")
    _say_version(found)
    table(
        ["target", "clusters", "threshold", "guaranteed"],
        [
            [
                name,
                str(row["clusters"]),
                "-" if row["threshold"] is None else f"{row['threshold']:.2f}",
                row["statement"],
            ]
            for name, row in found["targets"].items()
        ],
    )
    for name, row in found["targets"].items():
        if calibrated.audits[name].audited:
            say(f"{name}: {row['audit']}")
    for name, row in found["targets"].items():
        if row["to_decide"]:
            say(f"{name}: deciding these counts towards a certificate: {', '.join(row['to_decide'])}")
    for row in found["learnt_last"]:
        held = {None: "", True: ", held", False: ", did not hold"}[row["held"]]
        verb = "learnt" if row["learnt"] else "decided"
        say(f"{verb} {time_text(row['time'])}  {row['correction']}: {row['target'] or 'nothing to correct'}{held}")
    for event in found["history"][-SHOWN:]:
        named = "" if event["reason"].startswith(f"{event['router']}") else f"{event['router']}: "
        say(f"{time_text(event['time'])}  {event['event']} by {event['actor']}: {named}{event['reason']}")
    if not found["decided"]:
        say("next: filmroom review list")


def _say_version(found: dict[str, Any]) -> None:
    from models.shadow import HARM

    since = f"since {time_text(found['since'])}" if found["since"] else ""
    if found["parent"]:
        say(f"{since} in place of {found['parent']}; to take it back: filmroom undo {found['router']}")
    elif since:
        say(since)
    if found["shadow"]:
        seen = found["shadow"]
        say(f"shadow: of {seen['judged']} clusters decided since, {found['parent']} alone was right on {seen['lost']} and it alone "
            f"on {seen['won']} (e-value {seen['evidence']:.1f}, {HARM:.0f} rolls back)")  # fmt: skip
    if found["refused"]:
        say(f"the way to another router: {found['refused']['to_yes']}")
    if found["unpin"]:
        say(f"to let what is learned decide again: {found['unpin']}")
    elif found["history"]:
        say(f"decided clusters until the next candidate is judged: {found['until_next_look']}")
