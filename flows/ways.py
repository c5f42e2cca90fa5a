"""The ways to yes as they stand now: what a decision or a retrain names, beside what waits and what nobody labelled yet."""

from sqlalchemy import Connection

from flows.workspace import Workspace
from models.corrections import meaning_of, right_answer
from models.way import LABELS, Answered, minutes, ways_to_train
from store.records import Episode, Retrain, Route, Way
from store.retrains import dataset_of
from store.traces import episodes
from store.ways import unlabelled_answers, waiting_for


def ways_of(connection: Connection, project: str, decided: Route | None) -> list[Way]:
    """The ways of a route, with the corrections that wait for a verdict wherever one asks for decided clusters."""
    return [_with_waiting(connection, project, each, decided.correction_id) for each in decided.ways] if decided else []


def ways_of_retrain(connection: Connection, workspace: Workspace, row: Retrain) -> list[Way]:
    """What would let this retrain happen or pass, with the answers of its model to label; empty where it was made."""
    if row.decision not in ("skipped", "refused"):
        return []
    rows = unlabelled_answers(connection, workspace.project, row.model)
    asked = [each.trace_id for each in rows if each.said][: 10 * LABELS]
    known = {episode.trace.id for episode in episodes(connection, asked) if _is_labelled(workspace, episode)}
    unread = {each.trace_id for each in rows if each.said} - set(asked)
    answers = [
        Answered(trace_id=each.trace_id, source=each.user or "unknown", confidence=each.confidence, failed=each.failed)
        for each in rows
        if each.trace_id not in known | unread
    ]
    sources = {str(each["source"]) for each in dataset_of(connection, workspace.project, row.model)}
    return list(ways_to_train(row, answers, sources=sorted(sources), policy=workspace.policy))


def _with_waiting(connection: Connection, project: str, way: Way, correction_id: str) -> Way:
    if way.place is None:
        return way
    waiting = waiting_for(connection, project, way.place, limit=min(way.count, LABELS) + 1)
    others = tuple(each for each in waiting if each != correction_id)[: min(way.count, LABELS)]
    return way.model_copy(update={"corrections": others, "minutes": minutes(len(others))})


def _is_labelled(workspace: Workspace, episode: Episode) -> bool:
    meanings = workspace.settings.feedback
    return any(right_answer(said, meaning_of(said, meanings)) is not None for said in episode.feedback)
