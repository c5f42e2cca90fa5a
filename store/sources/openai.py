"""OpenAI: chat completions, the Responses API, stored completions, streams, recorded traffic and batches.

Each answer is a trace of its own. A batch's answers are joined to its requests where both files are in one folder.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path

from pydantic import JsonValue

from store.records import Rejected
from store.sources.assembly import Draft
from store.sources.batches import Requests, is_openai_answer, is_openai_request
from store.sources.chat_exchange import exchange_items, stream_events
from store.sources.contract import BadRecord, Item, Sample, SourceOptions
from store.sources.fields import Occurrences, as_id, as_text
from store.sources.files import reject
from store.sources.grouping import Grouping, read_grouped
from store.sources.json_records import JsonRecord, json_records
from store.sources.media import may_hold_media, shortened
from store.sources.openai_answers import exchange_of, joined_chunks
from store.sources.payload import Object, list_of, object_of

name = "openai"

_OBJECTS = ("chat.completion", "response")
_CHUNK = "chat.completion.chunk"
_HOSTS = ("api.openai.com", ".openai.azure.com", "generativelanguage.googleapis.com")
_PATHS = ("/chat/completions", "/v1/responses", ":generateContent")


def recognise(sample: Sample) -> str | None:
    """Recognises answers by their `object`, recorded traffic by its address, and lines of batches."""
    for value in sample.objects:
        if _is_recorded(value):
            return "recorded OpenAI traffic"
        if value.get("object") in (*_OBJECTS, _CHUNK) and ("choices" in value or "output" in value):
            return f"OpenAI objects {value['object']}"
        if is_openai_answer(value):
            return "answers of an OpenAI batch"
        if is_openai_request(value):
            return "requests of an OpenAI batch"
        if value.get("object") == "list" and any(_is_answer(item) for item in list_of(value.get("data"))):
            return "a page of OpenAI completions"
    return None


def read(path: Path, options: SourceOptions) -> Iterator[Item]:
    """The exchanges of a file; the pieces of a stream are put together."""
    reading = _Reading(path, options)
    yield from read_grouped(path, _records(path), Grouping(reading.alone, _chunk_id, reading.streamed))


def _records(path: Path) -> Iterator[JsonRecord | Rejected]:
    """The objects one by one, pages taken apart."""
    for record in json_records(path):
        items = [] if isinstance(record, Rejected) else list_of(record.value.get("data"))
        answers = [item for item in items if isinstance(item, dict) and _is_answer(item)]
        if isinstance(record, Rejected) or not answers:
            yield record
            continue
        for answer in answers:
            yield JsonRecord(record.line, answer, record.data)


def _is_answer(value: JsonValue) -> bool:
    return isinstance(value, dict) and value.get("object") in _OBJECTS


def _is_recorded(value: Object) -> bool:
    """Whether it is a request with its answer: by the address, or by the answer."""
    if "request" not in value or "response" not in value:
        return False
    url, answer = as_text(value.get("url")) or "", value["response"]
    by_url = any(host in url for host in _HOSTS) and any(path in url for path in _PATHS)
    return by_url or _is_answer(answer)


def _chunk_id(record: JsonRecord) -> str:
    found = as_id(record.value.get("id"))
    if found is None:
        raise BadRecord("id: missing; it is the id of the stream")
    return found


class _Reading:
    """Makes our records of the exchanges of one file."""

    def __init__(self, path: Path, options: SourceOptions) -> None:
        self._path = path
        self._owner: Draft = {"project": options.project, "source": options.source or name}
        self._occurrences = Occurrences()
        self._requests = Requests(path)

    def alone(self, record: JsonRecord) -> Iterable[Item] | None:
        value = _light(record)
        if value.get("object") == _CHUNK:
            return None
        if is_openai_request(value):
            self._requests.check_answered(value)
            return ()
        if is_openai_answer(value):
            return self._batch(value, record)
        if "request" in value and "response" in value:
            return self._made(object_of(value["request"]), value["response"], record, status=value.get("status"))
        if _is_answer(value):
            return self._made(object_of(value.get("request")), value, record)
        raise BadRecord("neither an answer nor a batch of OpenAI")

    def streamed(self, records: list[JsonRecord]) -> list[Item]:
        return self._made({}, joined_chunks([_light(record) for record in records]), records[0])

    def _batch(self, value: Object, record: JsonRecord) -> list[Item]:
        answer = object_of(value.get("response"))
        request, more = self._requests.of(value)
        failed = value.get("error")
        body: JsonValue = answer.get("body") if answer else {"error": failed}
        external_id = as_id(value.get("id")) or as_id(value.get("custom_id"))
        extra = {"custom_id": value.get("custom_id"), "request_id": answer.get("request_id")}
        extra |= {"response_id": object_of(body).get("id")} | more
        return self._made(request, body, record, status=answer.get("status_code"), named=external_id, extra=extra)

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
        if isinstance(answer, str):
            answer = joined_chunks(list(stream_events(answer)))
        body = object_of(answer)
        external_id = named or as_id(body.get("id") or body.get("responseId"))
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
