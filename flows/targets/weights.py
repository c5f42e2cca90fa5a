"""Weights: approved corrections become rows of a model's training data; the retrain stage decides when to learn them."""

from collections.abc import Sequence
from typing import Any

from pydantic import JsonValue
from sqlalchemy import Connection

from flows.targets.contract import Served
from models.corrections import differing
from models.features.material import Material
from store.errors import NotAllowed
from store.records import Change, Cluster, Operation, Proposal, Release, Version, content_hash
from store.releases import put_version
from store.retrains import dataset_of, put_dataset_row, remove_dataset_rows

NEEDED = "the right label (--answer LABEL)"


def propose(cluster: Cluster, material: Material) -> Proposal:
    """One training row a case, labelled with the newest correction of the model's answer."""
    model = cluster.fingerprint.component
    reject = material.deployment.models.get(model)
    operations = []
    for case in material.cases:
        labels = [item for item in differing(case.episode, case.signals) if item.is_label]
        step = labels[-1].span if labels else None
        value: dict[str, JsonValue] = {
            "model": model,
            "label": (labels[-1].corrected or reject or "") if labels else "",
            "source": case.failure.source,
            "authority": case.failure.authority,
            "trace_id": case.failure.trace_id,
            "span_id": case.failure.span_id or "" if step is None else step.id,
            "at_us": case.episode.trace.started_us,
        }
        operations.append(Operation(target="weights", verb="dataset_add", key=case.failure.trace_id, value=value))
    missing = sum(1 for each in operations if not each.value["label"])
    label = cluster.fingerprint.corrected or reject or "the right label"
    return Proposal(
        target="weights",
        summary=f"Teach `{model}` {len(operations)} more of: {label} (answered {cluster.fingerprint.served or 'nothing'})",
        operations=tuple(operations),
        needs_answer=NEEDED if missing else None,
    )


def answered(proposal: Proposal, answer: JsonValue, *, reviewer: str) -> Proposal:
    """The rows without a label get the reviewer's."""
    if answer is None and proposal.needs_answer:
        raise NotAllowed(f"this correction needs an answer first: {proposal.needs_answer}")
    if answer is None:
        return proposal
    if not isinstance(answer, str) or not answer.strip():
        raise NotAllowed(f"the answer must be {NEEDED}")
    label = answer.strip()
    filled = [
        each.model_copy(update={"value": {**each.value, "label": label, "source": reviewer, "authority": True}})
        for each in proposal.operations
    ]
    return proposal.model_copy(update={"operations": tuple(filled), "needs_answer": None})


def apply(
    connection: Connection, current: Release, operations: Sequence[Operation], *, correction_id: str, now_us: int
) -> Served:
    """Add the rows to the model's training data. What is served does not change before a retrain passes its gate."""
    model = str(operations[0].value["model"])
    before = _dataset_version(connection, current, model, now_us)
    for operation in operations:
        value: dict[str, Any] = dict(operation.value)
        row = {**value, "project": current.project, "id": operation.key, "correction_id": correction_id, "weight": 1.0}
        put_dataset_row(connection, row)
    return Served(before, _dataset_version(connection, current, model, now_us), current)


def revert(connection: Connection, current: Release, change: Change, *, now_us: int) -> Served:
    """Take the rows out of the training data; a version that learnt from them is rolled back by its own id."""
    model = str(change.operations[0].value["model"])
    before = _dataset_version(connection, current, model, now_us)
    remove_dataset_rows(connection, current.project, change.correction_id)
    return Served(before, _dataset_version(connection, current, model, now_us), current)


def _dataset_version(connection: Connection, current: Release, model: str, now_us: int) -> str:
    rows = [[row["id"], row["label"]] for row in dataset_of(connection, current.project, model)]
    content: JsonValue = {"dataset": content_hash(sorted(rows)), "rows": len(rows)}
    value = Version(project=current.project, target="weights", model=model, content=content, created_us=now_us)
    return put_version(connection, value)
