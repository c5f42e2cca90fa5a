"""What a person could decide or label next: waiting corrections of a place, and a model's answers without a label."""

from typing import Any

from sqlalchemy import Connection, Row, exists, or_, select

from store.corrections import OPEN
from store.tables import corrections, failures, feedback, routes, spans, traces

LOOKED_AT = 1000
"""Newest answers of a model that are looked through."""
WAITING = 200
"""Newest corrections of a place that are compared: a page shows them, and must not wait for all."""


def waiting_for(connection: Connection, project: str, place: str, *, limit: int) -> list[str]:
    """Ids of the open corrections that are routed to the place, the surest of the newest 200 first."""
    newest = (
        select(corrections.c.id)
        .where(corrections.c.project == project, corrections.c.state.in_(OPEN), corrections.c.target == place)
        .order_by(corrections.c.created_us.desc(), corrections.c.id)
        .limit(WAITING)
    )
    statement = (
        select(routes.c.correction_id, routes.c.decision)
        .where(routes.c.correction_id.in_(newest), routes.c.target == place)
        .order_by(routes.c.decided_us.desc(), routes.c.failures.desc())
    )
    found: dict[str, float] = {}
    for row in connection.execute(statement):
        found.setdefault(row.correction_id, row.decision["probabilities"].get(place, 0.0))
    return sorted(found, key=lambda id_: (-found[id_], id_))[:limit]


def unlabelled_answers(connection: Connection, project: str, model: str) -> list[Row[Any]]:
    """Traces in which the model answered and that nobody gave a label: `trace_id, user, confidence, failed, said`, newest first.

    `said`: there is feedback, whose text may still hold a right answer.
    """
    fed = exists().where(feedback.c.trace_id == spans.c.trace_id)
    named = exists().where(feedback.c.trace_id == spans.c.trace_id, feedback.c.label.is_not(None))
    statement = (
        select(spans.c.trace_id, traces.c.user, spans.c.confidence, failures.c.id.is_not(None).label("failed"), fed.label("said"))
        .join(traces, traces.c.id == spans.c.trace_id)
        .outerjoin(failures, (failures.c.trace_id == spans.c.trace_id) & failures.c.withdrawn.is_(False))
        .where(traces.c.project == project, spans.c.kind == "predict", or_(spans.c.name == model, spans.c.model == model), ~named)
        .order_by(traces.c.started_us.desc(), spans.c.trace_id)
        .limit(LOOKED_AT)
    )  # fmt: skip
    return list(connection.execute(statement))
