"""After a promotion: the version before answers the same inputs in the shadow, and comes back by itself where it is better."""

from collections import Counter
from collections.abc import Iterable, Iterator

from flows.champion import load_model
from flows.serving import artifact_of, live_version, roll_back
from flows.workspace import Workspace
from models.sequential import e_value
from models.steps import label_in, text_of
from store.errors import ModelRefused
from store.exposures import judged
from store.records import Episode, Retrain
from store.releases import live_release, version
from store.retrains import promotion

HARM = 20.0
"""The e-value at which the version before is served again: looked at every turn, it errs with 5 % at the most, ever."""
JUDGED = 20_000
"""Newest judged traces that are looked at."""


def shadow(workspace: Workspace, name: str) -> Retrain | None:
    """The row that says rolled back, where labels since a promotion show its harm; None: it stays.

    Only a model that filmroom serves, only traces that began after the promotion, and labels by people or programs that
    say what would have been right. One source counts at most as often as the policy caps it: no single account calls a
    version back.
    """
    if workspace.settings.weights[name].champion != "ours":
        return None
    with workspace.store.read() as connection:
        live = live_version(connection, workspace.project, name)
        promoted = None if live is None else promotion(connection, workspace.project, live.id)
        if promoted is None or promoted.parent is None:
            return None
        before = version(connection, promoted.parent)
        found = judged(connection, workspace.project, after_us=promoted.at_us, limit=JUDGED)
    said = list(_capped(_labels(workspace, name, (episode for episode, _ in found)), workspace))
    if not said:
        return None
    try:
        answers = load_model(workspace.artifacts, artifact_of(before)).predict([text for _, text, _, _ in said])
    except ModelRefused:
        return None  # there is nothing that could be served in its place
    outside = workspace.out_of_scope[name]
    old = [answer.answer or outside for answer in answers]
    lost = sum(was == label != served for was, (_, _, label, served) in zip(old, said, strict=True))
    won = sum(was != label == served for was, (_, _, label, served) in zip(old, said, strict=True))
    harm = e_value(lost, won)
    if harm < HARM:
        return None
    reason = (
        f"of {len(said)} labelled answers since the promotion the version before was right on {lost} where this one was wrong, "
        f"and wrong on {won} where it was right (e-value {harm:.0f}, {HARM:.0f} rolls back)"
    )
    with workspace.write() as connection:
        if live_release(connection, workspace.project).models.get(name) != promoted.version:
            return None
        return roll_back(connection, workspace, promoted, reason=reason)


def _labels(
    workspace: Workspace, name: str, found: Iterable[Episode]
) -> Iterator[tuple[str, str, str | None, str | None]]:
    """(source, input, right label, label served) of each labelled answer of the model, newest first."""
    outside = workspace.out_of_scope[name]
    for episode in found:
        steps = [span for span in episode.spans if span.kind == "predict" and name in (span.name, span.model)]
        said = [each for each in episode.feedback if each.corrected_output is not None]
        label = label_in(said[-1].corrected_output) if said else None
        if steps and label:
            source = said[-1].principal or episode.trace.user or "unknown"
            yield source, text_of(steps[-1].input), label, label_in(steps[-1].output) or outside


def _capped(
    found: Iterator[tuple[str, str, str | None, str | None]], workspace: Workspace
) -> Iterator[tuple[str, str, str | None, str | None]]:
    given: Counter[str] = Counter()
    for each in found:
        given[each[0]] += 1
        if workspace.is_authority(each[0]) or given[each[0]] <= workspace.policy.cap_per_source:
            yield each
