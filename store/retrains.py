"""Every evaluation of the retrain trigger, and the rows that models learn from."""

from typing import Any

from sqlalchemy import Connection, delete, or_, select

from store.database import insert_or_ignore, upsert
from store.records import Retrain
from store.tables import dataset_rows, retrains


def put_retrain(connection: Connection, value: Retrain) -> None:
    row = {
        **value.model_dump(
            mode="json", include={"id", "project", "model", "at_us", "decision", "arm", "version", "data_digest"}
        ),
        "record": value.model_dump(mode="json"),
    }
    insert_or_ignore(connection, retrains, [row])


def retrains_of(
    connection: Connection, project: str, model: str | None = None, limit: int | None = None
) -> list[Retrain]:
    """The evaluations of the trigger, newest first."""
    statement = (
        select(retrains.c.record)
        .where(retrains.c.project == project)
        .order_by(retrains.c.at_us.desc(), retrains.c.id)
        .limit(limit)
    )
    if model is not None:
        statement = statement.where(retrains.c.model == model)
    return [Retrain(**record) for record in connection.execute(statement).scalars()]


def retrain(connection: Connection, retrain_id: str) -> Retrain | None:
    record = connection.execute(select(retrains.c.record).where(retrains.c.id == retrain_id)).scalar_one_or_none()
    return None if record is None else Retrain(**record)


def promotion(connection: Connection, project: str, any_id: str) -> Retrain | None:
    """The promotion with this id, or the newest one of this version; None: it is neither."""
    statement = (
        select(retrains.c.record)
        .where(
            retrains.c.project == project,
            retrains.c.decision == "promoted",
            or_(retrains.c.id == any_id, retrains.c.version == any_id),
        )
        .order_by(retrains.c.at_us.desc(), retrains.c.id)
        .limit(1)
    )
    record = connection.execute(statement).scalar_one_or_none()
    return None if record is None else Retrain(**record)


def put_dataset_row(connection: Connection, row: dict[str, Any]) -> None:
    """Add one labelled example to a model's corrections, or label it anew."""
    upsert(connection, dataset_rows, row)


def remove_dataset_rows(connection: Connection, project: str, correction_id: str) -> int:
    """Take a correction's examples out again; returns how many there were."""
    statement = delete(dataset_rows).where(
        dataset_rows.c.project == project, dataset_rows.c.correction_id == correction_id
    )
    return connection.execute(statement).rowcount


def dataset_of(connection: Connection, project: str, model: str) -> list[dict[str, Any]]:
    """The corrections approved for a model, oldest first: label, source, trace and span of each."""
    statement = (
        select(dataset_rows)
        .where(dataset_rows.c.project == project, dataset_rows.c.model == model)
        .order_by(dataset_rows.c.at_us, dataset_rows.c.id)
    )
    return [dict(row._mapping) for row in connection.execute(statement)]
