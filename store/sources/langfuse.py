"""Langfuse: downloads of the interface, pages of the API, exports to a bucket, batch exports, SDK scores and events.

Observations come one by one in exports; those of a trace are brought together, so that its root, its tool calls and its
input and output are found. Scores may be in a file of their own.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path

from pydantic import JsonValue

from store.records import Rejected
from store.sources.assembly import Draft, Refuse, assembled, out_of_spans
from store.sources.contract import BadRecord, Item, Sample, SourceOptions
from store.sources.fields import as_id
from store.sources.files import reject
from store.sources.grouping import Grouping, read_grouped
from store.sources.json_records import JsonRecord, take_sample
from store.sources.langfuse_rows import (
    KINDS,
    NOT_SCORES,
    in_snake_case,
    is_camel_case,
    observation_draft,
    trace_draft,
    trace_id_of,
    trace_of_observations,
)
from store.sources.langfuse_scores import TYPES, column_scores, score_feedback
from store.sources.media import may_hold_media, shortened
from store.sources.parquet import names_in, parquet_rows
from store.sources.payload import Object, packed
from store.sources.rows import header_of, read_rows

name = "langfuse"

_OURS = ("project_id", "bookmarked", "public", "environment", "html_path")
_ON_TRACES = ("tags", "release", "metadata", "latency", "total_cost", "observation_count")
_ON_OBSERVATIONS = ("project_id", "level", "parent_observation_id", "environment", "provided_model_name")
_TRACE_CONTEXT = ("trace_name", "trace_tags", "is_root_observation", "is_app_root", "user_id", "session_id")


def recognise(sample: Sample) -> str | None:
    """Recognises traces, observations, scores, pages of them, and the SDK's events."""
    for value in sample.objects:
        found = _shape(value)
        if found is not None:
            return f"Langfuse {found}"
    if (names := names_in(sample)) and (table := _table(dict.fromkeys(names), by_names=True)):
        return f"a Langfuse table of {table}"
    if not sample.values and (header := header_of(sample)):
        row = in_snake_case(dict.fromkeys(column.strip() for column in header))
        table = _table(row, by_names=True)
        return f"a Langfuse table of {table}" if table else None
    return None


def read(path: Path, options: SourceOptions) -> Iterator[Item]:
    """The traces, spans and scores of a file; the observations of one trace are put together before they are read."""
    reading = _Reading(options, str(path))
    grouping = Grouping(alone=reading.alone, key_of=_key_of, together=reading.together)
    yield from read_grouped(path, _records(path), grouping)


def items_of_page(
    page: JsonValue, options: SourceOptions, *, place: str = "langfuse", whole: bool = False
) -> list[Item]:
    """The records of one page of the API: traces, observations of version 2, scores of version 3, or one trace.

    Observations make a trace that is put together again when more of them come; with `whole` a trace as it is, for pages
    that hold all observations of their traces. What cannot be read comes as `Rejected` with `place` as its path.
    """
    reading = _Reading(options, place, whole=whole)
    rows = page.get("data", page) if isinstance(page, dict) else page
    items: list[Item] = []
    groups: dict[str, list[JsonRecord]] = {}
    for number, row in enumerate(rows if isinstance(rows, list) else [rows], 1):
        data = packed(row)
        try:
            if not isinstance(row, dict):
                raise BadRecord("not a JSON object")
            record = JsonRecord(number, row, data)
            alone = reading.alone(record)
            if alone is None:
                groups.setdefault(_key_of(record), []).append(record)
            else:
                items += alone
        except BadRecord as error:
            items.append(reject(Path(place), number, str(error), data))
    for group in groups.values():
        try:
            items += reading.together(group)
        except BadRecord as error:
            items.append(reject(Path(place), group[0].line, str(error), b"\n".join(each.data for each in group)))
    return items


def _records(path: Path) -> Iterator[JsonRecord | Rejected]:
    """The JSON objects of a file; a row of CSV as an object whose empty cells are null, one of Parquet as it is."""
    if names_in(sample := take_sample(path)):
        yield from parquet_rows(path)
        return
    for row in read_rows(path, sample):
        if isinstance(row, Rejected):
            yield row
            continue
        if row.data.lstrip()[:1] == b"{":
            yield JsonRecord(row.line, row.cells, row.data)
            continue
        cells = {key: value or None for key, value in row.cells.items()}
        yield JsonRecord(row.line, cells, packed(cells))


def _shape(value: Object) -> str | None:
    """What an object is: a trace with observations, a page, events, or a row of one of the three tables."""
    trace = value.get("trace")
    if isinstance(trace, dict) and isinstance(value.get("observations"), list) and "id" in trace:
        return "trace of the interface"
    if isinstance(value.get("observations"), list) and "timestamp" in value and "id" in value:
        return "trace of the API"
    page = value.get("data")
    if isinstance(page, list) and "meta" in value and page and isinstance(page[0], dict):
        inner = _shape(page[0])
        return f"page: {inner}" if inner else None
    if _events(value):
        return "events of the SDK"
    table = _table(in_snake_case(value))
    return f"rows of {table}" if table else None


def _table(row: Object, *, by_names: bool = False) -> str | None:
    """The table a row in snake_case is of; `by_names` where only the names of the columns are known."""
    if {"type", "start_time"} <= row.keys() and {"trace_id", "id"} & row.keys():
        known = by_names or str(row["type"]).upper() in KINDS
        return "observations" if known and any(key in row for key in _ON_OBSERVATIONS) else None
    if "name" in row and "data_type" in row and ("value" in row or "string_value" in row):
        of = {"trace_id", "session_id", "subject", "dataset_run_id", "source"} & row.keys()
        return "scores" if of and (by_names or row["data_type"] in TYPES) else None
    if {"id", "timestamp", "name"} <= row.keys() and "trace_id" not in row:
        ours = any(key in row for key in _OURS) and any(key in row for key in _ON_TRACES)
        return "traces" if ours and {"user_id", "session_id"} & row.keys() else None
    return None


def _events(value: Object) -> list[Object]:
    """The events of a batch that an older SDK sent; empty where it is none."""
    batch = value.get("batch")
    events = [event for event in batch if isinstance(event, dict)] if isinstance(batch, list) else []
    kinds = ("-create", "-update")
    ours = [event for event in events if str(event.get("type")).endswith(kinds) and isinstance(event.get("body"), dict)]
    return ours if len(ours) == len(events) else []


def _key_of(record: JsonRecord) -> str:
    return trace_id_of(in_snake_case(record.value))


class _Reading:
    """Makes our records of Langfuse's; remembers which traces had a row of their own."""

    def __init__(self, options: SourceOptions, place: str, *, whole: bool = False) -> None:
        self._owner: Draft = {"project": options.project, "source": options.source or name}
        self._place = place
        self._whole = whole
        self._told: set[int] = set()
        """Hashes of the traces that came as such: 1 million take about 60 MB."""

    def alone(self, record: JsonRecord) -> Iterable[Item] | None:
        value = _light(record)
        trace = value.get("trace")
        if isinstance(trace, dict) and isinstance(value.get("observations"), list):
            return self._trace(trace, _objects(value["observations"]), record)
        if isinstance(value.get("observations"), list) and "timestamp" in value:
            return self._trace(value, _objects(value["observations"]), record)
        if isinstance(value.get("data"), list):
            return self._page(_objects(value["data"]), record)
        if events := _events(value):
            return self._sent(events, record)
        row = in_snake_case(value)
        table = _table(row)
        if table == "scores":
            return [score_feedback(row, self._owner)]
        if table == "observations":
            return None
        if table == "traces":
            items = self._trace(row, [], record)
            scores = column_scores(row, str(row["id"]), None, self._owner, NOT_SCORES) if is_camel_case(value) else []
            return [*items, *scores]
        raise BadRecord("neither a trace, an observation nor a score of Langfuse")

    def together(self, records: list[JsonRecord]) -> list[Item]:
        rows = [in_snake_case(_light(record)) for record in records]
        told = _mark(trace_id_of(rows[0])) in self._told
        camel = any(is_camel_case(record.value) for record in records)
        alone = told or not (camel or any(_has_context(row) for row in rows))
        items = self._observed(rows, records[0], alone=alone)
        for row in rows if camel else ():
            items += column_scores(row, trace_id_of(row), as_id(row.get("id")), self._owner, NOT_SCORES)
        return items

    def _observed(self, rows: list[Object], record: JsonRecord, *, alone: bool) -> list[Item]:
        """The spans of one trace, and the trace itself unless they are to stand `alone`."""
        apart: Object = {}
        steps = [observation_draft(row, apart) for row in rows]
        refuse = self._refuse(record)
        if alone:
            return assembled(None, steps, self._owner, refuse)
        claims = trace_of_observations(rows, apart)
        if self._whole:
            trace = claims | {"external_id": steps[0]["trace_external_id"], "held_apart": apart}
            return assembled(trace, steps, self._owner, refuse)
        return out_of_spans(claims, steps, self._owner, refuse, apart)

    def _trace(self, trace: Object, observations: list[Object], record: JsonRecord) -> list[Item]:
        row, apart = in_snake_case(trace), dict[str, JsonValue]()
        draft = trace_draft(row, apart)
        rows = [in_snake_case(each) | {"trace_id": row["id"]} for each in observations]
        steps = [observation_draft(each, apart) for each in rows]
        self._told.add(_mark(draft["external_id"]))
        items = assembled(draft | {"held_apart": apart}, steps, self._owner, self._refuse(record))
        scores = [*_objects(row.get("scores")), *_objects(row.get("corrections"))]
        for each in scores:
            try:
                items.append(score_feedback({"trace_id": row["id"]} | in_snake_case(each), self._owner))
            except BadRecord as error:
                items.append(self._refuse(record)(f"score {each.get('id')!r}: {error}"))
        return items

    def _page(self, rows: list[Object], record: JsonRecord) -> list[Item]:
        items: list[Item] = []
        groups: dict[str, list[Object]] = {}
        for row in rows:
            inner = JsonRecord(record.line, row, packed(row))
            try:
                alone = self.alone(inner)
            except BadRecord as error:
                items.append(reject(Path(self._place), record.line, str(error), inner.data))
                continue
            if alone is None:
                groups.setdefault(_key_of(inner), []).append(in_snake_case(row))
            else:
                items += alone
        for group in groups.values():
            items += self._observed(group, record, alone=False)
        return items

    def _sent(self, events: list[Object], record: JsonRecord) -> list[Item]:
        """The bodies of the SDK's events: a trace, its observations, which may come in pieces, and scores."""
        bodies = sorted(events, key=lambda event: str(event.get("timestamp")))
        traces: dict[str, Object] = {}
        observations: dict[str, Object] = {}
        items: list[Item] = []
        for event in bodies:
            body = in_snake_case(_body(event))
            kind = str(event["type"]).rsplit("-", 1)[0]
            if kind == "score":
                items.append(score_feedback(body, self._owner))
                continue
            known = traces if kind == "trace" else observations
            body.setdefault("type", kind.upper())
            known.setdefault(str(body.get("id")), {}).update({k: v for k, v in body.items() if v is not None})
        groups: dict[str, list[Object]] = {}
        for row in observations.values():
            groups.setdefault(trace_id_of(row), []).append(row)
        for id_, row in traces.items():
            items += self._trace(row, groups.pop(id_, []), record)
        for group in groups.values():
            items += self._observed(group, record, alone=False)
        return items

    def _refuse(self, record: JsonRecord) -> Refuse:
        return lambda reason: reject(Path(self._place), record.line, reason, record.data)


def _body(event: Object) -> Object:
    body = event["body"]
    return body if isinstance(body, dict) else {}


def _has_context(row: Object) -> bool:
    return any(key in row for key in _TRACE_CONTEXT)


def _light(record: JsonRecord) -> Object:
    """The record, pictures in it as their digests."""
    if not may_hold_media(record.data):
        return record.value
    value = shortened(record.value)
    return value if isinstance(value, dict) else record.value


def _objects(value: JsonValue) -> list[Object]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def _mark(trace_id: str) -> int:
    return hash(trace_id)
