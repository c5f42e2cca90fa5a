"""The label that people gave to an answer of a model: of its step, or words that the model itself may say."""

from collections.abc import Collection

from sqlalchemy import Connection

from models.steps import label_in
from store.exposures import predicting_steps
from store.records import Episode, Feedback, Record, Span

MOST_NAMED = 10
"""Steps that a refusal lists."""


class GivenLabel(Record):
    """What would have been right for one step of a model, and who said so."""

    step: Span
    label: str
    principal: str


def step_of(episode: Episode, models: Collection[str]) -> Span | None:
    """The last prediction that one of these models made in the trace."""
    steps = [span for span in episode.spans if span.kind == "predict" and {span.name, span.model} & set(models)]
    return steps[-1] if steps else None


def label_given(episode: Episode, models: Collection[str], known: Collection[str]) -> GivenLabel | None:
    """The newest label of the trace's last prediction by one of `models`; None without one.

    Words that are right for the whole trace are no label, unless they are one of the labels `known`.
    """
    step = step_of(episode, models)
    if step is None:
        return None
    for said in reversed(episode.feedback):
        label = label_in(said.corrected_output)
        if label and (said.span_external_id == step.external_id or label in known):
            return GivenLabel(step=step, label=label, principal=principal_of(said, episode))
    return None


def principal_of(said: Feedback, episode: Episode) -> str:
    """Who gave a feedback: its principal, else the trace's user, else `unknown`."""
    return said.principal or episode.trace.user or "unknown"


def unknown_step(connection: Connection, project: str, name: str) -> str | None:
    """Why nothing is known of a model that the settings name, where the log has the answers of others alone; else None."""
    known = predicting_steps(connection, project)
    if not known or any(name in step for step in known):
        return None
    named = sorted({step or model or "" for step, model in known} - {""})
    return (
        f"no step of the log is named {name}; there are {', '.join(named[:MOST_NAMED]) or 'only steps without a name'}"
    )
