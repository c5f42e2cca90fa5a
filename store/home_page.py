"""What the first page of the console says: the failure rate over time, where corrections went, whether they held."""

from typing import Any

from sqlalchemy import Connection, func, or_, select

from store.console_tables import opinions
from store.records import Record, Retrain
from store.tables import arrivals, changes, corrections, failures, holds, ledger, releases, retrains, reviews, traces

DAY_US = 86_400_000_000


class Day(Record):
    """One day of the log, UTC."""

    day_us: int
    """Its midnight, microseconds since 1970 UTC."""
    traces: int
    failures: int
    recurrences: int
    """Failures of clusters whose correction was live already."""


def days(connection: Connection, project: str, *, limit: int = 60) -> list[Day]:
    """The last `limit` days up to the newest trace, days without traces included, oldest first."""
    newest = connection.execute(
        select(func.max(traces.c.started_us)).where(traces.c.project == project)
    ).scalar_one_or_none()
    if newest is None:
        return []
    last = newest - newest % DAY_US
    first = last - (limit - 1) * DAY_US
    failed, recurred = _failed(connection, project, first), _recurred(connection, project, first)
    found = []
    for number in range(limit):
        day_us = first + number * DAY_US
        found.append(
            Day(
                day_us=day_us,
                traces=_count(connection, project, day_us),
                failures=failed.get(day_us, 0),
                recurrences=recurred.get(day_us, 0),
            )
        )
    while found and not found[0].traces:
        found.pop(0)
    return found


def state_mark(connection: Connection, project: str) -> tuple[int, int]:
    """The numbers of the last arrival and of the last event: while both stay, no page says anything else."""
    last = select(func.max(arrivals.c.seq)).where(arrivals.c.project == project)
    told = select(func.max(ledger.c.seq)).where(ledger.c.project == project)
    return (connection.execute(last).scalar_one_or_none() or 0, connection.execute(told).scalar_one_or_none() or 0)


def destinations(connection: Connection, project: str) -> dict[str, dict[str, int]]:
    """Where corrections went: target (`none`: nowhere yet) to state to how many."""
    statement = (
        select(corrections.c.target, corrections.c.state, func.count())
        .where(corrections.c.project == project)
        .group_by(corrections.c.target, corrections.c.state)
    )
    found: dict[str, dict[str, int]] = {}
    for target, state, count in connection.execute(statement):
        found.setdefault(target or "none", {})[state] = count
    return found


def outcomes(connection: Connection, project: str) -> dict[str, dict[str, int]]:
    """Target to state of the hold to how many changes; `unwatched`: the change has no hold.

    Changes that were undone count only where their hold had ended before.
    """
    statement = (
        select(changes.c.target, func.coalesce(holds.c.state, "unwatched"), func.count())
        .outerjoin(holds, holds.c.change_id == changes.c.id)
        .where(changes.c.project == project, or_(changes.c.state == "live", holds.c.state != "holding"))
        .group_by(changes.c.target, holds.c.state)
    )
    found: dict[str, dict[str, int]] = {}
    for target, state, count in connection.execute(statement):
        found.setdefault(target, {})[state] = count
    return found


def release_marks(connection: Connection, project: str, since_us: int) -> list[dict[str, Any]]:
    """Releases made since then, oldest first: `release, number, created_us, reason`."""
    statement = (
        select(releases.c.id, releases.c.number, releases.c.created_us, releases.c.reason)
        .where(releases.c.project == project, releases.c.created_us >= since_us)
        .order_by(releases.c.number)
    )
    return [
        {"release": row.id, "number": row.number, "created_us": row.created_us, "reason": row.reason}
        for row in connection.execute(statement)
    ]


def verdict_count(connection: Connection, project: str) -> int:
    """Verdicts that people gave."""
    statement = select(func.count()).select_from(reviews).where(reviews.c.project == project)
    return connection.execute(statement).scalar_one()


def _count(connection: Connection, project: str, day_us: int) -> int:
    """Counted in the index alone."""
    statement = select(func.count()).where(
        traces.c.project == project, traces.c.started_us >= day_us, traces.c.started_us < day_us + DAY_US
    )
    return connection.execute(statement).scalar_one()


def _failed(connection: Connection, project: str, since_us: int) -> dict[int, int]:
    day = traces.c.started_us - traces.c.started_us % DAY_US
    statement = (
        select(day, func.count())
        .select_from(failures)
        .join(traces, traces.c.id == failures.c.trace_id)
        .where(failures.c.project == project, failures.c.withdrawn.is_(False), traces.c.started_us >= since_us)
        .group_by(day)
    )
    return {row[0]: row[1] for row in connection.execute(statement)}


def _recurred(connection: Connection, project: str, since_us: int) -> dict[int, int]:
    """Failures in clusters that had a live change when the trace started."""
    live = (
        select(corrections.c.cluster_id, func.min(changes.c.applied_us).label("since_us"))
        .join(changes, changes.c.correction_id == corrections.c.id)
        .where(changes.c.project == project, changes.c.state == "live", changes.c.target != "weights")
        .group_by(corrections.c.cluster_id)
        .subquery()
    )
    day = traces.c.started_us - traces.c.started_us % DAY_US
    statement = (
        select(day, func.count())
        .select_from(live)
        .join(failures, failures.c.cluster_id == live.c.cluster_id)
        .join(traces, traces.c.id == failures.c.trace_id)
        .where(
            failures.c.project == project,
            failures.c.withdrawn.is_(False),
            traces.c.started_us > live.c.since_us,
            traces.c.started_us >= since_us,
        )
        .group_by(day)
    )
    return {row[0]: row[1] for row in connection.execute(statement)}


def averted(connection: Connection, project: str) -> tuple[int, float | None, int]:
    """Over the live changes that are watched and whose rate before was measured: exposures since, failures that the rate
    before would have given there (None: no such change), failures there were."""
    statement = (
        select(
            func.sum(holds.c.exposures), func.sum(holds.c.exposures * holds.c.baseline), func.sum(holds.c.recurrences)
        )
        .join(changes, changes.c.id == holds.c.change_id)
        .where(changes.c.project == project, changes.c.state == "live", holds.c.baseline.is_not(None))
    )
    exposures, expected, recurred = connection.execute(statement).one()
    return int(exposures or 0), None if expected is None else float(expected), int(recurred or 0)


def trained(connection: Connection, project: str) -> list[Retrain]:
    """The evaluations that trained something."""
    statement = select(retrains.c.record).where(
        retrains.c.project == project, retrains.c.arm.is_not(None), retrains.c.decision.in_(("refused", "promoted"))
    )
    return [Retrain(**record) for record in connection.execute(statement.limit(1000)).scalars()]


def review_seconds(connection: Connection, project: str) -> tuple[int, float]:
    """Opinions whose time was measured, and their seconds."""
    statement = select(func.count(opinions.c.seconds), func.sum(opinions.c.seconds)).where(
        opinions.c.project == project
    )
    count, seconds = connection.execute(statement).one()
    return int(count), float(seconds or 0.0)
