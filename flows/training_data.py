"""What a retrain would learn from: the champion's rows, the labelled rows since, and how earlier candidates fared."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile

from flows.champion import arm_of, task_of
from flows.champion_elsewhere import as_answered_today
from flows.lineage import learnt_traces, taken_back
from flows.serving import live_version
from flows.training import Labelled, labelled, training_rows
from flows.workspace import Workspace
from models.arms import Task
from models.dataset import prepare, suspect_labels
from models.fitting import BASE, DEFAULT_ARMS, refitting
from models.patch import PATCH
from store.records import DatasetRow, Retrain, Version
from store.retention import DAY_US
from store.retrains import retrains_of

SUSPECT = "label held as suspect"
CAPPED = "over the cap of its source"
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
    """Labels held back as suspect, which a person is asked to look at."""
    capped: int
    """Labels left out because their source has given enough."""
    digest: str
    evaluations: tuple[Retrain, ...]
    """All evaluations of this model, newest first."""
    labelled: tuple[Labelled, ...]
    """All labelled rows, oldest first: learnt, to be learnt and left out."""
    spent: frozenset[str | None] = frozenset()
    """Traces that are learnt again with the next candidate and ask for none: a version that could know them was taken back."""

    @property
    def incumbent(self) -> str:
        """The arm that would refit the live version."""
        name = refitting(arm_of(self.live))
        return name if name in self.task.arms else DEFAULT_ARMS[self.task.kind]

    @property
    def learnt_rows(self) -> int:
        """How many production rows the live version has learnt."""
        return sum(row.source != BASE for row in self.base)

    @property
    def rows(self) -> list[DatasetRow]:
        return [each.row for each in self.new]

    @property
    def served(self) -> list[str | None]:
        return [each.served for each in self.new]

    @property
    def full(self) -> list[Retrain]:
        """Evaluations of the trigger, newest first; those of patches, which have one of their own, are left out."""
        return [each for each in self.evaluations if each.arm != PATCH]

    @property
    def since_promotion(self) -> list[Retrain]:
        """Evaluations since the live version was promoted, newest first."""
        return list(takewhile(lambda each: each.decision not in ("promoted", "rolled_back"), self.full))

    @property
    def since_training(self) -> list[Retrain]:
        """Evaluations since anything was trained, newest first."""
        return list(takewhile(lambda each: each.decision == "skipped", self.full))

    @property
    def refused(self) -> list[Retrain]:
        """Candidates that the gate refused since the live version was promoted, newest first."""
        return [each for each in self.since_promotion if each.decision == "refused"]

    @property
    def taken_back(self) -> list[Retrain]:
        """Promotions that learnt some of the rows to be learnt and are no part of what is served, newest first."""
        waiting = {each.row.trace_id for each in self.new}
        return [each for each in taken_back(self.live, self.evaluations) if waiting & set(each.trace_ids)]

    @property
    def look(self) -> int:
        """How many candidates these rows will have judged with the next one."""
        return 1 + len(self.refused) + len(self.taken_back)

    @property
    def unseen(self) -> list[Labelled]:
        """Rows that no refused candidate has learnt from, and that are not spent."""
        seen = self.spent.union(*(each.trace_ids for each in self.refused))
        return [each for each in self.new if each.row.trace_id not in seen]

    @property
    def evidence(self) -> list[Labelled]:
        """Failures to be learnt that ask for a retrain."""
        return [each for each in self.new if each.failed and each.row.trace_id not in self.spent]

    @property
    def windows(self) -> int:
        """Windows since the last training, or the first release: turns that found other rows, or days of the log."""
        turns = {each.data_digest for each in self.since_training if each.data_digest} | {self.digest}
        patched = {id_ for each in self.evaluations if each.arm == PATCH for id_ in each.trace_ids}
        learnt = {each.trace_id for each in self.base} - patched
        trained = learnt | {id_ for each in (*self.refused, *self.taken_back) for id_ in each.trace_ids}
        times = [(each.row.at_us, each.row.trace_id in trained) for each in self.labelled if each.row.at_us is not None]
        last_us = max((at_us for at_us, is_trained in times if is_trained), default=-1)
        return max(len(turns), len({at_us // DAY_US for at_us, _ in times if at_us > last_us}))

    @property
    def barred(self) -> list[str]:
        arms = [each.arm for each in self.refused]
        return sorted({arm for arm in arms if arm is not None and arms.count(arm) >= BARRED_AFTER})


def gather(workspace: Workspace, name: str) -> TrainingData:
    with workspace.store.read() as connection:
        live = live_version(connection, workspace.project, name)
        rows = labelled(connection, workspace, name)
        evaluations = retrains_of(connection, workspace.project, name)
    learnt = learnt_traces(live, evaluations)
    fresh = [each for each in rows if each.row.trace_id not in learnt]
    asked = as_answered_today(name, workspace.settings.weights[name], fresh)
    old = [each for each in rows if each.row.trace_id in learnt]
    return assemble(workspace, name, live, [*old, *asked], evaluations)


def assemble(
    workspace: Workspace, name: str, live: Version | None, rows: Sequence[Labelled], evaluations: Sequence[Retrain]
) -> TrainingData:
    """Parts the rows that the live version has learnt from those it has not, and holds the suspects among the latter.

    Rows that ask for no retrain come last: they use up no cap that a newer row of their source needs.
    """
    learnt = learnt_traces(live, evaluations)
    base_set = training_rows(workspace.settings, name)
    old = [each for each in rows if each.row.trace_id in learnt]
    fresh = [each for each in rows if each.row.trace_id not in learnt]
    spent = _spent(fresh, taken_back(live, evaluations))
    fresh.sort(key=lambda each: each.row.trace_id in spent)
    policy = workspace.policy
    training = prepare(
        [each.row for each in (*old, *fresh)],
        cap_per_source=None if policy.profile == "benchmark" else policy.cap_per_source,
        max_source_share=policy.evidence.max_source_share,
        suspects=_suspects(
            workspace, base_set, old, fresh, is_tabular=workspace.settings.weights[name].task == "tabular"
        ),
    )
    used = [each for each, entry in zip(fresh, training.entries[len(old) :], strict=True) if entry.used]
    return TrainingData(
        name=name,
        task=task_of(workspace, name),
        live=live,
        base=(*base_set, *(each.row for each in old)),
        new=tuple(used),
        held=sum(entry.why == SUSPECT for entry in training.entries[len(old) :]),
        capped=sum(entry.why == CAPPED for entry in training.entries[len(old) :]),
        digest=training.digest,
        evaluations=tuple(evaluations),
        labelled=tuple(rows),
        spent=spent,
    )


def _spent(fresh: Sequence[Labelled], back: Sequence[Retrain]) -> frozenset[str | None]:
    """Traces whose labels were known when a version was promoted that learnt some of them and was taken back."""
    waiting = {each.row.trace_id for each in fresh}
    last_us = max((each.at_us for each in back if waiting & set(each.trace_ids)), default=-1)
    return frozenset(each.row.trace_id for each in fresh if each.known_us <= last_us)


def _suspects(
    workspace: Workspace,
    base_set: Sequence[DatasetRow],
    old: Sequence[Labelled],
    fresh: Sequence[Labelled],
    *,
    is_tabular: bool,
) -> list[int]:
    """Positions among the labelled rows, old before fresh, of new labels that a person should look at.

    In profile `benchmark` there is nobody to ask, and a label that was held would be lost: none is. Without a failure
    among the new labels nothing will be trained, and nobody needs to look. Records are not compared: the words of one say
    little of its label.
    """
    if is_tabular or workspace.policy.reviewer is not None or not any(each.failed for each in fresh):
        return []
    together = [*base_set, *(each.row for each in (*old, *fresh))]
    start = len(base_set)
    found = (position - start for position in suspect_labels(together, seed=workspace.settings.seed))
    return [position for position in found if position >= len(old)]
