"""Changes, releases, why, retrains, versions."""

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query
from pydantic import Field

from filmroom.console.api.access import Body, Reviewer, Text, Viewer
from filmroom.console.api.review_routes import Id
from filmroom.console.change_view import change_view, changes_view, release_view, releases_view, why_view
from filmroom.console.retrain_pages import retrain_view, retrains_view
from filmroom.console.version_view import version_view
from flows.compare import Comparison
from flows.compare import compare as compare_versions
from flows.rollback import rollback as roll_back
from flows.undo import Undone
from store.change_page import cluster_corrections, recurrence
from store.cluster_page import story
from store.errors import NotFound
from store.failures import cluster as find_cluster

router = APIRouter(tags=["history"])

Page = Annotated[int, Query(ge=1, le=100_000)]


class Because(Body):
    """Why."""

    reason: Text = Field(min_length=1, max_length=2000)


@router.get("/changes")
def changes(
    caller: Viewer,
    target: Literal["", "context", "memory", "tooling", "weights"] = "",
    state: Literal["", "live", "reverted", "holding", "held", "failed"] = "",
    page: Page = 1,
) -> dict[str, Any]:
    """A page of changes, newest first, each with its hold."""
    return changes_view(caller.console, target=target, state=state, page=page)


@router.get("/changes/{id}")
def change(caller: Viewer, id: Id) -> dict[str, Any]:
    """One change."""
    return change_view(caller.console, id)


@router.get("/releases")
def releases(caller: Viewer) -> dict[str, Any]:
    """What was live when."""
    return releases_view(caller.console)


@router.get("/releases/{id}")
def release(caller: Viewer, id: Id) -> dict[str, Any]:
    """One release."""
    return release_view(caller.console, id)


@router.post("/releases/{id}/rollback")
def rollback(caller: Reviewer, id: Id, body: Because) -> Undone:
    """Serve the state of an earlier release again, as a new release."""
    return roll_back(caller.workspace, id, reason=body.reason)


@router.get("/why/{id}")
def why(caller: Viewer, id: Id) -> dict[str, Any]:
    """What caused it, and what it led to."""
    found = why_view(caller.console, id)
    return {name: each for name, each in found.items() if name not in ("picture", "names")}


@router.get("/clusters/{id}")
def cluster(caller: Viewer, id: Id) -> dict[str, Any]:
    """One cluster: its numbers, its failures over time, its corrections."""
    with caller.console.store.read() as connection:
        found = find_cluster(connection, id)
        if found is None or found.project != caller.console.project:
            raise NotFound(f"no cluster {id}")
        return {
            "cluster": found.id,
            **found.model_dump(mode="json"),
            "story": story(connection, caller.console.project, id).model_dump(),
            "corrections": cluster_corrections(connection, caller.console.project, id),
            "failures_at": recurrence(connection, caller.console.project, id),
        }


@router.get("/retrains")
def retrains(
    caller: Viewer,
    model: Annotated[Text, Query(max_length=200)] = "",
    decision: Literal["", "skipped", "refused", "promoted", "rolled_back"] = "",
    page: Page = 1,
) -> dict[str, Any]:
    """A page of evaluations of the trigger, newest first, skips included."""
    return retrains_view(caller.console, model=model, decision=decision, page=page)


@router.get("/retrains/{id}")
def retrain(caller: Viewer, id: Id) -> dict[str, Any]:
    """One evaluation: arms, cost, gate, lineage."""
    return retrain_view(caller.console, id)


@router.get("/versions/{id}")
def version(caller: Viewer, id: Id) -> dict[str, Any]:
    """One version: lineage, when it was live; of a model also its card, gate and some of the answers it changed."""
    return version_view(caller.console, id)


@router.get("/compare")
def compare(
    caller: Viewer, before: Annotated[Text, Query(max_length=60)], after: Annotated[Text, Query(max_length=60)]
) -> Comparison:
    """Two versions of one target side by side."""
    return compare_versions(caller.workspace, before, after)
