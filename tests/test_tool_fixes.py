"""Tool fixes on the calls of 300 real runs: they repair what they claim, and change nothing that was accepted before."""

from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from filmroom_live.documents import NO_RELEASE, Policy, Release
from filmroom_live.tool_call import tool_call
from models.deployment import Deployment
from models.detector import detect
from models.features.material import Material
from models.features.tooling import argument_repairs
from models.normalise import NORMALISERS, UNITS, apply_chain, normalise
from models.steps import arguments, error_text, tool_calls
from store.records import Case, Episode, Failure, Feedback, Span, Trace
from store.records import Policy as Thresholds
from store.records.identity import canonical_json
from store.sources import read

RUNS = ("retail_100runs.json.gz", "airline_gpt4o_200runs.json.gz")
NAMES = (*NORMALISERS, "prefix:ORD-", *(f"unit:{unit}" for unit in UNITS))
VALUES = [" W1 ", "w1", "#W2", "ZIP 19122", "May 20th, 2024", "2024-05-20T10:00:00Z", "03/04/2024", "12", "1.50", "5 kg",
          "2 hours", "Basic Economy", "", "-", "\u0660\u0661"]  # fmt: skip
SPOILT: dict[str, Callable[[str], str]] = {
    "prefix": lambda value: value.removeprefix("#"),
    "trim": lambda value: f" {value} ",
}
"""What an agent does to an argument that the tool accepts."""


@cache
def episodes(name: str, folder: Path) -> tuple[Episode, ...]:
    path = folder / "data" / "tau" / name
    if not path.exists():
        pytest.skip(f"{name} is not there")
    parts: dict[str, tuple[list[Trace], list[Span], list[Feedback]]] = {}
    for item in read(path):
        if isinstance(item, Trace):
            parts.setdefault(item.external_id, ([], [], []))[0].append(item)
        elif isinstance(item, Span):
            parts.setdefault(item.trace_external_id, ([], [], []))[1].append(item)
        elif isinstance(item, Feedback):
            parts.setdefault(item.trace_external_id, ([], [], []))[2].append(item)
    return tuple(Episode(trace=t[0], spans=tuple(s), feedback=tuple(f)) for t, s, f in parts.values())


def cases(given: tuple[Episode, ...]) -> Iterator[Case]:
    """Each call that the tool refused, as a failure of its run."""
    for episode in given:
        for span in tool_calls(episode.spans):
            if error_text(span) is not None:
                yield _case(episode.model_copy(update={"feedback": ()}), span)


def policies(given: tuple[Episode, ...]) -> dict[str, dict[str, tuple[str, ...]]]:
    """What would be proposed from these runs."""
    material = Material(cases=tuple(cases(given)), satisfied=given, deployment=Deployment(), policy=Thresholds())
    return argument_repairs(material)


def release(proposed: dict[str, dict[str, tuple[str, ...]]]) -> Release:
    made = {tool: Policy(tool, normalisers=chains) for tool, chains in proposed.items()}
    return NO_RELEASE._replace(policies=made)


def accepted(given: tuple[Episode, ...]) -> list[Span]:
    return [span for episode in given for span in tool_calls(episode.spans) if error_text(span) is None]


@pytest.mark.parametrize("name", RUNS)
def test_what_is_proposed_changes_no_argument_that_was_accepted(shared: Path, name: str) -> None:
    given_ = episodes(name, shared)
    live = release(policies(given_))
    calls = accepted(given_)
    assert len(given_) in (100, 200)
    assert len(calls) > 500
    assert [span.name for span in calls if tool_call(live, span.name or "", arguments(span)).changed] == []


@pytest.mark.parametrize("name", RUNS)
def test_what_is_proposed_repairs_what_it_claims(shared: Path, name: str) -> None:
    """Every chain maps a refused value to one that the schema, or a call that succeeded, shows to be accepted."""
    given_ = episodes(name, shared)
    proposed = policies(given_)
    live = release(proposed)
    known = {canonical_json(value) for span in accepted(given_) for value in arguments(span).values()}
    failing = [span for episode in given_ for span in tool_calls(episode.spans) if error_text(span) is not None]
    shown = set()
    for span in failing:
        call = tool_call(live, span.name or "", arguments(span))
        for each in call.changed:
            if canonical_json(each.after) in known or not call.problems:
                shown.add((span.name, each.path))
    assert shown == {(tool, path) for tool, chains in proposed.items() for path in chains}


@pytest.mark.parametrize("spoilt", SPOILT)
def test_arguments_spoilt_on_purpose_are_repaired_and_the_rest_left_alone(shared: Path, spoilt: str) -> None:
    """The order ids of the retail runs as a careless agent writes them: every one comes back as it was accepted."""
    given_ = episodes(RUNS[0], shared)
    calls = [span for span in accepted(given_) if str(arguments(span).get("order_id", "")).startswith("#")]
    bad = [_spoilt(span, spoilt) for span in calls]
    few = tuple(_case(episode, span) for episode, span in bad[:40])
    material = Material(cases=few, satisfied=given_, deployment=Deployment(), policy=Thresholds())
    live = release(argument_repairs(material))
    assert len(calls) > 300
    tools = {span.name for _, span in bad[:40]}
    mended = [(before, tool_call(live, after.name or "", arguments(after)).arguments)
              for before, (_, after) in zip(calls, bad, strict=True) if after.name in tools]  # fmt: skip
    assert [(arguments(before), now) for before, now in mended if arguments(before) != now] == []
    assert not any(tool_call(live, span.name or "", arguments(span)).changed for span in accepted(given_))


def _case(episode: Episode, span: Span) -> Case:
    failed = Failure(trace_id=episode.trace.id, picked_us=0, probability=1.0, span_id=span.id)
    return Case(failure=failed, episode=episode, signals=detect(episode, meanings={}, out_of_scope={}))


def _spoilt(span: Span, how: str) -> tuple[Episode, Span]:
    given_ = {**arguments(span), "order_id": SPOILT[how](str(arguments(span)["order_id"]))}
    made = span.model_copy(
        update={"input": given_, "output": None, "status": "error", "error": "Error: order not found",
                "external_id": f"bad-{span.external_id}"}
    )  # fmt: skip
    return Episode(
        trace=Trace(source=span.source, external_id=f"bad-{span.trace_external_id}-{span.external_id}"), spans=(made,)
    ), made


texts = st.text(max_size=30) | st.sampled_from(VALUES)
values = texts | st.none() | st.booleans() | st.integers() | st.floats() | st.lists(texts, max_size=2)


@pytest.mark.parametrize("name", NAMES)
@given(value=values, choices=st.lists(texts, max_size=4))
def test_a_normaliser_is_total_and_idempotent(name: str, value: Any, choices: list[Any]) -> None:
    once = normalise(name, value, choices=choices)
    again = normalise(name, once, choices=choices)
    assert again == once or (once != once and again != again)
    assert isinstance(value, str) or once is value


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [("unit:kg", "500 g", 0.5), ("unit:kg", "2 Pounds", 0.90718474), ("unit:cm", "1.5m", 150), ("unit:s", "2 h", 7200),
     ("unit:kg", "2 m", "2 m"), ("unit:kg", "heavy", "heavy"), ("unit:kg", "5", "5"), ("unit:none", "5 kg", "5 kg"),
     ("number", "12", 12), ("number", "-1.50", -1.5), ("number", "007", "007"), ("number", "1,234", "1,234"),
     ("number", "1e5", "1e5"), ("date_iso", "20 May 2024", "2024-05-20"), ("enum", "BASIC-economy", "basic_economy")],
)  # fmt: skip
def test_a_normaliser_guesses_nothing(name: str, value: str, expected: Any) -> None:
    assert normalise(name, value, choices=["basic_economy", "business"]) == expected


def test_what_was_done_is_logged_by_its_name_and_without_its_value() -> None:
    live = release({"find": {"id": ("trim", "prefix:#")}})
    assert tool_call(live, "find", {"id": " 12 "}).log == {
        "normalised": [{"path": "id", "by": ["trim", "prefix:#"]}], "problems": 0, "disabled": False}  # fmt: skip


def test_chains_of_what_is_proposed_are_idempotent_on_real_arguments(shared: Path) -> None:
    for name in RUNS:
        for span in accepted(episodes(name, shared)):
            for value in arguments(span).values():
                for chain in (("trim", "upper"), ("trim", "prefix:#"), ("date_iso",), ("digits",)):
                    once = apply_chain(chain, value)
                    assert apply_chain(chain, once) == once
