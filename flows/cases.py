"""The golden and the sealed cases of a model, put to what would be served."""

from contextlib import suppress

from flows.champion import load_model, task_of
from flows.champion_elsewhere import ChampionElsewhere
from flows.serving import artifact_of
from flows.training import case_rows
from flows.workspace import Workspace
from models.fitting import Model
from models.golden import Answering, golden, sealed
from store.errors import ModelRefused, SourceUnreachable
from store.records import GateStage, Version


def judge_cases(workspace: Workspace, name: str, live: Version | None, challenger: Model) -> tuple[GateStage, ...]:
    """The stages `golden` and `sealed`, each where the settings name a file; raises SettingsError or MappingError for one
    that cannot be read. A champion that cannot be read, or asked elsewhere, has no answers."""
    section = workspace.settings.weights[name]
    if section.golden is None and section.sealed is None:
        return ()
    champion: Answering | None = ChampionElsewhere(name, section) if section.is_elsewhere else None
    if champion is None and live is not None:
        with suppress(ModelRefused):
            champion = load_model(workspace.artifacts, artifact_of(live))
    try:
        return _judged(workspace, name, champion, challenger)
    except SourceUnreachable:
        return _judged(workspace, name, None, challenger)


def _judged(workspace: Workspace, name: str, champion: Answering | None, challenger: Model) -> tuple[GateStage, ...]:
    section, task = workspace.settings.weights[name], task_of(workspace, name)
    stages = []
    if section.golden is not None:
        stages.append(golden(case_rows(workspace.settings, name, "golden"), champion, challenger, task))
    if section.sealed is not None:
        stages.append(sealed(case_rows(workspace.settings, name, "sealed"), champion, challenger, task))
    return tuple(stages)
