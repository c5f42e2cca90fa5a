"""`[store] keep_days`: the text of old traces goes unless something open needs it; ids and decisions stay."""

from pathlib import Path

from sqlalchemy import select

from flows.pickup import pickup
from flows.pull import retain
from flows.route import cluster, route
from flows.workspace import Workspace
from store.ingest import ingest
from store.settings import StoreSection
from store.sources import read
from store.tables import bodies, traces
from tests.shop_log import DAY_S, START_S, bad_argument, satisfied, working_in, write_lines


def texts(workspace: Workspace) -> set[str]:
    """External ids of the traces that have their text."""
    with workspace.store.read() as connection:
        found = connection.execute(select(traces.c.external_id).join(bodies, bodies.c.id == traces.c.id))
        return set(found.scalars())


def keeping(workspace: Workspace, days: float | None, *, at_day: int) -> Workspace:
    url = workspace.settings.store.url
    settings = workspace.settings.model_copy(update={"store": StoreSection(url=url, keep_days=days)})
    return workspace.acting(settings=settings, clock=lambda: (START_S + at_day * DAY_S) * 1_000_000)


def test_old_texts_go_but_those_of_open_corrections(tmp_path: Path) -> None:
    log = write_lines(tmp_path / "log.jsonl", satisfied(1), *(bad_argument(n) for n in range(20, 26)))
    with working_in(tmp_path / "home") as workspace:
        ingest(workspace.store, read(log), clock=lambda: START_S * 1_000_000)
        later = keeping(workspace, 30, at_day=60)
        pickup(later)
        cluster(later)
        route(later)
        assert retain(later) == 1
        assert texts(workspace) == {f"t{n}" for n in range(20, 26)}
        assert retain(later) == 0


def test_what_is_young_or_was_not_looked_at_stays_and_nothing_goes_without_the_setting(tmp_path: Path) -> None:
    log = write_lines(tmp_path / "log.jsonl", satisfied(1))
    with working_in(tmp_path / "home") as workspace:
        ingest(workspace.store, read(log), clock=lambda: START_S * 1_000_000)
        assert retain(keeping(workspace, 30, at_day=60)) == 0
        pickup(keeping(workspace, 30, at_day=60))
        assert [retain(keeping(workspace, days, at_day=60)) for days in (None, 90, 30)] == [0, 0, 1]


def test_reading_the_log_again_does_not_bring_texts_back(tmp_path: Path) -> None:
    log = write_lines(tmp_path / "log.jsonl", satisfied(1))
    with working_in(tmp_path / "home") as workspace:
        ingest(workspace.store, read(log), clock=lambda: START_S * 1_000_000)
        pickup(keeping(workspace, 30, at_day=60))
        assert retain(keeping(workspace, 30, at_day=60)) == 1
        tally = ingest(workspace.store, read(log))
        assert (tally.stored, tally.duplicate, texts(workspace)) == (0, 2, set())
