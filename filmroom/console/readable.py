"""What was asked and answered, as people read it: messages apart, long texts cut, JSON indented."""

from typing import Any, NamedTuple

from filmroom.console.format import LONG_TEXT, pretty, printable


class Block(NamedTuple):
    """One piece of text."""

    label: str
    """Who speaks, or which field it is; may be empty."""
    text: str
    cut: int
    """Characters left out."""
    code: bool
    """Whether it is JSON, and not prose."""


def blocks(value: Any, limit: int = LONG_TEXT) -> list[Block]:
    """The pieces of an input or output: one a message of a conversation, else one.

    >>> [(each.label, each.text) for each in blocks([{"role": "user", "content": "hello"}])]
    [('user', 'hello')]
    >>> blocks(None)
    []
    """
    if value is None:
        return []
    if isinstance(value, dict) and isinstance(value.get("messages"), list):
        value = value["messages"]
    if isinstance(value, list) and value and all(_is_message(each) for each in value):
        return [_block(str(each["role"]), _content(each), limit) for each in value[-20:]]
    return [_block("", value, limit)]


def _is_message(value: Any) -> bool:
    return isinstance(value, dict) and isinstance(value.get("role"), str)


def _content(message: dict[str, Any]) -> Any:
    content = message.get("content")
    if isinstance(content, list) and all(isinstance(each, dict) and "text" in each for each in content):
        content = "\n".join(str(each["text"]) for each in content)
    rest = {name: each for name, each in message.items() if name not in ("role", "content") and each}
    if not rest:
        return content
    return {"content": content, **rest} if content else rest


def _block(label: str, value: Any, limit: int) -> Block:
    text = printable(pretty(value)) if value is not None else ""
    return Block(printable(label), text[:limit], max(0, len(text) - limit), not isinstance(value, str))
