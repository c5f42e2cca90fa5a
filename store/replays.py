"""Replays: what a change did to cases of the log before it went live."""

from collections.abc import Iterable
from typing import Any

from sqlalchemy import Connection, Row, insert, select

from store.bodies import bodies_of, put_new_bodies
from store.bulk import listed
from store.database import insert_or_ignore
from store.records import Replay, ReplayResult
from store.tables import replay_results, replays


def put_replay(connection: Connection, value: Replay, results: list[ReplayResult]) -> None:
    """Keep a replay with every answer; the words of the answers stand in bodies, as text of people does."""
    insert_or_ignore(connection, replays, [{"id": value.id, **value.model_dump(mode="json")}])
    rows = [{"replay_id": value.id, **each.model_dump(mode="json", exclude={"output"})} for each in results]
    if rows:
        connection.execute(insert(replay_results), rows)
    bodies = {_owner(value.id, each): each.output for each in results if each.output is not None}
    put_new_bodies(connection, value.project, bodies)


def replays_of(connection: Connection, correction_id: str) -> list[Replay]:
    """The replays of a correction, newest first."""
    statement = select(replays).where(replays.c.correction_id == correction_id).order_by(replays.c.at_us.desc())
    return [Replay(**{k: v for k, v in row._mapping.items() if k != "id"}) for row in connection.execute(statement)]


def replay_of(connection: Connection, correction_id: str, digest: str, release_id: str) -> Replay | None:
    """The newest replay of exactly these deltas over this release; None: there is none."""
    found = replays_of(connection, correction_id)
    return next((each for each in found if (each.digest, each.release_id) == (digest, release_id)), None)


def results_of(connection: Connection, replay_id: str) -> list[ReplayResult]:
    """Every answer of a replay, cases first."""
    statement = (
        select(replay_results)
        .where(replay_results.c.replay_id == replay_id)
        .order_by(replay_results.c.role, replay_results.c.trace_id, replay_results.c.arm, replay_results.c.repeat)
    )
    found = [
        ReplayResult(**{k: v for k, v in row._mapping.items() if k != "replay_id"})
        for row in connection.execute(statement)
    ]
    outputs = bodies_of(connection, [_owner(replay_id, each) for each in found])
    return [each.model_copy(update={"output": outputs.get(_owner(replay_id, each))}) for each in found]


def replayed(connection: Connection, trace_ids: Iterable[str]) -> list[str]:
    """The owners of the bodies that hold what these traces were answered in replays."""
    statement = select(replay_results).where(replay_results.c.trace_id.in_(listed(connection, trace_ids)))
    return [_owner(row.replay_id, row) for row in connection.execute(statement)]


def _owner(replay_id: str, each: ReplayResult | Row[Any]) -> str:
    return f"{replay_id}:{each.trace_id}:{each.arm}:{each.repeat}"
