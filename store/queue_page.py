"""The review queue a page at a time: filters that are columns, counts that are true, and who is at what."""

from collections.abc import Sequence
from typing import Any, Literal

from pydantic import Field
from sqlalchemy import ColumnElement, Connection, Select, and_, exists, func, or_, select

from store.bodies import bodies_of
from store.console_tables import claims, opinions, review_plans
from store.records import Record, Route
from store.tables import clusters, corrections, failures, routes

PAGE = 50
MOST = 1_000
"""Corrections that one bulk verdict may touch."""

Show = Literal["waiting", "queued", "held", "deferred", "done", "second", "adjudicate", "all"]
SHOWS: dict[Show, str] = {
    "waiting": "proposed or deferred: whatever a person has not closed",
    "queued": "proposed, within the queue's cap",
    "held": "proposed, beyond the queue's cap: kept until there is room",
    "deferred": "put off by a reviewer",
    "second": "waits for another reviewer's opinion",
    "adjudicate": "the reviewers disagree",
    "done": "approved, applied, rejected or taken back",
    "all": "every correction",
}


class QueueFilter(Record):
    """What a reviewer wants to see."""

    show: Show = "waiting"
    target: Literal["", "context", "memory", "tooling", "weights", "none"] = ""
    text: str = Field(default="", max_length=200)
    """A part of the cluster's name, or an id."""
    min_failures: int = Field(default=0, ge=0, le=10_000_000)
    mine: bool = False
    """Only what I have claimed."""


class QueueCounts(Record):
    """How many corrections are where; `queued`, `held`, `deferred` and `done` are all there are."""

    queued: int
    held: int
    """Proposed, beyond the cap."""
    deferred: int
    done: int
    second: int
    """Of the first three: wait for another reviewer's opinion."""
    adjudicate: int
    """Of the first three: the reviewers disagree."""

    @property
    def total(self) -> int:
        return self.queued + self.held + self.deferred + self.done


def queue_counts(connection: Connection, project: str, *, cap: int, reviewers: int) -> QueueCounts:
    """The counts; `cap`: corrections shown to people at a time; `reviewers`: opinions an item needs by default."""
    statement = (
        select(corrections.c.state, func.count()).where(corrections.c.project == project).group_by(corrections.c.state)
    )
    states = {row[0]: row[1] for row in connection.execute(statement)}
    proposed, deferred = states.pop("proposed", 0), states.pop("deferred", 0)
    second, adjudicate = _under_way(connection, project, reviewers)
    return QueueCounts(
        queued=min(proposed, cap),
        held=max(0, proposed - cap),
        deferred=deferred,
        done=sum(states.values()),
        second=second,
        adjudicate=adjudicate,
    )


def queue_page(
    connection: Connection,
    project: str,
    wanted: QueueFilter,
    *,
    cap: int,
    reviewers: int,
    me: str,
    now_us: int,
    offset: int = 0,
    limit: int = PAGE,
) -> list[dict[str, Any]]:
    """The corrections of the filter in the queue's order (largest cluster first, deferred and closed ones last)."""
    ids = matching(connection, project, wanted, cap=cap, reviewers=reviewers, me=me, now_us=now_us)
    return items(connection, project, ids[offset : offset + limit], now_us=now_us)


def onward(before: Sequence[str], at: str, now: Sequence[str]) -> list[str]:
    """What is in the queue `now`, in the order in which one goes on from `at`: what followed it in the queue as it was
    `before`, then round to its start, then what is new.

    >>> onward(["a", "b", "c"], "b", ["a", "c", "d"])
    ['c', 'a', 'd']
    """
    line = list(before)
    if at in line:
        place = line.index(at)
        line = [*line[place + 1 :], *line[:place]]
    there = set(now) - {at}
    return [each for each in dict.fromkeys((*line, *now)) if each in there]


def matching(
    connection: Connection, project: str, wanted: QueueFilter, *, cap: int, reviewers: int, me: str, now_us: int
) -> list[str]:
    """The ids of all corrections that the filter shows, in the queue's order."""
    size = _size()
    rank = func.coalesce(func.nullif(corrections.c.state, "proposed"), "")
    statement = (
        select(corrections.c.id, corrections.c.state)
        .join(clusters, clusters.c.id == corrections.c.cluster_id)
        .where(corrections.c.project == project)
        .order_by(rank, size.desc(), corrections.c.id)
    )
    for condition in _conditions(project, wanted, size, reviewers=reviewers, me=me, now_us=now_us):
        statement = statement.where(condition)
    if wanted.show not in ("queued", "held"):
        return list(connection.execute(statement).scalars())
    shown = set(_proposed(connection, project)[:cap])
    found = list(connection.execute(statement).scalars())
    return [each for each in found if (each in shown) == (wanted.show == "queued")]


def items(
    connection: Connection, project: str, ids: Sequence[str], *, now_us: int, routed: bool = True
) -> list[dict[str, Any]]:
    """The list's columns of these corrections, in the order asked; `routed`: with what their routes say."""
    size = _size()
    statement = (
        select(corrections, clusters.c.name, size.label("failures"))
        .join(clusters, clusters.c.id == corrections.c.cluster_id)
        .where(corrections.c.id.in_(ids))
    )
    rows = {row.id: row for row in connection.execute(statement)}
    proposals = bodies_of(connection, list(rows))
    decided = _routes(connection, ids) if routed else {}
    taken = claims_of(connection, project, ids, now_us=now_us)
    return [_item(rows[id_], proposals.get(id_), decided.get(id_), taken.get(id_, [])) for id_ in ids if id_ in rows]


def claims_of(connection: Connection, project: str, ids: Sequence[str], *, now_us: int) -> dict[str, list[str]]:
    """Correction id to the reviewers who are at it now."""
    statement = select(claims.c.correction_id, claims.c.reviewer).where(
        claims.c.project == project, claims.c.correction_id.in_(ids), claims.c.until_us > now_us
    )
    found: dict[str, list[str]] = {}
    for row in connection.execute(statement):
        found.setdefault(row.correction_id, []).append(row.reviewer)
    return found


def _conditions(
    project: str, wanted: QueueFilter, size: Any, *, reviewers: int, me: str, now_us: int
) -> list[ColumnElement[bool]]:
    found: list[ColumnElement[bool]] = _states(project, wanted.show, reviewers)
    if wanted.target == "none":
        found.append(corrections.c.target.is_(None))
    elif wanted.target:
        found.append(corrections.c.target == wanted.target)
    if wanted.text:
        pattern = "%" + _escaped(wanted.text.lower()) + "%"
        found.append(
            or_(
                func.lower(clusters.c.name).like(pattern, escape="\\"),
                corrections.c.id == wanted.text,
                corrections.c.cluster_id == wanted.text,
            )
        )
    if wanted.min_failures:
        found.append(size >= wanted.min_failures)
    if wanted.mine:
        mine = and_(claims.c.project == project, claims.c.correction_id == corrections.c.id, claims.c.reviewer == me)
        found.append(exists().where(mine, claims.c.until_us > now_us))
    return found


def _states(project: str, show: Show, reviewers: int) -> list[ColumnElement[bool]]:
    if show == "all":
        return []
    if show in ("queued", "held"):
        return [corrections.c.state == "proposed"]
    if show == "deferred":
        return [corrections.c.state == "deferred"]
    if show == "done":
        return [corrections.c.state.not_in(("proposed", "deferred"))]
    waiting: list[ColumnElement[bool]] = [corrections.c.state.in_(("proposed", "deferred"))]
    if show == "waiting":
        return waiting
    said = _said(project).subquery()
    needed = func.coalesce(review_plans.c.reviewers, reviewers)
    enough = (
        select(said.c.correction_id)
        .outerjoin(
            review_plans,
            and_(review_plans.c.project == project, review_plans.c.correction_id == said.c.correction_id),
        )
        .where(said.c.given >= needed if show == "adjudicate" else said.c.given < needed)
    )
    return [*waiting, corrections.c.id.in_(enough)]


def _said(project: str) -> Select[Any]:
    """Correction id to how many open opinions it has."""
    return (
        select(opinions.c.correction_id, func.count().label("given"))
        .where(opinions.c.project == project, opinions.c.open.is_(True))
        .group_by(opinions.c.correction_id)
    )


def _under_way(connection: Connection, project: str, reviewers: int) -> tuple[int, int]:
    """Open corrections that wait for another opinion, and those whose reviewers disagree."""
    counts = []
    for show in ("second", "adjudicate"):
        statement = select(func.count()).select_from(corrections).where(corrections.c.project == project)
        for condition in _states(project, show, reviewers):
            statement = statement.where(condition)
        counts.append(connection.execute(statement).scalar_one())
    return counts[0], counts[1]


def _proposed(connection: Connection, project: str) -> list[str]:
    statement = (
        select(corrections.c.id)
        .where(corrections.c.project == project, corrections.c.state == "proposed")
        .order_by(_size().desc(), corrections.c.id)
    )
    return list(connection.execute(statement).scalars())


def _size() -> Any:
    """Failures of a correction's cluster, counted in the index."""
    return (
        select(func.count())
        .where(failures.c.project == corrections.c.project, failures.c.cluster_id == corrections.c.cluster_id)
        .correlate(corrections)
        .scalar_subquery()
    )


def _routes(connection: Connection, ids: Sequence[str]) -> dict[str, Route]:
    """Correction id to its newest route."""
    statement = (
        select(routes.c.correction_id, routes.c.decision)
        .where(routes.c.correction_id.in_(ids))
        .order_by(routes.c.decided_us, routes.c.failures)
    )
    return {row.correction_id: Route(**row.decision) for row in connection.execute(statement)}


def _item(row: Any, proposal: Any, decided: Route | None, taken: list[str]) -> dict[str, Any]:
    proposed = proposal or {}
    return {
        "correction": row.id,
        "cluster": row.cluster_id,
        "name": row.name,
        "failures": row.failures,
        "state": row.state,
        "attempt": row.attempt,
        "target": row.target,
        "probability": decided.probabilities.get(row.target or "none", 0.0) if decided else None,
        "runner_up": decided.runner_up if decided else None,
        "certified": decided.certified if decided else False,
        "summary": proposed.get("summary") or "no single place found",
        "needs_answer": proposed.get("needs_answer"),
        "claimed_by": taken,
    }


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
