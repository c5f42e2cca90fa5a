"""What a model can learn from: its base set, the corrections approved for it, and the answers people confirmed."""

from typing import Literal

from sqlalchemy import Connection

from flows.labels import principal_of, step_of
from flows.training_files import rows_of
from flows.workspace import Workspace
from models.inputs import input_key
from models.steps import label_in
from store.changes import applied_times
from store.corrections import signers_of
from store.errors import SettingsError
from store.exposures import judged
from store.records import DatasetRow, Record, Span
from store.retrains import dataset_of
from store.settings import Settings
from store.settings_weights import WeightsSection
from store.traces import episodes

CONFIRMED = 20_000
"""Newest judged traces that are searched for confirmed answers."""


class Labelled(Record):
    """One labelled input beside what was answered then."""

    row: DatasetRow
    served: str | None
    """The logged answer; None: it was turned away as out of scope."""
    failed: bool
    known_us: int = 0
    """When the label came to be known here: its correction was approved, or its feedback given."""


def training_rows(settings: Settings, name: str) -> tuple[DatasetRow, ...]:
    """The base set of a model without its sealed cases; empty without a training file.

    Raises SettingsError or MappingError, naming file and column.
    """
    rows = case_rows(settings, name, "training")
    apart = _sealed(settings, name)
    return tuple(row for row in rows if input_key(row) not in apart) if apart else rows


def case_rows(settings: Settings, name: str, kind: Literal["training", "golden", "sealed"]) -> tuple[DatasetRow, ...]:
    """The rows of one of the model's files; empty where the settings name none. Raises as `training_rows`."""
    section = settings.weights[name]
    given: str | None = getattr(section, kind)
    if given is None:
        return ()
    path = settings.home / given
    if not path.is_file():
        raise SettingsError(f"[weights.{name}] {kind}: {path}: no such file")
    stamp = path.stat()
    columns = section.task == "tabular", section.input, section.inputs, section.output
    return rows_of(path, stamp.st_mtime_ns, stamp.st_size, *columns)


def labels_of(settings: Settings, name: str) -> set[str]:
    """The labels that the model may say, as far as its base set and settings tell."""
    outside = settings.weights[name].out_of_scope
    return {row.label for row in training_rows(settings, name)} | ({outside} if outside else set())


def _sealed(settings: Settings, name: str) -> set[str]:
    return {input_key(row) for row in case_rows(settings, name, "sealed")}


def labelled(connection: Connection, workspace: Workspace, name: str) -> tuple[Labelled, ...]:
    """Corrections approved for the model and answers confirmed by feedback, oldest first; sealed inputs are left out.

    Whether a source is an authority is what the settings say now; an answer that a reviewer signed stays one.
    """
    section = workspace.settings.weights[name]
    corrected = {row["trace_id"]: row for row in dataset_of(connection, workspace.project, name)}
    known = {episode.trace.id: episode for episode in episodes(connection, list(corrected))}
    signers = signers_of(connection, workspace.project)
    approved_us = applied_times(connection, workspace.project, "weights")
    found = []
    for trace_id, row in corrected.items():
        step = (
            next((span for span in known[trace_id].spans if span.id == row["span_id"]), None)
            if trace_id in known
            else None
        )
        if step is None:
            continue
        learnt = DatasetRow(
            input=step.input,
            label=row["label"],
            source=row["source"],
            authority=workspace.is_authority(row["source"])
            or (row["authority"] and (row["correction_id"], row["source"]) in signers),
            trace_id=trace_id,
            correction_id=row["correction_id"],
            at_us=row["at_us"],
            weight=row["weight"],
        )
        known_us = approved_us.get(row["correction_id"], 0)
        found.append(Labelled(row=learnt, served=_served(step, section), failed=True, known_us=known_us))
    found += _confirmed(connection, workspace, name, section, skip=set(corrected))
    apart = _sealed(workspace.settings, name)
    known_rows = [each for each in found if not apart or input_key(each.row) not in apart]
    return tuple(sorted(known_rows, key=lambda each: (each.row.at_us or 0, each.row.trace_id or "")))


def _confirmed(
    connection: Connection, workspace: Workspace, name: str, section: WeightsSection, *, skip: set[str]
) -> list[Labelled]:
    """Answers of the model that feedback says were right: they are labels as well."""
    found = []
    for episode, failed_in in judged(connection, workspace.project, dated=False, limit=CONFIRMED):
        if episode.trace.id in skip or failed_in is not None:
            continue
        step = step_of(episode, {name})
        said = [each for each in episode.feedback if each.corrected_output is not None or each.label is not None]
        label = None if step is None or not said else _served(step, section) or section.out_of_scope
        if step is None or label is None:
            continue
        principal = principal_of(said[-1], episode)
        row = DatasetRow(
            input=step.input,
            label=label,
            source=principal,
            authority=workspace.is_authority(principal),
            trace_id=episode.trace.id,
            at_us=episode.trace.started_us,
        )
        known_us = said[-1].given_us or episode.trace.started_us or 0
        found.append(Labelled(row=row, served=_served(step, section), failed=False, known_us=known_us))
    return found


def _served(step: Span, section: WeightsSection) -> str | None:
    label = label_in(step.output)
    return None if not label or label == section.out_of_scope else label
