"""Weights: approved corrections become rows of a model's training data; the retrain stage decides when to learn them."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import JsonValue
from sqlalchemy import Connection

from flows.labels import step_of
from flows.targets.contract import Served
from models.corrections import differing
from models.features.material import Material
from models.steps import label_in
from store.errors import NotAllowed
from store.records import Case, Change, Cluster, Operation, Proposal, Release, Version, content_hash
from store.releases import put_version
from store.retrains import dataset_of, put_dataset_row, remove_dataset_rows

NEEDED = "the right label (--answer LABEL)"
SHOWN = 3
"""Labels that a summary names."""


def propose(cluster: Cluster, material: Material) -> Proposal:
    """One training row a case, labelled with the newest correction of the model's answer; nobody's words become a label."""
    model = model_of(cluster, material)
    operations = tuple(_row(case, model, material.deployment.models) for case in material.cases)
    missing = sum(1 for each in operations if not each.value["label"])
    return Proposal(
        target="weights",
        summary=_summary(model, operations),
        operations=operations,
        needs_answer=NEEDED if missing else None,
    )


def model_of(cluster: Cluster, material: Material) -> str:
    """The model that failed: the failing step's, else the one of the settings that answered in the newest case that has one."""
    models = material.deployment.models
    if cluster.fingerprint.component in models:
        return cluster.fingerprint.component
    steps = (step_of(case.episode, models) for case in material.cases)
    names = (name for step in steps if step is not None for name in (step.model, step.name) if name in models)
    return next((name for name in names if name), cluster.fingerprint.component)


def _row(case: Case, model: str, models: Mapping[str, str | None]) -> Operation:
    labels = [item for item in differing(case.episode, case.signals) if item.is_label]
    step = labels[-1].span if labels else step_of(case.episode, {model})
    reject = models.get(model) or ""
    value: dict[str, JsonValue] = {
        "model": model,
        "label": (labels[-1].corrected or reject) if labels else "",
        "served": "" if step is None else label_in(step.output) or reject,
        "source": case.failure.source,
        "authority": case.failure.authority,
        "trace_id": case.failure.trace_id,
        "span_id": case.failure.span_id or "" if step is None else step.id,
        "at_us": case.episode.trace.started_us,
    }
    return Operation(target="weights", verb="dataset_add", key=case.failure.trace_id, value=value)


def _summary(model: str, operations: Sequence[Operation]) -> str:
    labels = [str(each.value["label"]) for each in operations]
    known = [label for label in labels if label]
    names = ", ".join(name for name, _ in Counter(known).most_common(SHOWN))
    served = " or ".join(
        name for name, _ in Counter(str(each.value["served"]) for each in operations).most_common(SHOWN)
    )
    parts = [f"{len(known)} more of: {names}"] if known else []
    if len(known) < len(labels):
        parts.append(f"{len(labels) - len(known)} more of the right label, which nobody said yet")
    return f"Teach `{model}` {' and '.join(parts)} (answered {served or 'nothing'})"


def answered(proposal: Proposal, answer: JsonValue, *, reviewer: str) -> Proposal:
    """The rows without a label get the reviewer's."""
    if answer is None and proposal.needs_answer:
        raise NotAllowed(f"this correction needs an answer first: {proposal.needs_answer}")
    if answer is None:
        return proposal
    if not isinstance(answer, str) or not answer.strip():
        raise NotAllowed(f"the answer must be {NEEDED}")
    label = answer.strip()
    if all(str(each.value.get("served") or "").casefold() == label.casefold() for each in proposal.operations):
        model = proposal.operations[0].value["model"]
        raise NotAllowed(
            f"`{label}` is what `{model}` answered there, and that was called wrong: give another label, or reject the correction"
        )
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
        value: dict[str, Any] = {name: each for name, each in operation.value.items() if name != "served"}
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
