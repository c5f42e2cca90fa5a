"""Several reviewers of one correction: opinions are collected, and what they agree on is carried out by `flows.review`.

With one reviewer an opinion is the verdict. With more, the last one needed decides where all say the same; else the
correction waits for someone to settle it.
"""

from collections.abc import Sequence
from typing import Literal

from pydantic import JsonValue
from sqlalchemy import Connection

from flows.apply import no_place
from flows.review import Reviewed, approve, defer, reject, reroute
from flows.undo import Undone, undo
from flows.workspace import Workspace
from models.agreement import Agreement, cohen, fleiss
from store.corrections import OPEN, correction
from store.errors import FilmroomError, NotAllowed
from store.ledger import record_event
from store.opinions import (
    Opinion,
    close_opinions,
    drop_claim,
    opinions_on,
    put_opinion,
    reviewers_wanted,
    take_claim,
    want_reviewers,
    withdraw_opinion,
)
from store.records import Correction, Record, Target, Verdict

Stage = Literal["first", "more", "agreed", "disagreed"]

MOST_REVIEWERS = 9


class Panel(Record):
    """Where a correction stands with its reviewers."""

    wanted: int
    """Opinions it needs."""
    given: tuple[Opinion, ...]
    """What may be shown to whoever asked: all, or only their own while the review is blind."""
    count: int
    """How many there are, shown or not."""
    stage: Stage
    mine: bool
    """Whether whoever asked has given theirs."""


class Bulk(Record):
    """What a verdict over a filter did."""

    done: tuple[Reviewed, ...]
    failed: dict[str, str]
    """Correction id to why it was left as it was."""


def panel(connection: Connection, workspace: Workspace, correction_id: str) -> Panel:
    """The panel as the workspace's actor may see it."""
    wanted = reviewers_wanted(connection, workspace.project, correction_id, workspace.settings.console.reviewers)
    given = opinions_on(connection, workspace.project, correction_id)
    mine = any(each.reviewer == workspace.actor for each in given)
    stage = _stage(given, wanted)
    hidden = workspace.settings.console.blind and not mine and stage in ("first", "more")
    shown = [] if hidden else given
    return Panel(wanted=wanted, given=tuple(shown), count=len(given), stage=stage, mine=mine)


def give_opinion(
    workspace: Workspace,
    correction_id: str,
    verdict: Verdict,
    *,
    to: Target | None = None,
    answer: JsonValue = None,
    reason: str = "",
    seconds: float | None = None,
) -> Reviewed:
    """The actor's verdict: carried out at once where it is the last that is needed, else kept for the others.

    Raises NotAllowed for a second opinion of the same person, and what the verdict itself raises; then nothing is kept.
    """
    with workspace.store.read() as connection:
        found = correction(connection, workspace.project, correction_id)
        seen = panel(connection, workspace, correction_id)
    mine = _opinion(workspace, found, seen, verdict, to=to, answer=answer, reason=reason, seconds=seconds)
    if verdict == "defer" or seen.wanted == 1 or mine.decides:
        return _decide(workspace, mine)
    if seen.mine:
        raise NotAllowed(f"you have said what you think of {correction_id}: undo that first (u)")
    return _collect(workspace, mine, seen.wanted)


def give_opinions(
    workspace: Workspace, ids: Sequence[str], verdict: Verdict, *, to: Target | None = None, reason: str = ""
) -> Bulk:
    """The same verdict on many corrections, one transaction each; what cannot be done is named and left as it is."""
    done, failed = [], {}
    for id_ in ids:
        try:
            done.append(give_opinion(workspace, id_, verdict, to=to, reason=reason))
        except FilmroomError as error:
            failed[id_] = str(error)
    return Bulk(done=tuple(done), failed=failed)


def take_back(workspace: Workspace, any_id: str, *, reason: str = "") -> Undone:
    """Undo a verdict or change; an opinion that has decided nothing yet is withdrawn."""
    if any_id.startswith("cor_"):
        with workspace.write() as connection:
            found = correction(connection, workspace.project, any_id)
            if found.state in OPEN and withdraw_opinion(connection, workspace.project, any_id, workspace.actor):
                _say(connection, workspace, any_id, "opinion withdrawn", reason)
                return Undone(undone=(any_id,), release="", next="your opinion is withdrawn; it waits for one again")
    done = undo(workspace, any_id, reason=reason)
    with workspace.write() as connection:
        for each in {any_id, *done.undone}:
            if each.startswith("cor_"):
                close_opinions(connection, workspace.project, each)
    return done


def claim(workspace: Workspace, correction_id: str) -> int:
    """Say that the actor is at this correction; returns until when, in microseconds. Raises NotAllowed where others are."""
    now_us = workspace.clock()
    until_us = now_us + int(workspace.settings.console.claim_minutes * 60_000_000)
    with workspace.write() as connection:
        correction(connection, workspace.project, correction_id)
        seen = panel(connection, workspace, correction_id)
        places = max(1, seen.wanted - seen.count)
        if not take_claim(connection, workspace.project, correction_id, workspace.actor, places=places,
                          now_us=now_us, until_us=until_us):  # fmt: skip
            raise NotAllowed(f"someone else is at {correction_id}: take another, or wait until their claim is over")
    return until_us


def unclaim(workspace: Workspace, correction_id: str) -> None:
    """Leave the correction to others."""
    with workspace.write() as connection:
        drop_claim(connection, workspace.project, correction_id, workspace.actor)


def ask_reviewers(workspace: Workspace, ids: Sequence[str], number: int) -> None:
    """Have each of these corrections judged by so many reviewers. Raises NotAllowed beyond nine."""
    if not 1 <= number <= MOST_REVIEWERS:
        raise NotAllowed(f"{number} reviewers: between 1 and {MOST_REVIEWERS}")
    with workspace.write() as connection:
        for id_ in ids:
            correction(connection, workspace.project, id_)
            want_reviewers(connection, workspace.project, id_, number)
            _say(connection, workspace, id_, "reviewers asked", f"{number}")


def pairwise(given: Sequence[Opinion]) -> dict[tuple[str, str], Agreement]:
    """Cohen's kappa of every two reviewers who judged the same corrections; a reviewer's newest opinion counts."""
    by_item = _by_item(given)
    pairs: dict[tuple[str, str], list[tuple[str, str]]] = {}
    for said in by_item.values():
        names = sorted(said)
        for i, first in enumerate(names):
            for second in names[i + 1 :]:
                pairs.setdefault((first, second), []).append((said[first], said[second]))
    return {names: cohen(found) for names, found in sorted(pairs.items())}


def overall(given: Sequence[Opinion]) -> Agreement:
    """Fleiss' kappa over all corrections that more than one reviewer judged."""
    return fleiss([list(said.values()) for said in _by_item(given).values()])


def _by_item(given: Sequence[Opinion]) -> dict[str, dict[str, str]]:
    found: dict[str, dict[str, str]] = {}
    for each in given:
        if each.verdict != "defer" and not each.decides:
            found.setdefault(each.correction_id, {})[each.reviewer] = each.category
    return found


def _opinion(
    workspace: Workspace,
    found: Correction,
    seen: Panel,
    verdict: Verdict,
    *,
    to: Target | None,
    answer: JsonValue,
    reason: str,
    seconds: float | None,
) -> Opinion:
    place = to
    if verdict == "approve" and to is None and found.proposal is not None:
        place = found.proposal.target
    return Opinion(
        project=workspace.project,
        correction_id=found.id,
        reviewer=workspace.actor,
        verdict=verdict,
        target=place if verdict in ("approve", "reroute") else None,
        reason=reason,
        answer=answer,
        at_us=workspace.clock(),
        seconds=seconds,
        blind=workspace.settings.console.blind and seen.count > 0 and not seen.given,
        decides=seen.wanted > 1 and seen.stage in ("agreed", "disagreed"),
        open=verdict != "defer",
    )


def _collect(workspace: Workspace, mine: Opinion, wanted: int) -> Reviewed:
    """Keep the opinion; carry out what all agree on once there are enough."""
    with workspace.write() as connection:
        found = correction(connection, workspace.project, mine.correction_id)
        if found.state not in OPEN:
            raise NotAllowed(f"{found.id} is already {found.state}: `filmroom undo {found.id}` takes that back")
        _check_complete(found, mine)
        before = opinions_on(connection, workspace.project, found.id)
        if any(each.reviewer == mine.reviewer for each in before):
            raise NotAllowed(f"you have said what you think of {found.id}: undo that first (u)")
        put_opinion(connection, mine)
        _say(connection, workspace, found.id, "opinion given")
        drop_claim(connection, workspace.project, found.id, mine.reviewer)
        given = [*before, mine]
    if _stage(given, wanted) == "agreed":
        return _carry_out(workspace, mine)
    missing = wanted - len(given)
    following = (
        "the reviewers disagree: someone settles it" if missing <= 0 else f"{missing} more to say what they think"
    )
    return Reviewed(correction=mine.correction_id, verdict=mine.verdict, state=found.state, next=following,
                    undo=f"filmroom undo {mine.correction_id}")  # fmt: skip


def _say(connection: Connection, workspace: Workspace, correction_id: str, event: str, reason: str = "") -> None:
    """In history, without what was said: another reviewer may read it before they have said anything."""
    record_event(connection, workspace.project, at_us=workspace.clock(), actor=workspace.actor, event=event,
                 subject=correction_id, reason=reason)  # fmt: skip


def _check_complete(found: Correction, mine: Opinion) -> None:
    """An opinion that could never be carried out is refused at once."""
    if mine.verdict == "approve" and found.proposal is None:
        raise NotAllowed(no_place(found.id))
    if mine.verdict == "approve" and found.proposal and found.proposal.needs_answer and mine.answer is None:
        raise NotAllowed(f"this correction needs an answer first: {found.proposal.needs_answer}")


def _decide(workspace: Workspace, mine: Opinion) -> Reviewed:
    done = _carry_out(workspace, mine)
    with workspace.write() as connection:
        put_opinion(connection, mine)
        drop_claim(connection, workspace.project, mine.correction_id, mine.reviewer)
    return done


def _carry_out(workspace: Workspace, mine: Opinion) -> Reviewed:
    if mine.verdict == "approve":
        return approve(workspace, mine.correction_id, answer=mine.answer, reason=mine.reason)
    if mine.verdict == "reroute" and mine.target is not None:
        return reroute(workspace, mine.correction_id, to=mine.target, answer=mine.answer, reason=mine.reason)
    if mine.verdict == "reject":
        return reject(workspace, mine.correction_id, reason=mine.reason)
    if mine.verdict == "defer":
        return defer(workspace, mine.correction_id, reason=mine.reason)
    raise NotAllowed("a reroute needs a target: context, memory, tooling or weights")


def _stage(given: Sequence[Opinion], wanted: int) -> Stage:
    counted = [each for each in given if each.verdict != "defer"]
    if len(counted) < wanted:
        return "more" if counted else "first"
    return "agreed" if len({each.category for each in counted}) == 1 else "disagreed"
