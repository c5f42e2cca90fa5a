"""Two versions side by side: what one says and the other does not, and for models which rows they answer differently."""

import json
from collections.abc import Sequence
from typing import Any

from flows.champion import load_model
from flows.serving import artifact_of
from flows.training import labelled, training_rows
from flows.workspace import Workspace
from models.dataset import text_of
from store.errors import NotAllowed
from store.records import DatasetRow, Record, Version
from store.releases import version

SHOWN = 50
"""Rows named of each kind."""
MOST_ROWS = 5_000
"""Newest labelled rows that are answered by both."""


class RowChange(Record):
    """One labelled row that two models answer differently."""

    text: str
    label: str
    """What is right."""
    before: str | None
    """None: turned away as out of scope."""
    after: str | None
    trace_id: str | None
    """None: a row of the base set."""


class Comparison(Record):
    """What changes from one version to another of the same target."""

    before: str
    after: str
    target: str
    model: str | None = None
    added: tuple[dict[str, Any], ...] = ()
    """Entries that only `after` has, or has otherwise."""
    removed: tuple[dict[str, Any], ...] = ()
    rows: int | None = None
    """Labelled rows both models answered; None: these are no models."""
    newly_right: int = 0
    newly_wrong: int = 0
    right: tuple[RowChange, ...] = ()
    """Examples of newly right rows."""
    wrong: tuple[RowChange, ...] = ()


def compare(workspace: Workspace, before: str, after: str) -> Comparison:
    """Compare two versions. Raises NotFound, and NotAllowed where they are not of the same target and model."""
    with workspace.store.read() as connection:
        first, second = version(connection, before), version(connection, after)
    if (first.target, first.model) != (second.target, second.model) or first.project != workspace.project:
        raise NotAllowed(f"{before} is a version of {_of(first)}, {after} of {_of(second)}: they cannot be compared")
    if first.target == "weights" and artifact_of_maybe(first) and artifact_of_maybe(second):
        return _models(workspace, first, second)
    added, removed = _entries(second, first), _entries(first, second)
    return Comparison(before=before, after=after, target=first.target, model=first.model, added=added, removed=removed)


def artifact_of_maybe(value: Version) -> str | None:
    """The model file of a version; None: it is a state of training data."""
    content = value.content
    return artifact_of(value) if isinstance(content, dict) and "artifact" in content else None


def _models(workspace: Workspace, first: Version, second: Version) -> Comparison:
    name = str(first.model)
    rows = _labelled_rows(workspace, name)
    texts = [text_of(row) for row in rows]
    old, new = (
        load_model(workspace.artifacts, artifact_of(each)).predict(texts) if texts else [] for each in (first, second)
    )
    reject = workspace.settings.weights[name].out_of_scope if name in workspace.settings.weights else None
    right: list[RowChange] = []
    wrong: list[RowChange] = []
    for row, text, was, now in zip(rows, texts, old, new, strict=True):
        before, after = (each.answer if each.answer is not None else reject for each in (was, now))
        if (before == row.label) == (after == row.label):
            continue
        change = RowChange(text=text[:400], label=row.label, before=before, after=after, trace_id=row.trace_id)
        (right if after == row.label else wrong).append(change)
    return Comparison(before=first.id, after=second.id, target="weights", model=name, rows=len(rows),
                      newly_right=len(right), newly_wrong=len(wrong), right=tuple(right[:SHOWN]),
                      wrong=tuple(wrong[:SHOWN]))  # fmt: skip


def _labelled_rows(workspace: Workspace, name: str) -> list[DatasetRow]:
    """Corrections and confirmed answers, then the base set."""
    if name not in workspace.settings.weights:
        return []
    with workspace.store.read() as connection:
        said = [each.row for each in labelled(connection, workspace, name)]
    return [*said, *training_rows(workspace.settings, name)][:MOST_ROWS]


def _entries(having: Version, lacking: Version) -> tuple[dict[str, Any], ...]:
    """The entries of one version that the other does not have word for word."""
    known = {_spelt(section, entry) for section, entry in _listed(lacking)}
    return tuple(
        {"section": section, **entry} for section, entry in _listed(having) if _spelt(section, entry) not in known
    )


def _listed(value: Version) -> Sequence[tuple[str, dict[str, Any]]]:
    content = value.content if isinstance(value.content, dict) else {}
    found: list[tuple[str, dict[str, Any]]] = []
    for section, entries in content.items():
        if isinstance(entries, list):
            found += [(section, dict(each)) for each in entries if isinstance(each, dict)]
        else:
            found.append((section, {"value": entries}))
    return found


def _spelt(section: str, entry: dict[str, Any]) -> str:
    return section + json.dumps(entry, sort_keys=True, default=str)


def _of(value: Version) -> str:
    return f"{value.target} {value.model}" if value.model else value.target
