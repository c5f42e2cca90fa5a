"""Corrections and a model's training rows, gathered for other systems' training files, each row with where it comes from."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pydantic import JsonValue
from sqlalchemy import Connection

from filmroom.release_folder import write_file
from models.corrections import differing
from models.steps import text_of
from models.training_formats import FORMATS, Example, dataset_card, json_lines, messages_of, table
from store.corrections import waiting
from store.failures import cases_of
from store.records import Case, Correction, CorrectionState
from store.retrains import dataset_of
from store.traces import episodes

ACCEPTED: tuple[CorrectionState, ...] = ("approved", "applied")
EVERY: tuple[CorrectionState, ...] = ("proposed", "deferred", "approved", "applied")


def corrections_as_examples(
    connection: Connection, project: str, *, states: tuple[CorrectionState, ...] = ACCEPTED
) -> Iterator[Example]:
    """Every failure of these corrections for which somebody said what would have been right."""
    for found, _, _ in waiting(connection, project, states=states):
        for case in cases_of(connection, found.cluster_id):
            example = _of_case(case, found)
            if example is not None:
                yield example


def dataset_as_examples(connection: Connection, project: str, model: str) -> Iterator[Example]:
    """The corrections in a model's training data: what it was asked, the right label, the one it answered."""
    rows = dataset_of(connection, project, model)
    known = {each.trace.id: each for each in episodes(connection, [row["trace_id"] for row in rows])}
    for row in rows:
        episode = known.get(row["trace_id"])
        if episode is None:
            continue
        span = next((each for each in episode.spans if each.id == row["span_id"]), None)
        asked = episode.trace.input if span is None or span.input is None else span.input
        served = None if span is None or span.output is None else text_of(span.output)
        yield Example(
            prompt=messages_of(asked),
            chosen=row["label"],
            rejected=served if served != row["label"] else None,
            provenance={"trace": row["trace_id"], "correction": row["correction_id"], "source": row["source"],
                        "authority": row["authority"], "at_us": row["at_us"], "state": "approved",
                        "model": model},
        )  # fmt: skip


def write_training(folder: Path, name: str, examples: list[Example]) -> dict[str, Any]:
    """Write the examples as the format `name` asks, and beside them `provenance.jsonl`, a line for each row.

    Returns `{"file", "rows", "left_out"}`; left out are examples that the format cannot say, without a rejected answer.
    """
    folder.mkdir(parents=True, exist_ok=True)
    made = [(row, example) for example in examples for row in FORMATS[name](example)]
    rows = [row for row, _ in made]
    if name == "csv":
        path, data = folder / "corrections.csv", table(rows)
    elif name == "datasets":
        (folder / "data").mkdir(exist_ok=True)
        write_file(folder / "README.md", dataset_card(folder.name, len(rows)))
        path, data = folder / "data" / "train.jsonl", json_lines(rows)
    else:
        path, data = folder / f"{name}.jsonl", json_lines(rows)
    write_file(path, data, 0o600)
    told = [{"row": at, **example.provenance} for at, (_, example) in enumerate(made)]
    write_file(folder / "provenance.jsonl", json_lines(told), 0o600)
    used = {id(example) for _, example in made}
    return {"file": str(path), "rows": len(rows), "left_out": sum(id(each) not in used for each in examples)}


def _of_case(case: Case, found: Correction) -> Example | None:
    said = [each for each in differing(case.episode, case.signals) if each.corrected]
    if not said:
        return None
    newest = said[-1]
    of_step = newest.span is not None and newest.span.input is not None
    asked = newest.span.input if of_step and newest.span is not None else case.episode.trace.input
    if text_of(asked) == "":
        return None
    feedback = newest.feedback
    provenance: dict[str, JsonValue] = {
        "trace": case.episode.trace.id,
        "correction": found.id,
        "source": feedback.principal or "unknown",
        "authority": case.failure.authority,
        "at_us": feedback.given_us,
        "state": found.state,
        "model": newest.span.name if newest.span is not None else None,
    }
    return Example(
        prompt=messages_of(asked), chosen=newest.corrected, rejected=newest.served or None, provenance=provenance
    )
