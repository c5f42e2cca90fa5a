"""The counts from which the profile is chosen."""

from sqlalchemy import Connection, func, select

from store.tables import failures, feedback, traces


def labelled_counts(connection: Connection, project: str) -> dict[str, int]:
    """`labelled`: traces in the store with feedback; `right`: those of them that did not fail; `sources`: distinct principals."""
    known = feedback.join(
        traces, traces.c.id == feedback.c.trace_id
    )  # feedback may come before its trace, or without one
    judged = select(feedback.c.trace_id).select_from(known).where(feedback.c.project == project).distinct().subquery()
    labelled = connection.execute(select(func.count()).select_from(judged)).scalar_one()
    failed = connection.execute(
        select(func.count()).select_from(failures).where(failures.c.project == project)
    ).scalar_one()
    people = connection.execute(
        select(func.count(feedback.c.principal.distinct())).where(feedback.c.project == project)
    ).scalar_one()
    users = connection.execute(
        select(func.count(traces.c.user.distinct())).where(traces.c.project == project)
    ).scalar_one()
    return {"labelled": labelled, "right": max(0, labelled - failed), "sources": max(people, users)}
