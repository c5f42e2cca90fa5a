"""What customers say of the answers they got, and which places would really mend them: by running the fix."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks.fault_scenario import Scenario
from benchmarks.fault_shop import DAY_US, MODEL, START_US, Request, World, outputs, serve
from models.router import NONE
from store.records import TARGETS, Episode, Feedback

SAYS = 0.8
"""Share of the answers that anybody says anything of."""
COMMENTS = 0.5
NOISE = 0.01
"""Share of the thumbs that point the wrong way."""
REPAIRED = 0.8
"""A place is right where its fix repairs this share of the cluster ..."""
BROKEN = 0.05
"""... and breaks at most this share of what was right."""
FINE = 60
"""Requests answered rightly that a fix is tried on."""
WEIGHT = 4
"""A corrected row counts this often beside one of the developers'."""


@dataclass(frozen=True)
class Stream:
    """The requests of a scenario, how they were answered, and what was right."""

    scenario: Scenario
    requests: Mapping[str, Request]
    """By trace id."""
    episodes: Mapping[str, Episode]
    wrong: frozenset[str]
    """Trace ids of the answers that differ from the ideal world's."""


def streamed(scenario: Scenario, ordinary: Sequence[Request], rng: Any) -> Stream:
    """The scenario's requests among ordinary ones, answered, with what people said of the answers."""
    requests = sorted((*scenario.hit, *ordinary), key=lambda each: each.day)
    given, right = serve(requests, scenario.world), serve(requests, scenario.ideal)
    hit = {each.id for each in scenario.hit}
    episodes: dict[str, Episode] = {}
    wrong = set()
    for request, got, wanted in zip(requests, given, right, strict=True):
        failed = got.trace.output != wanted.trace.output
        if failed:
            wrong.add(got.trace.id)
        said = _said(rng, scenario, request, got, wanted, failed=failed, is_hit=request.id in hit)
        episodes[got.trace.id] = got.model_copy(update={"feedback": tuple(said)})
    by_id = {got.trace.id: request for request, got in zip(requests, given, strict=True)}
    return Stream(scenario, by_id, episodes, frozenset(wrong))


def _said(
    rng: Any, scenario: Scenario, request: Request, got: Episode, wanted: Episode, *, failed: bool, is_hit: bool
) -> list[Feedback]:
    key: dict[str, Any] = {
        "source": "shop", "trace_external_id": request.id, "principal": request.user,
        "given_us": START_US + int((request.day + 0.02) * DAY_US),
    }  # fmt: skip
    if request.earlier or rng.random() > SAYS:
        return []
    anyway = scenario.complains_anyway(rng, request) if is_hit and not failed and scenario.complains_anyway else None
    bad = (failed or anyway is not None) != (rng.random() < NOISE)
    found = [Feedback(**key, external_id="thumb", name="thumb", score=0.0 if bad else 1.0)]
    if anyway:
        found.append(Feedback(**key, external_id="label", name=MODEL, corrected_output=anyway))
    if not bad:
        return found
    if failed and rng.random() < scenario.answers:
        found.append(_right(rng, scenario, request, got, wanted, key))
    if is_hit and rng.random() < COMMENTS:
        text = str(scenario.comments[int(rng.integers(len(scenario.comments)))])
        text = text.replace("{wanted}", str(wanted.trace.output)).replace("{label}", request.intent.replace("_", " "))
        found.append(Feedback(**key, external_id="comment", name="comment", comment=text))
    return found


def _right(
    rng: Any, scenario: Scenario, request: Request, got: Episode, wanted: Episode, key: Mapping[str, Any]
) -> Feedback:
    predicted = next(span.output for span in got.spans if span.kind == "predict")
    if predicted != request.intent and rng.random() < scenario.labels:
        return Feedback(**key, external_id="label", name=MODEL, corrected_output=request.intent)
    return Feedback(**key, external_id="right", name="correction", corrected_output=wanted.trace.output)


def valid_targets(stream: Stream, trace_ids: Sequence[str]) -> frozenset[str]:
    """The places whose fix, put into the world and run on the same stream, repairs these traces; `none` where none does.

    The fix of a place is the ideal world's part. Of the weights it is a model refitted with the right labels of everything
    it misread for other users, so that it must generalise. Nothing is to be repaired where fewer than
    half of the traces were answered wrongly.
    """
    cluster = [stream.requests[each] for each in trace_ids]
    fine = [request for id, request in stream.requests.items() if id not in stream.wrong][:FINE]
    if 2 * sum(id in stream.wrong for id in trace_ids) < len(trace_ids):
        return frozenset({NONE})
    found: set[str] = {target for target in TARGETS if _mends(stream, target, cluster, fine)}
    return frozenset(found or {NONE})


def _mends(stream: Stream, target: str, cluster: Sequence[Request], fine: Sequence[Request]) -> bool:
    scenario = stream.scenario
    if target != "weights":
        fixed = _fixed(scenario, target, ())
        return _share(cluster, fixed, scenario.ideal) >= REPAIRED and _breaks(fine, fixed, scenario) <= BROKEN
    if not _misread(scenario.world, cluster):
        return False
    repaired = broken = 0.0
    for users in _halves(cluster):
        mine = [each for each in cluster if each.user in users]
        others = [stream.requests[id] for id in sorted(stream.wrong) if stream.requests[id].user not in users]
        fixed = _fixed(scenario, target, others)
        repaired += _share(mine, fixed, scenario.ideal) * len(mine) / len(cluster)
        broken = max(broken, _breaks(fine, fixed, scenario))
    return repaired >= REPAIRED and broken <= BROKEN


def _breaks(fine: Sequence[Request], fixed: World, scenario: Scenario) -> float:
    return 1 - _share(fine, fixed, scenario.ideal)


def _misread(world: World, cluster: Sequence[Request]) -> bool:
    """Whether the model takes any of these requests for another intent: else no other model changes anything."""
    return any(got.spans[0].output != each.intent for got, each in zip(serve(cluster, world), cluster, strict=True))


def _fixed(scenario: Scenario, target: str, learnt: Sequence[Request]) -> World:
    world, ideal = scenario.world, scenario.ideal
    if target == "context":
        return world.changed(lines=ideal.lines, notes=ideal.notes, overlooks=ideal.overlooks)
    if target == "memory":
        return world.changed(facts=ideal.facts)
    if target == "tooling":
        return world.changed(tools=ideal.tools)
    rows = tuple((each.text, each.intent) for each in learnt for _ in range(WEIGHT))
    return world.changed(training=(*(world.training or ()), *rows))


def _halves(cluster: Sequence[Request]) -> list[set[str]]:
    users = sorted({each.user for each in cluster})
    return [set(users[::2]), set(users[1::2])]


def _share(requests: Sequence[Request], world: World, ideal: World) -> float:
    """Share that `world` answers as the ideal one does; 1 where nothing is asked."""
    same = [got == wanted for got, wanted in zip(outputs(requests, world), outputs(requests, ideal), strict=True)]
    return sum(same) / len(same) if same else 1.0
