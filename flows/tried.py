"""What replays said of the very changes that are proposed, and which could still be tried."""

from collections.abc import Mapping, Sequence

from sqlalchemy import Connection

from flows.workspace import Workspace
from store.records import Correction, Proposal, content_hash
from store.replays import replays_of


def replayed_ratios(connection: Connection, history: Sequence[Correction]) -> dict[str, float]:
    """Place to the likelihood ratio of the newest replay of the very change that is proposed there."""
    found: dict[str, float] = {}
    for each in history:
        if each.proposal is None or not each.proposal.operations:
            continue
        digest = content_hash([delta.model_dump(mode="json") for delta in each.proposal.operations])
        ratios = [
            past.numbers.get("likelihood_ratio") for past in replays_of(connection, each.id) if past.digest == digest
        ]
        if ratios and ratios[0] is not None:
            found[each.proposal.target] = ratios[0]
    return found


def replayable(workspace: Workspace, proposal: Proposal | None, replayed: Mapping[str, float]) -> bool:
    """Whether the proposed change can be tried on the log, and was not: a hook is set, and filmroom does not judge it itself."""
    if proposal is None or workspace.settings.agent.replay is None or not proposal.operations:
        return False
    return proposal.target != "weights" and proposal.needs_answer is None and proposal.target not in replayed
