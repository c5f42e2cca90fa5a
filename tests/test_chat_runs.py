"""Runs of a tool-calling agent: spans joined, reward as feedback, what the agent must not know held apart."""

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import JsonValue

from store.records import Feedback, Rejected, Span, Trace
from store.sources import Item, read, recognise

TAU = Path(__file__).parent.parent.parent / "shared" / "data" / "tau"
RETAIL = TAU / "retail_100runs.json.gz"

GOLD = "#W9999999"


def call(call_id: str, tool: str, arguments: str) -> dict[str, object]:
    return {"id": call_id, "type": "function", "function": {"name": tool, "arguments": arguments}}


def run(**fields: object) -> dict[str, Any]:
    messages = [
        {"role": "system", "content": "Be kind."},
        {"role": "user", "content": "Cancel my order"},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [call("a", "find", '{"id": 1}'), call("b", "cancel", "{}")],
        },
        {"role": "tool", "tool_call_id": "b", "name": "cancel", "content": "Error: not allowed"},
        {"role": "tool", "tool_call_id": "a", "name": "find", "content": '{"order": 1}'},
        {"role": "assistant", "content": "I cannot.", "index": 5},
        {"role": "user", "content": "Why?"},
    ]
    return {
        "task_id": 3,
        "trial": 0,
        "reward": 0.0,
        "info": {"actions": [GOLD]},
        "records": [GOLD],
        "traj": messages,
        **fields,
    }


def ingest(folder: Path, *runs: dict[str, Any]) -> list[Item]:
    file = folder / "runs.json"
    file.write_text(json.dumps(runs))
    return list(read(file))


def spans(items: list[Item]) -> list[Span]:
    return [item for item in items if isinstance(item, Span)]


def test_a_run_is_one_trace(tmp_path: Path) -> None:
    (trace,) = [item for item in ingest(tmp_path, run()) if isinstance(item, Trace)]
    assert trace == Trace(
        source="chat_runs",
        external_id=trace.external_id,
        input="Cancel my order",
        output="I cannot.",
        attributes={"task_id": 3, "trial": 0, "system": "Be kind."},
        held_apart={"reward": 0.0, "info": {"actions": [GOLD]}, "records": [GOLD]},
    )


def test_steps_are_spans_in_order_and_results_are_joined_by_call_id(tmp_path: Path) -> None:
    asked: JsonValue = [{"name": "find", "arguments": {"id": 1}}, {"name": "cancel", "arguments": {}}]
    found = [
        (span.external_id, span.kind, span.name, span.parent_external_id, span.status, span.input, span.output)
        for span in spans(ingest(tmp_path, run()))
    ]
    assert found == [
        ("0", "user", None, None, "unset", "Cancel my order", None),
        ("1", "llm", None, None, "unset", None, {"content": None, "tool_calls": asked}),
        ("2", "tool", "find", "1", "ok", {"id": 1}, {"order": 1}),
        ("3", "tool", "cancel", "1", "error", {}, "Error: not allowed"),
        ("4", "llm", None, None, "unset", None, "I cannot."),
        ("5", "user", None, None, "unset", "Why?", None),
    ]


def test_results_without_a_call_id_are_joined_in_order(tmp_path: Path) -> None:
    messages = [
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": "", "tool_calls": [call("x", "find", "1"), call("y", "find", "not json")]},
        {"role": "tool", "content": "one"},
        {"role": "tool", "name": "find", "content": "two"},
        {"role": "tool", "name": "other", "content": "three"},
    ]
    tools = [span for span in spans(ingest(tmp_path, run(traj=messages))) if span.kind == "tool"]
    assert [(span.name, span.input, span.output) for span in tools] == [
        ("find", "1", "one"),
        ("find", "not json", "two"),
        ("other", None, "three"),
    ]


@pytest.mark.parametrize(
    ("reward", "score", "label"), [(1, 1.0, None), ("0.5", 0.5, None), (True, 1.0, None), ("solved", None, "solved")]
)
def test_a_reward_is_feedback_of_a_program(
    tmp_path: Path, reward: object, score: float | None, label: str | None
) -> None:
    (given,) = [item for item in ingest(tmp_path, run(reward=reward)) if isinstance(item, Feedback)]
    assert (given.name, given.score, given.label, given.source_kind) == ("reward", score, label, "program")


def test_a_run_without_a_reward_has_no_feedback(tmp_path: Path) -> None:
    assert not [item for item in ingest(tmp_path, run(reward=None)) if isinstance(item, Feedback)]


def test_runs_of_the_same_task_and_trial_stay_apart(tmp_path: Path) -> None:
    items = ingest(tmp_path, run(), run(reward=1.0), run())
    ids = [item.id for item in items if isinstance(item, Trace)]
    assert len(set(ids)) == 3
    assert ids == [item.id for item in ingest(tmp_path, run(), run(reward=1.0), run()) if isinstance(item, Trace)]


def test_a_run_that_names_itself_keeps_its_id(tmp_path: Path) -> None:
    trace = ingest(tmp_path, run(id="r1"))[0]
    assert isinstance(trace, Trace)
    assert trace.external_id == "r1"


def test_what_the_agent_must_not_know_is_nowhere_but_held_apart(tmp_path: Path) -> None:
    for item in ingest(tmp_path, run(mapped_target=GOLD, annotation={"why": GOLD})):
        shown = item.model_copy(update={"held_apart": {}}) if isinstance(item, Trace) else item
        assert GOLD not in shown.model_dump_json()


def test_a_run_without_messages_is_rejected_and_the_rest_is_read(tmp_path: Path) -> None:
    items = ingest(tmp_path, run(), {"task_id": 1, "traj": []})
    rejected = items[-1]
    assert isinstance(rejected, Rejected)
    assert rejected.reason == "no messages with a `role` under any of traj, messages, trajectory, conversation"


def test_runs_are_read_from_gzip_and_from_lines(tmp_path: Path) -> None:
    packed, lines = tmp_path / "a.json.gz", tmp_path / "a.jsonl"
    packed.write_bytes(gzip.compress(json.dumps([run(), run(trial=1)]).encode()))
    lines.write_text(json.dumps(run()) + "\n" + json.dumps(run(trial=1)) + "\n")
    assert list(read(packed)) == list(read(lines))


def leaves(value: object) -> Iterator[object]:
    if isinstance(value, dict):
        yield from (leaf for item in value.values() for leaf in leaves(item))
    elif isinstance(value, list):
        yield from (leaf for item in value for leaf in leaves(item))
    else:
        yield value


def test_the_gold_of_real_runs_is_held_apart() -> None:
    if not RETAIL.exists():
        pytest.skip(f"no {RETAIL}")
    runs = json.loads(gzip.decompress(RETAIL.read_bytes()))
    traces = [item for item in read(RETAIL) if isinstance(item, Trace)]
    for original, trace in zip(runs, traces, strict=True):
        assert trace.held_apart == {key: original[key] for key in ("reward", "info", "records")}
        assert set(trace.attributes) == {"task_id", "trial", "system"}


def test_real_runs_are_read_whole() -> None:
    if not RETAIL.exists():
        pytest.skip(f"no {RETAIL}")
    items = list(read(RETAIL))
    tools = [span for span in spans(items) if span.kind == "tool"]
    assert recognise(RETAIL).name == "chat_runs"
    assert sum(isinstance(item, Trace) for item in items) == 100
    assert sum(item.score == 0 for item in items if isinstance(item, Feedback)) == 27
    assert [span.id for span in tools if span.output is None or not isinstance(span.input, dict)] == []
