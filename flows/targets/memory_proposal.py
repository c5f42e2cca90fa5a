"""What could be remembered of a cluster: facts about its users, or a question for a person where it is about nobody alone."""

from collections.abc import Sequence
from typing import Any

from pydantic import JsonValue, ValidationError

from models.corrections import TRUTH_NAMES, has_form_of_label, judged_step
from models.features.context import HABIT
from models.features.material import Material
from models.features.memory import speaks_of_self
from models.steps import text_of
from models.write_gate import ANSWER, SAID, GateVerdict, is_about_everybody, judge_write, shown
from store.records import Case, Cluster, Fact, Feedback, Operation, Proposal, content_hash, derived_id

NEEDED = 'the fact, as JSON: {"predicate": ..., "value": ...} (--answer)'
NEEDED_FOR_ALL = (
    "it is nobody's alone: reroute it to context with a rule you sign, or give a fact for everybody as JSON: "
    '{"scope": "global", "predicate": ..., "value": ...} (--answer)'
)
SHOWN = 3
"""Facts that a summary spells out."""
MOST_FIELDS = 5
"""Fields of one corrected object that become facts."""
ASKED = 300
"""Characters of a question that are kept with its answer."""


def proposed(cluster: Cluster, material: Material) -> Proposal:
    """The facts that the newest correction of each user states, as far as the write gate lets them through."""
    general = [case for case in material.cases if is_about_everybody(_words(case))]
    personal = [case for case in material.cases if case not in general]
    facts, refused = _facts(cluster, personal)
    if general and 2 * len(general) >= len(material.cases):
        return _for_all(cluster, f"{_count(len(general), 'case')} of {len(material.cases)} speak of everybody")
    if _is_shared(facts):
        users = len({fact.scope_id for fact in facts})
        return _for_all(cluster, f"{users} users say the same ({shown(facts[0])})")
    if facts:
        summary = f"Remember for {_users(facts)}: {_spelled(facts)}{_left_out(refused)}"
        return Proposal(target="memory", summary=summary, operations=tuple(operation(fact) for fact in facts))
    users_ = [case.episode.trace.user for case in material.cases if case.episode.trace.user is not None]
    value: dict[str, JsonValue] = {"scope": "user", "scope_id": users_[0], "subject": users_[0]} if users_ else {}
    return Proposal(
        target="memory",
        summary=f"A fact about the user, which the feedback does not state{_left_out(refused)}",
        operations=(Operation(target="memory", verb="add", key=derived_id("fact", cluster.id), value=value),),
        needs_answer=NEEDED,
    )


def operation(fact: Fact) -> Operation:
    """The delta that adds this fact."""
    value = fact.model_dump(mode="json", exclude={"id"}, exclude_defaults=True)
    return Operation(target="memory", verb="add", key=fact.id, value={"scope": fact.scope, **value})


def signed_fact(given: Operation, answer: dict[str, Any], reviewer: str) -> Fact:
    """The fact as the reviewer wrote it over what was proposed, under an id of its own. Raises ValidationError, TypeError."""
    value = {**given.value, "source": reviewer, "authority": True, **answer}
    if answer.get("scope") == "global":
        value = {**value, "scope_id": "*", "subject": answer.get("subject", "*")}
    value.setdefault("subject", value.get("scope_id"))
    fact = Fact(id=given.key, **value)
    said = content_hash(fact.model_dump(mode="json", exclude={"id"}))
    return fact.model_copy(update={"id": derived_id("fact", given.key, said)})


def _facts(cluster: Cluster, cases: Sequence[Case]) -> tuple[list[Fact], list[GateVerdict]]:
    """The facts, newest correction first, and why others were left out; of two that say the same, or the opposite, the
    newer stays."""
    facts: list[Fact] = []
    refused: list[GateVerdict] = []
    settled = _settled(cluster, [fact for case in cases for fact in _of_case(cluster, case)])
    for case in sorted(cases, key=lambda each: -(each.episode.trace.started_us or 0)):
        for fact in _of_case(cluster, case):
            verdict = settled.get((fact.scope_id, fact.predicate)) or judge_write(fact, (), beside=facts)
            if verdict.verdict == "write":
                if not (cluster.fingerprint.intent and any(_same_answer(fact, other) for other in facts)):
                    facts.append(fact)
            elif verdict.check not in ("duplicate", "contradiction") or verdict in settled.values():
                refused.append(verdict)
    return facts, refused


def _settled(cluster: Cluster, facts: Sequence[Fact]) -> dict[tuple[str, str], GateVerdict]:
    """User and predicate of which that user says different things in this cluster: nobody knows which is meant.

    Of a named predicate two values are a change of mind, and the newer wins; three are none. Answers to questions of one
    intent are to one and the same question.
    """
    said: dict[tuple[str, str], set[str]] = {}
    for fact in facts:
        if fact.predicate == SAID or (fact.predicate == ANSWER and not cluster.fingerprint.intent):
            continue
        value = fact.value.get("answer") if fact.predicate == ANSWER and isinstance(fact.value, dict) else fact.value
        said.setdefault((fact.scope_id, fact.predicate), set()).add(" ".join(text_of(value).casefold().split()))
    return {
        (user, predicate): GateVerdict(verdict="refuse", check="contradiction",
                                       reason=f"contradiction: {user} says {len(values)} different things")
        for (user, predicate), values in said.items()
        if len(values) > (1 if predicate == ANSWER else 2)
    }  # fmt: skip


def _same_answer(one: Fact, other: Fact) -> bool:
    """Whether both answer questions of one user alike."""
    if not (one.scope_id == other.scope_id and one.predicate == other.predicate == ANSWER):
        return False
    return (
        isinstance(one.value, dict) and isinstance(other.value, dict) and one.value["answer"] == other.value["answer"]
    )


def _of_case(cluster: Cluster, case: Case) -> list[Fact]:
    user = case.episode.trace.user
    if user is None:
        return []
    made = []
    said = next((feedback for feedback in reversed(_told(case)) if _stated(case, feedback)), None)
    if said is None:
        return []
    source = said.principal or user
    for predicate, value in _stated(case, said):
        told = content_hash([predicate, value])
        try:
            fact = Fact(
                id=derived_id("fact", cluster.id, user, case.failure.trace_id, told),
                scope="user",
                scope_id=user,
                subject=user,
                predicate=predicate,
                value=value,
                source=source,
                authority=case.failure.authority and source == case.failure.source,
                valid_from_us=case.episode.trace.started_us,
            )
        except ValidationError:
            continue
        made.append(fact)
    return made


def _told(case: Case) -> list[Feedback]:
    """What was said of the answer, in order: the labels of predictions are left out."""
    return [said for said in case.episode.feedback if not _is_label(case, said)]


def _is_label(case: Case, said: Feedback) -> bool:
    episode = case.episode
    predictions = {span.id for span in episode.spans if span.kind == "predict"}
    if any(each.feedback_id == said.id and each.span_id in predictions for each in case.signals):
        return True
    step = judged_step(episode, said, said.corrected_output)
    if said.span_external_id is not None or step is not None:
        return step is None or step.kind == "predict"
    return (
        bool(predictions) and said.name.casefold() in TRUTH_NAMES and has_form_of_label(text_of(said.corrected_output))
    )


def _stated(case: Case, said: Feedback) -> list[tuple[str, JsonValue]]:
    """Predicates and values that the feedback states: an object's fields, what the user says of themselves, or the right
    answer to what was asked. A complaint states nothing, and what others say of themselves is nothing of the user's."""
    corrected = said.corrected_output
    is_own = said.principal in (None, case.episode.trace.user)
    if isinstance(corrected, dict) and 0 < len(corrected) <= MOST_FIELDS:
        return list(corrected.items())
    if is_own and said.comment and speaks_of_self(said.comment):
        return [(SAID, said.comment)]
    if is_own and isinstance(corrected, str) and HABIT.search(corrected):
        return [(SAID, corrected)]
    asked = " ".join(text_of(case.episode.trace.input).split())[:ASKED]
    if corrected is not None and asked:
        return [(ANSWER, {"asked": asked, "answer": corrected})]
    return [] if corrected is None else [(SAID, corrected)]


def _words(case: Case) -> str:
    comments = [said.comment or "" for said in case.episode.feedback]
    right = [text_of(said.corrected_output) for said in case.episode.feedback]
    return "\n".join(part for part in (*comments, *right) if part)


def _is_shared(facts: Sequence[Fact]) -> bool:
    """Whether several users all say one and the same: a wish of many is no memory of each."""
    said = {content_hash([fact.predicate, text_of(fact.value).casefold()]) for fact in facts}
    return len({fact.scope_id for fact in facts}) > 1 and len(said) == 1


def _for_all(cluster: Cluster, why: str) -> Proposal:
    value: dict[str, JsonValue] = {"scope": "global", "scope_id": "*", "subject": "*"}
    return Proposal(
        target="memory",
        summary=f"No fact about one user: {why}",
        operations=(Operation(target="memory", verb="add", key=derived_id("fact", cluster.id), value=value),),
        needs_answer=NEEDED_FOR_ALL,
    )


def _spelled(facts: Sequence[Fact]) -> str:
    several = len({fact.scope_id for fact in facts}) > 1
    parts = [f"{fact.scope_id}: {shown(fact)}" if several else shown(fact) for fact in facts[:SHOWN]]
    more = f"; and {len(facts) - SHOWN} more" if len(facts) > SHOWN else ""
    return "; ".join(parts) + more


def _users(facts: Sequence[Fact]) -> str:
    names = sorted({fact.scope_id for fact in facts})
    return names[0] if len(names) == 1 else _count(len(names), "user")


def _left_out(refused: Sequence[GateVerdict]) -> str:
    if not refused:
        return ""
    reasons = list(dict.fromkeys(each.reason for each in refused))
    more = f"; and {len(reasons) - 2} other reasons" if len(reasons) > 2 else ""
    return f" (left out {len(refused)}: {'; '.join(reasons[:2])}{more})"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
