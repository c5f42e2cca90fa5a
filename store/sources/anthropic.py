"""Anthropic: messages and completions, recorded traffic with its streams, batch results, messages of the agent SDK.

Each answer is a trace of its own; the agent SDK's messages from one start to its result are one. A batch's results are
joined to its requests where both files are in one folder.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path

from pydantic import JsonValue

from store.records import Rejected
from store.sources.anthropic_agent import agent_items, is_agent_message
from store.sources.anthropic_answers import exchange_of, joined_events
from store.sources.assembly import Draft
from store.sources.batches import Requests, is_anthropic_answer, is_anthropic_request
from store.sources.chat_exchange import exchange_items, stream_events
from store.sources.contract import BadRecord, Item, Sample, SourceOptions
from store.sources.fields import Occurrences, as_id, as_text
from store.sources.files import reject
from store.sources.json_records import JsonRecord, json_records
from store.sources.media import may_hold_media, shortened
from store.sources.payload import Object, object_of

name = "anthropic"

_TYPES = ("message", "completion")
_HOST = "api.anthropic.com"


def recognise(sample: Sample) -> str | None:
    """Recognises messages by their type and role, recorded traffic, batch results and the agent SDK's messages."""
    for value in sample.objects:
        if _is_recorded(value):
            return "recorded Anthropic traffic"
        if _is_answer(_body(value)):
            return "Anthropic messages"
        if is_anthropic_answer(value):
            return "results of an Anthropic batch"
        if is_anthropic_request(value):
            return "requests of an Anthropic batch"
        if is_agent_message(value):
            return "messages of the Claude Agent SDK"
    return None


def read(path: Path, options: SourceOptions) -> Iterator[Item]:
    """The exchanges of a file, or the runs of an agent."""
    reading = _Reading(path, options)
    for record in json_records(path):
        if isinstance(record, Rejected):
            yield record
            continue
        try:
            items = tuple(reading.items(record))
        except BadRecord as error:
            yield reject(path, record.line, str(error), record.data)
            continue
        yield from items
    yield from reading.rest()


def _is_answer(value: JsonValue) -> bool:
    if not isinstance(value, dict) or value.get("type") not in _TYPES:
        return False
    return "completion" in value or (value.get("role") == "assistant" and isinstance(value.get("content"), list))


def _is_recorded(value: Object) -> bool:
    if "request" not in value or "response" not in value:
        return False
    return _HOST in (as_text(value.get("url")) or "") or _is_answer(value["response"])


def _body(value: Object) -> Object:
    """The answer inside a recorded response, whose body is a text; else the value."""
    body = value.get("body")
    return object_of(body) if isinstance(body, (str, dict)) and "status" in value else value


class _Reading:
    """Makes our records of the exchanges of one file."""

    def __init__(self, path: Path, options: SourceOptions) -> None:
        self._path = path
        self._owner: Draft = {"project": options.project, "source": options.source or name}
        self._occurrences = Occurrences()
        self._requests = Requests(path)
        self._run: list[JsonRecord] = []
        """Messages of the agent SDK whose result has not come yet."""

    def items(self, record: JsonRecord) -> Iterable[Item]:
        value = _light(record)
        if is_agent_message(value):
            return self._agent(JsonRecord(record.line, value, record.data))
        if is_anthropic_request(value):
            self._requests.check_answered(value)
            return ()
        if is_anthropic_answer(value):
            return self._batch(value, record)
        if "request" in value and "response" in value:
            return self._made(object_of(value["request"]), value["response"], record, status=value.get("status"))
        body = _body(value)
        if _is_answer(body) or body.get("type") == "error":
            return self._made({}, body, record, status=value.get("status"))
        raise BadRecord("neither a message nor a batch of Anthropic")

    def rest(self) -> Iterable[Item]:
        """The run that the file ends in the middle of."""
        run, self._run = self._run, []
        return self._agent_items(run) if run else ()

    def _agent(self, record: JsonRecord) -> Iterable[Item]:
        starts = record.value.get("type") == "system" and record.value.get("subtype") == "init"
        before = list(self.rest()) if starts else []
        self._run.append(record)
        return [*before, *self.rest()] if record.value.get("type") == "result" else before

    def _agent_items(self, run: list[JsonRecord]) -> list[Item]:
        data = b"\n".join(record.data for record in run)
        messages = [record.value for record in run]
        named = self._occurrences.id_of([*messages])
        return agent_items(messages, named, self._owner, lambda reason: reject(self._path, run[0].line, reason, data))

    def _batch(self, value: Object, record: JsonRecord) -> list[Item]:
        result = object_of(value.get("result"))
        request, more = self._requests.of(value)
        extra = {"custom_id": value.get("custom_id"), "result": result.get("type"), **more}
        if result.get("type") == "succeeded":
            return self._made(request, result.get("message"), record, extra=extra)
        error = object_of(result.get("error"))
        kind = as_text(result.get("type"))
        said = object_of(error.get("error")) or error or {"type": kind, "message": f"the request was {kind}"}
        return self._made(request, {"error": said}, record, named=as_id(value.get("custom_id")), extra=extra)

    def _made(
        self,
        request: Object,
        answer: JsonValue,
        record: JsonRecord,
        *,
        status: JsonValue = None,
        named: str | None = None,
        extra: Object | None = None,
    ) -> list[Item]:
        body = joined_events(list(stream_events(answer))) if isinstance(answer, str) else object_of(answer)
        external_id = as_id(body.get("id")) or (named and f"{named}:{self._occurrences.id_of(record.value)}")
        external_id = external_id or self._occurrences.id_of(record.value)
        exchange = exchange_of(external_id, request, body, status, extra or {})
        return exchange_items(
            exchange, self._owner, lambda reason: reject(self._path, record.line, reason, record.data)
        )


def _light(record: JsonRecord) -> Object:
    if not may_hold_media(record.data):
        return record.value
    value = shortened(record.value)
    return value if isinstance(value, dict) else record.value
