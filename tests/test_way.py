"""The shortest way to yes names the traces, verdicts and days that would change a refusal."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from flows.pickup import pickup
from flows.route import cluster, route
from flows.ways import ways_of, ways_of_retrain
from flows.workspace import Workspace
from models.deployment import Deployment
from models.evidence import weigh
from models.features.material import Material
from models.router import decide
from models.way import Answered, most_telling, ways_to_decide, ways_to_train
from store.corrections import route_of, waiting
from store.records import Case, GateStage, Policy, Retrain, Way, policy_for
from tests.console_home import client, console
from tests.shop_log import bad_argument, satisfied, take_in, trace, working_in
from tests.test_odd_clusters import failing

PLAIN = Deployment(models={"intents": None})
ANSWERS = [Answered(trace_id=f"trc_{n}", source=f"u{n % 3}", confidence=n / 10, failed=n > 4) for n in range(8)]
STANDARD = policy_for("standard")


def ways(*cases: Case) -> tuple[Way, ...]:
    material = Material(cases, (), PLAIN, Policy())
    evidence = weigh(cases, (), deployment=PLAIN, policy=Policy())
    return ways_to_decide(material, decide(evidence, deployment=PLAIN, policy=Policy(), failures=len(cases)))


def weighed(**values: float | None) -> Retrain:
    return Retrain(id="ret_1", model="intents", at_us=0, decision="skipped", reason="too little", numbers=values)


def test_thumbs_alone_name_the_few_failures_to_answer() -> None:
    cases = [failing(n, user=f"u{n % 3}", text=f"x{n}") for n in range(9)]
    [way] = ways(*cases)
    assert (way.action, len(way.traces), way.minutes) == ("answer", 5, 3)
    asked = {case.failure.source for case in cases if case.failure.trace_id in way.traces[:3]}
    assert asked == {"u0", "u1", "u2"}


def test_the_least_sure_failure_of_a_source_is_asked_first() -> None:
    cases = [failing(n, user="ann", text="x") for n in range(3)]
    sure = [case.failure.model_copy(update={"probability": p}) for case, p in zip(cases, (0.99, 0.6, 0.9), strict=True)]
    known = [case.model_copy(update={"failure": each}) for case, each in zip(cases, sure, strict=True)]
    assert most_telling(known, 2) == [known[1], known[2]]


def test_contradictory_corrections_are_named_side_by_side() -> None:
    cases = [failing(1, user="ann", text="x", corrected_output="a"), failing(2, user="bob", text="y", corrected_output="b"),
             failing(3, user="ann", text="x", corrected_output="c")]  # fmt: skip
    [way] = ways(*cases)
    assert (way.action, way.traces) == ("settle", (cases[0].failure.trace_id, cases[2].failure.trace_id))


def test_a_retrain_without_enough_evidence_names_answers_sources_and_days() -> None:
    row = weighed(n_eff=28.0, sources=3.0, authorities=0.0, days=1.0)
    more, others, wait = ways_to_train(row, ANSWERS, sources=["u0"], policy=STANDARD)
    assert (more.count, more.traces) == (2, ("trc_5", "trc_6"))
    assert (others.count, {int(each[-1]) % 3 for each in others.traces}) == (2, {1, 2})
    assert (wait.action, wait.days) == ("wait", 1)


def test_rows_that_estimate_a_rate_are_drawn_and_those_to_repair_are_the_doubtful_ones() -> None:
    numbers: dict[str, float | None] = {
        "rows": 40.0,
        "newly_right": 3.0,
        "newly_wrong": 1.0,
        "alpha": 0.05,
        "delta": 0.01,
    }
    stages = tuple(
        GateStage(stage=name, verdict="failed", numbers=numbers, sentence="") for name in ("target", "global")
    )
    row = weighed().model_copy(update={"decision": "refused", "gate": stages})
    target, drawn = ways_to_train(row, ANSWERS, sources=[], policy=STANDARD)
    assert target.traces[:3] == ("trc_5", "trc_6", "trc_7")
    assert (set(drawn.traces), drawn.traces != target.traces) == (set(target.traces), True)


@pytest.mark.parametrize("decision", ["promoted", "rolled_back", "skipped"])
def test_what_was_made_or_never_weighed_names_nothing(decision: str) -> None:
    assert (
        ways_to_train(weighed().model_copy(update={"decision": decision}), ANSWERS, sources=[], policy=STANDARD) == ()
    )


@pytest.fixture
def workspace(tmp_path: Path, store_url: str) -> Iterator[Workspace]:
    """Two tooling clusters that wait, and answers of a model that nobody labelled."""
    intent = {"id": "q", "kind": "predict", "name": "topics", "input": "hi", "output": "orders"}
    step = {"id": "p", "kind": "predict", "name": "intents", "input": "hi", "output": "status", "confidence": 0.4}
    other = [
        dict(line, spans=[intent, *line["spans"]]) if line["type"] == "trace" else line
        for n in range(50, 54)
        for line in bad_argument(n)
    ]
    with working_in(tmp_path, url=store_url) as opened:
        take_in(opened, *(satisfied(n) for n in range(10)), *(bad_argument(n) for n in range(40, 45)), other,
                [trace(n, input="hi", output="status", spans=[step]) for n in range(70, 73)])  # fmt: skip
        for stage in (pickup, cluster, route):
            stage(opened)
        yield opened


def test_a_missing_certificate_links_to_the_corrections_that_count_towards_it(workspace: Workspace) -> None:
    with workspace.store.read() as connection:
        mine, other = (found.id for found, _, _ in waiting(connection, workspace.project))
        found = ways_of(connection, workspace.project, route_of(connection, mine))
    [certificate] = [way for way in found if way.place]
    assert (certificate.corrections, certificate.count, certificate.minutes) == ((other,), 22, 1)
    assert all(way.traces for way in found if way.action in ("judge", "answer") and not way.place)
    with console(workspace) as url, client(workspace, url, "ann") as ann:
        page = ann.get(f"/review/{mine}").text
    assert all(f'href="/traces/{id_}"' in page for way in found for id_ in way.traces)
    assert f'href="/review/{other}"' in page


def test_a_retrain_names_the_answers_of_its_model_that_have_no_label(workspace: Workspace) -> None:
    with workspace.store.read() as connection:
        [labels] = ways_of_retrain(connection, workspace, weighed(n_eff=0.0))
    assert (labels.action, len(labels.traces)) == ("label", 3)
