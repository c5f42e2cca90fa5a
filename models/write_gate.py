"""The write gate of the memory: what may be remembered, what replaces what, and what a person must settle.

Pure: facts in force in, a verdict out. A fact is data that someone said; nothing here reads it as an instruction.
"""

import re
from collections.abc import Iterable, Sequence
from typing import Literal

from models.secrets_in_text import names_a_secret, secret_in
from models.steps import text_of
from store.records.production import Record
from store.records.targets import Fact

Check = Literal["duplicate", "contradiction", "secret", "hearsay", "authority", "scope"]

SAID = "said"
"""Predicate of what a user said in their own words; several stand beside each other."""
ANSWER = "answer"
"""Predicate of the right answer to a question: `{"asked": ..., "answer": ...}`; one a question."""
SHORTEST = 2
"""Characters of a value below which it says nothing."""

_HEARSAY = re.compile(
    r"\bi(?: have|['’]ve)? heard\b|\brumou?r\b|\bapparently\b|\bsupposedly\b"
    r"|\b(?:he|she|they|someone|somebody|my \w+|the \w+|a \w+ of mine)"
    r" (?:said|says|told|mentioned|claims|claimed|thinks|believes)\b"
    r"|\b(?:er|sie|mein \w+|meine \w+) (?:sagte|sagt|meint|behauptet)\b|\bangeblich\b|\bich habe gehört\b"
    r"|\bil paraît\b|\b(?:il|elle) (?:dit|a dit)\b|\bdice que\b|\bal parecer\b",
    re.IGNORECASE,
)
_PEOPLE = r"customers?|users?|clients?|members?|guests?|passengers?|patients?|people|subscribers?|accounts?"
_EVERYBODY = re.compile(
    rf"\b(?:all|every|any|each)(?: of)?(?: (?:the|our|your|\w+))? (?:{_PEOPLE})\b"
    r"|\b(?:everyone|everybody|anyone|anybody)\b"
    r"|\b(?:customers|users|clients|members|guests|passengers) (?:must|should|always|never|can|may|get|have|are)\b"
    r"|\balle (?:kund|nutz|mitglied|gäst)\w*|\bjede[rmn]? (?:kund|nutz|mitglied|gast)\w*"
    r"|\btous les (?:clients|utilisateurs)|\btodos los (?:clientes|usuarios)",
    re.IGNORECASE,
)
_NEGATIONS = re.compile(
    r"\b(?:not|no|never|without|(?:do|does|ca|is|are|wo)n['’]?t|cannot|nicht|kein\w*|nie|ne|pas|jamais|nunca)\b"
)
PART = 2
"""Words that a denial shares with what it denies, at the least."""
_FILLER = frozenset(
    ("a", "an", "the", "to", "do", "does", "is", "are", "be", "i", "you", "we", "he", "she", "it", "of", "and", "or")
)
"""Words that two sentences may differ in and still say the same of the same."""


class GateVerdict(Record):
    """Whether a fact may be written, and why not."""

    verdict: Literal["write", "refuse", "hold"]
    """`hold`: a person decides."""
    check: Check | None = None
    """The check that spoke against it."""
    reason: str = ""
    supersedes: str | None = None
    """The fact in force that it takes the place of."""


def judge_write(
    fact: Fact, known: Iterable[Fact], *, beside: Sequence[Fact] = (), decided_by: str | None = None
) -> GateVerdict:
    """The verdict on writing `fact` beside the facts in force.

    `beside`: what the same change writes before it. `decided_by`: the reviewer who wrote this very fact: their word settles
    a conflict between authorities, and counts as first-hand.

    The newest from the same authority wins. Between staff and a user nobody wins by date: a person decides.
    """
    words = f"{text_of(fact.value)}"
    for verdict in (_secret(fact, words), _empty(fact, words), _hearsay(fact, words, decided_by)):
        if verdict is not None:
            return verdict
    for other in beside:
        if other.id != fact.id and same_place(other, fact):
            if same_value(other, fact):
                return _refused("duplicate", f"{other.id} of the same change says the same")
            return _refused("contradiction", f"{other.id} of the same change says {shown(other)}: choose one")
    in_force = [other for other in known if other.id != fact.id]
    duplicate = next((other for other in in_force if _scope(other) == _scope(fact) and same_value(other, fact)
                      and same_place(other, fact)), None)  # fmt: skip
    if duplicate is not None:
        return _refused(
            "duplicate",
            f"{duplicate.id} says so already; the agent does not use what it "
            "knows: reroute this to context or tooling, or reject it",
        )
    wider = next((other for other in in_force if _overrules(other, fact)), None)
    if wider is not None and decided_by is None:
        return _held(f"{wider.id} says {shown(wider)} for {_reach(wider)}, on the word of {wider.source}")
    old = next((other for other in in_force if same_place(other, fact) and excludes(other, fact)), None)
    if old is None:
        return GateVerdict(verdict="write")
    return _against(old, fact, decided_by)


def same_place(one: Fact, other: Fact) -> bool:
    """Whether both fill the same place, where only one can be true: scope, subject and predicate, and the question asked."""
    return _scope(one) == _scope(other) and _topic(one) == _topic(other)


def same_value(one: Fact, other: Fact) -> bool:
    """Whether both say the same, but for case and blanks."""
    return _folded(text_of(one.value)) == _folded(text_of(other.value))


def is_about_everybody(text: str) -> bool:
    """Whether the words speak of all customers or users, and so of no single one.

    >>> is_about_everybody("All customers get free returns."), is_about_everybody("I prefer all my parcels on Monday.")
    (True, False)
    """
    return _EVERYBODY.search(text[:20_000]) is not None


def contradict(one: str, other: str) -> bool:
    """Whether one sentence is the other with a negation put in: the same words, and one denies them.

    >>> contradict("I eat meat", "I do not eat meat."), contradict("I eat meat", "I eat fish")
    (True, False)
    """
    first, second = one.casefold(), other.casefold()
    denied = len(_NEGATIONS.findall(first)) % 2 != len(_NEGATIONS.findall(second)) % 2
    return denied and bool(_content(first)) and _content(first) == _content(second)


def denies_part(one: str, other: str) -> bool:
    """Whether one sentence denies what the other says, more or less at length: of the shorter at least two words, all in it.

    >>> denies_part("Sale items can never be returned.", "Sale items can be returned within 30 days.")
    True
    >>> denies_part("Not today.", "Sale items can be returned today"), denies_part("We ship it", "We ship it today")
    (False, False)
    """
    first, second = one.casefold(), other.casefold()
    denied = len(_NEGATIONS.findall(first)) % 2 != len(_NEGATIONS.findall(second)) % 2
    words = min(_content(first), _content(second), key=len)
    return denied and len(words) >= PART and words <= _content(first) & _content(second)


def stale_ids(in_force: Iterable[Fact]) -> frozenset[str]:
    """The facts that rest, directly or over others, on one that is no longer in force.

    >>> def fact(id, *on):
    ...     return Fact(id=id, scope_id="u", subject="u", predicate=id, value=1, source="u", depends_on=on)
    >>> sorted(stale_ids([fact("fact_b", "fact_a"), fact("fact_c", "fact_b"), fact("fact_d")]))
    ['fact_b', 'fact_c']
    """
    facts = {fact.id: fact for fact in in_force}
    stale: set[str] = set()
    while True:
        more = {
            id_
            for id_, fact in facts.items()
            if id_ not in stale and any(each not in facts or each in stale for each in fact.depends_on)
        }
        if not more:
            return frozenset(stale)
        stale |= more


def shown(fact: Fact) -> str:
    """Predicate and value on one line.

    >>> shown(Fact(id="f", scope_id="u", subject="u", predicate="shop", value="Elm Street", source="u"))
    'shop = "Elm Street"'
    """
    value = text_of(fact.value)
    quoted = f'"{value}"' if isinstance(fact.value, str) else value
    line = " ".join(f"{fact.predicate} = {quoted}".split())
    return line if len(line) <= 120 else line[:119] + "…"


def _against(old: Fact, fact: Fact, decided_by: str | None) -> GateVerdict:
    """The verdict where a fact in force excludes the new one."""
    if old.authority != fact.authority and decided_by is None:
        return _held(f"{old.id} says {shown(old)}, on the word of {old.source}; this is the word of {fact.source}")
    dated = old.valid_from_us is not None and fact.valid_from_us is not None
    if dated and (fact.valid_from_us or 0) < (old.valid_from_us or 0) and decided_by is None:
        return _refused("contradiction", f"{old.id} says {shown(old)} and is newer")
    return GateVerdict(verdict="write", supersedes=old.id)


def excludes(old: Fact, fact: Fact) -> bool:
    """Whether both cannot be true: any two values of one place, and of free words those that deny each other."""
    return fact.predicate != SAID or contradict(text_of(old.value), text_of(fact.value))


def _overrules(wide: Fact, fact: Fact) -> bool:
    """Whether staff said otherwise of everybody, or of the tenant, what this says of one user."""
    if not wide.authority or fact.authority or fact.scope != "user" or wide.scope == "user":
        return False
    if fact.predicate == SAID:
        return wide.predicate == SAID and contradict(text_of(wide.value), text_of(fact.value))
    return wide.predicate == fact.predicate and fact.predicate != ANSWER and not same_value(wide, fact)


def _secret(fact: Fact, words: str) -> GateVerdict | None:
    if names_a_secret(fact.predicate):
        return _refused("secret", f"{fact.predicate[:60]} would hold a secret: it is not remembered")
    kind = secret_in(words)
    return None if kind is None else _refused("secret", f"it holds {kind}: it is not remembered")


def _empty(fact: Fact, words: str) -> GateVerdict | None:
    is_short = isinstance(fact.value, str) and len(words.strip()) < SHORTEST and not words.strip().isalnum()
    if is_short or fact.value is None:
        return _refused("scope", "it has no value")
    if fact.scope == "user" and fact.predicate == SAID and is_about_everybody(words):
        return _refused(
            "scope", "it speaks of everybody: no fact about one user; reroute it to context, or make it global"
        )
    return None


def _hearsay(fact: Fact, words: str, decided_by: str | None) -> GateVerdict | None:
    if decided_by is not None or fact.authority:
        return None
    if fact.scope == "user" and fact.source not in (fact.scope_id, "unknown"):
        return _refused(
            "hearsay", f"{fact.source} speaks of {fact.scope_id}: a user's fact comes from that user or from staff"
        )
    if fact.scope != "user":
        return _refused("hearsay", f"{fact.source} speaks for everybody: a {fact.scope} fact comes from staff")
    if isinstance(fact.value, str) and _HEARSAY.search(words[:20_000]):
        return _refused("hearsay", "it tells what somebody else said")
    return None


def _scope(fact: Fact) -> tuple[str, str]:
    return fact.scope, fact.scope_id


def _topic(fact: Fact) -> tuple[str, str, str]:
    asked = fact.value.get("asked") if fact.predicate == ANSWER and isinstance(fact.value, dict) else ""
    return _folded(fact.subject), _folded(fact.predicate), _folded(text_of(asked))


def _reach(fact: Fact) -> str:
    return "everybody" if fact.scope == "global" else f"tenant {fact.scope_id}"


def _content(text: str) -> frozenset[str]:
    return frozenset(re.findall(r"\w+", _NEGATIONS.sub(" ", text))) - _FILLER


def _folded(text: str) -> str:
    return " ".join(text.casefold().split()).strip(" .!?,;")


def _refused(check: Check, reason: str) -> GateVerdict:
    return GateVerdict(verdict="refuse", check=check, reason=f"{check}: {reason}")


def _held(reason: str) -> GateVerdict:
    return GateVerdict(verdict="hold", check="authority", reason=f"a person decides: {reason}")
