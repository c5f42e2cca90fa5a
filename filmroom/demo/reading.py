"""What the agent reads out of text: the entities of a message, the meaning of its rules, the preference in a fact."""

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from filmroom.demo.phrases import phrase_book
from store.records import Fact, Rule

CHANGES = frozenset({"cancel", "address", "delivery"})
"""What `update_order` can change."""

_ORDER = re.compile(r"(?<!\w)a-\d{4}\b", re.IGNORECASE)
_DATE = re.compile(r"\b\d{4}-\d{2}-\d{2}\b|\b\d{1,2}\.\d{1,2}\.\d{4}\b")


@dataclass(frozen=True)
class Entities:
    """What a message names, as it was written; None: not named."""

    order: str | None
    date: str | None
    item: str | None
    shop: str | None


@dataclass(frozen=True)
class Manner:
    """What the rules in scope ask of an answer."""

    confirm: frozenset[str] = frozenset()
    """Changes to ask about before they are made."""
    window: bool = False
    """Name the delivery window with an order's status."""
    hand_over: bool = False
    """Leave it to a colleague."""


def read_entities(text: str) -> Entities:
    """The first order number, date, item and shop of a message.

    >>> read_entities("deliver a-1042 on 24.03.2026")
    Entities(order='a-1042', date='24.03.2026', item=None, shop=None)
    """
    book = phrase_book()
    order, day = _ORDER.search(text), _DATE.search(text)
    return Entities(
        order=order.group() if order else None,
        date=day.group() if day else None,
        item=last_named(text, book.items),
        shop=last_named(text, book.shops),
    )


def last_named(text: str, names: Iterable[str]) -> str | None:
    """The one of `names` that `text` names last, at the start of a word and whatever its case; None: none of them.

    >>> last_named("not mornings: EVENINGS", ("morning", "evening"))
    'evening'
    """
    places = [
        (match.start(), name) for name in names for match in re.finditer(rf"\b{re.escape(name)}", text, re.IGNORECASE)
    ]
    return max(places)[1] if places else None


def preference(facts: Iterable[Fact], choices: Iterable[str]) -> str | None:
    """The one of `choices` that the newest fact naming any of them names last; `facts` come oldest first."""
    names = tuple(choices)
    said = [name for fact in facts if (name := last_named(json.dumps(fact.value), names))]
    return said[-1] if said else None


def in_scope(rule: Rule, scope: Mapping[str, str]) -> bool:
    """Whether every key of the rule's scope is known here and has that value."""
    return all(scope.get(key) == value for key, value in rule.scope.items())


def read_manner(rules: Iterable[Rule]) -> Manner:
    """What rules ask for, read by keyword from action and argument: this is how far the agent understands a sentence.

    A rule that asks for confirmation without speaking of cancelling is obeyed for every change of an order.
    """
    confirm: frozenset[str] = frozenset()
    window = hand_over = False
    for rule in rules:
        text = f"{rule.action.replace('_', ' ')} {rule.argument}".lower()
        if re.search(r"\bconfirm|\bask\b", text):
            confirm |= {"cancel"} if "cancel" in text else CHANGES
        window |= "window" in text and rule.action != "never_say"
        hand_over |= rule.action in ("escalate", "decline", "do_not_use_tool")
    return Manner(confirm, window, hand_over)
