"""Memory: facts about a user, in that user's scope. What someone said is kept as data, never as an instruction."""

from collections.abc import Sequence
from typing import Any

from pydantic import JsonValue, ValidationError
from sqlalchemy import Connection

from flows.targets.contract import Served
from flows.targets.documents import following
from models.features.material import Material
from store.errors import NotAllowed, Refused
from store.facts import append_fact, facts_at
from store.records import Case, Change, Cluster, Fact, Operation, Proposal, Release, derived_id

NEEDED = 'the fact, as JSON: {"predicate": ..., "value": ...} (--answer)'


def propose(cluster: Cluster, material: Material) -> Proposal:
    """One fact a user: what the newest correction says should have been known of them."""
    operations: dict[str, Operation] = {}
    for case in material.cases:
        user = case.episode.trace.user
        said = _said(case)
        if user is None or said is None or user in operations:
            continue
        fact_id = derived_id("fact", cluster.id, user, case.failure.trace_id)
        value = {
            "scope": "user",
            "scope_id": user,
            "subject": user,
            "predicate": said[0],
            "value": said[1],
            "source": case.failure.source,
            "authority": case.failure.authority,
        }
        operations[user] = Operation(target="memory", verb="add", key=fact_id, value=value)
    if not operations:
        summary = "A fact about the user, which the feedback does not state"
        return Proposal(
            target="memory", summary=summary, operations=(_empty(cluster, material.cases),), needs_answer=NEEDED
        )
    return Proposal(
        target="memory",
        summary=f"Remember for {_count(len(operations), 'user')}: {_predicates(operations.values())}",
        operations=tuple(operations.values()),
    )


def answered(proposal: Proposal, answer: JsonValue, *, reviewer: str) -> Proposal:
    """The fact completed by the reviewer, who is then its source."""
    if answer is None and proposal.needs_answer:
        raise NotAllowed(f"this correction needs an answer first: {proposal.needs_answer}")
    if answer is None:
        return proposal
    if not isinstance(answer, dict):
        raise NotAllowed(f"the answer must be {NEEDED}")
    filled = []
    for operation in proposal.operations:
        value: dict[str, Any] = {**operation.value, "source": reviewer, **answer}
        try:
            Fact(id=operation.key, **value)
        except (ValidationError, TypeError) as error:
            raise NotAllowed(f"that is not a fact: needed is {NEEDED}, and a user it is about") from error
        filled.append(operation.model_copy(update={"value": value}))
    return proposal.model_copy(update={"operations": tuple(filled), "needs_answer": None})


def apply(
    connection: Connection, current: Release, operations: Sequence[Operation], *, correction_id: str, now_us: int
) -> Served:
    """Append the facts. A newer fact of the same user and predicate supersedes the older by name;
    Raises Refused where an end user's word would supersede an authority's."""
    position = current.memory
    known = facts_at(connection, current.project, position, now_us)
    for operation in operations:
        fact = Fact(id=operation.key, **operation.value)
        old = _same_place(known, fact)
        if old is not None and old.authority and not fact.authority:
            raise Refused(
                f"{old.id} says otherwise on the word of an authority ({old.source}): a person decides; reroute or reject"
            )
        if old is not None:
            fact = fact.model_copy(update={"supersedes": old.id})
        position = append_fact(connection, current.project, "supersede" if old else "add", fact, now_us)
    release = following(current, now_us, memory=position)
    return Served(str(current.memory), str(position), release)


def revert(connection: Connection, current: Release, change: Change, *, now_us: int) -> Served:
    """Forget the facts of this change, and state again those that they superseded."""
    before = {fact.id: fact for fact in facts_at(connection, current.project, int(change.before), now_us)}
    now = {fact.id: fact for fact in facts_at(connection, current.project, current.memory, now_us)}
    position = current.memory
    for operation in reversed(change.operations):
        fact = now.get(operation.key)
        if fact is None:
            continue
        position = append_fact(
            connection, current.project, "forget", fact.model_copy(update={"supersedes": None}), now_us
        )
        if fact.supersedes is not None and fact.supersedes in before:
            restored = before[fact.supersedes].model_copy(update={"supersedes": None})
            position = append_fact(connection, current.project, "add", restored, now_us)
    return Served(str(current.memory), str(position), following(current, now_us, memory=position))


def _said(case: Case) -> tuple[str, JsonValue] | None:
    """Predicate and value that the newest correction states; a bare comment is kept as what the user said."""
    for said in reversed(case.episode.feedback):
        corrected = said.corrected_output
        if isinstance(corrected, dict) and len(corrected) == 1:
            return next(iter(corrected.items()))
        if said.comment or corrected is not None:
            return "said", said.comment or corrected
    return None


def _same_place(known: Sequence[Fact], fact: Fact) -> Fact | None:
    if fact.predicate == "said":
        return None
    place = (fact.scope, fact.scope_id, fact.subject, fact.predicate)
    return next((old for old in known if (old.scope, old.scope_id, old.subject, old.predicate) == place), None)


def _empty(cluster: Cluster, cases: Sequence[Case]) -> Operation:
    users = [case.episode.trace.user for case in cases if case.episode.trace.user is not None]
    value: dict[str, JsonValue] = {"scope": "user", "scope_id": users[0], "subject": users[0]} if users else {}
    return Operation(target="memory", verb="add", key=derived_id("fact", cluster.id), value=value)


def _predicates(operations: Sequence[Operation] | Any) -> str:
    return ", ".join(sorted({str(each.value["predicate"]) for each in operations}))


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
