"""Evidence for tooling: the call, the tool or its contract is what fails."""

from collections.abc import Iterable, Mapping

from models.error_class import error_class
from models.features.material import Feature, Material, share
from models.features.repairs import accepted_by, broken_by, repairs_of, schema_of
from models.normalise import apply_chain
from models.schema import place_of, schema_at
from models.steps import arguments, error_text, is_consequential, step_name, tool_calls
from store.records import Case, Span
from store.records.identity import canonical_json

MOST = 0.5
_RUN = 3
"""Failing calls in a row, with different inputs, that make an outage."""
_GOING_ON = 5
"""The same for one that no success has ended yet."""


def schema_violation(material: Material) -> float | None:
    """Share of failing tool calls that break the tool's declared JSON schema; 0 to 1.

    None where no case fails in a tool with a schema. Example: 3 of 4 calls of `update_order` lack the required
    `address`: 0.75.
    """
    return share(_breaks(material, call) for _, call in material.failing_calls)


def error_share(name: str) -> Feature:
    """The feature: share of the cases whose failing step ended in an error of class `name`; 0 to 1.

    `none`: no error at all. None for a cluster without cases. Example: 2 of 4 cases with "HTTP 503": `transient` 0.5.
    """

    def feature(material: Material) -> float | None:
        return share(found == name for found in material.error_classes)

    return feature


def normalisable(material: Material) -> float | None:
    """Share of failing tool calls where a listed normaliser maps a bad argument to an accepted one; 0 to 1.

    Accepted: it passes the schema the bad one breaks, or it stands under the same name in a call that succeeded, or a
    prefix that all values of that argument have gives it the form of one.
    None where neither can be checked. Example: `W1` fails, `#W1` succeeds elsewhere, `prefix:#` maps one to the other: 1.
    """
    accepted = accepted_by(material.calls)
    return share(
        None if (found := repairs_of(material, call, accepted)) is None else bool(found)
        for _, call in material.failing_calls
    )


def argument_repairs(material: Material) -> dict[str, dict[str, tuple[str, ...]]]:
    """What a tool policy could say: tool to argument path to the normalisers that mend it, first seen first.

    Left out: what would change an argument of a call of that tool that succeeded.
    """
    accepted = accepted_by(material.calls)
    found: dict[str, dict[str, tuple[str, ...]]] = {}
    for _, call in material.failing_calls:
        for path, chain in (repairs_of(material, call, accepted) or {}).items():
            if _leaves_alone(material, call, path, chain):
                found.setdefault(step_name(call), {}).setdefault(path, chain)
    return found


def calls_mended(material: Material, tool: str, normalisers: Mapping[str, tuple[str, ...]]) -> tuple[int, int]:
    """(failing calls of the tool that these normalisers mend, all of them)."""
    accepted = accepted_by(material.calls)
    calls = [call for _, call in material.failing_calls if step_name(call) == tool]
    repairs = [repairs_of(material, call, accepted) or {} for call in calls]
    mended = [each for each in repairs if each and all(normalisers.get(path) == each[path] for path in each)]
    return len(mended), len(calls)


def retry_helps(material: Material, tool: str) -> bool:
    """Whether calling again helps: most calls of the tool that ended in an error are temporary errors, or succeeded when they
    were made once more, anywhere; the tool does succeed; and it is no outage, which outlasts retries.

    Only for tools that by their name just read: one that acts may have acted. An answer that was judged wrong is no error:
    the same call gives it again.
    """
    failing = [(case, call) for case, call in _calls_of(material, tool) if error_text(call) is not None]
    right = {
        canonical_json(call.input) for call in material.calls if step_name(call) == tool and error_text(call) is None
    }
    if (
        not right
        or not failing
        or any(is_consequential(call) for _, call in failing)
        or (batch_outage(material) or 0.0) > MOST
    ):
        return False
    helped = (
        error_class(error_text(call), call.error_type) == "transient" or canonical_json(call.input) in right
        for _, call in failing
    )
    return (share(helped) or 0.0) > MOST


def missing_arguments(material: Material, tool: str) -> tuple[str, ...]:
    """The arguments that every call of the tool that succeeded has, and most failing ones lack; at least 3 succeeded."""
    right = [arguments(call) for call in material.calls if step_name(call) == tool and error_text(call) is None]
    failing = [arguments(call) for _, call in _calls_of(material, tool)]
    if len(right) < _RUN or not failing:
        return ()
    always = set.intersection(*(set(each) for each in right))
    return tuple(sorted(name for name in always if (share(name not in each for each in failing) or 0.0) > MOST))


def self_repair(material: Material) -> float | None:
    """Share of failing tool calls after which the same tool succeeded with changed arguments; 0 to 1.

    None where no case fails in a tool. Example: `find_user(zip=" 19122")` fails, `find_user(zip="19122")` succeeds: 1.
    """
    return share(_repaired_later(case, call) for case, call in material.failing_calls)


def contract_break(material: Material) -> float | None:
    """Share of the cases whose failing tool call, without an error, brought nothing, or less fresh than it must be; 0 to 1.

    Where no step failed, any call of the case counts. None where the log holds no output of that tool at all, or no
    such call. Output age: the attribute `age_s`. Example: `get_stock` answers null in 2 of 4 cases: 0.5.
    """
    speaking = {step_name(call) for call in material.calls if call.output not in (None, "")}
    return share(
        _breaks_one(case, step, speaking, material) for case, step in zip(material.cases, material.steps, strict=True)
    )


def batch_outage(material: Material) -> float | None:
    """Share of failing tool calls inside an outage: at least 3 failing calls of the tool in a row, by time, with
    different inputs, after one that succeeded and before one that succeeded; 0 to 1. One that has not ended counts
    from 5 failing calls on.

    None where no failing call has a time, or none of that tool's successes is known. Example: `get_stock` fails for
    six users between 10:00 and 10:05 and works before and after: 1.
    """
    dated = [call for _, call in material.failing_calls if call.started_us is not None]
    outages = {name: _outage(material.calls, name) for name in {step_name(call) for call in dated}}
    return share(None if (inside := outages[step_name(call)]) is None else call.id in inside for call in dated)


def _calls_of(material: Material, tool: str) -> list[tuple[Case, Span]]:
    return [(case, call) for case, call in material.failing_calls if step_name(call) == tool]


def _leaves_alone(material: Material, failing: Span, path: str, chain: tuple[str, ...]) -> bool:
    """Whether the chain changes no argument of the tool's calls that succeeded."""
    schema = schema_of(material, failing)
    choices = (schema_at(schema, path.split(".")) if schema else {}).get("enum")
    allowed = choices if isinstance(choices, list) else ()
    for call in material.calls:
        if step_name(call) != step_name(failing) or error_text(call) is not None:
            continue
        holder, name = place_of(arguments(call), path.split("."))
        if holder is not None and apply_chain(chain, holder[name], choices=allowed) != holder[name]:
            return False
    return True


def _breaks(material: Material, call: Span) -> bool | None:
    found = broken_by(material, call)
    return None if found is None else bool(found)


def _repaired_later(case: Case, call: Span) -> bool:
    spans = case.episode.spans
    place = next((at for at, span in enumerate(spans) if span.external_id == call.external_id), len(spans))
    later = [span for span in spans[place + 1 :] if span.kind == "tool" and span.name == call.name]
    tried = canonical_json(call.input)
    return any(error_text(span) is None and canonical_json(span.input) != tried for span in later)


def _breaks_one(case: Case, step: Span | None, speaking: set[str], material: Material) -> bool | None:
    """Whether the failing call breaks its contract; where no step failed, whether any call does."""
    if step is not None and (step.kind != "tool" or error_text(step) is not None):
        return None
    calls = [step] if step is not None else tool_calls(case.episode.spans)
    sound = [call for call in calls if step_name(call) in speaking and error_text(call) is None]
    return any(_breaks_contract(call, material.deployment.freshness_s) for call in sound) if sound else None


def _breaks_contract(call: Span, freshness_s: Mapping[str, float]) -> bool:
    if call.output in (None, ""):
        return True
    age, bound = call.attributes.get("age_s"), freshness_s.get(call.name or "")
    return isinstance(age, int | float) and bound is not None and age > bound


def _outage(calls: Iterable[Span], name: str) -> frozenset[str] | None:
    """Ids of the tool's calls inside an outage; None: it never succeeded within what is known."""
    dated = [
        (call.started_us, call.id, call) for call in calls if call.started_us is not None and step_name(call) == name
    ]
    states = [(call, error_text(call) is not None) for _, _, call in sorted(dated, key=lambda item: item[:2])]
    if all(failed for _, failed in states):
        return None
    inside: set[str] = set()
    run: list[Span] = []
    before = False
    for call, failed in states:
        if failed:
            run.append(call)
            continue
        if before and len({canonical_json(item.input) for item in run}) >= _RUN:
            inside |= {item.id for item in run}
        before, run = True, []
    if before and len({canonical_json(item.input) for item in run}) >= _GOING_ON:
        inside |= {item.id for item in run}
    return frozenset(inside)


FEATURES: dict[str, Feature] = {
    "schema_violation": schema_violation,
    **{
        f"error_{name}": error_share(name) for name in ("transient", "validation", "not_found", "auth", "other", "none")
    },
    "normalisable": normalisable,
    "self_repair": self_repair,
    "contract_break": contract_break,
    "batch_outage": batch_outage,
}
