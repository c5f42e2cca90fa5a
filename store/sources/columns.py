"""Which column of a table is which of our fields: named by the settings, else guessed by its usual names."""

from collections.abc import Mapping, Sequence

from store.errors import MappingError

USUAL_NAMES: dict[str, tuple[tuple[str, ...], ...]] = {
    "id": (("id",), ("trace_id", "request_id", "prediction_id", "inference_id", "row_id")),
    "time": (("timestamp", "time", "date", "datetime", "created_at"),),
    "user": (("user", "user_id", "customer_id"),),
    "session": (("session", "session_id", "conversation_id", "thread_id"),),
    "tenant": (("tenant", "tenant_id"),),
    "channel": (("channel",),),
    "input": (("text", "sentence", "query", "utterance", "input", "features"), ("question", "message", "prompt")),
    "output": (
        ("y_pred", "prediction", "predicted", "predicted_label", "predicted_node", "predicted_intent", "pred"),
        ("intent",),
    ),
    "confidence": (
        (
            "confidence",
            "score",
            "probability",
            "proba",
            "y_pred_proba",
            "predicted_node_score",
            "prediction_score",
        ),
    ),
    "label": (("y_true", "label", "target", "true_label", "correct_label", "actual"),),
    "comment": (("comment", "note", "reason"),),
    "reviewer": (("reviewer", "annotator", "labeller", "labeler", "reviewed_by", "labelled_by"),),
    "label_time": (("label_timestamp", "label_time", "labelled_at", "labeled_at", "reviewed_at", "feedback_time"),),
    "model": (("model", "model_name"),),
    "version": (("model_version", "app_version"),),
}
"""Our field to the names its column usually has; a later group counts only where none of the groups before it is there."""

_DECISIVE = ("id", "input", "output", "label")
"""Fields whose column must be certain; the others are left out where two columns could be meant."""

Columns = dict[str, str]
"""Our field to its column."""


def choose_columns(present: Sequence[str], mapping: Mapping[str, str]) -> Columns:
    """The column of each of our fields that the table has.

    Raises MappingError for a mapped field or column that does not exist, and where two columns could be the id, the
    input, the output or the label.

    >>> choose_columns(["sentence", "y_pred", "score"], {})
    {'input': 'sentence', 'output': 'y_pred', 'confidence': 'score'}
    """
    _check(present, mapping)
    columns = dict(mapping)
    taken = set(columns.values())
    for field in USUAL_NAMES:
        if field in columns:
            continue
        found = candidates(field, [name for name in present if name not in taken])
        if len(found) > 1 and field in _DECISIVE:
            raise MappingError(
                f"{_names(found)} could each be the {field}: say which, `columns = {{ {field} = {found[0]!r} }}`"
            )
        if len(found) == 1:
            columns[field] = found[0]
            taken.add(found[0])
    return columns


def candidates(field: str, present: Sequence[str]) -> list[str]:
    """The columns whose name is usual for `field`, whatever their case; of the first group that has any."""
    for group in USUAL_NAMES[field]:
        found = [name for name in present if name.strip().lower() in group]
        if found:
            return found
    return []


def _check(present: Sequence[str], mapping: Mapping[str, str]) -> None:
    for field, column in mapping.items():
        if field not in USUAL_NAMES:
            raise MappingError(f"columns: there is no field {field!r}; the fields are {', '.join(USUAL_NAMES)}")
        if present.count(column) > 1:
            raise MappingError(
                f"columns: {field} is {column!r}, and the file has {present.count(column)} columns of that name"
            )
        if column not in present:
            raise MappingError(
                f"columns: {field} is {column!r}, which the file does not have; it has {_names(present)}"
            )


def _names(columns: Sequence[str]) -> str:
    shown = ", ".join(repr(name) for name in columns[:40])
    return shown if len(columns) <= 40 else f"{shown} and {len(columns) - 40} more"
