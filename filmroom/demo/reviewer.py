"""A colleague at the review queue, who has read the conversations and knows what would have helped."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from pydantic import JsonValue

from filmroom.demo.people import POLICIES
from filmroom.demo.truth import Conversation, oracle_facts
from store.records import TARGETS, Target, Verdict

REVIEWER = "staff:marit"


@dataclass(frozen=True)
class Judgement:
    """A verdict on a route, with what is needed to carry it out."""

    verdict: Verdict
    target: Target | None
    """Where it belongs; None for a rejection."""
    reason: str
    answer: JsonValue
    """What to write where the correction needs an answer, see `answer_for`; None: there is nothing to write."""


def review(target: Target | None, examples: Sequence[Conversation]) -> Judgement:
    """The verdict on routing `examples` to `target`, by what would have mended most of those that failed.

    Rejected: most were right, or no single change would have helped half of those that failed (an outage).
    """
    failed = [talk for talk in examples if not talk.ok]
    if 2 * len(failed) <= len(examples):
        return _reject(f"{len(examples) - len(failed)} of {len(examples)} were answered right")
    votes = Counter(place for talk in failed for place in talk.mends)
    best = max(TARGETS, key=lambda place: (votes[place], place == target))
    if 2 * votes[best] < len(failed):
        return _reject("no single change would have helped")
    answer = answer_for(best, [talk for talk in failed if best in talk.mends])
    if best == "context" and answer is None:
        return _reject("no rule of the shop says so")
    reason = f"{best} would have mended {votes[best]} of {len(failed)}"
    return Judgement("approve" if best == target else "reroute", best, reason, answer)


def answer_for(target: Target, mended: Sequence[Conversation]) -> JsonValue:
    """What a person writes where a correction needs an answer.

    Context: the rule's sentence; None: the shop has none for this. Memory: the fact of the first user. Weights: the right
    label. Tooling: None.
    """
    intent = Counter(talk.request.intent for talk in mended).most_common(1)[0][0]
    if target == "context":
        return POLICIES.get(intent)
    if target == "memory":
        return _fact(mended[0])
    return intent if target == "weights" else None


def _fact(talk: Conversation) -> JsonValue:
    fact = oracle_facts(talk.request)[0]
    return fact.model_dump(mode="json", include={"scope_id", "subject", "predicate", "value"})


def _reject(reason: str) -> Judgement:
    return Judgement("reject", None, reason, None)
