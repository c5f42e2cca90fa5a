"""`pr`: an accepted change as a branch of your agent's repository."""

from typing import Annotated, Any

import typer

from filmroom.answer import read_answer
from filmroom.session import Json, Session, say, say_json

CASES = 5
"""Cases that the test asks the agent."""


def register(app: typer.Typer) -> None:
    app.command()(pr)


def pr(
    context: typer.Context,
    correction: Annotated[str, typer.Argument(help="A correction of the context or the tooling that waits.")],
    answer: Annotated[str | None, typer.Option(help="What it needs you to write, as with `review approve`.")] = None,
    inputs: Annotated[
        bool, typer.Option("--inputs", help="Let the test hold users' inputs and the right answers: personal text.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Write a change as a branch of `[agent] repository`, with evidence and a test. Merging it applies it in the next turn."""
    from filmroom.pull_request_files import pull_request_files
    from flows.pull_request import open_pull_request
    from flows.targets import FLOWS
    from store.corrections import correction as correction_of
    from store.review_queue import review_item

    session: Session = context.obj
    given = read_answer(answer)
    with session.workspace() as workspace:
        item = review_item(workspace.store, correction)
        with workspace.store.read() as connection:
            found = correction_of(connection, workspace.project, correction)
        if found.proposal is not None and found.state != "approved":
            completed = FLOWS[found.proposal.target].answered(found.proposal, given, reviewer=workspace.actor)
            item = {**item, "proposal": completed.model_dump(mode="json"), "summary": completed.summary}
        files = (
            pull_request_files(item, _cases(workspace, found.cluster_id) if inputs else []) if item["proposal"] else {}
        )
        done = open_pull_request(workspace, correction, files, answer=given)
    if as_json:
        say_json(done.model_dump(mode="json"))
        return
    say(f"branch {done.branch}, commit {done.commit[:12]}, on {done.base[:12]}")
    for path in done.files:
        say(f"  {path}")
    say(f"next: {done.next}")


def _cases(workspace: Any, cluster_id: str) -> list[dict[str, str]]:
    from models.corrections import differing
    from models.steps import text_of
    from store.failures import cases_of

    found = []
    with workspace.store.read() as connection:
        for case in cases_of(connection, cluster_id, CASES):
            said = [each for each in differing(case.episode, case.signals) if each.corrected]
            if said:
                trace = case.episode.trace
                found.append({"trace": trace.id, "input": text_of(trace.input), "right": said[-1].corrected})
    return found
