"""OpenTelemetry spans: OTLP requests as JSON or protobuf, what SDKs print, and a span's bare attributes.

Read are the GenAI conventions new and old, OpenInference, OpenLLMetry and the attributes of Langfuse's SDK. OTLP has no
traces, only their spans: a trace is put together from them.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from google.protobuf.json_format import MessageToDict
from pydantic import JsonValue

from store.errors import InputError
from store.records import Feedback, Rejected
from store.records.identity import canonical_json
from store.sources import otlp_protobuf
from store.sources.contract import BadRecord, Item, Sample, SourceOptions
from store.sources.fields import Occurrences
from store.sources.files import MAX_RECORD_BYTES, read_head, reject, too_long
from store.sources.json_records import JsonRecord, json_records
from store.sources.otel import Flat, RawSpan
from store.sources.otlp_json import is_request, logs_in, printed_span, raw_log, raw_span, spans_in
from store.sources.sanitise import parse_json
from store.sources.span_feedback import EVALUATION, evaluation
from store.sources.span_io import DETAILS
from store.sources.span_window import SpanWindow

name = "otlp"

PROTOBUF = ("application/x-protobuf", "application/protobuf")
JSON = "application/json"

_PREFIXES = (
    *("gen_ai.", "llm.", "openinference.", "traceloop.", "langfuse.observation.", "langfuse.trace."),
    *("input.value", "output.value", "retrieval.documents.", "embedding.", "tool_call."),
)
"""What the attributes of a span of a language model begin with."""
_DETAIL_SPAN = ":details"


def recognise(sample: Sample) -> str | None:
    """Recognises exports of spans or logs, spans as an SDK prints them, and objects that are a span's attributes."""
    objects = sample.objects
    if any(is_request(value) for value in objects):
        return "OTLP export requests"
    if any(_is_printed(value) for value in objects):
        return "spans as an OpenTelemetry SDK prints them"
    if objects and any(_is_bare(value) for value in objects):
        return "attributes of OpenTelemetry spans"
    return "OTLP export requests in protobuf" if not sample.values and _is_protobuf(sample) else None


def read(path: Path, options: SourceOptions) -> Iterator[Item]:
    """The spans of a file, each trace after its spans; a span that is wrong is rejected alone."""
    reading = _Reading(str(path), options)
    if _looks_binary(read_head(path, 64)):
        yield from reading.protobuf(path)
    else:
        for record in json_records(path):
            yield from [record] if isinstance(record, Rejected) else reading.json(record)
            yield from reading.window.overflow()
    yield from reading.window.flush()


def decode_request(body: bytes, *, content_type: str, options: SourceOptions) -> list[Item]:
    """The records of one export request as it is sent; a span that is wrong comes as `Rejected`, the others are read.

    Raises InputError for a body that is no request of this type.
    """
    media_type = content_type.partition(";")[0].strip().lower()
    reading = _Reading("request", options)
    rejected: list[Item] = []
    try:
        if media_type in PROTOBUF:
            for request in otlp_protobuf.requests_in(body):
                rejected += reading.protobuf_request(request)
        elif media_type == JSON:
            value = parse_json(body)
            if not isinstance(value, dict):
                raise BadRecord("not a JSON object")
            rejected += reading.request(JsonRecord(1, value, body))
        else:
            raise BadRecord(f"content-type {media_type!r} is neither {JSON} nor {PROTOBUF[0]}")
    except BadRecord as error:
        raise InputError(f"the request cannot be read: {error}") from error
    return [*reading.window.flush(), *rejected]


def rejected_spans(items: list[Item]) -> int:
    """How many spans of a request were rejected."""
    return sum(isinstance(item, Rejected) for item in items)


class _Reading:
    """The spans of one file or request."""

    def __init__(self, place: str, options: SourceOptions) -> None:
        self._place = Path(place)
        self._owner: dict[str, Any] = {"project": options.project, "source": options.source or name}
        self.window = SpanWindow(self._owner)
        self._occurrences = Occurrences()

    def json(self, record: JsonRecord) -> list[Item]:
        """What cannot be read of a record, and feedback from logs; its spans are held in the window."""
        if is_request(record.value):
            return self.request(record)
        try:
            if _is_printed(record.value):
                self.window.add(printed_span(record.value), len(record.data))
            elif "traceId" in record.value or "trace_id" in record.value:
                self.window.add(raw_span(record.value, {}), len(record.data))
            else:
                self.window.add(self._bare_span(record.value), len(record.data))
        except BadRecord as error:
            return [reject(self._place, record.line, str(error), record.data)]
        return []

    def request(self, record: JsonRecord) -> list[Item]:
        """As `json`, of an export request."""
        rejected: list[Item] = []
        spans = list(spans_in(record.value))
        for span, resource in spans:
            try:
                self.window.add(raw_span(span, resource), len(record.data) // len(spans))
            except BadRecord as error:
                rejected.append(reject(self._place, record.line, str(error), _alone(span, resource)))
        return rejected + self._logs(record)

    def _logs(self, record: JsonRecord) -> list[Item]:
        items: list[Item] = []
        others = 0
        for log, resource in logs_in(record.value):
            try:
                found = self._log(log, resource)
            except BadRecord:
                found = None
            others += found is None
            items += found or []
        if others:
            reason = f"log records that are neither an evaluation nor the messages of a span: {others}"
            items.append(reject(self._place, record.line, reason, record.data))
        return items

    def _log(self, log: JsonValue, resource: Flat) -> list[Item] | None:
        """An evaluation as feedback; a model's messages as a span below the one they are of; None: something else."""
        span, event = raw_log(log, resource)
        if event.name == EVALUATION:
            given: Feedback = evaluation(event, {**self._owner, "trace_external_id": span.trace_id,
                                                 "span_external_id": span.span_id})  # fmt: skip
            return [given]
        if event.name == DETAILS:
            kept = {key: value for key, value in event.attributes.items() if not key.startswith("gen_ai.usage.")}
            below = span._replace(span_id=span.span_id + _DETAIL_SPAN, parent_id=span.span_id, attributes=kept)
            self.window.add(below)
            return []
        return None

    def _bare_span(self, attributes: Flat) -> RawSpan:
        """A span of which there are the attributes alone: a trace of its own, known by its content."""
        if not _is_bare(attributes):
            raise BadRecord("neither an OTLP request nor a span")
        return RawSpan(self._occurrences.id_of(attributes), "1", None, None, None, None, "unset", None, attributes)

    def protobuf(self, path: Path) -> Iterator[Item]:
        """What cannot be read of a protobuf file; its spans are held in the window."""
        data = read_head(path, MAX_RECORD_BYTES + 1)
        if len(data) > MAX_RECORD_BYTES:
            yield reject(path, None, too_long("file"), data[:1000])
            return
        try:
            for number, request in enumerate(otlp_protobuf.requests_in(data), 1):
                yield from self.protobuf_request(request, number)
                yield from self.window.overflow()
        except BadRecord as error:
            yield reject(path, None, str(error), data[:1000])

    def protobuf_request(self, request: Any, number: int | None = None) -> list[Item]:
        """The spans of a request that cannot be read; the others are held in the window."""
        rejected: list[Item] = []
        size = request.ByteSize()
        for span, resource in otlp_protobuf.spans_in(request):
            try:
                self.window.add(otlp_protobuf.raw_span(span, resource), size // 100)
            except BadRecord as error:
                rejected.append(reject(self._place, number, str(error), _alone(MessageToDict(span), resource)))
        return rejected


def _alone(span: JsonValue, resource: Flat) -> str:
    """A request with this span alone, which can be read again."""
    attributes: JsonValue = [{"key": key, "value": {"stringValue": str(value)}} for key, value in resource.items()]
    return canonical_json(
        {"resourceSpans": [{"resource": {"attributes": attributes}, "scopeSpans": [{"spans": [span]}]}]}
    )


def _is_printed(value: dict[str, JsonValue]) -> bool:
    """A span as an SDK prints it; Phoenix's, which looks alike, has a `span_kind`."""
    context = value.get("context")
    return isinstance(context, dict) and "trace_id" in context and "span_kind" not in value and "parent_id" in value


def _is_bare(value: dict[str, JsonValue]) -> bool:
    """Whether its fields are attributes of a span of a language model, and none is a span's own."""
    return any(key.startswith(_PREFIXES) for key in value) and not {"context", "attributes", "type"} & value.keys()


def _looks_binary(head: bytes) -> bool:
    return head.lstrip()[:1] not in (b"{", b"[") and head[:1] in (b"\n", b"\0")


def _is_protobuf(sample: Sample) -> bool:
    if not _looks_binary(sample.head) or sample.head.startswith(b"\0\0\0\0"):
        return False
    try:
        data = read_head(sample.path, MAX_RECORD_BYTES)
        request = next(otlp_protobuf.requests_in(data), None)
        span, resource = next(otlp_protobuf.spans_in(request), (None, {})) if request else (None, {})
        return span is not None and bool(otlp_protobuf.raw_span(span, resource))
    except (BadRecord, InputError):
        return False
