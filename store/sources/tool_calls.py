"""Tool calls and their results inside messages, in every spelling that logs have.

OpenAI chat and Responses, Anthropic, Gemini, the GenAI conventions' parts, LangChain, the Vercel SDK and TensorZero.
"""

from collections.abc import Iterator
from typing import NamedTuple, TypeVar

from pydantic import JsonValue

from store.sources.fields import as_text, unwrapped
from store.sources.payload import Object

_DEPTH = 12
_CALL_TYPES = ("tool_use", "tool_call", "function_call", "tool-call", "server_tool_use", "mcp_tool_use")
_RESULT_TYPES = ("tool_result", "tool_call_response", "function_call_output", "tool-result", "mcp_tool_result")
_RESULT_ROLES = ("tool", "function")


_USER_ROLES = ("user", "human")
_MESSAGE_LISTS = ("messages", "input", "contents")


class Call(NamedTuple):
    """A tool call that a model asked for."""

    id: str | None
    name: str | None
    arguments: JsonValue


class Result(NamedTuple):
    """What a tool gave back."""

    id: str | None
    name: str | None
    output: JsonValue
    failed: bool


def calls_in(value: JsonValue) -> list[Call]:
    """The calls in an answer or in messages, in order; the same call twice is one.

    >>> calls_in({"tool_calls": [{"id": "c1", "function": {"name": "get", "arguments": '{"id": 7}'}}]})
    [Call(id='c1', name='get', arguments={'id': 7})]
    """
    return _distinct(call for item in _objects(value) if (call := _call(item)) is not None)


def results_in(value: JsonValue) -> list[Result]:
    """The results in messages, in order; of two for the same call the first.

    >>> results_in([{"role": "tool", "tool_call_id": "c1", "content": "sunny"}])
    [Result(id='c1', name=None, output='sunny', failed=False)]
    """
    return _distinct(result for item in _objects(value) if (result := _result(item)) is not None)


def messages_in(value: JsonValue) -> list[JsonValue]:
    """The messages of a request: the list it is, or the one it holds; none else."""
    if isinstance(value, dict):
        value = next((found for key in _MESSAGE_LISTS if isinstance(found := value.get(key), list)), [])
    if isinstance(value, list) and len(value) == 1 and isinstance(value[0], list):
        value = value[0]
    return value if isinstance(value, list) else []


def current_turn(value: JsonValue) -> list[JsonValue]:
    """The messages of a request after the user's last words: what came before was answered by an earlier request.

    >>> current_turn([{"role": "user", "content": "hi"}, {"role": "tool", "tool_call_id": "c1", "content": "x"}])
    [{'role': 'tool', 'tool_call_id': 'c1', 'content': 'x'}]
    """
    messages = messages_in(value)
    for place in range(len(messages) - 1, -1, -1):
        message = messages[place]
        if isinstance(message, dict) and _is_from_user(message) and not results_in(message):
            return messages[place + 1 :]
    return messages


def _is_from_user(message: Object) -> bool:
    return message.get("role") in _USER_ROLES or message.get("type") == "human"


def says_error(output: JsonValue) -> bool:
    """Whether a result that carries no status begins as errors do.

    >>> says_error("Error: order not found"), says_error("No errors")
    (True, False)
    """
    return isinstance(output, str) and output.lstrip().startswith("Error")


T = TypeVar("T", Call, Result)


def _distinct(found: Iterator[T]) -> list[T]:
    by_key: dict[object, T] = {}
    for number, item in enumerate(found):
        by_key.setdefault(item.id or number, item)
    return list(by_key.values())


def _objects(value: JsonValue, depth: int = 0) -> Iterator[Object]:
    """Every object in a value that may be a call or a result, outermost first; not what is inside of one."""
    if depth > _DEPTH:
        return
    if isinstance(value, list):
        for item in value:
            if isinstance(item, (dict, list)):
                yield from _objects(item, depth + 1)
        return
    if not isinstance(value, dict):
        return
    yield value
    if _call(value) is None and _result(value) is None:
        for item in value.values():
            if isinstance(item, (dict, list)):
                yield from _objects(item, depth + 1)


def _call(item: Object) -> Call | None:
    function = item.get("function", item.get("functionCall", item.get("function_call")))
    if isinstance(function, dict) and "name" in function and ("arguments" in function or "args" in function):
        return _made(item.get("id"), function)
    kind = item.get("type")
    if kind in _CALL_TYPES and ("name" in item or "toolName" in item):
        return _made(item.get("call_id", item.get("toolCallId", item.get("id"))), item)
    if "toolName" in item and "toolCallId" in item and not {"result", "output"} & item.keys():
        return _made(item["toolCallId"], item)
    if "name" in item and "args" in item and "id" in item:
        return _made(item["id"], item)
    return None


def _made(call_id: JsonValue, said: Object) -> Call:
    arguments = next((said[key] for key in ("arguments", "args", "input", "raw_arguments") if key in said), None)
    return Call(as_text(call_id), as_text(said.get("name", said.get("toolName"))), unwrapped(arguments))


def _result(item: Object) -> Result | None:
    answer = item.get("functionResponse", item.get("function_response"))
    if isinstance(answer, dict) and "name" in answer:
        return Result(as_text(answer.get("id")), as_text(answer["name"]), answer.get("response"), failed=False)
    kind = item.get("type")
    if kind in _RESULT_TYPES or item.get("role") in _RESULT_ROLES or (kind == "tool" and "tool_call_id" in item):
        if "parts" in item:  # a message of the GenAI conventions, whose parts are the results
            return None
        call_id = next((item[key] for key in _RESULT_IDS if item.get(key)), None)
        holds_results = isinstance(item.get("content"), list) and call_id is None
        return None if holds_results else _answer(item, call_id)
    return None


_RESULT_IDS = ("tool_call_id", "tool_use_id", "call_id", "toolCallId", "id")
_OUTPUT_KEYS = ("content", "output", "response", "result")


def _answer(item: Object, call_id: JsonValue) -> Result:
    output = _text_of(next((item[key] for key in _OUTPUT_KEYS if key in item), None))
    failed = item.get("is_error") is True or item.get("isError") is True or item.get("status") == "error"
    name = as_text(item.get("name", item.get("toolName")))
    return Result(as_text(call_id), name, output, failed or says_error(output))


def _text_of(content: JsonValue) -> JsonValue:
    """A result's content: the text of its one text block, what a text holds as JSON, anything else as it is."""
    if isinstance(content, list) and len(content) == 1 and isinstance(content[0], dict):
        only = content[0]
        if set(only) <= {"type", "text", "cache_control"} and isinstance(only.get("text"), str):
            content = only["text"]
    return unwrapped(content)
