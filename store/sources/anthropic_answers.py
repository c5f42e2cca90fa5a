"""A request and an answer of Anthropic's APIs in one form; its input tokens do not count the cache, ours do."""

from typing import Any

from pydantic import JsonValue

from store.sources.assembly import Draft
from store.sources.chat_exchange import Exchange, http_error, text_of
from store.sources.context_fields import beside
from store.sources.contract import BadRecord
from store.sources.fields import as_text
from store.sources.payload import Object, list_of, object_of
from store.sources.sanitise import parse_json
from store.sources.tool_calls import calls_in
from store.sources.usage import exclusive

_SETTINGS = ("temperature", "top_p", "max_tokens", "max_tokens_to_sample", "thinking", "tool_choice", "stream")
_TURN = ("\n\nHuman:", "\n\nAssistant:")


def exchange_of(external_id: str, request: Object, body: Object, status: JsonValue, extra: Object) -> Exchange:
    """The exchange of a request, which may be empty, and a body, which may be an error."""
    blocks = list_of(body.get("content"))
    said = [block for block in blocks if object_of(block).get("type") == "text"]
    completion = as_text(body.get("completion"))
    kept = [block for block in blocks if object_of(block).get("type") in ("thinking", "redacted_thinking")]
    attributes = beside(
        {
            "finish_reason": body.get("stop_reason"),
            "tool_definitions": request.get("tools"),
            "settings": beside({key: request.get(key) for key in _SETTINGS}),
            "thinking": kept,
            **extra,
        }
    )
    return Exchange(
        external_id=external_id,
        messages=_messages(request),
        text=text_of(said) if said else completion,
        calls=calls_in(blocks),
        model=as_text(body.get("model") or request.get("model")),
        tokens=exclusive(body.get("usage")),
        step=_step(body, status),
        metadata=object_of(request.get("metadata")),
        attributes=attributes,
    )


def _step(body: Object, status: JsonValue) -> Draft:
    return http_error(status, body) or {"status": "ok"}


def _messages(request: Object) -> list[JsonValue]:
    """All that was sent, as messages; the prompt of the older API is taken apart at its turns."""
    messages = list_of(request.get("messages")) or _turns(as_text(request.get("prompt")))
    system = text_of(request.get("system"))
    return [{"role": "system", "content": system}, *messages] if system and messages else messages


def _turns(prompt: str | None) -> list[JsonValue]:
    """The turns of a prompt in the older form.

    >>> _turns("\\n\\nHuman: hi\\n\\nAssistant:")
    [{'role': 'user', 'content': 'hi'}]
    """
    turns: list[JsonValue] = []
    for part in (prompt or "").split(_TURN[0])[1:]:
        asked, *answers = part.split(_TURN[1])
        turns.append({"role": "user", "content": asked.strip()})
        turns += [{"role": "assistant", "content": answer.strip()} for answer in answers if answer.strip()]
    return turns or ([{"role": "user", "content": prompt}] if prompt else [])


def joined_events(events: list[Object]) -> Object:
    """The message that the events of a stream make; of the older API the completion."""
    whole: dict[str, Any] = {}
    blocks: dict[int, dict[str, Any]] = {}
    for event in events:
        kind = event.get("type")
        if kind == "message_start":
            whole |= object_of(event.get("message"))
        elif kind == "content_block_start":
            blocks[_index(event)] = {**object_of(event.get("content_block"))}
        elif kind == "content_block_delta":
            _extend(blocks.setdefault(_index(event), {"type": "text"}), object_of(event.get("delta")))
        elif kind == "message_delta":
            whole |= {key: value for key, value in object_of(event.get("delta")).items() if value is not None}
            whole["usage"] = {**object_of(whole.get("usage")), **object_of(event.get("usage"))}
        elif kind == "completion":
            said = (as_text(whole.get("completion")) or "") + (as_text(event.get("completion")) or "")
            whole |= {key: value for key, value in event.items() if value is not None} | {"completion": said}
        elif kind == "error":
            whole["error"] = event.get("error")
    if blocks:
        whole["content"] = [_closed(blocks[index]) for index in sorted(blocks)]
    return whole


def _index(event: Object) -> int:
    index = event.get("index")
    return index if isinstance(index, int) else 0


def _extend(block: dict[str, Any], delta: Object) -> None:
    for field in ("text", "thinking", "signature", "partial_json"):
        if isinstance(delta.get(field), str):
            block[field] = block.get(field, "") + str(delta[field])


def _closed(block: dict[str, Any]) -> JsonValue:
    """The block with the arguments that came in pieces as an object, or as text where they are cut off."""
    pieces = block.pop("partial_json", None)
    if not pieces:
        return block
    try:
        return block | {"input": parse_json(pieces.encode())}
    except BadRecord:
        return block | {"input": pieces}
