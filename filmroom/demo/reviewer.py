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
    """Where it belongs; None for a rejection or a deferral."""
    reason: str
    answer: JsonValue
    """What to write where the correction needs an answer, see `answer_for`; None: there is nothing to write."""


def review(target: Target | None, examples: Sequence[Conversation]) -> Judgement:
    """The verdict on routing `examples` to `target`, by what would have mended most of those that failed.

    Rejected: at least half were right, or no single change would have helped half of those that failed (an outage).
    Deferred: the model misread them, and they want different things, so that no one label is right for all.
    """
    failed = [talk for talk in examples if not talk.ok]
    if 2 * len(failed) <= len(examples):
        return _without_target("reject", f"{len(examples) - len(failed)} of {len(examples)} were answered right")
    votes = Counter(place for talk in failed for place in _places(talk))
    best = max(TARGETS, key=lambda place: (votes[place], place == target))
    if 2 * votes[best] < len(failed):
        return _without_target("reject", "no single change would have helped")
    if best == "weights" and len({talk.request.intent for talk in failed}) > 1:
        return _without_target("defer", "they want different things: wait for their labels")
    answer = answer_for(best, [talk for talk in failed if best in _places(talk)])
    if best in ("context", "memory") and answer is None:
        return _without_target("reject", "there is no rule or fact to add: one that is there is wrong")
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
        return _fact(mended)
    return intent if target == "weights" else None


def _fact(mended: Sequence[Conversation]) -> JsonValue:
    """The first fact that a user asked to be remembered; None: nobody asked, and a fact that is there is wrong."""
    facts = [fact for talk in mended for fact in oracle_facts(talk.request)]
    return facts[0].model_dump(mode="json", include={"scope_id", "subject", "predicate", "value"}) if facts else None


def _places(talk: Conversation) -> frozenset[Target]:
    """What would have mended it; a misread message teaches the model also where something else was wrong besides."""
    if talk.mends or talk.reply.intent == talk.request.intent:
        return talk.mends
    return frozenset({"weights"})


def _without_target(verdict: Verdict, reason: str) -> Judgement:
    return Judgement(verdict, None, reason, None)
