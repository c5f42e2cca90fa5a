"""What there is to tell of a cluster: how many failed, of whom, and when."""

from datetime import UTC, datetime

from sqlalchemy import Connection, func, select

from store.records import Record
from store.tables import failures, traces


class ClusterStory(Record):
    """A cluster in numbers."""

    failures: int
    users: int
    """Distinct users who met it; 0: the log does not name any."""
    first: str | None
    """Day of the first failure, `2026-01-31`; None: no trace of it has a time."""
    last: str | None


def story(connection: Connection, project: str, cluster_id: str) -> ClusterStory:
    """The numbers of one cluster."""
    statement = (
        select(
            func.count(),
            func.count(traces.c.user.distinct()),
            func.min(traces.c.started_us),
            func.max(traces.c.started_us),
        )
        .select_from(failures)
        .join(traces, traces.c.id == failures.c.trace_id)
        .where(failures.c.project == project, failures.c.cluster_id == cluster_id, failures.c.withdrawn.is_(False))
    )
    count, users, first, last = connection.execute(statement).one()
    return ClusterStory(failures=count, users=users, first=_day(first), last=_day(last))


def _day(at_us: int | None) -> str | None:
    if at_us is None:
        return None
    try:
        return datetime.fromtimestamp(at_us / 1_000_000, tz=UTC).strftime("%Y-%m-%d")
    except (OverflowError, ValueError, OSError):
        return None
