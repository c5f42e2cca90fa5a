"""Rules that cannot both be followed, and how much of a prompt the rules of one scope may take."""

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from models.write_gate import contradict
from store.records.targets import Rule

_OPPOSITE: frozenset[frozenset[str]] = frozenset(
    frozenset(pair)
    for pair in (
        ("say", "never_say"),
        ("prefer", "never_say"),
        ("cite", "never_say"),
        ("use_tool", "do_not_use_tool"),
        ("confirm_before", "do_not_use_tool"),
        ("escalate", "decline"),
        ("say", "decline"),
    )
)
"""Actions that exclude each other about the same thing."""
SAME_THING = 0.6
"""Share of the words of two sentences, numbers aside, that both have, from which they are about the same thing."""
_NUMBERS: Mapping[str, str] = {
    "one": "1", "two": "2", "three": "3", "four": "4", "five": "5", "six": "6", "seven": "7", "eight": "8", "nine": "9",
    "ten": "10", "twelve": "12", "fourteen": "14", "twenty": "20", "thirty": "30", "sixty": "60", "ninety": "90",
}  # fmt: skip
_QUANTITY = re.compile(
    rf"(?P<currency>[€$£])?\s?\b(?P<number>\d+(?:[.,]\d+)*|{'|'.join(_NUMBERS)})\b\s?(?P<unit>[€$£%]|[^\W\d_]+)?",
    re.IGNORECASE,
)
_EXCEPTION = re.compile(r"\b(?:except\w*|unless|instead|rather than|außer|sauf|salvo)\b", re.IGNORECASE)
_FILLER = frozenset((
    *("a", "an", "the", "to", "of", "for", "in", "at", "and", "or", "is", "are", "be", "can", "may", "must", "shall", "will"),
    *("should", "they", "it", "you", "we", "your", "our", "always", "only", "please", "have", "has", "been"),
))  # fmt: skip
CHARACTERS_A_TOKEN = 4
"""A rule of thumb for English; other tokenisers differ by a third."""


def conflict(rule: Rule, others: Iterable[Rule]) -> tuple[Rule, str] | None:
    """The first of `others` that cannot be followed together with `rule`, or that says the same, and why; None: there is none.

    Only rules that can hold at the same time are compared: whose scopes do not name different values of one key.

    >>> def rule(id, action, argument, **scope):
    ...     return Rule(id=id, scope=scope, action=action, argument=argument, author="a")
    >>> conflict(rule("r2", "never_say", "Sorry"), [rule("r1", "say", "sorry.", intent="cancel")])[1]
    'the opposite'
    >>> conflict(rule("r2", "say", "hello", intent="a"), [rule("r1", "never_say", "hello", intent="b")]) is None
    True
    """
    for other in others:
        if other.id == rule.id or not can_meet(rule.scope, other.scope):
            continue
        why = _against(rule, other)
        if why is not None:
            return other, why
    return None


def can_meet(scope: Mapping[str, str], other: Mapping[str, str]) -> bool:
    """Whether one conversation can be in both scopes."""
    return all(other.get(key, value) == value for key, value in scope.items())


def other_number(one: str, other: str) -> str | None:
    """The unit of which two sentences about the same thing name another number; None: there is none.

    Only numbers with a unit or a currency; a sentence that calls itself an exception contradicts nothing.

    >>> other_number("Items can be returned within 30 days.", "Customers may return items within fourteen days")
    'day'
    >>> other_number("Refunds take 5 days", "Deliveries take 3 days"), other_number("Within 5 days, 2 items", "within 5 days")
    (None, None)
    """
    if _EXCEPTION.search(one) or _EXCEPTION.search(other):
        return None
    first, second = _quantities(one), _quantities(other)
    unit = next((unit for unit in first if unit in second and not first[unit] & second[unit]), None)
    mine, theirs = _stems(one), _stems(other)
    return unit if unit and len(mine & theirs) >= SAME_THING * len(mine | theirs) else None


def over_budget(
    rule: Rule, others: Sequence[Rule], *, most_rules: int, most_tokens: int
) -> str | None:  # fmt: skip
    """Why the rules that can hold together with `rule` are too many, or too long; None: they fit.

    Tokens are counted as four characters each.
    """
    together = [other for other in others if other.id != rule.id and can_meet(rule.scope, other.scope)] + [rule]
    tokens = sum(-(-len(each.argument) // CHARACTERS_A_TOKEN) for each in together)
    where = ", ".join(f"{key} {value}" for key, value in rule.scope.items()) or "every conversation"
    if len(together) > most_rules:
        return f"{len(together)} rules for {where}, and {most_rules} are allowed: retire one first"
    if tokens > most_tokens:
        return f"rules of about {tokens} tokens for {where}, and {most_tokens} are allowed: shorten or retire one first"
    return None


def _against(rule: Rule, other: Rule) -> str | None:
    same = _folded(rule.argument) == _folded(other.argument)
    if same and rule.action == other.action and rule.scope == other.scope:
        return "the same"
    if same and frozenset((rule.action, other.action)) in _OPPOSITE:
        return "the opposite"
    if rule.action == other.action == "format_as" and rule.scope == other.scope and not same:
        return "another format"
    if rule.action == other.action and contradict(rule.argument, other.argument):
        return "the opposite"
    unit = other_number(rule.argument, other.argument) if rule.action == other.action else None
    return f"another number ({unit})" if unit else None


def _quantities(text: str) -> dict[str, set[str]]:
    """Unit, or currency, to the numbers said of it."""
    found: dict[str, set[str]] = defaultdict(set)
    for each in _QUANTITY.finditer(text):
        unit = each["currency"] or _stem((each["unit"] or "").casefold())
        if unit and unit not in _FILLER:
            number = each["number"].casefold()
            found[unit].add(_NUMBERS.get(number, number))
    return found


def _stems(text: str) -> set[str]:
    words = re.findall(r"[^\W\d_]+", _QUANTITY.sub(" ", text).casefold())
    return {_stem(word) for word in words if word not in _FILLER}


def _stem(word: str) -> str:
    return re.sub(r"(?:ed|s)$", "", word) if len(word) > 3 else word


def _folded(text: str) -> str:
    return " ".join(text.casefold().split()).strip(" .!?,;\"'")
