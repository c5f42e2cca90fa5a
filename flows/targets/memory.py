"""Memory: facts about a user, in that user's scope. What someone said is kept as data, never as an instruction."""

from collections.abc import Sequence

from pydantic import JsonValue, ValidationError
from sqlalchemy import Connection

from flows.targets.contract import Served
from flows.targets.documents import following
from flows.targets.memory_proposal import NEEDED, operation, proposed, signed_fact
from models.features.material import Material
from models.write_gate import excludes, judge_write, same_place, shown
from store.errors import NotAllowed, NotFound, Refused
from store.facts import GLOBAL, append_fact, fact_named, facts_in, is_forgotten
from store.records import Change, Cluster, Fact, Operation, Proposal, Release


def propose(cluster: Cluster, material: Material) -> Proposal:
    """One fact a user: what the newest correction says should have been known of them."""
    return proposed(cluster, material)


def answered(proposal: Proposal, answer: JsonValue, *, reviewer: str) -> Proposal:
    """The fact completed by the reviewer, who is then its source."""
    if answer is None and proposal.needs_answer:
        raise NotAllowed(f"this correction needs an answer first: {proposal.needs_answer}")
    if answer is None:
        return proposal
    if not isinstance(answer, dict):
        raise NotAllowed(f"the answer must be {NEEDED}")
    try:
        made = [signed_fact(each, answer, reviewer) for each in proposal.operations]
    except (ValidationError, TypeError) as error:
        raise NotAllowed(f"that is not a fact: needed is {NEEDED}, and a user it is about") from error
    facts = list({(fact.scope, fact.scope_id, fact.subject): fact for fact in reversed(made)}.values())[::-1]
    operations = tuple(operation(fact).model_copy(update={"signed_by": reviewer}) for fact in facts)
    whom = "everybody" if facts[0].scope == "global" else ", ".join(sorted({fact.scope_id for fact in facts})[:3])
    summary = f"Remember for {whom}: {shown(facts[0])}"
    return proposal.model_copy(update={"operations": operations, "needs_answer": None, "summary": summary})


def apply(
    connection: Connection, current: Release, operations: Sequence[Operation], *, correction_id: str, now_us: int
) -> Served:
    """Append the facts that pass the write gate; the newest of one authority supersedes the older by name. `forget` takes a
    fact out of force by its name.

    Raises Refused, naming the check, for what the gate refuses or holds for a person.
    """
    position = current.memory
    beside: list[Fact] = []
    for each in operations:
        if each.verb == "forget":
            position = _forget(connection, current.project, each.key, now_us)
            continue
        fact = Fact(id=each.key, **each.value)
        position = _write(connection, current.project, position, fact, each, beside=beside, now_us=now_us)
        beside.append(fact)
    release = following(current, now_us, memory=position)
    return Served(str(current.memory), str(position), release)


def revert(connection: Connection, current: Release, change: Change, *, now_us: int) -> Served:
    """Forget the facts of this change by name, and state again those whose place it took or that it forgot, unless they
    were forgotten by name since, or another fact has their place now."""
    position = current.memory
    for each in reversed(change.operations):
        made = fact_named(connection, current.project, each.key)
        if made is None:
            continue
        back: Fact | None = made
        if each.verb != "forget":
            gone = made.model_copy(update={"supersedes": None})
            position = append_fact(connection, current.project, "forget", gone, now_us)
            back = _taken_place_of(connection, current.project, made, since=int(change.after))
        elif is_forgotten(connection, current.project, each.key, since=int(change.after)):
            back = None
        if back is not None and _place_is_free(connection, current.project, position, back, now_us):
            position = append_fact(connection, current.project, "add", back, now_us)
    return Served(str(current.memory), str(position), following(current, now_us, memory=position))


def _taken_place_of(connection: Connection, project: str, fact: Fact, *, since: int) -> Fact | None:
    """The newest fact before it in its place that was not forgotten by name since."""
    id_ = fact.supersedes
    while id_ is not None:
        old = fact_named(connection, project, id_)
        if old is None or not is_forgotten(connection, project, id_, since=since):
            return old
        id_ = old.supersedes
    return None


def _place_is_free(connection: Connection, project: str, position: int, fact: Fact, now_us: int) -> bool:
    known = facts_in(connection, project, position, now_us, scopes=[(fact.scope, fact.scope_id)])
    return not any(other.id == fact.id or (same_place(other, fact) and excludes(other, fact)) for other in known)


def _write(
    connection: Connection, project: str, position: int, fact: Fact, given: Operation, *, beside: list[Fact], now_us: int
) -> int:  # fmt: skip
    known = facts_in(connection, project, position, now_us, scopes=[GLOBAL, (fact.scope, fact.scope_id)])
    stated = fact_named(connection, project, fact.id)
    if stated is not None and stated.value != fact.value:
        raise Refused(f"duplicate: {fact.id} was stated before and is never rewritten: supersede it by another fact")
    if any(old.id == fact.id for old in known):
        raise Refused(f"duplicate: {fact.id} is in force already")
    verdict = judge_write(fact, known, beside=beside, decided_by=given.signed_by)
    if verdict.verdict != "write":
        settle = "; settle it with --answer, then your word stands" if verdict.verdict == "hold" else ""
        raise Refused(f"the write gate {verdict.verdict}s {shown(fact)}: {verdict.reason}{settle}")
    written = fact.model_copy(update={"supersedes": verdict.supersedes})
    verb = "supersede" if verdict.supersedes else "add"
    return append_fact(connection, project, verb, written, now_us)


def _forget(connection: Connection, project: str, fact_id: str, now_us: int) -> int:
    fact = fact_named(connection, project, fact_id)
    if fact is None:
        raise NotFound(f"no fact {fact_id}: `filmroom live memory --user USER` shows those in force")
    if is_forgotten(connection, project, fact_id):
        raise Refused(f"{fact_id} is forgotten already")
    return append_fact(connection, project, "forget", fact.model_copy(update={"supersedes": None}), now_us)
