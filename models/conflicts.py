"""Rules that cannot both be followed, and how much of a prompt the rules of one scope may take."""

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
    return None


def _folded(text: str) -> str:
    return " ".join(text.casefold().split()).strip(" .!?,;\"'")
