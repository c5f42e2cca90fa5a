"""`trust`: who gives labels, and how far each source can be believed."""

import typer

from filmroom.session import Json, Session, say, say_json, table


def register(app: typer.Typer) -> None:
    app.command()(trust)


def trust(context: typer.Context, as_json: Json = False) -> None:
    """Every source of labels: how many the rest of the data disputes, what became of the changes, who is doubtful."""
    from flows.trust import trust as sources

    session: Session = context.obj
    with session.workspace() as workspace:
        found = sources(workspace)
    if as_json:
        say_json([each.model_dump(mode="json") for each in found])
        return
    if not found:
        say("no source yet: nothing was judged by anyone. next: filmroom ingest, then filmroom run")
        return
    table(
        ["source", "", "labels", "disputed", "held", "failed", "trust"],
        [
            [
                each.source,
                "authority" if each.authority else "doubtful" if each.doubtful else "",
                str(each.labels),
                str(each.disputed),
                str(each.held),
                str(each.failed),
                f"{each.trust:.2f}",
            ]
            for each in found
            if each.labels or each.held or each.failed or each.authority
        ],
    )
    silent = sum(not (each.labels or each.held or each.failed or each.authority) for each in found)
    if silent:
        say(f"and {silent} who failed somewhere and gave no label")
    doubtful = [each.source for each in found if each.doubtful]
    if doubtful:
        say(
            f"doubtful: {', '.join(doubtful)}: the rest of the data, or together the base set, contradicts their labels more often "
            "than chance does"
        )
