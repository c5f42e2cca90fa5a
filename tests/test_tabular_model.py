"""Models of records: numbers, categories and what is missing, from the training file to the served answer."""

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from filmroom_live import Live
from flows.champion import live_model
from flows.review import approve
from flows.turn import turn
from flows.workspace import Workspace
from models.arms import fit_arm
from models.artifacts import Manifest, load, save
from models.estimator import refuse_unusable
from models.fitting import ARMS, Task
from models.tabular_model import TabularModel
from store.records import DatasetRow
from store.retrains import retrains_of
from store.review_queue import review_queue
from tests.live_server import serving
from tests.shop_log import said, take_in, trace, working_in

SETTINGS = """
[agent]
targets = ["weights"]
[weights.risk]
task = "tabular"
training = "orders.csv"
champion = "ours"
[policy]
profile = "small"
trusted = ["staff:ann"]
"""
ARM_NAMES = ("boosting", "columns_logistic", "forest")


def order(rng: random.Random, *, country: str | None = None) -> dict[str, Any]:
    return {"amount": rng.randint(1, 400), "country": country or rng.choice(["DE", "FR", "NL"]),
            "age_days": rng.choice([None, rng.randint(0, 900)])}  # fmt: skip


def truth(record: dict[str, Any]) -> str:
    return "hold" if record["amount"] > 200 or record["country"] == "XX" else "ship"


def rows(count: int, *, seed: int = 0, country: str | None = None) -> list[DatasetRow]:
    rng = random.Random(seed)
    return [DatasetRow(input=record, label=truth(record), source="base")
            for record in (order(rng, country=country) for _ in range(count))]  # fmt: skip


def as_csv(given: list[DatasetRow]) -> str:
    lines = ["amount,country,age_days,label"]
    for row in given:
        record: Any = row.input
        lines.append(f"{record['amount']},{record['country']},{record['age_days'] or ''},{row.label}")
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize("arm", ARM_NAMES)
def test_every_arm_learns_is_stored_and_answers_the_same(arm: str, tmp_path: Path) -> None:
    model = fit_arm(ARMS[arm], rows(200), [], task=Task(kind="tabular"))
    asked = rows(100, seed=9)
    answers = model.predict([json.dumps(row.input) for row in asked])
    assert sum(answer.answer == row.label for answer, row in zip(answers, asked, strict=True)) >= 92
    digest = save(model, tmp_path, Manifest(training="0", arm=arm, code_version="0", environment={}))
    assert load(tmp_path, digest).predict([json.dumps(row.input) for row in asked]) == answers


def test_the_order_of_rows_and_columns_changes_nothing() -> None:
    given = rows(120)
    turned = [row.model_copy(update={"input": dict(reversed(list(row.input.items())))}) for row in reversed(given)]  # type: ignore[union-attr]
    one, other = (fit_arm(ARMS["boosting"], each, [], task=Task(kind="tabular")) for each in (given, turned))
    asked = [json.dumps(row.input, sort_keys=True) for row in rows(50, seed=3)]
    assert one.predict(asked) == other.predict(asked)


def test_what_is_missing_never_seen_or_no_record_is_answered() -> None:
    model = fit_arm(ARMS["columns_logistic"], rows(120), [], task=Task(kind="tabular"))
    odd = ["{}", '{"amount": null, "country": "??"}', '{"amount": "many", "more": [1]}', "hello", "[1, 2]"]
    assert {answer.label for answer in model.predict(odd)} <= {"hold", "ship"}


@pytest.mark.parametrize("arm", ARM_NAMES)
def test_a_number_that_a_table_logged_as_text_is_that_number(arm: str) -> None:
    def as_text(row: DatasetRow) -> DatasetRow:
        record: Any = row.input
        cells = {name: "" if value is None else str(value) for name, value in record.items()}
        return row.model_copy(update={"input": {**cells}})

    given = rows(120)
    mixed = [as_text(row) if n % 2 else row for n, row in enumerate(given)]
    model = fit_arm(ARMS[arm], mixed, [], task=Task(kind="tabular"))
    asked = rows(40, seed=7)
    plain, texts = ([json.dumps(row.input) for row in each] for each in (asked, [as_text(row) for row in asked]))
    assert model.predict(texts) == model.predict(plain)
    assert sum(each.label == row.label for each, row in zip(model.predict(texts), asked, strict=True)) >= 36


def test_out_of_scope_is_an_answer_of_its_own() -> None:
    strange = [
        DatasetRow(input={"amount": 199 + n % 4, "country": "DE"}, label="other", source="base") for n in range(40)
    ]
    model = fit_arm(ARMS["boosting"], [*rows(300), *strange], [], task=Task(kind="tabular", out_of_scope="other"))
    answers = model.predict([json.dumps(row.input) for row in rows(100, seed=5)])
    assert sum(answer.rejected for answer in answers) <= 25
    assert isinstance(model, TabularModel)
    assert model.threshold > 0


@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("sklearn.ensemble.Nothing", "cannot be imported"),
        ("nowhere.Thing", "cannot be imported"),
        ("sklearn.linear_model.LinearRegression", "no scikit-learn classifier that gives probabilities"),
        ("sklearn.neighbors.KNeighborsClassifier", "is not trusted"),
    ],
)
def test_an_estimator_that_cannot_serve_is_refused_in_a_line(path: str, why: str) -> None:
    task = Task(kind="tabular", estimator=path)
    with pytest.raises(ValueError, match=why):
        fit_arm(ARMS["estimator"], rows(80), [], task=task)


def test_any_classifier_by_its_path_is_an_arm_with_its_arguments() -> None:
    task = Task(kind="tabular", estimator="sklearn.ensemble.ExtraTreesClassifier", estimator_params={"n_estimators": 7})
    assert task.arms == (*ARM_NAMES, "estimator")
    model = fit_arm(ARMS["estimator"], rows(150), [], task=task)
    assert len(model.parts()["classifier"].estimators_) == 7


TEXTS = [
    f"{verb} my {thing}" for verb in ("track", "find", "return", "repay") for thing in ("book", "shoe", "lamp", "desk")
]
SAID = ["status"] * 8 + ["refund"] * 8


def test_a_text_task_takes_a_classifier_by_its_path_over_its_features(tmp_path: Path) -> None:
    base = [DatasetRow(input=text, label=label, source="base") for text, label in zip(TEXTS, SAID, strict=True)]
    odd = [DatasetRow(input=f"weather in town {n}", label="other", source="base") for n in range(12)]
    task = Task(
        estimator="sklearn.ensemble.ExtraTreesClassifier", estimator_params={"n_estimators": 7}, out_of_scope="other"
    )
    assert task.arms[-1] == "word_char_estimator"
    model = fit_arm(ARMS["word_char_estimator"], [*base, *odd], [], task=task)
    answers = model.predict([*TEXTS, "weather in town"])
    assert [answer.label for answer in answers[:16]] == SAID
    assert answers[-1].rejected
    digest = save(model, tmp_path, Manifest(training="0", arm="x", code_version="0", environment={}))
    assert load(tmp_path, digest).predict([*TEXTS, "weather in town"]) == answers


@pytest.mark.parametrize(
    ("path", "params", "kind", "why"),
    [
        ("nowhere.Thing", {}, "text", "cannot be imported"),
        ("json.JSONDecoder", {}, "tabular", "no scikit-learn classifier"),
        ("sklearn.linear_model.SGDClassifier", {}, "text", "gives no probabilities with these estimator_params"),
        ("sklearn.ensemble.ExtraTreesClassifier", {"trees": 3}, "text", "estimator_params: .*'trees'"),
        ("sklearn.ensemble.ExtraTreesClassifier", {"n_estimators": "many"}, "tabular", "'n_estimators' parameter"),
        ("sklearn.naive_bayes.GaussianNB", {}, "text", "dense data is required"),
        ("sklearn.neighbors.KNeighborsClassifier", {}, "tabular", "cannot be stored: .* is not trusted"),
    ],
)
def test_an_estimator_that_can_never_serve_is_told_before_anything_is_trained(
    path: str, params: dict[str, Any], kind: Any, why: str
) -> None:
    with pytest.raises(ValueError, match=f"^estimator {path!r}.*{why}") as refused:
        refuse_unusable(path, params, kind)
    assert "\n" not in str(refused.value)


def test_a_turn_says_why_an_estimator_is_refused(tmp_path: Path) -> None:
    (tmp_path / "orders.csv").write_text(as_csv(rows(40)), encoding="utf-8")
    bad = SETTINGS.replace("[policy]", 'estimator = "sklearn.neighbors.KNeighborsClassifier"\n[policy]')
    with working_in(tmp_path, bad) as workspace:
        told = turn(workspace).retrain
    assert told["decision"] == "skipped"
    assert str(told["reason"]).startswith(
        "[weights.risk] estimator 'sklearn.neighbors.KNeighborsClassifier' cannot be stored"
    )


@pytest.fixture
def workspace(tmp_path: Path) -> Iterator[Workspace]:
    (tmp_path / "orders.csv").write_text(as_csv(rows(200)), encoding="utf-8")
    with working_in(tmp_path, SETTINGS) as opened:
        yield opened


def answered(number: int, record: dict[str, Any], output: str) -> list[dict[str, Any]]:
    step = {"id": "p", "kind": "predict", "name": "risk", "input": record, "output": output, "confidence": 0.9}
    return [trace(number, day=number % 4, input=record, output=output, spans=[step]),
            said(number, day=number % 4, by="staff:ann", span="p", name="label", corrected_output=truth(record))]  # fmt: skip


def test_a_new_kind_of_record_is_learnt_and_served(workspace: Workspace) -> None:
    turn(workspace)
    rng = random.Random(4)
    usual, strange = ([order(rng, country=country) for _ in range(60)] for country in (None, "XX"))
    model = live_model(workspace, "risk")
    both = [*usual, *strange]
    given = model.predict([json.dumps(record) for record in both])
    take_in(
        workspace, *(answered(n, record, each.label) for n, (record, each) in enumerate(zip(both, given, strict=True)))
    )
    turn(workspace)
    for item in review_queue(workspace.store):
        approve(workspace, item["correction"])
    summary = turn(workspace)
    assert summary.retrain["decision"] == "promoted", summary.retrain
    asked: dict[str, Any] = {
        "model": "risk",
        "records": [{"amount": 20, "country": "XX"}, {"amount": 20, "country": "DE"}],
    }
    with serving(workspace) as url:
        answers = httpx.post(f"{url}/v1/predict", json=asked, timeout=30).json()["predictions"]
        clients = [Live(url=url, in_process=here) for here in (True, False)]
        assert all(client.ready() for client in clients)
        asked_live = [client.predict("risk", asked["records"][0], timeout_s=30) for client in clients]
        for client in clients:
            client.close()
    assert [answer["label"] for answer in answers] == ["hold", "ship"]
    assert [answer is not None and answer.answer for answer in asked_live] == ["hold", "hold"]
    with workspace.store.read() as connection:
        tried = [str(arm["arm"]) for arm in retrains_of(connection, workspace.project)[0].arms]
    assert sorted(tried) == sorted(ARM_NAMES)
