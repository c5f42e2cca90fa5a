"""Corrections: look, decide, claim, in bulk, and take back."""

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Path, Query
from pydantic import Field, JsonValue

from filmroom.console.api.access import Body, Reviewer, Text, Viewer
from filmroom.console.bulk_pages import agreement_view, bulk_preview, bulk_verdict
from filmroom.console.frame import counts
from filmroom.console.review_view import filter_query, item_view, queue_view, read_filter
from flows.opinions import MOST_REVIEWERS, Bulk, ask_reviewers, claim, give_opinion, take_back, unclaim
from flows.review import Reviewed
from flows.undo import Undone
from store.errors import NotAllowed
from store.queue_page import QueueCounts, QueueFilter
from store.records import Target
from store.saved_filters import drop_filter, filters_for, save_filter

router = APIRouter(tags=["review"])

Id = Annotated[Text, Path(max_length=60)]


class Filter(Body):
    """Which corrections; as the list's query parameters."""

    show: Literal["waiting", "queued", "held", "deferred", "done", "second", "adjudicate", "all"] = "waiting"
    target: Literal["", "context", "memory", "tooling", "weights", "none"] = ""
    text: Text = Field(default="", max_length=200)
    min_failures: int = Field(default=0, ge=0, le=10_000_000)
    mine: bool = False

    @property
    def wanted(self) -> QueueFilter:
        return QueueFilter(**self.model_dump())


class Said(Body):
    """Why."""

    reason: Text = Field(default="", max_length=2000)
    seconds: float | None = Field(default=None, ge=0, le=86_400)
    """How long the correction was looked at."""


class Answered(Said):
    """Why, and what the correction needs written."""

    answer: JsonValue = None


class Rerouted(Answered):
    """Where it belongs."""

    to: Target


class BulkVerdict(Body):
    """One verdict on all that a filter shows."""

    filter: Filter = Filter()
    verdict: Literal["approve", "reroute", "reject", "defer"]
    to: Target | None = None
    reason: Text = Field(default="", max_length=2000)
    digest: Text = Field(max_length=64)
    """Of the preview: where the queue has changed since, nothing is done."""


class Reviewers(Body):
    """How many reviewers these corrections need."""

    corrections: list[Text] = Field(min_length=1, max_length=1000)
    number: int = Field(ge=1, le=MOST_REVIEWERS)


class TakeBack(Body):
    """What is to be taken back."""

    id: Text = Field(max_length=60)
    reason: Text = Field(default="", max_length=2000)


class Keep(Body):
    """A filter and its name."""

    name: Text = Field(min_length=1, max_length=80)
    filter: Filter
    shared: bool = False


@router.get("/corrections")
def corrections(
    caller: Viewer,
    show: Annotated[str, Query(max_length=20)] = "waiting",
    target: Annotated[str, Query(max_length=20)] = "",
    text: Annotated[Text, Query(max_length=200)] = "",
    min_failures: Annotated[int, Query(ge=0, le=10_000_000)] = 0,
    mine: bool = False,
    page: Annotated[int, Query(ge=1, le=100_000)] = 1,
) -> dict[str, Any]:
    """A page of the queue: `items`, `matching`, `page`, `pages`."""
    given = {"show": show, "target": target, "text": text, "min_failures": str(min_failures), "mine": str(mine)}
    return queue_view(caller.console, read_filter(given), caller.person.actor, page=page)


@router.get("/corrections/counts")
def correction_counts(caller: Viewer) -> QueueCounts:
    """How many corrections are where."""
    return counts(caller.console)


@router.post("/corrections/bulk/preview")
def preview(caller: Reviewer, body: Filter) -> dict[str, Any]:
    """What one verdict on the filter would touch, with the digest that `bulk` asks for."""
    return bulk_preview(caller.console, body.wanted, caller.person.actor)


@router.post("/corrections/bulk")
def bulk(caller: Reviewer, body: BulkVerdict) -> Bulk:
    """Give the verdict on each; what cannot be done is named and left as it is."""
    seen = bulk_preview(caller.console, body.filter.wanted, caller.person.actor)
    if body.digest != seen["digest"]:
        raise NotAllowed("the queue has changed since the preview: look again")
    return bulk_verdict(caller.workspace, seen["ids"], body.verdict, body.to or "", reason=body.reason)


@router.post("/corrections/reviewers", status_code=204)
def reviewers(caller: Reviewer, body: Reviewers) -> None:
    """Have each of these judged by so many reviewers."""
    ask_reviewers(caller.workspace, body.corrections, body.number)


@router.get("/corrections/{id}")
def correction(caller: Viewer, id: Id) -> dict[str, Any]:
    """One correction with story, traces, evidence, probabilities, proposed change and panel."""
    return item_view(caller.workspace, id)


@router.post("/corrections/{id}/approve")
def approve(caller: Reviewer, id: Id, body: Answered) -> Reviewed:
    """It is right where it is; applied at once unless a named gate refuses, or others are to judge it too."""
    return give_opinion(caller.workspace, id, "approve", answer=body.answer, reason=body.reason, seconds=body.seconds)


@router.post("/corrections/{id}/reroute")
def reroute(caller: Reviewer, id: Id, body: Rerouted) -> Reviewed:
    """It belongs in another place."""
    return give_opinion(caller.workspace, id, "reroute", to=body.to, answer=body.answer, reason=body.reason,
                        seconds=body.seconds)  # fmt: skip


@router.post("/corrections/{id}/reject")
def reject(caller: Reviewer, id: Id, body: Said) -> Reviewed:
    """Nothing is to be corrected here."""
    return give_opinion(caller.workspace, id, "reject", reason=body.reason, seconds=body.seconds)


@router.post("/corrections/{id}/defer")
def defer(caller: Reviewer, id: Id, body: Said) -> Reviewed:
    """Not now."""
    return give_opinion(caller.workspace, id, "defer", reason=body.reason, seconds=body.seconds)


@router.post("/corrections/{id}/claim")
def claim_it(caller: Reviewer, id: Id) -> dict[str, int]:
    """Say that you are at it; `until_us`: how long."""
    return {"until_us": claim(caller.workspace, id)}


@router.delete("/corrections/{id}/claim", status_code=204)
def unclaim_it(caller: Reviewer, id: Id) -> None:
    """Leave it to others."""
    unclaim(caller.workspace, id)


@router.post("/undo")
def undo(caller: Reviewer, body: TakeBack) -> Undone:
    """Take a change, correction, review, version or release back."""
    return take_back(caller.workspace, body.id, reason=body.reason)


@router.get("/agreement")
def agreement(caller: Viewer) -> dict[str, Any]:
    """Kappa of all and of every two, and each reviewer's speed and how often their place held."""
    return agreement_view(caller.console)


@router.get("/filters")
def filters(caller: Viewer) -> list[dict[str, Any]]:
    """Your filters, and those that others share."""
    with caller.console.store.read() as connection:
        return filters_for(connection, caller.console.project, caller.person.actor)


@router.post("/filters")
def keep_filter(caller: Reviewer, body: Keep) -> dict[str, str]:
    """Keep a filter under a name."""
    with caller.console.store.write() as connection:
        id_ = save_filter(connection, caller.console.project, caller.person.actor, body.name,
                          filter_query(body.filter.wanted), shared=body.shared, now_us=caller.console.now_us())  # fmt: skip
    return {"filter": id_}


@router.delete("/filters/{id}", status_code=204)
def forget_filter(caller: Reviewer, id: Id) -> None:
    """Drop one of your filters."""
    with caller.console.store.write() as connection:
        drop_filter(connection, caller.console.project, caller.person.actor, id)
