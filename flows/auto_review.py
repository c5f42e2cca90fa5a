"""The review stage of a turn: what needs no person is approved, what was merged is applied, tickets are told, the rest waits."""

from flows.pull_request import apply_merged
from flows.review import approve
from flows.tickets import Posted, post_tickets
from flows.workspace import Workspace
from store.corrections import route_of, waiting
from store.errors import Refused, SettingsError
from store.ledger import events_of, record_event
from store.records import Record


class AutoReviewed(Record):
    """What the review stage did without a person."""

    approved: int = 0
    waiting: int = 0
    """Corrections that wait for a person."""
    held: int = 0
    """Beyond the queue's cap: kept, and not shown before there is room."""
    posted: int = 0
    """Tickets sent to the address in the settings."""
    merged: int = 0
    """Pull requests that were merged, and are applied now."""
    problems: tuple[str, ...] = ()
    """Why tickets were not sent, or merged pull requests not applied."""

    def markdown(self) -> str:
        counts = f"Approved without a person: **{self.approved}** · waiting: **{self.waiting}**"
        counts += f" · held over the cap: **{self.held}**"
        tickets = f" · tickets posted: **{self.posted}**" if self.posted else ""
        merged = f" · pull requests merged: **{self.merged}**" if self.merged else ""
        return "\n".join([counts + tickets + merged, *(f"* {each}" for each in self.problems)])


def auto_review(workspace: Workspace) -> AutoReviewed:
    """Approve what is certified, and what the named reviewer of profile `benchmark` accepts; count what waits for people.

    That reviewer sees only the feedback: it accepts a label that the feedback states, for a model that answered another.
    """
    merged = apply_merged(workspace)
    with workspace.store.read() as connection:
        queue = waiting(connection, workspace.project)
        routes = {found.id: route_of(connection, found.id) for found, _, _ in queue}
    approved = 0
    for found, _, _ in queue:
        decided = routes[found.id]
        if decided is None or found.proposal is None or found.proposal.needs_answer:
            continue
        named = workspace.policy.reviewer if found.proposal.target == "weights" else None
        if not decided.certified and named is None:
            continue
        reason = "certified" if decided.certified else "feedback"
        approved += _approved(workspace.acting(actor=named or "router"), found.id, reason)
    told = tell(workspace)
    left = len(queue) - approved
    cap = workspace.policy.queue_cap
    return AutoReviewed(
        approved=approved,
        merged=len(merged.applied),
        waiting=min(left, cap),
        held=max(0, left - cap),
        posted=len(told.posted),
        problems=tuple(part for part in (told.error, *merged.lines) if part),
    )


def tell(workspace: Workspace) -> Posted:
    """Post the tickets that are due; what is wrong with the address or the receiver stops nothing else."""
    try:
        return post_tickets(workspace)
    except SettingsError as error:
        return Posted(error=str(error))


def _approved(workspace: Workspace, correction_id: str, reason: str) -> bool:
    """Whether it could be approved without a person; what a check refuses is held for one, and history says why, once."""
    try:
        approve(workspace, correction_id, reason=reason)
    except Refused as error:
        with workspace.write() as connection:
            told = [each["reason"] for each in events_of(connection, workspace.project, correction_id)]
            if str(error) not in told:
                record_event(connection, workspace.project, at_us=workspace.clock(), actor=workspace.actor, event="held",
                             subject=correction_id, reason=str(error))  # fmt: skip
        return False
    return True
