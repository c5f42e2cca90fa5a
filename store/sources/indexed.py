"""Attributes whose dotted names spell a tree, back as the tree: `llm.input_messages.0.message.role`."""

from collections.abc import Mapping
from typing import Any

from pydantic import JsonValue


def tree(flat: Mapping[str, JsonValue]) -> JsonValue:
    """The tree of dotted names. Numbered branches become a list in the order of their numbers, gaps closed.

    Where a name has both a value and branches, the branches stand and the value is under `value`.

    >>> tree({"10.role": "b", "2.role": "a", "2.calls.1.id": 7})
    [{'role': 'a', 'calls': [{'id': 7}]}, {'role': 'b'}]
    >>> tree({"a": 1, "a.b": 2})
    {'a': {'value': 1, 'b': 2}}
    """
    root: dict[str, Any] = {}
    for name, value in flat.items():
        node = root
        *path, last = name.split(".")
        for part in path:
            inner = node.get(part)
            if not isinstance(inner, _Node):
                inner = _Node() if inner is None else _Node(value=inner)
                node[part] = inner
            node = inner
        if isinstance(node.get(last), _Node):
            node[last]["value"] = value
        else:
            node[last] = value
    return _closed(root)


def untangled(value: JsonValue) -> JsonValue:
    """A nested value whose objects still have dotted names (`{"message.role": "user"}`), without dots.

    >>> untangled([{"message.role": "user", "message.tool_calls": [{"tool_call.id": 1}]}])
    [{'message': {'role': 'user', 'tool_calls': [{'tool_call': {'id': 1}}]}}]
    """
    if isinstance(value, list):
        return [untangled(item) for item in value]
    if not isinstance(value, dict):
        return value
    return tree({name: untangled(item) for name, item in value.items()})


class _Node(dict[str, Any]):
    """A branch that `tree` made, as opposed to a value that is an object."""


def _closed(node: Any) -> JsonValue:
    if not isinstance(node, dict):
        return node  # type: ignore[no-any-return]  # a leaf
    if node and all(name.isdecimal() for name in node):
        return [_closed(node[name]) for name in sorted(node, key=int)]
    return {name: _closed(item) for name, item in node.items()}
