"""The messages of the Claude Agent SDK: from `init` to `result` one run of an agent, with its calls and their results."""

from pydantic import JsonValue

from store.sources.assembly import Draft, Refuse, assembled
from store.sources.chat_exchange import answer_of, text_of, unnamed
from store.sources.context_fields import beside, unquoted
from store.sources.contract import BadRecord, Item
from store.sources.fields import as_id, as_number, as_text
from store.sources.payload import Object, list_of, object_of
from store.sources.times import parse_time
from store.sources.tool_calls import calls_in, results_in
from store.sources.usage import exclusive


def is_agent_message(value: Object) -> bool:
    """Whether it is one of the SDK's messages: `system`, `assistant`, `user` or `result`."""
    kind = value.get("type")
    if kind in ("assistant", "user"):
        return isinstance(object_of(value.get("message")).get("content"), (list, str)) and "trace" not in value
    return (kind == "system" and value.get("subtype") == "init") or (kind == "result" and "num_turns" in value)


def agent_items(messages: list[Object], named: str, owner: Draft, refuse: Refuse) -> list[Item]:
    """The trace of a run and its steps: the model's answers, and the tools with what they gave back."""
    result = next((message for message in messages if message.get("type") == "result"), {})
    session = next((found for message in messages if (found := unquoted(message.get("session_id")))), None)
    external_id = as_id(result.get("uuid")) or named
    steps = _steps(messages, external_id)
    tokens = exclusive(result.get("usage"))
    failed = result.get("is_error") is True
    words = next((said for message in messages if (said := _asked(message)) is not None), None)
    trace: Draft = {
        "external_id": external_id,
        "session": session,
        "input": words,
        "output": result.get("result"),
        "status": "error" if failed else "ok" if result else "unset",
        "error": as_text(result.get("result")) or as_text(result.get("subtype")) if failed else None,
        "cost_usd": as_number(result.get("total_cost_usd")),
        **tokens.counts,
        "attributes": beside({key: result.get(key) for key in ("duration_ms", "duration_api_ms", "num_turns")})
        | tokens.attributes,
    }
    return unnamed(assembled(trace, steps, owner, refuse))


def _asked(message: Object) -> JsonValue:
    """What the user said in a message that holds no results."""
    said = object_of(message.get("message"))
    if message.get("type") != "user" or results_in(said.get("content")):
        return None
    return text_of(said.get("content"))


def _steps(messages: list[Object], trace: str) -> list[Draft]:
    """A step an answer; the results in a later message are its input, which joins them to their calls."""
    steps: list[Draft] = []
    waiting: list[JsonValue] = []
    for number, message in enumerate(messages):
        said = object_of(message.get("message"))
        if message.get("type") == "user":
            waiting.append({"role": "user", "content": said.get("content")})
        if message.get("type") != "assistant":
            continue
        blocks = list_of(said.get("content"))
        text = text_of([block for block in blocks if object_of(block).get("type") == "text"])
        steps.append(
            {
                "trace_external_id": trace,
                "external_id": as_id(message.get("uuid") or said.get("id")) or f"message-{number}",
                "kind": "llm",
                "name": as_text(said.get("model")),
                "model": as_text(said.get("model")),
                "input": [*waiting] or None,
                "output": answer_of(text, calls_in(blocks)),
                **exclusive(said.get("usage")).counts,
                **_started(message),
            }
        )
        waiting = []
    return steps


def _started(message: Object) -> Draft:
    try:
        moment = parse_time(message.get("timestamp"))
    except BadRecord:
        return {}
    return {"started_us": moment.us, "started_ns": moment.ns} if moment else {}
