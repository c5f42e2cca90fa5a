"""Retrain: weights last. Every evaluation of the trigger leaves a row, whether it trains or not, and why.

What learns is imported when there is a model to weigh, so that a turn without one starts quickly.
"""

from flows.workspace import Workspace
from store.records import Record, Retrain


class Retrained(Record):
    """The evaluations of this turn, one a model."""

    evaluations: tuple[Retrain, ...] = ()
    tracked: int = 0
    """Retrains that the tracking server of the settings was told of."""
    not_tracked: str = ""
    """Why it was not told of all."""

    def markdown(self) -> str:
        lines = []
        for each in self.evaluations:
            lines.append(f"* **{each.model}**: {each.decision}. {each.reason}")
            lines += [f"    * {stage.stage}: {stage.verdict}. {stage.sentence}" for stage in each.gate]
        if self.not_tracked:
            lines.append(f"* not tracked: {self.not_tracked}")
        return "\n".join(lines) or "No model is named in the settings."


def retrain(workspace: Workspace) -> Retrained:
    """Weigh a retrain of every model of the settings; train, gate and promote where it is worth it and proved.

    A promotion that turned out harmful is rolled back first; that model is weighed again in the next turn.
    """
    if not workspace.settings.weights:
        return Retrained()
    from flows.shadow import shadow
    from flows.tracking import track
    from flows.weigh import weigh

    names = workspace.settings.weights
    evaluations = tuple(shadow(workspace, name) or weigh(workspace, name) for name in names)
    told = track(workspace)
    return Retrained(evaluations=evaluations, tracked=len(told.runs), not_tracked=told.error)
