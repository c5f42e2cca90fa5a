"""What a retrain would learn from: the champion's rows, the labelled rows since, and how earlier candidates fared."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile

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
    evaluations: tuple[Retrain, ...]
    """All evaluations of this model, newest first."""

    @property
    def rows(self) -> list[DatasetRow]:
        return [each.row for each in self.new]

    @property
    def served(self) -> list[str | None]:
        return [each.served for each in self.new]

    @property
    def since_promotion(self) -> list[Retrain]:
        """Evaluations since the live version was promoted, newest first."""
        return list(takewhile(lambda each: each.decision not in ("promoted", "rolled_back"), self.evaluations))

    @property
    def since_training(self) -> list[Retrain]:
        """Evaluations since anything was trained, newest first."""
        return list(takewhile(lambda each: each.decision == "skipped", self.evaluations))

    @property
    def refused(self) -> list[Retrain]:
        """Candidates that the gate refused since the live version was promoted, newest first."""
        return [each for each in self.since_promotion if each.decision == "refused"]

    @property
    def unseen(self) -> list[Labelled]:
        """Rows that no refused candidate has learnt from."""
        seen = {trace_id for each in self.refused for trace_id in each.trace_ids}
        return [each for each in self.new if each.row.trace_id not in seen]

    @property
    def barred(self) -> list[str]:
        arms = [each.arm for each in self.refused]
        return sorted({arm for arm in arms if arm is not None and arms.count(arm) >= BARRED_AFTER})


def gather(workspace: Workspace, name: str) -> TrainingData:
    with workspace.store.read() as connection:
        live = live_version(connection, workspace.project, name)
        rows = labelled(connection, workspace, name)
        evaluations = retrains_of(connection, workspace.project, name)
    return assemble(workspace, name, live, rows, evaluations)


def assemble(
    workspace: Workspace, name: str, live: Version | None, rows: Sequence[Labelled], evaluations: Sequence[Retrain]
) -> TrainingData:
    """Parts the rows that the live version has learnt from those it has not, and holds the suspects among the latter."""
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
        evaluations=tuple(evaluations),
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
