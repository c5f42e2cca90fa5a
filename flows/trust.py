"""Who gave the labels, and how far each can be believed."""

from sqlalchemy import Connection

from flows.labels import label_given
from flows.training import CONFIRMED, labels_of, training_rows
from flows.workspace import Workspace
from models.trust import SourceTrust, source_trust
from store.exposures import judged
from store.records import DatasetRow
from store.trust import outcomes_of_sources


def trust(workspace: Workspace) -> tuple[SourceTrust, ...]:
    """All sources of labels and failures, doubtful ones first. Labels count whether or not they were approved."""
    base = [row for name in workspace.settings.weights for row in training_rows(workspace.settings, name)]
    with workspace.store.read() as connection:
        given = _given(connection, workspace)
        outcomes = outcomes_of_sources(connection, workspace.project)
    return source_trust([*base, *given], outcomes, seed=workspace.settings.seed)


def _given(connection: Connection, workspace: Workspace) -> list[DatasetRow]:
    """The newest label that people gave to each answer of a model of the settings."""
    models = set(workspace.settings.weights)
    known = set().union(*(labels_of(workspace.settings, name) for name in models))
    found = judged(connection, workspace.project, dated=False, limit=CONFIRMED)
    given = [(episode.trace.id, label_given(episode, models, known)) for episode, _ in reversed(found)]
    return [
        DatasetRow(
            input=each.step.input,
            label=each.label,
            source=each.principal,
            authority=workspace.is_authority(each.principal),
            trace_id=trace_id,
        )
        for trace_id, each in given
        if each is not None
    ]
