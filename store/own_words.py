"""A person's own words in JSON: which there are, and a value without them."""

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

ERASED = "[erased]"
"""What stands for words that were erased."""
_CLOSED = frozenset({"target", "verb", "action", "scope", "state", "kind", "decision", "verdict"})
"""Fields whose values come from a list of filmroom's own."""
_FIELDS = _CLOSED | {
    "scope_id",
    "user",
    "subject",
    "predicate",
    "value",
    "source",
    "key",
    "tool",
    "model",
    "reason",
    "summary",
}
_SHORTEST_NUMBER, _SHORTEST_NAME = 5, 3
"""Characters from which a name is taken for one in the middle of a sentence."""


def leaves(value: Any) -> Iterator[str]:
    """Every text in a value; names of fields are not among them."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from leaves(item)
    elif isinstance(value, list):
        for item in value:
            yield from leaves(item)


def without(value: Any, words: tuple[str, ...], names: tuple[str, ...], pseudonym: str = ERASED) -> Any:
    """The value with `[erased]` for the words and the pseudonym for the names, where they stand by themselves.

    Names of a record's fields stay, and what a closed list has, so that a record is still one.

    >>> without({"a": ["ann", "to Elm Street 7"], "ann": 1}, ("Elm Street 7",), ("ann",))
    {'a': ['[erased]', 'to [erased]'], '[erased]': 1}
    >>> without("cust-1 and cust-17", ("cust-1",), ())
    '[erased] and cust-17'
    >>> without("u3: said, as ann-marie and staff:u3 know", (), ("u3", "ann"), "erased-1")
    'erased-1: said, as ann-marie and staff:u3 know'
    >>> without({"scope": "user", "scope_id": "user"}, (), ("user",), "erased-1")
    {'scope': 'user', 'scope_id': 'erased-1'}
    """
    if isinstance(value, dict):
        return {
            key if key in _FIELDS else without(key, words, names, pseudonym): (
                item if key in _CLOSED and isinstance(item, str) else without(item, words, names, pseudonym)
            )
            for key, item in value.items()
        }
    if isinstance(value, list):
        return [without(item, words, names, pseudonym) for item in value]
    if not isinstance(value, str):
        return value
    if value in names:
        return pseudonym
    for word in words:
        if word in value:
            value = _whole(word).sub(ERASED, value)
    for name in names:
        if name in value:
            value = _named(name).sub(pseudonym, value)
    return value


@lru_cache(maxsize=4096)
def _whole(word: str) -> re.Pattern[str]:
    """The word where it stands by itself: `cust-1` is no part of `cust-17`."""
    before, after = (r"(?<!\w)" if word[:1].isalnum() else ""), (r"(?!\w)" if word[-1:].isalnum() else "")
    return re.compile(before + re.escape(word) + after)


@lru_cache(maxsize=64)
def _named(name: str) -> re.Pattern[str]:
    """A user's name where it stands by itself; one that could be any number or letter only before a colon, as in `7: said`.

    `ann` is no part of `ann-marie`, and not the `staff:ann` who decided.
    """
    before, after = r"(?<!\w)(?<!\w[-.@])(?<!staff:)", r"(?![-.@]?\w)"
    telling = len(name) >= _SHORTEST_NUMBER if name.isdigit() else len(name) >= _SHORTEST_NAME or not name.isalpha()
    return re.compile(before + re.escape(name) + (after if telling else r"(?=: )"))
