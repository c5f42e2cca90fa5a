"""A person's own words in JSON: which there are, and a value without them."""

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

ERASED = "[erased]"
"""What stands for words that were erased."""


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


def repeats(text: str, words: tuple[str, ...]) -> bool:
    """Whether a text holds one of the words."""
    return any(word in text and _whole(word).search(text) for word in words)


def without(value: Any, words: tuple[str, ...], names: tuple[str, ...]) -> Any:
    """The value without the words; a text that is one of the names goes whole.

    >>> without({"a": ["ann", "to Elm Street 7"], "ann": 1}, ("Elm Street 7",), ("ann",))
    {'a': ['[erased]', 'to [erased]'], '[erased]': 1}
    >>> without("cust-1 and cust-17", ("cust-1",), ())
    '[erased] and cust-17'
    """
    if isinstance(value, dict):
        return {without(key, words, names): without(item, words, names) for key, item in value.items()}
    if isinstance(value, list):
        return [without(item, words, names) for item in value]
    if not isinstance(value, str):
        return value
    if value in names:
        return ERASED
    for word in words:
        if word in value:
            value = _whole(word).sub(ERASED, value)
    return value


@lru_cache(maxsize=4096)
def _whole(word: str) -> re.Pattern[str]:
    """The word where it stands by itself: `cust-1` is no part of `cust-17`."""
    before, after = (r"(?<!\w)" if word[:1].isalnum() else ""), (r"(?!\w)" if word[-1:].isalnum() else "")
    return re.compile(before + re.escape(word) + after)
