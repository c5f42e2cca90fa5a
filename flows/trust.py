"""Who gave the labels, and how far each can be believed."""

from sqlalchemy import Connection

from flows.training import CONFIRMED, training_rows
from flows.workspace import Workspace
from models.steps import label_in
from models.trust import SourceTrust, source_trust
from store.exposures import judged
from store.records import DatasetRow, Episode
from store.trust import outcomes_of_sources


def trust(workspace: Workspace) -> tuple[SourceTrust, ...]:
    """All sources of labels and failures, doubtful ones first. Labels count whether or not they were approved."""
    base = [row for name in workspace.settings.weights for row in training_rows(workspace.settings, name)]
    with workspace.store.read() as connection:
        given = _given(connection, workspace, {row.label for row in base})
        outcomes = outcomes_of_sources(connection, workspace.project)
    return source_trust([*base, *given], outcomes, seed=workspace.settings.seed)


def _given(connection: Connection, workspace: Workspace, known: set[str]) -> list[DatasetRow]:
    """The newest label that people gave to each answer of a model of the settings."""
    found = judged(connection, workspace.project, dated=False, limit=CONFIRMED)
    rows = [_row(episode, workspace, known) for episode, _ in reversed(found)]
    return [row for row in rows if row is not None]


def _row(episode: Episode, workspace: Workspace, known: set[str]) -> DatasetRow | None:
    models = set(workspace.settings.weights)
    steps = [span for span in episode.spans if span.kind == "predict" and models & {span.name, span.model}]
    # words that are right for the whole trace are no label: of a step, or equal to what a model may say, they are
    said = [each for each in episode.feedback if steps and each.corrected_output is not None
            and (each.span_external_id == steps[-1].external_id or label_in(each.corrected_output) in known)]  # fmt: skip
    label = label_in(said[-1].corrected_output) if said else None
    if not label:
        return None
    principal = said[-1].principal or episode.trace.user or "unknown"
    authority = workspace.is_authority(principal)
    return DatasetRow(
        input=steps[-1].input, label=label, source=principal, authority=authority, trace_id=episode.trace.id
    )
