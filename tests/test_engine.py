"""Where fits run decides no number: one after the other, in threads, on a Dask cluster by its address."""

import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import flows.engine
from flows.engine import opened_engine, run_packed
from flows.review import approve
from flows.turn import turn
from flows.workspace import Workspace
from models import text_model
from models.arms import ARMS, Task, probe, try_arms
from models.fold_fit import FoldAnswers, FoldFit, Mapper
from models.judging import judge_calibration, judge_rows, places_to_judge
from models.out_of_fold import OutOfFold
from models.predictions import Considered
from store.errors import EngineAway, SettingsError
from store.records import DatasetRow
from store.releases import version
from store.retrains import retrains_of
from store.review_queue import review_queue
from store.settings import Settings, read_settings
from store.settings_engine import EngineSection
from tests.schedule_home import free_port
from tests.shop_log import SETTINGS, misread, said, take_in, trace, working_in

ARM = "word_char_svc"
BASE = [
    DatasetRow(input=f"{verb} my {thing}", label=label, source="base")
    for label, verbs in {"order": ("track", "find", "locate"), "refund": ("return", "repay", "reimburse")}.items()
    for verb in verbs
    for thing in ("book", "shoe", "lamp", "desk")
]
NEW = [
    DatasetRow(input=f"{verb} a plan {n}", label="subscribe", authority=True, source="staff")
    for verb in ("begin", "start", "renew")
    for n in range(8)
]
OUTSIDE = [DatasetRow(input=f"what is the {thing} of {n}", label="other", source="base")
           for thing in ("age", "height") for n in range(12)]  # fmt: skip
SERVED: list[str | None] = ["order"] * len(NEW)
VERBS = ("take", "bring", "send", "ship", "hand", "give", "pass", "carry")
THINGS = ("lamp", "shoes", "shirt", "phone", "chair", "table", "clock", "radio", "couch", "glass")


def confirmed(number: int) -> list[dict[str, Any]]:
    """An answer of the model that its user confirmed."""
    text = f"where is order {number}"
    step = {"id": "p", "kind": "predict", "name": "intents", "input": text, "output": "status", "confidence": 0.9}
    return [trace(number, input=text, output="status", spans=[step]),
            said(number, span="p", name="label", corrected_output="status")]  # fmt: skip


LOG = [*map(confirmed, range(80)),
       *(misread(100 + n, text=f"{VERBS[n // 10]} back my {THINGS[n % 10]}", day=n % 3) for n in range(60))]  # fmt: skip


def numbers(mapper: Mapper | None, *, budget_s: float = 120.0) -> dict[str, Any]:
    """All that a retrain learns from refits, down to the bits, and without the seconds."""
    over = OutOfFold([*BASE, *OUTSIDE], NEW, Task(out_of_scope="other"), mapper=mapper)
    probed = probe(over, SERVED, incumbent=ARM).model_copy(update={"seconds": 0.0})
    trials = try_arms(over, SERVED, incumbent=ARM, budget_s=budget_s)
    over.prepare(places_to_judge(ARMS[ARM], over, incumbent=ARM))
    said = [asked for fold in range(over.folds) if isinstance(asked := over.asked_in(ARMS[ARM], fold), Considered)]
    return {
        "probe": probed,
        "trials": [trial.model_copy(update={"seconds": 0.0}) for trial in trials],
        "rows": judge_rows(ARMS[ARM], over, SERVED, incumbent=ARM),
        "calibration": judge_calibration(ARMS[ARM], over, incumbent=ARM),
        "bits": [part.tobytes() for asked in said for part in (asked.log_odds, asked.inside)],
        "fits": over.estimator_fits,
    }


@pytest.fixture(scope="module")
def serial() -> dict[str, Any]:
    return numbers(None)


def test_threads_give_the_same_numbers_down_to_the_bits(serial: dict[str, Any]) -> None:
    with opened_engine(EngineSection(threads=4)) as mapper:
        assert mapper is not None
        assert numbers(mapper) == serial


def test_an_arm_that_raises_in_the_mapper_is_a_failed_trial(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(seed: int) -> Any:
        raise RuntimeError("no such learner")

    monkeypatch.setitem(text_model.LEARNERS, "logistic", broken)
    alone = numbers(None)
    with opened_engine(EngineSection(threads=2)) as mapper:
        assert numbers(mapper) == alone
    errors = {trial.arm: trial.error for trial in alone["trials"]}
    assert errors["word_logistic"] == "RuntimeError: no such learner"
    assert [name for name, error in errors.items() if error] == ["word_logistic"]


def test_a_spent_budget_holds_for_what_is_fitted_ahead() -> None:
    with opened_engine(EngineSection(threads=2)) as mapper:
        trials = numbers(mapper, budget_s=-1.0)["trials"]
    assert sum(trial.error is None for trial in trials) == 3


class Counting:
    """A mapper that runs here and keeps what it was asked for at once."""

    def __init__(self) -> None:
        self.asked: list[list[str]] = []

    def map(self, function: Any, jobs: Any) -> list[FoldAnswers]:
        self.asked.append([job.arm.name for job in jobs])
        return [function(job) for job in jobs]


def test_fits_are_asked_for_many_at_once_and_none_twice(serial: dict[str, Any]) -> None:
    mapper = Counting()
    assert numbers(mapper) == serial
    probed, first, others, judged = mapper.asked
    going = [trial.arm for trial in serial["trials"] if not trial.stopped]
    assert (len(probed), sorted(first), sorted(others)) == (5, sorted(Task().arms), sorted(going * 2))
    assert len(judged) == 2 * 3


def test_one_after_the_other_is_the_default_and_needs_no_mapper() -> None:
    with opened_engine(Settings().engine) as mapper:
        assert mapper is None


def test_where_fits_run_is_no_part_of_the_settings_digest() -> None:
    assert Settings(engine=EngineSection(threads=3)).digest == Settings().digest


def test_an_address_without_a_port_is_refused(tmp_path: Path) -> None:
    (tmp_path / "filmroom.toml").write_text('[engine]\ndask = "cluster.local"\n')
    with pytest.raises(SettingsError, match=r"engine\.dask"):
        read_settings(tmp_path / "filmroom.toml")


def test_a_worker_with_other_programs_computes_nothing() -> None:
    with pytest.raises(RuntimeError, match=r"a worker has .*scikit-learn .*, and here is Python 2"):
        run_packed(b"", "Python 2")


def test_without_dask_the_line_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    with (
        pytest.raises(EngineAway, match=r"not installed here: pip install 'filmroom\[dask\]'"),
        opened_engine(EngineSection(dask="tcp://127.0.0.1:1")),
    ):
        pass


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """A real scheduler with one worker, in processes of their own."""
    distributed = pytest.importorskip("distributed", reason="Dask is not installed: filmroom[dask]")
    with distributed.LocalCluster(
        n_workers=1, threads_per_worker=2, processes=True, dashboard_address=None, host="127.0.0.1"
    ) as made:
        yield made


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_a_dask_cluster_by_its_address_gives_the_same_numbers(serial: dict[str, Any], cluster: Any) -> None:
    with opened_engine(EngineSection(dask=cluster.scheduler_address)) as mapper:
        assert numbers(mapper) == serial


def learnt(folder: Path, engine: str, turned: Callable[[Workspace], Any] = turn) -> dict[str, Any]:
    """A whole turn that trains: what it left in the store, without what differs from run to run."""
    settings = SETTINGS.replace('out_of_scope = "other"', 'out_of_scope = "other"\nchampion = "ours"') + engine
    with working_in(folder, settings) as workspace:
        take_in(workspace, *LOG)
        turn(workspace)
        for item in review_queue(workspace.store):
            approve(workspace, item["correction"])
        turned(workspace)
        with workspace.store.read() as connection:
            row = retrains_of(connection, workspace.project)[0]
            content = None if row.version is None else version(connection, row.version).content
    arms = [{name: value for name, value in arm.items() if name != "seconds"} for arm in row.arms]
    gate = [stage.model_dump(mode="json") for stage in row.gate]
    return {"decision": row.decision, "gate": gate, "arms": arms, "fits": row.estimator_fits, "model": content,
            "reason": row.reason.partition(";")[0]}  # fmt: skip


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_a_turn_serves_the_same_model_wherever_it_was_judged(tmp_path: Path, cluster: Any) -> None:
    alone = learnt(tmp_path / "alone", "")
    assert alone["decision"] == "promoted", alone["reason"]
    for name, engine in (("threads", "threads = 2"), ("dask", f'dask = "{cluster.scheduler_address}"')):
        assert learnt(tmp_path / name, f"[engine]\n{engine}\n") == alone


def test_a_cluster_that_does_not_answer_trains_nothing_and_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("distributed", reason="Dask is not installed: filmroom[dask]")
    monkeypatch.setattr(flows.engine, "CONNECT_S", 0.3)
    address = f"tcp://127.0.0.1:{free_port()}"
    found = learnt(tmp_path / "away", f'[engine]\ndask = "{address}"\n')
    assert (found["decision"], found["arms"], found["model"]) == ("skipped", [], None)
    assert found["reason"].startswith(f"[engine] dask: {address}: ")


def slow(job: FoldFit) -> FoldAnswers:
    time.sleep(2)
    return FoldAnswers(())


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_fits_that_take_too_long_are_given_up(cluster: Any) -> None:
    job = FoldFit(ARMS[ARM], BASE, NEW, NEW, Task())
    with opened_engine(EngineSection(dask=cluster.scheduler_address, timeout_s=0.2)) as mapper:
        assert mapper is not None
        with pytest.raises(EngineAway, match=r"\[engine\] dask: tcp.*: not done within 0.2 s"):
            mapper.map(slow, [job])
