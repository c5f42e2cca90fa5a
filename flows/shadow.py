"""After a promotion: the version before answers the same inputs in the shadow, and comes back by itself where it is better."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from flows.champion import load_model
from flows.labels import label_given
from flows.serving import artifact_of, live_version, roll_back
from flows.training import labels_of
from flows.workspace import Workspace
from models.shadow import HARM, Shadowed
from models.steps import label_in, text_of
from store.errors import ModelRefused
from store.exposures import judged
from store.records import Episode, Retrain, Version
from store.releases import live_release, version
from store.retrains import promotion

JUDGED = 20_000
"""Newest judged traces that are looked at."""


class Compared(NamedTuple):
    """One labelled answer since the promotion."""

    source: str
    text: str
    label: str
    served: str | None
    """What was answered; None: nothing, and the model has no label for that."""


def shadow(workspace: Workspace, name: str) -> Retrain | None:
    """The row that says rolled back, where labels since a promotion show its harm; None: it stays.

    Only a model that filmroom serves, only traces that began after the promotion, and labels by people or programs that
    say what would have been right. One source counts at most as often as the policy caps it: no single account calls a
    version back.
    """
    if workspace.settings.weights[name].champion != "ours":
        return None
    promoted, before, said = _since_promotion(workspace, name)
    if promoted is None or before is None or not said:
        return None
    reason = _harm(workspace, name, before, said)
    if reason is None:
        return None
    with workspace.write() as connection:
        if live_release(connection, workspace.project).models.get(name) != promoted.version:
            return None
        return roll_back(connection, workspace, promoted, reason=reason)


def _since_promotion(workspace: Workspace, name: str) -> tuple[Retrain | None, Version | None, list[Compared]]:
    """The live version's promotion, the version before it, and the labelled answers since."""
    with workspace.store.read() as connection:
        live = live_version(connection, workspace.project, name)
        promoted = None if live is None else promotion(connection, workspace.project, live.id)
        if promoted is None or promoted.parent is None:
            return None, None, []
        before = version(connection, promoted.parent)
        found = judged(connection, workspace.project, after_us=promoted.at_us, limit=JUDGED)
    return promoted, before, list(_capped(_labels(workspace, name, (episode for episode, _ in found)), workspace))


def _harm(workspace: Workspace, name: str, before: Version, said: Sequence[Compared]) -> str | None:
    """Why the version before is the better one, in a sentence; None: nothing shows it, or it cannot be loaded."""
    try:
        answers = load_model(workspace.artifacts, artifact_of(before)).predict([each.text for each in said])
    except ModelRefused:
        return None  # there is nothing that could be served in its place
    old = [answer.answer or workspace.out_of_scope[name] for answer in answers]
    found = Shadowed(
        judged=len(said),
        lost=sum(was == each.label != each.served for was, each in zip(old, said, strict=True)),
        won=sum(was != each.label == each.served for was, each in zip(old, said, strict=True)),
    )
    if not found.harms:
        return None
    return (
        f"of {len(said)} labelled answers since the promotion the version before was right on {found.lost} where this one was "
        f"wrong, and wrong on {found.won} where it was right (e-value {found.evidence:.0f}, {HARM:.0f} rolls back)"
    )


def _labels(workspace: Workspace, name: str, found: Iterable[Episode]) -> Iterator[Compared]:
    """Each labelled answer of the model, newest first."""
    outside = workspace.out_of_scope[name]
    known = labels_of(workspace.settings, name)
    for episode in found:
        given = label_given(episode, {name}, known)
        if given is not None:
            served = label_in(given.step.output) or outside
            yield Compared(given.principal, text_of(given.step.input), given.label, served)


def _capped(found: Iterator[Compared], workspace: Workspace) -> Iterator[Compared]:
    given: Counter[str] = Counter()
    for each in found:
        given[each.source] += 1
        if workspace.is_authority(each.source) or given[each.source] <= workspace.policy.cap_per_source:
            yield each
