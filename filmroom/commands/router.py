"""`router`: which router decides, how far its decisions have been checked, and what that guarantees."""

from typing import TYPE_CHECKING, Any

import typer

from filmroom.session import Json, Session, say, say_json, table, time_text

if TYPE_CHECKING:
    from flows.calibration import Calibration

SHOWN = 5
"""Newest decided clusters that are shown as learnt last."""


def register(app: typer.Typer) -> None:
    app.command()(router)


def router(context: typer.Context, as_json: Json = False) -> None:
    """The router's version, what it is calibrated on per target, what it learnt last, and what is guaranteed."""
    from flows.calibration import calibrate
    from flows.route import ROUTER
    from store.ledger import events_of
    from store.ways import waiting_for

    session: Session = context.obj
    with session.workspace() as workspace, workspace.store.read() as connection:
        calibrated = calibrate(workspace, connection)
        found = described(calibrated)
        for target, row in found["targets"].items():
            row["to_decide"] = (
                [] if row["certified"] else waiting_for(connection, workspace.project, target, limit=SHOWN)
            )
        past = events_of(connection, workspace.project, ROUTER)[-SHOWN:]
        found["in_force"] = [{"time": each["at_us"], "router": each["detail"].get("router"), "reason": each["reason"]}
                             for each in past]  # fmt: skip
    if as_json:
        say_json(found)
        return
    _say(found, calibrated)


def described(calibration: "Calibration") -> dict[str, Any]:
    """What `router --json` gives."""
    from models.abstention import Certificate

    return {
        "router": calibration.router.version,
        "reason": calibration.reason,
        "decided": len(calibration.decided),
        "coverage": calibration.coverage(),
        "calibration_error": calibration.error,
        "targets": {
            target: {
                "clusters": calibration.counts[target],
                "certified": isinstance(found, Certificate),
                "threshold": found.threshold if isinstance(found, Certificate) else None,
                "statement": found.statement,
                "audit": calibration.audits[target].statement,
            }
            for target, found in calibration.certificates.items()
        },
        "learnt_last": [
            {
                "correction": each.correction_id,
                "cluster": each.cluster_id,
                "target": each.place,
                "held": each.held,
                "time": each.decided_us,
            }
            for each in reversed(calibration.decided[-SHOWN:])
        ],
    }


def _say(found: dict[str, Any], calibrated: "Calibration") -> None:
    say(f"router {found['reason']}")
    say(f"{found['decided']} decided clusters, {found['coverage']:.0%} of them at or above a certified threshold")
    if found["calibration_error"] is not None:
        say(f"what it says and what was right are {found['calibration_error']:.0%} apart (expected calibration error)")
    for event in found["in_force"]:
        say(f"{time_text(event['time'])}  {event['reason']}")
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
        say(f"learnt {time_text(row['time'])}  {row['correction']}: {row['target'] or 'nothing to correct'}{held}")
    if not found["decided"]:
        say("next: filmroom review list")
