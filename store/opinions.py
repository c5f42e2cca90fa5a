"""What each reviewer said of a correction before it was decided, and who is at which one."""

from typing import Any

from sqlalchemy import Connection, and_, delete, func, insert, or_, select, update

from store.bodies import bodies_of, put_body
from store.console_tables import claims, opinions, review_plans
from store.database import upsert
from store.records import Record, Target, Verdict, derived_id
from store.tables import changes, corrections, holds


class Opinion(Record):
    """One reviewer's verdict on a correction."""

    project: str = "default"
    correction_id: str
    reviewer: str
    verdict: Verdict
    target: Target | None = None
    """Where it belongs, of an approval or a reroute."""
    reason: str = ""
    answer: Any = None
    at_us: int
    seconds: float | None = None
    """How long the correction was looked at; None: not measured."""
    blind: bool = False
    """Given without having seen the others'."""
    decides: bool = False
    """Settles a disagreement of others."""
    open: bool = True
    """Whether it still counts: not after the correction was opened again, and never of a deferral, which decides nothing."""

    @property
    def id(self) -> str:
        return derived_id("opi", self.correction_id, self.reviewer, str(self.at_us))

    @property
    def category(self) -> str:
        """What agreement is measured on.

        >>> Opinion(correction_id="c", reviewer="r", verdict="reroute", target="memory", at_us=0).category
        'memory'
        """
        return self.target or self.verdict


def put_opinion(connection: Connection, value: Opinion) -> None:
    row = {"id": value.id, **value.model_dump(exclude={"answer"})}
    connection.execute(insert(opinions), [row])
    if value.answer is not None:
        put_body(connection, value.project, value.id, value.answer)


def opinions_on(connection: Connection, project: str, correction_id: str) -> list[Opinion]:
    """The opinions on a correction that still count, oldest first."""
    statement = (
        select(opinions)
        .where(opinions.c.project == project, opinions.c.correction_id == correction_id, opinions.c.open.is_(True))
        .order_by(opinions.c.at_us, opinions.c.id)
    )
    return _built(connection, list(connection.execute(statement)))


def withdraw_opinion(connection: Connection, project: str, correction_id: str, reviewer: str) -> bool:
    """Take a reviewer's own opinion back, before it is decided on. Whether there was one."""
    done = connection.execute(
        update(opinions)
        .where(
            opinions.c.project == project,
            opinions.c.correction_id == correction_id,
            opinions.c.reviewer == reviewer,
            opinions.c.open.is_(True),
        )
        .values(open=False)
    )
    return done.rowcount > 0


def close_opinions(connection: Connection, project: str, correction_id: str) -> None:
    """From now on none of them counts: the correction was decided and is opened again."""
    connection.execute(
        update(opinions)
        .where(opinions.c.project == project, opinions.c.correction_id == correction_id)
        .values(open=False)
    )


def all_opinions(connection: Connection, project: str, *, since_us: int = 0, limit: int = 20_000) -> list[Opinion]:
    """The newest opinions, withdrawn ones included, oldest first; without what was written."""
    statement = (
        select(opinions)
        .where(opinions.c.project == project, opinions.c.at_us >= since_us)
        .order_by(opinions.c.at_us.desc(), opinions.c.id)
        .limit(limit)
    )
    rows = [{k: v for k, v in row._mapping.items() if k != "id"} for row in connection.execute(statement)]
    return [Opinion(**row) for row in reversed(rows)]


def ended_holds(connection: Connection, project: str) -> dict[str, tuple[str, bool]]:
    """Correction id to the target of its newest change with an ended hold, and whether it held."""
    statement = (
        select(changes.c.correction_id, changes.c.target, holds.c.state)
        .join(holds, holds.c.change_id == changes.c.id)
        .where(changes.c.project == project, holds.c.state.in_(("held", "failed")))
        .order_by(holds.c.updated_us)
    )
    return {row.correction_id: (row.target, row.state == "held") for row in connection.execute(statement)}


def reviewers_wanted(connection: Connection, project: str, correction_id: str, default: int) -> int:
    """Opinions that this correction needs before it is decided."""
    statement = select(review_plans.c.reviewers).where(
        review_plans.c.project == project, review_plans.c.correction_id == correction_id
    )
    return connection.execute(statement).scalar_one_or_none() or default


def want_reviewers(connection: Connection, project: str, correction_id: str, number: int) -> None:
    upsert(connection, review_plans, {"project": project, "correction_id": correction_id, "reviewers": number})


def take_claim(
    connection: Connection, project: str, correction_id: str, reviewer: str, *, places: int, now_us: int, until_us: int
) -> bool:
    """Claim a correction, or claim it longer. False where others have all its `places`."""
    mine = and_(claims.c.project == project, claims.c.correction_id == correction_id)
    connection.execute(delete(claims).where(mine, claims.c.until_us <= now_us))
    others = select(func.count()).where(mine, claims.c.reviewer != reviewer)
    if connection.execute(others).scalar_one() >= max(1, places):
        return False
    row = {"project": project, "correction_id": correction_id, "reviewer": reviewer, "taken_us": now_us,
           "until_us": until_us}  # fmt: skip
    held = select(claims.c.taken_us).where(mine, claims.c.reviewer == reviewer)
    taken_us = connection.execute(held).scalar_one_or_none()
    upsert(connection, claims, {**row, "taken_us": taken_us or now_us})
    return True


def drop_claim(connection: Connection, project: str, correction_id: str, reviewer: str) -> None:
    connection.execute(
        delete(claims).where(
            claims.c.project == project, claims.c.correction_id == correction_id, claims.c.reviewer == reviewer
        )
    )


def next_for(connection: Connection, project: str, ids: list[str], reviewer: str, *, now_us: int) -> str | None:
    """The first of these corrections that the reviewer has no opinion on and nobody else is at; None: there is none."""
    said = select(opinions.c.correction_id).where(
        opinions.c.project == project, opinions.c.reviewer == reviewer, opinions.c.open.is_(True)
    )
    taken = select(claims.c.correction_id).where(
        claims.c.project == project, claims.c.reviewer != reviewer, claims.c.until_us > now_us
    )
    left = select(corrections.c.id).where(
        corrections.c.project == project, or_(corrections.c.id.in_(said), corrections.c.id.in_(taken))
    )
    away = set(connection.execute(left).scalars())
    return next((each for each in ids if each not in away), None)


def _built(connection: Connection, rows: list[Any]) -> list[Opinion]:
    answers = bodies_of(connection, [row.id for row in rows])
    return [Opinion(**{k: v for k, v in row._mapping.items() if k != "id"}, answer=answers.get(row.id)) for row in rows]
