"""Failures and their clusters."""

from collections.abc import Iterable, Sequence
from typing import Any

from sqlalchemy import Connection, Row, bindparam, func, insert, select, update

from store.bodies import in_parts
from store.database import insert_or_ignore
from store.records import Case, Cluster, Failure, Fingerprint, Signal, derived_id, short_hash
from store.tables import cluster_aliases, clusters, cursors, failures, signals
from store.traces import episodes


def cursor(connection: Connection, project: str, name: str) -> int:
    """How far the reader `name` has read; 0 at the start."""
    statement = select(cursors.c.seq).where(cursors.c.project == project, cursors.c.name == name)
    return connection.execute(statement).scalar_one_or_none() or 0


def move_cursor(connection: Connection, project: str, name: str, seq: int) -> None:
    insert_or_ignore(connection, cursors, [{"project": project, "name": name, "seq": 0}])
    connection.execute(update(cursors).where(cursors.c.project == project, cursors.c.name == name).values(seq=seq))


def record_signals(connection: Connection, project: str, found: Sequence[Signal]) -> None:
    """Keep the signals; one that is there already is left as it is."""
    insert_or_ignore(
        connection, signals, [{"id": signal.id, "project": project, **signal.model_dump()} for signal in found]
    )


def record_failures(connection: Connection, picked: Sequence[Failure]) -> list[str]:
    """Insert the failures that are new; returns their ids. A trace fails once at most."""
    known = failure_ids(connection, [failure.trace_id for failure in picked])
    fresh = {failure.trace_id: failure for failure in picked if failure.trace_id not in known}
    rows = [
        {"id": each.id, **each.model_dump(mode="json", exclude={"fingerprint"}), "withdrawn": False}
        for each in fresh.values()
    ]
    if rows:
        connection.execute(insert(failures), rows)
    return [failure.id for failure in fresh.values()]


def failure_ids(connection: Connection, trace_ids: Iterable[str]) -> dict[str, str]:
    """Trace id to failure id, for those of the traces that failed."""
    found: dict[str, str] = {}
    for part in in_parts(list(trace_ids)):
        statement = select(failures.c.trace_id, failures.c.id).where(failures.c.trace_id.in_(part))
        found.update({row.trace_id: row.id for row in connection.execute(statement)})
    return found


def unclustered(connection: Connection, project: str, limit: int) -> list[Case]:
    """The next failures without a cluster, with all that is known of them."""
    statement = (
        select(failures)
        .where(failures.c.project == project, failures.c.cluster_id.is_(None), failures.c.withdrawn.is_(False))
        .order_by(failures.c.id)
        .limit(limit)
    )
    return _cases(connection, list(connection.execute(statement)))


def rejudge(connection: Connection, failure: Failure, *, withdrawn: bool) -> None:
    """Take in what arrived since a failure was picked up: it is clustered anew, or withdrawn if it no longer looks like one."""
    values = failure.model_dump(include={"probability", "span_id", "source", "authority"})
    connection.execute(
        update(failures)
        .where(failures.c.id == failure.id)
        .values(**values, cluster_id=None, fingerprint=None, withdrawn=withdrawn)
    )


def place_all(connection: Connection, placed: Sequence[tuple[str, Fingerprint, str]]) -> None:
    """Put failures into clusters: failure id, its fingerprint, cluster id."""
    statement = (
        update(failures)
        .where(failures.c.id == bindparam("failure"))
        .values(cluster_id=bindparam("cluster"), fingerprint=bindparam("print", type_=failures.c.fingerprint.type))
    )
    rows = [{"failure": id, "print": print_.model_dump(), "cluster": cluster_id} for id, print_, cluster_id in placed]
    if rows:
        connection.execute(statement, rows)


def cluster_for(connection: Connection, project: str, fingerprint: Fingerprint, name: str, now_us: int) -> str:
    """The cluster with this fingerprint; made when there is none."""
    key = short_hash(fingerprint.key)
    alias = {"project": project, "fingerprint_version": fingerprint.version, "fingerprint": key}
    statement = select(cluster_aliases.c.cluster_id).filter_by(**alias)
    known = connection.execute(statement).scalar_one_or_none()
    if known is not None:
        return str(known)
    cluster_id = derived_id("clu", project, str(fingerprint.version), key)
    make_cluster(connection, project, cluster_id, fingerprint, name, now_us)
    insert_or_ignore(connection, cluster_aliases, [{**alias, "cluster_id": cluster_id}])
    return cluster_id


def make_cluster(
    connection: Connection, project: str, cluster_id: str, fingerprint: Fingerprint, name: str, now_us: int
) -> None:
    """A cluster without failures; one that is there already is left as it is."""
    row = {
        "id": cluster_id,
        "project": project,
        "name": name,
        "fingerprint": fingerprint.model_dump(),
        "created_us": now_us,
        "no_single_place": False,
        "changed_us": now_us,
    }
    insert_or_ignore(connection, clusters, [row])


def move_failures(connection: Connection, failure_ids: Sequence[str], cluster_id: str) -> None:
    """Put failures into another cluster; their fingerprints stay."""
    for part in in_parts(list(failure_ids)):
        connection.execute(update(failures).where(failures.c.id.in_(part)).values(cluster_id=cluster_id))


def move_cluster(connection: Connection, cluster_id: str, into: str) -> None:
    """Put all failures of a cluster into another; their fingerprints stay."""
    connection.execute(update(failures).where(failures.c.cluster_id == cluster_id).values(cluster_id=into))


def widen(connection: Connection, cluster_id: str, fingerprint: Fingerprint, name: str) -> None:
    """The cluster holds more than its fingerprint said: what all its failures have in common, and the name for that."""
    row = {"fingerprint": fingerprint.model_dump(), "name": name}
    connection.execute(update(clusters).where(clusters.c.id == cluster_id).values(**row))


def point_to(connection: Connection, project: str, cluster_id: str, into: str) -> None:
    """What has a fingerprint of the first cluster belongs in the second from now on."""
    same = (cluster_aliases.c.project == project, cluster_aliases.c.cluster_id == cluster_id)
    connection.execute(update(cluster_aliases).where(*same).values(cluster_id=into))


def mark_changed(connection: Connection, cluster_id: str, now_us: int) -> None:
    connection.execute(update(clusters).where(clusters.c.id == cluster_id).values(changed_us=now_us))


def mark_no_single_place(connection: Connection, cluster_id: str) -> None:
    connection.execute(update(clusters).where(clusters.c.id == cluster_id).values(no_single_place=True))


def clusters_of(connection: Connection, project: str, ids: Sequence[str] | None = None) -> list[Cluster]:
    """The project's clusters that hold failures, largest first; or only those asked for."""
    count = func.count(failures.c.id)
    statement = (
        select(clusters, count.label("failures"))
        .join(failures, failures.c.cluster_id == clusters.c.id)
        .where(clusters.c.project == project)
        .group_by(*clusters.c)
        .order_by(count.desc(), clusters.c.id)
    )
    if ids is not None:
        statement = statement.where(clusters.c.id.in_(ids))
    return [_cluster(row) for row in connection.execute(statement)]


def cluster(connection: Connection, cluster_id: str) -> Cluster | None:
    """One cluster with its number of failures; None: there is none with this id."""
    count = select(func.count()).select_from(failures).where(failures.c.cluster_id == cluster_id).scalar_subquery()
    row = connection.execute(select(clusters, count.label("failures")).where(clusters.c.id == cluster_id)).first()
    return None if row is None else _cluster(row)


def cases_of(connection: Connection, cluster_id: str, limit: int | None = None) -> list[Case]:
    """The failures of a cluster with all that is known of them, newest first."""
    statement = (
        select(failures)
        .where(failures.c.cluster_id == cluster_id)
        .order_by(failures.c.picked_us.desc(), failures.c.id)
        .limit(limit)
    )
    return _cases(connection, list(connection.execute(statement)))


def cases_in(connection: Connection, cluster_ids: Sequence[str], limit: int) -> list[Case]:
    """The failures of several clusters together, newest first."""
    rows = [
        row
        for part in in_parts(list(cluster_ids))
        for row in connection.execute(
            select(failures)
            .where(failures.c.cluster_id.in_(part), failures.c.withdrawn.is_(False))
            .order_by(failures.c.picked_us.desc(), failures.c.id)
            .limit(limit)
        )
    ]
    return _cases(connection, sorted(rows, key=lambda row: (-row.picked_us, row.id))[:limit])


def newest_failing(connection: Connection, project: str, limit: int) -> list[str]:
    """Ids of the traces that were picked up last, newest first."""
    statement = (
        select(failures.c.trace_id)
        .where(failures.c.project == project, failures.c.withdrawn.is_(False))
        .order_by(failures.c.picked_us.desc(), failures.c.id)
        .limit(limit)
    )
    return list(connection.execute(statement).scalars())


def failure(connection: Connection, failure_id: str) -> Failure | None:
    """One failure; None: there is none with this id."""
    row = connection.execute(select(failures).where(failures.c.id == failure_id)).first()
    return None if row is None else _failure(row)


def count_failures(connection: Connection, project: str) -> int:
    statement = (
        select(func.count()).select_from(failures).where(failures.c.project == project, failures.c.withdrawn.is_(False))
    )
    return connection.execute(statement).scalar_one()


def _cases(connection: Connection, rows: list[Row[Any]]) -> list[Case]:
    trace_ids = [row.trace_id for row in rows]
    known = {episode.trace.id: episode for episode in episodes(connection, trace_ids)}
    found: dict[str, list[Signal]] = {}
    for part in in_parts(trace_ids):
        for row in connection.execute(select(signals).where(signals.c.trace_id.in_(part)).order_by(signals.c.id)):
            values = {name: value for name, value in row._mapping.items() if name not in ("id", "project")}
            found.setdefault(row.trace_id, []).append(Signal(**values))
    return [
        Case(failure=_failure(row), episode=known[row.trace_id], signals=tuple(found.get(row.trace_id, ())))
        for row in rows
        if row.trace_id in known
    ]


def _failure(row: Row[Any]) -> Failure:
    values = {name: value for name, value in row._mapping.items() if name not in ("id", "withdrawn")}
    return Failure(**values)


def _cluster(row: Row[Any]) -> Cluster:
    return Cluster(**{name: value for name, value in row._mapping.items() if name != "changed_us"})
