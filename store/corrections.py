"""Corrections with their routes and reviews."""

from typing import Any

from sqlalchemy import Connection, Row, func, select, update

from store.bodies import bodies_of, put_body
from store.database import insert_or_ignore
from store.errors import NotFound
from store.records import Correction, CorrectionState, Proposal, Review, Route
from store.tables import clusters, corrections, failures, reviews, routes

OPEN: tuple[CorrectionState, ...] = ("proposed", "deferred")


def open_correction(connection: Connection, cluster_id: str) -> Correction | None:
    """The newest correction of a cluster, in whatever state; None: it has none yet."""
    statement = (
        select(corrections)
        .where(corrections.c.cluster_id == cluster_id)
        .order_by(corrections.c.attempt.desc())
        .limit(1)
    )
    row = connection.execute(statement).first()
    return None if row is None else _correction(connection, row)


def attempts(connection: Connection, cluster_id: str) -> list[Correction]:
    """All corrections of a cluster, first attempt first."""
    statement = select(corrections).where(corrections.c.cluster_id == cluster_id).order_by(corrections.c.attempt)
    return [_correction(connection, row) for row in connection.execute(statement)]


def correction(connection: Connection, project: str, correction_id: str) -> Correction:
    """The correction with this id. Raises NotFound."""
    statement = select(corrections).where(corrections.c.project == project, corrections.c.id == correction_id)
    row = connection.execute(statement).first()
    if row is None:
        raise NotFound(f"no correction {correction_id}: `filmroom review list` shows those that wait")
    return _correction(connection, row)


def put_correction(connection: Connection, value: Correction) -> None:
    """Insert the correction, or give it a new state and proposal."""
    row = {
        "id": value.id,
        "project": value.project,
        "cluster_id": value.cluster_id,
        "attempt": value.attempt,
        "state": value.state,
        "target": value.proposal.target if value.proposal else None,
        "created_us": value.created_us,
    }
    if not insert_or_ignore(connection, corrections, [row]):
        connection.execute(update(corrections).where(corrections.c.id == value.id).values(row))
    if value.proposal is not None:
        put_body(connection, value.project, value.id, value.proposal.model_dump(mode="json"))


def set_state(connection: Connection, correction_id: str, state: CorrectionState) -> None:
    connection.execute(update(corrections).where(corrections.c.id == correction_id).values(state=state))


def put_route(connection: Connection, value: Route) -> None:
    row = {
        "id": value.id,
        "project": value.project,
        "correction_id": value.correction_id,
        "cluster_id": value.cluster_id,
        "decided_us": value.decided_us,
        "target": value.target,
        "certified": value.certified,
        "failures": value.failures,
        "router": value.router,
        "decision": value.model_dump(mode="json"),
    }
    insert_or_ignore(connection, routes, [row])


def route_of(connection: Connection, correction_id: str) -> Route | None:
    """The newest route of a correction; None: it has not been routed."""
    statement = (
        select(routes.c.decision)
        .where(routes.c.correction_id == correction_id)
        .order_by(routes.c.decided_us.desc(), routes.c.failures.desc())
        .limit(1)
    )
    found = connection.execute(statement).scalar_one_or_none()
    return None if found is None else Route(**found)


def put_review(connection: Connection, value: Review) -> None:
    row = {"id": value.id, **value.model_dump(mode="json", exclude={"answer"})}
    insert_or_ignore(connection, reviews, [row])
    if value.answer is not None:
        put_body(connection, value.project, value.id, value.answer)


def signers_of(connection: Connection, project: str) -> set[tuple[str, str]]:
    """Corrections and the reviewers who decided them: what such a reviewer wrote there is signed."""
    statement = select(reviews.c.correction_id, reviews.c.reviewer).where(
        reviews.c.project == project, reviews.c.verdict.in_(("approve", "reroute"))
    )
    return {(row.correction_id, row.reviewer) for row in connection.execute(statement)}


def reviews_of(connection: Connection, correction_id: str) -> list[Review]:
    """The reviews of a correction, oldest first."""
    rows = list(
        connection.execute(
            select(reviews).where(reviews.c.correction_id == correction_id).order_by(reviews.c.at_us, reviews.c.id)
        )
    )
    answers = bodies_of(connection, [row.id for row in rows])
    return [
        Review(**{name: value for name, value in row._mapping.items() if name != "id"}, answer=answers.get(row.id))
        for row in rows
    ]


def waiting(
    connection: Connection, project: str, *, states: tuple[CorrectionState, ...] = OPEN
) -> list[tuple[Correction, str, int]]:
    """Corrections in these states with their cluster's name and number of failures, largest cluster first."""
    count = func.count(failures.c.id)
    statement = (
        select(corrections, clusters.c.name.label("cluster_name"), count.label("size"))
        .join(clusters, clusters.c.id == corrections.c.cluster_id)
        .outerjoin(failures, failures.c.cluster_id == clusters.c.id)
        .where(corrections.c.project == project, corrections.c.state.in_(states))
        .group_by(*corrections.c, clusters.c.name)
        .order_by(count.desc(), corrections.c.id)
    )
    rows = list(connection.execute(statement))
    proposals = bodies_of(connection, [row.id for row in rows])
    return [(_built(row, proposals.get(row.id)), row.cluster_name, row.size) for row in rows]


def review_count(connection: Connection, project: str) -> int:
    """How many verdicts people have given."""
    statement = select(func.count()).select_from(reviews).where(reviews.c.project == project)
    return connection.execute(statement).scalar_one()


def target_counts(connection: Connection, project: str) -> dict[str, int]:
    """Corrections per target that were applied or approved."""
    statement = (
        select(corrections.c.target, func.count())
        .where(corrections.c.project == project, corrections.c.state.in_(("applied", "approved")))
        .group_by(corrections.c.target)
    )
    return {row[0] or "none": row[1] for row in connection.execute(statement)}


def _correction(connection: Connection, row: Row[Any]) -> Correction:
    return _built(row, bodies_of(connection, [row.id]).get(row.id))


def _built(row: Row[Any], proposal: Any) -> Correction:
    return Correction(
        project=row.project,
        cluster_id=row.cluster_id,
        attempt=row.attempt,
        state=row.state,
        created_us=row.created_us,
        proposal=None if proposal is None else Proposal(**proposal),
    )
