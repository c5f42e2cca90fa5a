"""Verify: the watch on every change. What recurs is taken back, and the next place is tried."""

from collections.abc import Sequence

from sqlalchemy import Connection

from flows.audit import WEEK_US, WEEKS
from flows.retire import propose_retirements
from flows.tickets import reopen_tickets
from flows.undo import revert_change
from flows.watch import outcomes, users_of
from flows.workspace import Workspace
from models.hold import judge_hold, until_mature
from models.maturity import share_in
from store.audit_stream import drawable, label_delays
from store.changes import change, holds_of, live_holds, put_hold
from store.errors import Refused
from store.exposures import judged
from store.failures import cluster
from store.ledger import record_event
from store.records import Change, Episode, Hold, Record

EXPOSURES = 5000
"""Newest judged traces that holds are computed over."""

NOBODY_TOOK_IT = (
    "; no trace since names a release (`release`, docs/live.md): if the program takes none, nothing was tried"
)


class Verified(Record):
    """The holds after this turn."""

    holding: int = 0
    held: int = 0
    failed: int = 0
    lines: tuple[str, ...] = ()

    def markdown(self) -> str:
        counts = f"Holding **{self.holding}** · held **{self.held}** · failed **{self.failed}**"
        return "\n".join([counts, "", *(f"* {line}" for line in self.lines)])


def verify(workspace: Workspace) -> Verified:
    """Count exposures and recurrences of every change on watch; held ones are done, failed ones are taken back."""
    with workspace.store.read() as connection:
        watched = holds_of(connection, workspace.project, "holding")
        since_us = min((hold.since_us for hold in watched), default=None)
        seen = [] if since_us is None else judged(connection, workspace.project, after_us=since_us, limit=EXPOSURES)
        delays = _delays(connection, workspace) if watched else ([], [])
    lines = []
    for hold in watched:
        with workspace.write() as connection:
            lines += _verify(connection, workspace, hold, seen, delays)
    lines += reopen_tickets(workspace)
    lines += propose_retirements(workspace)
    with workspace.store.read() as connection:
        live = [hold for _, hold in live_holds(connection, workspace.project)]
        ended = holds_of(connection, workspace.project, "failed")
    states = [hold.state for hold in live]
    now = {hold.change_id for hold in watched} & {hold.change_id for hold in ended}  # most of them taken back already
    failed = now | {hold.change_id for hold in live if hold.state == "failed"}
    return Verified(holding=states.count("holding"), held=states.count("held"), failed=len(failed), lines=tuple(lines))


def _verify(
    connection: Connection,
    workspace: Workspace,
    hold: Hold,
    seen: Sequence[tuple[Episode, str | None]],
    delays: tuple[list[int], list[int]],
) -> list[str]:
    watched = change(connection, workspace.project, hold.change_id)
    each = cluster(connection, hold.cluster_id)
    if watched.state == "reverted" or each is None:
        return []
    after = outcomes(each, seen, users=users_of(watched), since_us=hold.since_us)
    verdict = judge_hold(after, baseline=hold.baseline)
    if verdict.state == "held":
        verdict = until_mature(verdict, _labels_in(connection, workspace, hold, delays))
    updated = hold.model_copy(
        update={
            "state": verdict.state,
            "exposures": verdict.exposures,
            "recurrences": verdict.recurrences,
            "needed": verdict.needed,
            "updated_us": workspace.clock(),
        }
    )
    put_hold(connection, updated)
    if verdict.state == "holding":
        return []
    line = f"{each.name}: {watched.target} {verdict.state} ({verdict.recurrences} of {verdict.exposures} exposures recurred)"
    record_event(
        connection,
        workspace.project,
        at_us=updated.updated_us,
        actor=workspace.actor,
        event=verdict.state,
        subject=hold.id,
        reason=verdict.sentence,
        causes=[watched.id],
        detail={"exposures": verdict.exposures, "recurrences": verdict.recurrences, "baseline": hold.baseline},
    )
    if verdict.state == "failed" and watched.target != "weights":
        line += _take_back(connection, workspace, watched, verdict.sentence)
        if not any(episode.trace.release for episode, _ in seen):
            line += NOBODY_TOOK_IT
    return [line]


def _delays(connection: Connection, workspace: Workspace) -> tuple[list[int], list[int]]:
    """How late labels came in the last weeks, and how long the traces without one have waited; microseconds."""
    now_us = workspace.clock()
    return label_delays(connection, workspace.project, since_us=now_us - WEEKS * WEEK_US, now_us=now_us)


def _labels_in(
    connection: Connection, workspace: Workspace, hold: Hold, delays: tuple[list[int], list[int]]
) -> float | None:
    """Expected share of the labels of the traces since the change that have come; None: not measured."""
    now_us = workspace.clock()
    since = drawable(connection, workspace.project, since_us=hold.since_us + 1)
    return share_in([float(max(0, now_us - each.started_us)) for each in since], *delays)


def _take_back(connection: Connection, workspace: Workspace, watched: Change, reason: str) -> str:
    try:
        revert_change(connection, workspace, watched, reason=reason)
    except Refused as error:
        return f"; not taken back: {error}"
    return "; taken back"
