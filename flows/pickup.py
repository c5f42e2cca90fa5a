"""Pickup: what has arrived since the last turn is looked at once, and what failed becomes a failure.

The cursor moves in the transaction that writes the failures, so that none is lost and none is seen twice.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy import Connection

from flows.detector import refit
from flows.training import labels_of
from flows.workspace import Workspace
from models.combination import Combination
from models.corrections import naming_labels
from models.detector import detect, is_failure, judge
from models.fingerprint import failing_step
from models.retry import LEAST_GAP_US, MOST_GAP_US, MOST_TRACES, asked_again
from store.errors import FilmroomError
from store.failures import cursor, failure_ids, move_cursor, record_failures, record_signals, rejudge
from store.ledger import record_events
from store.records import Episode, Failure, Record, Signal
from store.traces import arrived_after, episodes
from store.visits import followers

BATCH = 5000
"""Arrivals a transaction: as many as ingest writes at once, so that a trace and what was said of it are mostly seen together."""


class PickedUp(Record):
    """What pickup saw."""

    traces_seen: int = 0
    """Traces that were new or got something new."""
    failures: int = 0
    """New failures among them."""

    def markdown(self) -> str:
        return f"Looked at **{self.traces_seen}** new or changed traces; **{self.failures}** of them failed."


def pickup(workspace: Workspace) -> PickedUp:
    """Look at everything that has arrived and settled; batch by batch, each one transaction."""
    seen: set[str] = set()
    picked = 0
    combination = refit(workspace)
    labels = {name: _labels(workspace, name) for name in workspace.settings.weights}
    while True:
        with workspace.write() as connection:
            start = cursor(connection, workspace.project, "pickup")
            before_us = workspace.clock() - int(workspace.policy.settle_s * 1_000_000) + 1
            last, touched = arrived_after(connection, workspace.project, start, before_us=before_us, limit=BATCH)
            if last == start:
                return PickedUp(traces_seen=len(seen), failures=picked)
            looked_at = episodes(connection, touched)
            again = _asked_again(connection, workspace, looked_at)
            picked += _pick(connection, workspace, [*looked_at, *again.earlier], again.signals, combination, labels)
            seen.update(episode.trace.id for episode in looked_at)
            move_cursor(connection, workspace.project, "pickup", last)


@dataclass(frozen=True)
class _Again:
    """Traces whose user asked the same again."""

    signals: Mapping[str, tuple[Signal, ...]]
    """By trace id."""
    earlier: Sequence[Episode]
    """Those of them that arrived before."""


def _asked_again(connection: Connection, workspace: Workspace, looked_at: Sequence[Episode]) -> _Again:
    known = {episode.trace.id: episode for episode in looked_at}
    after = followers(
        connection, workspace.project, [each.trace for each in looked_at],
        least_us=LEAST_GAP_US, most_us=MOST_GAP_US, most=MOST_TRACES,
    )  # fmt: skip
    after = {id_: later for id_, later in after.items() if len(later) < MOST_TRACES}
    named = dict.fromkeys(id_ for first, later in after.items() for id_ in (first, *later))
    arrived = set(known)
    known |= {each.trace.id: each for each in episodes(connection, [id_ for id_ in named if id_ not in arrived])}
    said = {id_: asked_again(known[id_], [known[each] for each in later]) for id_, later in after.items()}
    signals = {id_: found for id_, found in said.items() if found}
    return _Again(signals, [known[id_] for id_ in signals if id_ not in arrived])


def _pick(
    connection: Connection,
    workspace: Workspace,
    looked_at: Sequence[Episode],
    again: Mapping[str, tuple[Signal, ...]],
    combination: Combination,
    labels: Mapping[str, set[str]],
) -> int:
    known = failure_ids(connection, [episode.trace.id for episode in looked_at])
    all_signals: list[Signal] = []
    fresh: list[Failure] = []
    for episode in looked_at:
        read = naming_labels(episode, labels)
        signals = detect(read, meanings=workspace.settings.feedback, out_of_scope=workspace.out_of_scope)
        signals += again.get(episode.trace.id, ())
        all_signals += signals
        failed = is_failure(signals, combination)
        if episode.trace.id in known:
            rejudge(
                connection, _failure(workspace, episode, signals, judge(signals, combination)), withdrawn=not failed
            )
        elif failed:
            fresh.append(_failure(workspace, episode, signals, judge(signals, combination)))
    record_signals(connection, workspace.project, all_signals)
    events = [
        {"project": workspace.project, "at_us": each.picked_us, "actor": workspace.actor, "event": "picked up",
         "subject": each.id, "reason": "", "detail": {"probability": round(each.probability, 4)}}
        for each in fresh
    ]  # fmt: skip
    record_events(connection, events, {each.id: [each.trace_id] for each in fresh})
    return len(record_failures(connection, fresh))


def _labels(workspace: Workspace, name: str) -> set[str]:
    """The labels of the model's base set; empty where it cannot be read, which the retrain stage says."""
    try:
        return labels_of(workspace.settings, name)
    except FilmroomError:
        return set()


def _failure(workspace: Workspace, episode: Episode, signals: Sequence[Signal], probability: float) -> Failure:
    source = _source(episode, signals)
    step = failing_step(episode, signals)
    return Failure(
        project=workspace.project,
        trace_id=episode.trace.id,
        picked_us=workspace.clock(),
        probability=probability,
        span_id=None if step is None else step.id,
        source=source,
        authority=workspace.is_authority(source),
    )


def _source(episode: Episode, signals: Sequence[Signal]) -> str:
    """The principal of the feedback that speaks loudest against the trace, else the user, else `unknown`."""
    said = {feedback.id: feedback for feedback in episode.feedback}
    loudest = sorted((signal for signal in signals if signal.weight > 0), key=lambda signal: -signal.weight)
    for signal in loudest:
        feedback = said.get(signal.feedback_id or "")
        if feedback is not None and feedback.principal is not None:
            return feedback.principal
    return episode.trace.user or "unknown"
