"""TensorZero: rows of its inferences, model inferences, feedback and datasets, of the database or of the API.

An inference is a trace, its episode the session. A demonstration is what should have been answered. A datapoint is evaluation
data: its output is held apart.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path

from store.sources.assembly import Draft
from store.sources.contract import BadRecord, Item, Sample, SourceOptions
from store.sources.files import reject
from store.sources.json_records import JsonRecord, read_objects
from store.sources.media import may_hold_media, shortened
from store.sources.payload import Object
from store.sources.tensorzero_feedback import feedback_kind, row_feedback
from store.sources.tensorzero_rows import datapoint_items, inference_items, model_inference_items

name = "tensorzero"


def recognise(sample: Sample) -> str | None:
    """Recognises rows by the columns that only they have."""
    for value in sample.objects:
        kind = _kind(value)
        if kind is not None:
            return f"TensorZero {kind}"
    return None


def read(path: Path, options: SourceOptions) -> Iterator[Item]:
    """The traces, spans and feedback of a file of rows."""
    owner: Draft = {"project": options.project, "source": options.source or name}
    return read_objects(path, lambda record: _items(path, record, owner))


def _kind(value: Object) -> str | None:
    """The table that a row is of."""
    if "function_name" in value and "dataset_name" in value:
        return "datapoints"
    if "function_name" in value and "variant_name" in value and "input" in value:
        return "inferences"
    if "inference_id" in value and "model_provider_name" in value:
        return "model inferences"
    kind = feedback_kind(value)
    return None if kind is None else f"{kind} feedback"


def _items(path: Path, record: JsonRecord, owner: Draft) -> Iterable[Item]:
    value = record.value
    if may_hold_media(record.data):
        short = shortened(value)
        value = short if isinstance(short, dict) else value
    kind = _kind(value)
    if kind == "datapoints":
        return datapoint_items(value, owner)
    if kind == "inferences":
        return inference_items(value, owner, lambda reason: reject(path, record.line, reason, record.data))
    if kind == "model inferences":
        return model_inference_items(value, owner)
    if kind is not None:
        return (row_feedback(value, owner),)
    raise BadRecord("a row of none of TensorZero's tables")
