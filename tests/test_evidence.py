"""What speaks for each place: one test a feature, and None where nothing was measured."""

import calendar
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.detector import detect
from models.evidence import FEATURES, NOT_MEASURED, Deployment, argument_repairs, weigh
from models.normalise import NORMALISERS, normalise, repair
from models.schema import argument_schema, violations
from store.records import Case, Episode, Failure, Feedback, Policy, Rule, Span, Trace

DAY_US = 86_400_000_000
SCHEMA: dict[str, Any] = {
    "parameters": {
        "type": "object",
        "required": ["id"],
        "properties": {"id": {"type": "string", "pattern": "^#W"}, "cabin": {"enum": ["basic_economy", "business"]}},
    }
}


def span(trace: str, name: str = "update_order", **fields: Any) -> Span:
    fields = {"kind": "tool", "external_id": name, **fields}
    return Span(source="s", trace_external_id=trace, name=name, **fields)


def episode(trace: str, *spans: Span, feedback: Sequence[dict[str, Any]] = (), **fields: Any) -> Episode:
    said = [
        Feedback(source="s", trace_external_id=trace, external_id=str(at), **item) for at, item in enumerate(feedback)
    ]
    return Episode(trace=Trace(source="s", external_id=trace, **fields), spans=spans, feedback=tuple(said))


def case(trace: str, *spans: Span, source: str = "unknown", authority: bool = False, **fields: Any) -> Case:
    found = episode(trace, *spans, **fields)
    failure = Failure(trace_id=found.trace.id, picked_us=0, probability=1, source=source, authority=authority)
    return Case(failure=failure, episode=found, signals=detect(found, meanings={}))


def evidence(*cases: Case, satisfied: Sequence[Episode] = (), **deployment: Any) -> dict[str, float | None]:
    return weigh(cases, satisfied, deployment=Deployment(**deployment), policy=Policy())


def call(trace: str, arguments: Any, error: str | None = "Error: no", **fields: Any) -> Span:
    return span(trace, input=arguments, error=error, output=None if error else "done", **fields)


def test_nothing_is_measured_on_a_cluster_without_cases() -> None:
    found = evidence()
    assert set(found) == {
        *FEATURES,
        *NOT_MEASURED,
        *(f"attempts_{t}" for t in ("context", "memory", "tooling", "weights")),
    }
    counts = {name for name, value in found.items() if value is not None}
    assert counts == {
        "n_eff",
        "sources",
        "authorities",
        "attempts",
        *(name for name in found if name.startswith("attempts_")),
    }


def test_schema_violation_is_the_share_of_failing_calls_that_break_the_schema() -> None:
    cases = (case("1", call("1", {})), case("2", call("2", {"id": "#W1"})), case("3", call("3", {"id": 1})))
    assert evidence(*cases, tools={"update_order": SCHEMA})["schema_violation"] == pytest.approx(2 / 3)
    assert evidence(*cases)["schema_violation"] is None


def test_error_shares_add_up_to_one() -> None:
    found = evidence(case("1", call("1", {}, "HTTP 503")), case("2", feedback=[{"score": 0.0}]))
    shares = {name: value for name, value in found.items() if name.startswith("error_") and value}
    assert shares == {"error_transient": 0.5, "error_none": 0.5}


def test_normalisable_by_the_schema_and_by_a_call_that_succeeded() -> None:
    bad = case("1", call("1", {"id": "W1", "cabin": "Basic Economy"}))
    by_schema: dict[str, Any] = {"tools": {"update_order": SCHEMA}}
    assert evidence(bad, **by_schema)["normalisable"] == 1.0
    repairs = argument_repairs([bad], (), deployment=Deployment(**by_schema), policy=Policy())
    assert repairs == {"update_order": {"id": ("prefix:#",), "cabin": ("enum",)}}
    accepted = episode("2", call("2", {"id": "#W1"}, None))
    assert evidence(bad, satisfied=[accepted])["normalisable"] == 1.0
    assert evidence(bad)["normalisable"] is None


def test_self_repair_needs_a_later_success_with_other_arguments() -> None:
    failing, again = call("1", {"id": "1"}, external_id="a"), call("1", {"id": "2"}, None, external_id="b")
    thumb = [{"score": 0.0}]
    assert evidence(case("1", failing, again, feedback=thumb))["self_repair"] == 1.0
    assert evidence(case("1", failing))["self_repair"] == 0.0


def test_contract_break_needs_a_tool_whose_output_is_logged() -> None:
    verdict = [{"score": 0.0, "span_external_id": "update_order"}]
    silent = case("1", span("1", output=None), feedback=verdict)
    assert evidence(silent)["contract_break"] is None
    assert evidence(silent, satisfied=[episode("2", span("2", output="stock 4"))])["contract_break"] == 1.0


def test_batch_outage_lies_between_successes_and_has_unrelated_inputs() -> None:
    down = [case(str(at), call(str(at), {"id": at}, "HTTP 503", started_us=at)) for at in range(1, 5)]
    fine = [episode(str(at), call(str(at), {"id": at}, None, started_us=at)) for at in (0, 9)]
    assert evidence(*down, satisfied=fine)["batch_outage"] == 1.0
    assert evidence(*down, satisfied=fine[:1])["batch_outage"] == 0.0
    assert evidence(*down)["batch_outage"] is None


def test_normative_and_first_person_read_what_people_said() -> None:
    policy = case("1", feedback=[{"score": 0.0, "comment": "You must always ask for the order number"}])
    own = case("2", feedback=[{"score": 0.0, "comment": "I prefer the aisle"}])
    mute = case("3", feedback=[{"score": 0.0}])
    found = evidence(policy, own, mute)
    assert (found["normative"], found["first_person"]) == (0.5, 0.5)
    assert evidence(mute)["normative"] is None
    usual = case("4", feedback=[{"score": 0.0, "comment": "Leave it at Oak Street as always"}])
    assert evidence(usual)["normative"] == 0.0


def test_rule_gap_is_one_without_rules_and_zero_for_a_rule_that_says_it() -> None:
    said = case("1", feedback=[{"score": 0.0, "comment": "never offer refunds"}])
    rule = Rule(id="rule_1", action="never_say", argument="never offer refunds", author="ann")
    assert evidence(said)["rule_gap"] == 1.0
    assert evidence(said, rules=(rule,))["rule_gap"] == pytest.approx(0.0)


def test_version_assoc_is_positive_where_failures_follow_the_change() -> None:
    after = [case(str(at), started_us=20) for at in range(9)]
    before = [episode(f"s{at}", started_us=5) for at in range(9)]
    found = evidence(*after, satisfied=before, context_changed_us=10)["version_assoc"]
    assert found is not None
    assert found > 3
    assert evidence(*after, satisfied=before)["version_assoc"] is None


def test_user_concentration_sets_the_top_user_against_their_traffic() -> None:
    cases = [case(str(at), user="ann") for at in range(2)]
    others = [episode(f"s{at}", user=f"u{at}") for at in range(6)]
    assert evidence(*cases, satisfied=others)["user_concentration"] == 0.75
    assert evidence(*cases)["user_concentration"] is None
    assert evidence(cases[0], satisfied=others)["user_concentration"] is None


def test_cross_user_conflict_asks_other_users_with_the_same_question() -> None:
    wrong = case("1", user="ann", input="which seat do I get", output="window", feedback=[{"score": 0.0}])
    same = [episode(f"s{at}", user=f"u{at}", input="which seat do I get?", output="Window") for at in range(3)]
    other = episode("x", user="x", input="which seat do I get?", output="aisle")
    assert evidence(wrong, satisfied=[*same, other])["cross_user_conflict"] == 0.75
    assert evidence(wrong, satisfied=[episode("y", user="y", input="重い荷物")])["cross_user_conflict"] is None


def test_said_before_looks_into_the_users_own_earlier_traces() -> None:
    fix = [{"corrected_output": "size 42"}]
    now = case("1", user="ann", input="shoes please", output="size 44", started_us=9, feedback=fix)
    assert (
        evidence(now, satisfied=[episode("2", user="ann", input="I wear Size 42", started_us=1)])["said_before"] == 1.0
    )
    assert (
        evidence(now, satisfied=[episode("2", user="bob", input="I wear size 42", started_us=1)])["said_before"] is None
    )


def test_stale_read_finds_the_served_value_in_memory() -> None:
    read = span("1", "recall", kind="memory", memories=({"city": "Berlin"},))
    found = case("1", read, output="Berlin", feedback=[{"corrected_output": "Hamburg"}])
    assert evidence(found)["stale_read"] == 1.0


def test_model_step_and_confidence_of_wrong_predictions() -> None:
    wrong = span("1", "router", kind="predict", input="hi", output="refund", confidence=0.75)
    found = evidence(case("1", wrong, feedback=[{"name": "label", "label": "greet"}]), case("2", call("2", {})))
    assert (found["model_step"], found["confident_wrong"]) == (0.5, 0.75)


def test_n_eff_caps_each_source_and_unknown_is_one() -> None:
    cases = [case(f"a{at}", source="ann") for at in range(9)]
    cases += [case(f"u{at}") for at in range(7)] + [case("b", source="bob", authority=True)]
    found = evidence(*cases)
    assert (found["n_eff"], found["sources"], found["authorities"]) == (11.0, 2.0, 1.0)


def test_days_are_distinct_and_never_invented() -> None:
    cases = [case("1", started_us=DAY_US - 1), case("2", started_us=DAY_US), case("3")]
    assert evidence(*cases)["days"] == 2.0
    assert evidence(cases[2])["days"] is None


def test_contradictory_corrections_are_seen_within_a_trace_and_between_traces() -> None:
    one, other = {"corrected_output": "refund"}, {"corrected_output": "exchange"}
    assert evidence(case("1", output="x", feedback=[one, other]))["contradiction"] == 1.0
    pair = [case("1", input="q", output="x", feedback=[one]), case("2", input="q", output="x", feedback=[other])]
    assert evidence(*pair)["contradiction"] == 1.0
    users = [
        case("1", input="q", output="x", user="ann", feedback=[one]),
        case("2", input="q", output="x", user="bob", feedback=[other]),
    ]
    assert evidence(*users)["contradiction"] == 0.0
    assert evidence(case("1"))["contradiction"] is None


def test_schema_subset_names_path_and_keyword() -> None:
    schema = argument_schema({"type": "function", "function": SCHEMA})
    assert schema is not None
    found = violations({"id": "W1", "cabin": "first"}, schema)
    assert [(item.path, item.keyword) for item in found] == [("id", "pattern"), ("cabin", "enum")]
    assert [(item.path, item.keyword) for item in violations({}, schema)] == [("id", "required")]
    assert violations({"id": "#W1", "more": True}, {**schema, "pattern": "("}) == ()


@given(st.sampled_from(NORMALISERS), st.text(max_size=30), st.lists(st.text(max_size=8), max_size=4))
def test_normalisers_are_total_and_idempotent(name: str, value: str, choices: list[str]) -> None:
    once = normalise(name, value, choices=list(choices))
    assert isinstance(once, str | int | float)
    assert normalise(name, once, choices=list(choices)) == once


@given(
    st.sampled_from([*NORMALISERS, "unheard_of"]), st.none() | st.booleans() | st.integers() | st.lists(st.integers())
)
def test_normalisers_leave_what_is_no_text_alone(name: str, value: Any) -> None:
    assert normalise(name, value) == value


@given(st.dates())
def test_date_iso_reads_every_unambiguous_spelling(day: Any) -> None:
    months = list(calendar.month_name)[1:]
    name, year = months[day.month - 1], f"{day.year:04d}"
    spellings = (
        f"{day.day} {name} {year}",
        f"{name[:3]} {day.day}, {year}",
        f"{day.day}.{day.month}.{year}",
        day.isoformat(),
    )
    assert {normalise("date_iso", spelling) for spelling in spellings} == {day.isoformat()}


def test_an_ambiguous_date_is_not_guessed_at() -> None:
    assert normalise("date_iso", "03/04/2024") == "03/04/2024"
    assert normalise("date_iso", "31/04/2024") == "31/04/2024"


def test_repair_gives_up_where_nothing_helps() -> None:
    assert repair("first", lambda value: value == "#W1") is None
    assert repair(5, lambda _: True) is None


@pytest.mark.parametrize(
    ("declared", "value", "broken"),
    [
        ("date", "2026-02-28", False),
        ("date", "2026-02-30", True),
        ("date", "28/02/2026", True),
        ("date", "2026-02-28T10:00:00Z", True),
        ("date-time", "2026-02-28T10:00:00Z", False),
        ("date-time", "2026-02-28T10:00:00.123+01:00", False),
        ("date-time", "2026-02-28T10:00:00", True),
        ("date-time", "tomorrow", True),
        ("color", "anything", False),
    ],
)
def test_formats_of_dates_are_read_and_others_are_not(declared: str, value: str, broken: bool) -> None:
    schema: dict[str, Any] = {"properties": {"day": {"type": "string", "format": declared}}}
    found = violations({"day": value}, schema)
    assert [each.keyword for each in found] == (["format"] if broken else [])
