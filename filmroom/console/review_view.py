"""The data of the review pages: a filter's page of the queue, and one correction with all that helps to decide it."""

import re
from collections.abc import Sequence
from typing import Any
from urllib.parse import urlencode

from pydantic import ValidationError

from filmroom.console.console import Console
from filmroom.console.frame import counts
from filmroom.console.proposed import proposed_lines
from filmroom.console.timeline import timeline
from flows.opinions import Panel, panel
from flows.ways import ways_of
from flows.workspace import Workspace
from models.rules import PHRASES
from store.change_page import cluster_corrections
from store.cluster_page import ClusterStory, story
from store.corrections import correction, reviews_of, route_of
from store.errors import NotAllowed
from store.failures import cases_of, cluster
from store.opinions import next_for
from store.queue_page import PAGE, QueueFilter, claims_of, items, matching, onward
from store.records import Correction, Route
from store.replays import replays_of

EXAMPLES = 3
_NAMED = re.compile(r"\((\w+) -?[\d.]+\)")
"""How a route's reason names the features that decided it."""


def read_filter(given: dict[str, str]) -> QueueFilter:
    """The filter of a query string. Raises NotAllowed for a value it cannot have."""
    fields = {name: value for name, value in given.items() if name in QueueFilter.model_fields and value != ""}
    try:
        return QueueFilter.model_validate(fields)
    except ValidationError as error:
        first = error.errors()[0]
        raise NotAllowed(f"filter {'.'.join(map(str, first['loc']))}: {first['msg']}") from error


def filter_query(wanted: QueueFilter) -> str:
    """The filter as a query string, without what is as usual.

    >>> filter_query(QueueFilter(target="memory"))
    'target=memory'
    """
    plain = QueueFilter()
    return urlencode({name: value for name, value in wanted.model_dump().items() if value != getattr(plain, name)})


def matching_ids(console: Console, wanted: QueueFilter, me: str) -> list[str]:
    """The ids that a filter shows, in the queue's order; kept while nothing has happened."""

    def look() -> list[str]:
        with console.store.read() as connection:
            return matching(connection, console.project, wanted, cap=console.workspace.policy.queue_cap,
                            reviewers=console.settings.console.reviewers, me=me, now_us=console.now_us())  # fmt: skip

    if wanted.mine or wanted.text:
        return look()
    if wanted in (QueueFilter(show="queued"), QueueFilter(show="held")):
        waiting, known = matching_ids(console, QueueFilter(), me), counts(console)
        start = 0 if wanted.show == "queued" else known.queued
        return waiting[start : start + getattr(known, wanted.show)]
    found: list[str] = console.kept.get(console, f"queue {filter_query(wanted)}", look)
    return found


def queue_view(console: Console, wanted: QueueFilter, me: str, *, page: int = 1) -> dict[str, Any]:
    """A page of the queue: `items`, `matching` (how many there are), `page`, `pages`."""
    ids = matching_ids(console, wanted, me)
    pages = max(1, -(-len(ids) // PAGE))
    page = min(max(1, page), pages)
    with console.store.read() as connection:
        found = items(connection, console.project, ids[(page - 1) * PAGE : page * PAGE], now_us=console.now_us())
    return {"items": found, "matching": len(ids), "page": page, "pages": pages}


def neighbours(console: Console, wanted: QueueFilter, me: str, correction_id: str) -> dict[str, Any]:
    """The corrections before and after this one in the filter, and its place there."""
    ids = matching_ids(console, wanted, me)
    if correction_id not in ids:
        return {"before": None, "after": ids[0] if ids else None, "place": None, "matching": len(ids)}
    at = ids.index(correction_id)
    return {
        "before": ids[at - 1] if at else None,
        "after": ids[at + 1] if at + 1 < len(ids) else None,
        "place": at + 1,
        "matching": len(ids),
    }


def following(console: Console, wanted: QueueFilter, me: str, done: str, *, before: Sequence[str] = ()) -> str | None:
    """The next correction of the filter to decide, deferred ones left out; None: there is none.

    It is the one after `done` in the filter as it stood `before` the verdict, so that nobody is sent back to the start.
    """
    if wanted.show == "waiting":  # what was put off is not put in front of people again by itself
        wanted = wanted.model_copy(update={"show": "queued"})
    ids = onward(before, done, matching_ids(console, wanted, me))
    with console.store.read() as connection:
        return next_for(connection, console.project, ids, me, now_us=console.now_us())


def item_view(workspace: Workspace, correction_id: str) -> dict[str, Any]:
    """One correction: story, traces, evidence, probabilities, proposed change, panel. Raises NotFound."""
    with workspace.store.read() as connection:
        found = correction(connection, workspace.project, correction_id)
        each = cluster(connection, found.cluster_id)
        decided = route_of(connection, found.id)
        cases = cases_of(connection, found.cluster_id, EXAMPLES)
        told = story(connection, workspace.project, found.cluster_id)
        seen = panel(connection, workspace, found.id)
        said = reviews_of(connection, found.id)
        tried = replays_of(connection, found.id)
        taken = claims_of(connection, workspace.project, [found.id], now_us=workspace.clock())
        return {
            "correction": found.id,
            "cluster": found.cluster_id,
            "name": each.name if each else "",
            "failures": each.failures if each else 0,
            "no_single_place": each.no_single_place if each else False,
            "state": found.state,
            "attempt": found.attempt,
            "attempts": cluster_corrections(connection, workspace.project, found.cluster_id),
            "story": sentence(told, each.name if each else ""),
            "target": found.proposal.target if found.proposal else None,
            "summary": found.proposal.summary if found.proposal else "no single place found",
            "needs_answer": found.proposal.needs_answer if found.proposal else None,
            "proposed": proposed_lines(connection, workspace, found),
            "replay": max(tried, key=lambda replay: replay.at_us).model_dump(mode="json") if tried else None,
            "examples": [timeline(case) for case in cases],
            "reviews": [each.model_dump(mode="json") for each in said],
            "panel": panel_view(seen),
            "claimed_by": taken.get(found.id, []),
            **_decision(decided, found),
            "ways": [each.model_dump(mode="json") for each in ways_of(connection, workspace.project, decided)],
        }


def panel_view(seen: Panel) -> dict[str, Any]:
    """The panel as JSON."""
    return {
        "wanted": seen.wanted,
        "count": seen.count,
        "stage": seen.stage,
        "mine": seen.mine,
        "given": [each.model_dump(mode="json", exclude={"project", "open"}) for each in seen.given],
    }


def sentence(told: ClusterStory, name: str) -> str:
    """The cluster's story in a sentence."""
    if not told.failures:
        return f"No failure is left in this cluster: {name}."
    traces = "1 trace" if told.failures == 1 else f"{told.failures:,} traces"
    users = "" if told.users == 0 else " of one user" if told.users == 1 else f" of {told.users:,} users"
    when = ""
    if told.first and told.last:
        when = f" on {told.first}" if told.first == told.last else f" between {told.first} and {told.last}"
    return f"{traces}{users} failed the same way{when}: {name}."


def _decision(decided: Route | None, found: Correction) -> dict[str, Any]:
    if decided is None:
        return {"probabilities": {}, "runner_up": None, "certified": False, "reason": "it has not been routed",
                "to_yes": "", "router": None, "evidence": []}  # fmt: skip
    ranked = sorted(decided.probabilities.items(), key=lambda pair: -pair[1])
    return {
        "probabilities": dict(ranked),
        "runner_up": decided.runner_up,
        "certified": decided.certified,
        "reason": decided.reason,
        "to_yes": decided.to_yes,
        "router": decided.router,
        "evidence": evidence_rows(decided),
    }


def evidence_rows(decided: Route) -> list[dict[str, Any]]:
    """Measured evidence, what decided first: `feature, value, says, decided`; last, how much was not measured."""
    deciding = [name for name in _NAMED.findall(decided.reason) if name in decided.evidence]
    rest = sorted(
        (name for name, value in decided.evidence.items() if value is not None and name not in deciding),
        key=lambda name: (name not in PHRASES, not decided.evidence[name], name),
    )
    return [
        {"feature": name, "value": decided.evidence[name], "says": PHRASES.get(name, name.replace("_", " ")),
         "decided": name in deciding}
        for name in (*deciding, *rest)
    ]  # fmt: skip
