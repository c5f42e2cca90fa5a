"""What a served model has learnt: the promotions on its line, and those that were taken back."""

from collections.abc import Sequence

from store.records import Retrain, Version


def lineage(live: Version | None, evaluations: Sequence[Retrain]) -> list[Retrain]:
    """The promotions that led to the live version, its own first; `evaluations` newest first.

    Of a version that was promoted more than once the newest promotion counts.
    """
    made: dict[str | None, Retrain] = {}
    for each in evaluations:
        if each.decision == "promoted":
            made.setdefault(each.version, each)
    found = []
    version = None if live is None else live.id
    while version in made:
        found.append(made.pop(version))
        version = found[-1].parent
    return found


def learnt_traces(live: Version | None, evaluations: Sequence[Retrain]) -> set[str]:
    """Traces that the live version and its ancestors have learnt from."""
    return {trace_id for each in lineage(live, evaluations) for trace_id in each.trace_ids}


def taken_back(live: Version | None, evaluations: Sequence[Retrain]) -> list[Retrain]:
    """The promotions of versions that are not on the live version's line, newest first: an undo, a rollback of the whole
    release or the shadow took them back, and nobody has served them again since."""
    served = {each.version for each in lineage(live, evaluations)}
    return [each for each in evaluations if each.decision == "promoted" and each.version not in served]
