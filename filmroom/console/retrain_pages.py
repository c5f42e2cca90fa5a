"""Retrain history: every evaluation of the trigger, one of them whole, versions, and two of them side by side."""

from typing import Any

from starlette.responses import Response

from filmroom.console.ask import Ask, address_with
from filmroom.console.console import Console
from filmroom.console.guard import Page
from filmroom.console.version_view import version_view
from flows.compare import compare
from flows.ways import ways_of_retrain
from store.errors import NotFound
from store.ledger import events_of
from store.records import Retrain
from store.releases import live_release
from store.retrain_page import PAGE, model_versions, retrain_counts, retrain_marks, retrain_page
from store.retrains import retrain

WORDS = {
    "n_eff": "failures that count, capped by source",
    "max_source_share": "largest share of one source",
    "repair_rate": "repaired by a probe",
    "repair_rate_lower": "repaired, 80 % lower bound",
    "break_rate": "broken by a probe",
    "windows": "windows since the last training",
    "judged": "rows that could judge",
    "p_pass": "chance to pass the gate now",
    "p_pass_next": "chance to pass one window later",
    "avoidable_usd": "loss that a retrain would avoid",
    "machine_usd": "machine time",
    "review_usd": "reviewing it",
    "harm_usd": "expected harm of a regression",
    "cost_usd": "a retrain costs in all",
    "waiting_gain_usd": "waiting a window gains",
    "waiting_cost_usd": "waiting a window costs",
    "rows": "rows to learn",
    "held_rows": "rows held as suspect",
}
"""The trigger's numbers in words; others are shown by their name."""

DECISIONS = ("skipped", "refused", "promoted", "rolled_back")


def retrains(ask: Ask) -> Response:
    """The timeline."""
    decision = ask.query("decision") if ask.query("decision") in DECISIONS else ""
    page = int(ask.query("page")) if ask.query("page").isdecimal() and len(ask.query("page")) < 7 else 1
    view = retrains_view(ask.console, model=ask.query("model"), decision=decision, page=max(1, page))
    return ask.page("retrains.html", view=view, model=ask.query("model"), decision=decision, decisions=DECISIONS,
                    address=address_with("/retrains", model=ask.query("model"), decision=decision))  # fmt: skip


def one(ask: Ask) -> Response:
    """One evaluation."""
    return ask.page("retrain.html", view=retrain_view(ask.console, ask.part("id")), words=WORDS)


def version_page(ask: Ask) -> Response:
    """One version of any target."""
    return ask.page("version.html", view=version_view(ask.console, ask.part("id")))


def compared(ask: Ask) -> Response:
    """Two versions."""
    before, after = ask.query("a"), ask.query("b")
    with ask.console.store.read() as connection:
        known = model_versions(connection, ask.console.project)
    found = compare(ask.workspace, before, after) if before and after else None
    return ask.page("compare.html", found=found, versions=known, before=before, after=after)


def retrains_view(console: Console, *, model: str = "", decision: str = "", page: int = 1) -> dict[str, Any]:
    """A page of evaluations, how often what was decided, and marks for a timeline."""
    with console.store.read() as connection:
        found = retrain_page(connection, console.project, model=model, decision=decision, offset=(page - 1) * PAGE,
                             limit=PAGE + 1)  # fmt: skip
        counts = retrain_counts(connection, console.project)
        marks = retrain_marks(connection, console.project)
        models = live_release(connection, console.project).models
    return {"retrains": [_row(each) for each in found[:PAGE]], "more": len(found) > PAGE, "page": page,
            "counts": counts, "marks": marks, "live": models}  # fmt: skip


def retrain_view(console: Console, retrain_id: str) -> dict[str, Any]:
    """One evaluation with what came before and after it. Raises NotFound."""
    with console.store.read() as connection:
        found = retrain(connection, retrain_id)
        if found is None or found.project != console.project:
            raise NotFound(f"no retrain {retrain_id}")
        live = live_release(connection, console.project).models.get(found.model)
        events = events_of(connection, console.project, found.id)
        ways = ways_of_retrain(connection, console.workspace, found)
    return {**_row(found), "live": live, "events": events, "ways": [each.model_dump(mode="json") for each in ways]}


def _row(found: Retrain) -> dict[str, Any]:
    return {"retrain": found.id, **found.model_dump(mode="json")}


PAGES = [
    Page("/retrains", retrains),
    Page("/retrains/{id}", one),
    Page("/versions/{id}", version_page),
    Page("/compare", compared),
]
