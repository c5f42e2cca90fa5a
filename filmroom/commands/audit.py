"""`audit`: traces drawn at random for a person to judge, and how often the program fails and is seen to fail by that."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from filmroom.session import Json, Session, say, say_json

if TYPE_CHECKING:
    from flows.audit import AuditReport

SHOWN = 10
"""Traces to judge that are listed."""


def register(app: typer.Typer) -> None:
    app.command()(audit)


def audit(
    context: typer.Context,
    trace: Annotated[str | None, typer.Argument(help="A trace to judge; without one, what was drawn is shown.")] = None,
    good: Annotated[bool | None, typer.Option("--good/--bad", help="Whether it was answered well.")] = None,
    as_json: Json = False,
) -> None:
    """Thirty traces a week, drawn whatever was said of them: judge them, and failure rate and recall are measured."""
    from flows.audit import judge_trace, report

    session: Session = context.obj
    if (trace is None) != (good is None):
        raise typer.BadParameter("name a trace and say --good or --bad, or neither")
    with session.workspace() as workspace:
        if trace is not None and good is not None:
            judge_trace(workspace, trace, good=good)
        found = report(workspace)
    if as_json:
        say_json(described(found))
        return
    say(f"{found.judged} audited, {len(found.waiting)} of {found.drawn} drawn in four weeks are to judge")
    say(f"failure rate {found.failure_rate.text}")
    say(f"recall       {found.recall.text}: failures that were seen without the audit")
    say(f"precision    {found.precision.text}: of what was picked up, what failed")
    say(f"detector     {found.detector_reason}")
    if found.matures_days is not None:
        say(f"90% of the labels are in after {found.matures_days:.1f} days")
    for each in found.waiting[:SHOWN]:
        say(f"  filmroom audit {each} --good | --bad")
    if found.waiting:
        say(f"next: {found.to_yes}; `filmroom why TRACE` shows one")


def described(found: "AuditReport") -> dict[str, Any]:
    """What `audit --json` gives."""
    return found.model_dump(mode="json")
