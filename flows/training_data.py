"""What a retrain would learn from: the champion's rows, the labelled rows since, and how earlier candidates fared."""

from collections.abc import Sequence
from dataclasses import dataclass

from flows.champion import task_of
from flows.serving import live_version
from flows.training import Labelled, labelled, training_rows
from flows.workspace import Workspace
from models.arms import Task
from models.dataset import prepare, suspect_labels
from store.records import DatasetRow, Retrain, Version
from store.retrains import retrains_of

BARRED_AFTER = 2
"""Refusals after which an arm is not tried again until a promotion."""


@dataclass(frozen=True)
class TrainingData:
    """Everything an evaluation looks at."""

    name: str
    task: Task
    live: Version | None
    base: tuple[DatasetRow, ...]
    """Rows the champion was trained on: the base set and what was promoted since."""
    new: tuple[Labelled, ...]
    """Labelled rows that are still to be learnt, suspects and rows over a cap left out."""
    held: int
    """Rows held back as suspect or over a cap."""
    digest: str
    history: tuple[Retrain, ...]
    """Evaluations since the last promotion, newest first."""

    @property
    def rows(self) -> list[DatasetRow]:
        return [each.row for each in self.new]

    @property
    def served(self) -> list[str | None]:
        return [each.served for each in self.new]

    @property
    def refused(self) -> list[Retrain]:
        return [each for each in self.history if each.decision == "refused"]

    @property
    def barred(self) -> list[str]:
        arms = [each.arm for each in self.refused]
        return sorted({arm for arm in arms if arm is not None and arms.count(arm) >= BARRED_AFTER})


def gather(workspace: Workspace, name: str) -> TrainingData:
    with workspace.store.read() as connection:
        live = live_version(connection, workspace.project, name)
        rows = labelled(connection, workspace, name)
        evaluations = retrains_of(connection, workspace.project, name)
    learnt = _learnt(live, evaluations)
    base = list(training_rows(workspace.settings, name)) + [each.row for each in rows if each.row.trace_id in learnt]
    fresh = [each for each in rows if each.row.trace_id not in learnt]
    together = [*base, *(each.row for each in fresh)]
    suspects = [i - len(base) for i in suspect_labels(together, seed=workspace.settings.seed) if i >= len(base)]
    policy = workspace.policy
    capped = policy.profile != "benchmark"
    training = prepare(
        [each.row for each in fresh],
        cap_per_source=policy.cap_per_source if capped else None,
        max_source_share=policy.evidence.max_source_share,
        suspects=suspects,
    )
    used = [each for each, entry in zip(fresh, training.entries, strict=True) if entry.used]
    return TrainingData(
        name=name,
        task=task_of(workspace, name),
        live=live,
        base=tuple(base),
        new=tuple(used),
        held=len(fresh) - len(used),
        digest=training.digest,
        history=_since_promotion(evaluations),
    )


def _learnt(live: Version | None, evaluations: Sequence[Retrain]) -> set[str]:
    """Traces that the live version and its ancestors have learnt from."""
    made = {each.version: each for each in evaluations if each.decision == "promoted"}
    learnt: set[str] = set()
    version = None if live is None else live.id
    while version in made:
        promoted = made.pop(version)
        learnt.update(promoted.trace_ids)
        version = promoted.parent
    return learnt


def _since_promotion(evaluations: Sequence[Retrain]) -> tuple[Retrain, ...]:
    found = []
    for each in evaluations:
        if each.decision in ("promoted", "rolled_back"):
            break
        found.append(each)
    return tuple(found)
