"""Context rules as sentences for a prompt: one line a rule, under one heading.

Only a rule's own words are written, which a person signed. What a trace brought along (a channel, an intent) is spelled out
where it is a plain name, and is otherwise only compared. `filmroom/rule_text.py` is a link to this file.
"""

import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

HEADING = "## Rules"
NOTES = "## Notes"
EXAMPLES = "## Examples"
LONGEST = 2_000
"""Characters of one rule's sentence; the rest is cut."""
MAX_RULES = 50
"""Rules in one block; beyond, those that share the most words with the input."""

TEMPLATES: Mapping[str, str] = {
    "say": "Say: {}",
    "never_say": "Never say: {}",
    "ask_first": "Before you act, ask the user: {}",
    "confirm_before": "Before `{}`, ask the user to confirm, and wait for the answer.",
    "prefer": "Prefer {}.",
    "cite": "Cite {}.",
    "format_as": "Give the answer as {}.",
    "use_tool": "Use the tool `{}`.",
    "do_not_use_tool": "Do not use the tool `{}`.",
    "escalate": "Hand the conversation to a person: {}",
    "decline": "Decline: {}",
    "instruct": "{}",
}
"""Action to sentence. `instruct` is the sentence that a reviewer wrote."""

_NAME = re.compile(r"[\w.:/-]{1,40}")
_JOINERS = "\u200c\u200d"
"""Invisible, and part of the spelling in some scripts."""


def rule_text(action: str, argument: str) -> str:
    """The rule as one line.

    >>> rule_text("confirm_before", "update_order")
    'Before `update_order`, ask the user to confirm, and wait for the answer.'
    """
    words = plain(argument)
    template = TEMPLATES[action]
    if "`" in template:
        words = words.replace("`", "'")
    elif template.endswith("{}."):
        words = words.removesuffix(".")
    return template.replace("{}", words)


def plain(text: str) -> str:
    """The text on one line, without control, direction and invisible characters; at most `LONGEST` characters.

    >>> plain("Ask\\nfirst.\\u202e\\x00  Always.")
    'Ask first. Always.'
    """
    cut = text[: 2 * LONGEST]
    visible = "".join(" " if each.isspace() else each for each in cut if each.isspace() or not _is_hidden(each))
    words = " ".join(visible.split())
    return words if len(words) <= LONGEST else words[: LONGEST - 1] + "…"


def open_conditions(scope: Mapping[str, str], given: Mapping[str, str | None]) -> list[str] | None:
    """What must still be true for a rule of this scope, in words; None: it is out of scope.

    A key that is given must be equal. One that is not known is spelled out, if its value is a plain name.

    >>> open_conditions({"intent": "cancel", "channel": "app"}, {"channel": "app"})
    ['the intent is cancel']
    >>> open_conditions({"channel": "app"}, {"channel": "phone"}) is open_conditions({"channel": "do as I say"}, {}) is None
    True
    """
    found = []
    for key, value in scope.items():
        known = given.get(key)
        if known is not None and known != value:
            return None
        if known is None and not (_NAME.fullmatch(value) and _NAME.fullmatch(key)):
            return None
        if known is None:
            found.append(f"the {key} is {value}")
    return found


def holds(scope: Mapping[str, str], given: Mapping[str, str | None]) -> bool:
    """Whether all that a scope needs is known to hold.

    >>> holds({"intent": "cancel"}, {"intent": "cancel"}), holds({"intent": "cancel"}, {}), holds({}, {})
    (True, False, True)
    """
    return all(given.get(key) == value for key, value in scope.items())


def line(text: str, conditions: Sequence[str]) -> str:
    """A rule's sentence with what must be true for it.

    >>> line("Offer a voucher.", ["the intent is cancel"])
    'When the intent is cancel: Offer a voucher.'
    """
    return f"When {' and '.join(conditions)}: {text}" if conditions else text


def block(lines: Sequence[str], about: str = "") -> str:
    """The lines under one heading, empty without any. Beyond `MAX_RULES` those nearest to `about` stay, in their order.

    >>> print(block(["Offer a voucher.", "Be brief."]))
    ## Rules
    - Offer a voucher.
    - Be brief.
    """
    if not lines:
        return ""
    kept = list(lines) if len(lines) <= MAX_RULES else _nearest(lines, about)
    return "\n".join([HEADING, *(f"- {each}" for each in kept)])


def example_line(asked: str, answer: str) -> str:
    """An example on one line, its words quoted.

    >>> example_line("till when?", "Till 8.")
    'Asked: "till when?" Answer: "Till 8."'
    """
    return f"Asked: {_quoted(asked)} Answer: {_quoted(answer)}"


def knowledge(notes: Sequence[str], examples: Sequence[str]) -> str:
    """Notes and examples, a line each, as blocks; empty without any.

    >>> print(knowledge(["We close at 8."], [example_line("till when?", "Till 8.")]))
    ## Notes
    - We close at 8.
    ## Examples
    - Asked: "till when?" Answer: "Till 8."
    """
    lines = [NOTES, *(f"- {note}" for note in notes)] if notes else []
    return "\n".join([*lines, *([EXAMPLES, *(f"- {each}" for each in examples)] if examples else [])])


def with_texts(rules: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The rules, each with its sentence as `text`."""
    return [{**rule, "text": rule_text(rule["action"], rule["argument"])} for rule in rules]


def _quoted(text: str) -> str:
    return '"' + plain(text).replace('"', "'") + '"'


def _nearest(lines: Sequence[str], about: str) -> list[str]:
    asked = _words(about[: 4 * LONGEST])
    shared = [len(asked & _words(each)) for each in lines]
    best = sorted(range(len(lines)), key=lambda at: (-shared[at], at))[:MAX_RULES]
    return [lines[at] for at in sorted(best)]


def _words(text: str) -> set[str]:
    return set(re.findall(r"\w{3,}", text.casefold()))


def _is_hidden(character: str) -> bool:
    return unicodedata.category(character) in {"Cc", "Cf", "Cs", "Co", "Cn"} and character not in _JOINERS
