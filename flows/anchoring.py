"""Whether a candidate is anchored at the champion, and at which model."""

from contextlib import suppress

from flows.champion import load_model, patches
from flows.serving import artifact_of
from flows.training_data import TrainingData
from flows.workspace import Workspace
from models.anchored import AnchoredModel, shortened
from models.anchored_out_of_fold import AnchoredOutOfFold
from models.exceptions import ExceptionModel
from models.fitting import BASE, Arm
from models.gate_stages import flips_to_choose
from models.judging import formerly_right
from models.out_of_fold import OutOfFold
from models.text_model import TextModel
from store.errors import ModelRefused


def is_anchored(workspace: Workspace, data: TrainingData) -> bool:
    """Whether this model's candidates are anchored once enough right answers judge them.

    Its champion answers here and its inputs are texts. A model that is patched needs its own columns for that, so that it is
    anchored only after a plain candidate was refused for its flips.
    """
    if workspace.settings.weights[data.name].champion != "ours" or data.live is None or data.task.kind != "text":
        return False
    if not patches(workspace, data.name, [row for row in data.base if row.source == BASE]):
        return True
    stages = [stage for each in data.refused for stage in each.gate]
    return any(stage.stage == "flips" and stage.verdict == "failed" for stage in stages)


def anchored_over(
    workspace: Workspace, data: TrainingData, out_of_fold: OutOfFold, arm: Arm
) -> AnchoredOutOfFold | None:
    """The arm anchored at the live model, where the strict bound on flips applies; None: the plain arm is judged.

    It follows from how many right answers will judge, before anything is known of the candidate, so that nothing is chosen
    by the rows that judge.
    """
    if data.live is None or arm.treatment != "plain" or not is_anchored(workspace, data):
        return None
    right = formerly_right(arm, out_of_fold, data.served, incumbent=data.incumbent)
    most = flips_to_choose(right, workspace.policy)
    if most is None:
        return None
    with suppress(ModelRefused):
        champion = load_model(workspace.artifacts, artifact_of(data.live))
        if isinstance(champion, TextModel | ExceptionModel | AnchoredModel):
            return AnchoredOutOfFold(out_of_fold, arm, shortened(champion), incumbent=data.incumbent, most=most)
    return None
