"""Annotated failures enter the benchmark as production would have logged them, and nothing of their labels with them."""

from pathlib import Path
from typing import Any

import pytest

from benchmarks.attribution import line_of, read_lines
from benchmarks.routing import accuracy, certified, decide_all, measure, outage, repairs

DATA = Path(__file__).resolve().parent.parent.parent / "shared" / "data"

ROW: dict[str, Any] = {
    "source": "bots_cf",
    "id": "bot/1",
    "group": "bots:1",
    "trajectory": [
        {"i": 0, "role": "user", "name": "", "content": "where is it"},
        {"i": 1, "role": "model", "name": "bert", "content": "REFUND (score 0.864)"},
    ],
    "n_steps_total": 2,
    "annotation": {"category": "c", "description": "retraining fixes it", "step": 1, "annotator": "human"},
    "correction": "gold: STATUS",
    "trace_signals": ["exception"],
    "mapped_target": "weights",
    "mapping_confidence": "clear",
    "mapping_basis": "counterfactual",
    "mapping_note": "m",
    "licence": "MIT",
    "redistributable": True,
}
OUTCOME: dict[str, Any] = {"outcomes": {"weights": True, "tooling": False, "context": None}, "gold_is_wrong": False}


def row(*turns: tuple[str, str, str], **fields: Any) -> dict[str, Any]:
    steps = [{"i": at, "role": role, "name": name, "content": said} for at, (role, name, said) in enumerate(turns)]
    return {**ROW, "source": "agents", "trajectory": steps, **fields}


def test_a_prediction_keeps_its_label_its_probability_and_its_correction() -> None:
    episode = line_of(ROW).case.episode
    step = episode.spans[-1]
    assert (step.kind, step.model, step.input, step.output, step.confidence) == (
        "predict", "bert", "where is it", "REFUND", 0.864,
    )  # fmt: skip
    assert [(each.name, each.corrected_output) for each in episode.feedback] == [("thumb", None), ("label", "STATUS")]


def test_no_label_and_no_evaluation_field_reaches_the_case() -> None:
    poisoned = {
        **ROW,
        "group": "SECRET",
        "annotation": dict.fromkeys(("category", "description", "step", "annotator"), "SECRET"),
        "mapping_confidence": "clear",
        **dict.fromkeys(
            ("trace_signals", "mapped_target", "mapping_basis", "mapping_note", "licence", "n_steps_total"), "SECRET"
        ),
    }
    assert line_of(poisoned).case == line_of(ROW).case
    assert line_of(ROW, OUTCOME).case == line_of(ROW).case


def test_a_description_is_a_comment_except_where_it_gives_the_answer_away() -> None:
    said = [each.comment for each in line_of(row(("user", "", "hi"))).case.episode.feedback if each.comment]
    assert said == ["retraining fixes it"]
    assert "retraining" not in line_of(ROW).case.model_dump_json()


def test_a_tool_call_and_its_result_are_one_step() -> None:
    turns = (
        ("assistant", "", 'TOOL_CALL get {"id": 1}'),
        ("tool", "get", "done"),
        ("user", "Computer_terminal", "exitcode: 1"),
    )
    steps = line_of(row(*turns)).case.episode.spans
    assert [(step.kind, step.name, step.input, step.output, step.error) for step in steps] == [
        ("tool", "get", '{"id": 1}', "done", None),
        ("tool", "Computer_terminal", None, "exitcode: 1", "exitcode: 1"),
    ]


def test_earlier_sessions_are_earlier_traces_of_the_same_user() -> None:
    found = line_of(row(("earlier session", "Ann", "I wear 42"), ("user", "", "my size?"), ("assistant", "", "44")))
    trace = found.case.episode.trace
    assert [(each.trace.user, each.trace.started_us, each.trace.input) for each in found.earlier] == [
        (trace.user, 0, "I wear 42")
    ]
    assert (trace.started_us, trace.input, trace.output) == (1, "my size?", "44")


def test_a_memory_read_says_how_much_it_found() -> None:
    steps = line_of(row(("system", "deployment", "a memory service; 0 memories recalled"))).case.episode.spans
    assert [(step.kind, step.output) for step in steps] == [("memory", [])]


def test_what_repaired_it_is_valid_and_a_wrong_correction_is_for_nobody() -> None:
    assert line_of(ROW, {**OUTCOME, "outcomes": {"weights": False, "tooling": True}}).valid == {"tooling"}
    assert line_of(ROW).valid == {"weights"}
    assert line_of(ROW, {**OUTCOME, "gold_is_wrong": True}).valid == {"none"}


def test_a_retrain_that_repairs_nothing_is_counted_as_needless() -> None:
    lines = [line_of(ROW, OUTCOME), line_of({**ROW, "id": "2"}, {**OUTCOME, "gold_is_wrong": True})]
    figures = repairs(decide_all(lines, [{"weights": 1.0}, {"weights": 1.0}]))["bots_cf"]
    assert figures == {
        "lines": 2, "repairs": 1, "per_decision": 0.5, "oracle": 0.5, "of_oracle": 1.0, "needless_retrains": 1,
    }  # fmt: skip


def test_only_clear_lines_are_scored_and_an_outage_is_counted_apart() -> None:
    lines = [line_of(ROW), line_of({**ROW, "source": "the_outage", "mapping_confidence": "arguable"})]
    decided = decide_all(lines, [{"weights": 1.0}] * 2)
    assert accuracy(decided) == {"bots_cf": 1.0}
    assert outage(decided) == {"lines": 1, "tooling": 0.0, "retrains": 1}


def test_a_certificate_needs_reviews_and_covers_what_is_always_right() -> None:
    lines = [line_of({**ROW, "id": str(at)}) for at in range(40)]
    decided = decide_all(lines, [{"weights": 0.9}] * 40)
    assert certified(decided, 21, 5)["coverage"] == 0.0
    assert certified(decided, 22, 5) == {
        "coverage": 1.0,
        "realised_risk": 0.0,
        "exceeded": 0.0,
        "sources": {"bots_cf": {"coverage": 1.0, "realised_risk": 0.0}},
    }


def test_the_figures_have_the_published_keys() -> None:
    lines = read_lines(DATA)[::40]
    if not lines:
        pytest.skip(f"no annotated failures in {DATA}")
    figures = measure(lines, 2)
    assert {"sources", "repairs_per_decision", "baselines"} <= set(figures)
    assert all({"n", "accuracy", "coverage", "realised_risk"} == set(found) for found in figures["sources"].values())
