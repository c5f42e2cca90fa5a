"""The data of the first page: what needs me, how often it fails, where corrections went, what it was worth."""

from contextlib import suppress
from typing import Any

from sqlalchemy import Connection

from filmroom.console.console import Console
from filmroom.console.frame import counts
from store.change_page import newest_events
from store.errors import FilmroomError
from store.home_page import (
    Day,
    averted,
    days,
    destinations,
    outcomes,
    release_marks,
    review_seconds,
    trained,
    verdict_count,
)
from store.records import TARGETS
from store.releases import live_release
from store.retrains import retrains_of
from store.turns import turns_of

REVIEW_S = 40.0
"""What a verdict is priced at where its time was not measured: seconds."""


def home_view(console: Console) -> dict[str, Any]:
    """Everything on the page; the days of the log are added up anew behind the scenes, and say as of when they are."""
    log: dict[str, Any] = console.kept.get(console, "days", lambda: _log(console), patient=True)
    with console.store.read() as connection:
        live = live_release(connection, console.project)
        turns = turns_of(connection, console.project, 1)
        events = newest_events(connection, console.project)
        retrains = retrains_of(connection, console.project, limit=1)
        went, held = destinations(connection, console.project), outcomes(connection, console.project)
        marks = release_marks(connection, console.project, log["days"][0]["day_us"] if log["days"] else 0)
        worth = _worth(console, connection)
    return {
        **log,
        "releases": marks,
        "places": [_place(name, went.get(name, {}), held.get(name, {})) for name in (*TARGETS, "none")],
        "worth": worth,
        "counts": counts(console).model_dump(),
        "release": {"release": live.id, "number": live.number, "since_us": live.created_us, "reason": live.reason,
                    "actor": live.actor},
        "last_turn": turns[0] if turns else None,
        "events": events,
        "retrain": retrains[0].model_dump(mode="json") if retrains else None,
    }  # fmt: skip


def warm(console: Console) -> None:
    """Add the days of the log up before anybody asks."""
    with suppress(FilmroomError):
        console.kept.get(console, "days", lambda: _log(console))


def _log(console: Console) -> dict[str, Any]:
    with console.store.read() as connection:
        log = days(connection, console.project)
    return {
        "days": [each.model_dump() for each in log],
        "rate": _rate(log),
        "before": _rate(log[: len(log) // 2]) if len(log) >= 6 else None,
        "after": _rate(log[len(log) // 2 :]) if len(log) >= 6 else None,
        "as_of_us": console.now_us(),
    }


def _rate(log: list[Day]) -> float | None:
    """Share of traces that failed; None: there are none."""
    total = sum(each.traces for each in log)
    return sum(each.failures for each in log) / total if total else None


def _place(name: str, states: dict[str, int], held: dict[str, int]) -> dict[str, Any]:
    return {
        "place": name,
        "open": states.get("proposed", 0) + states.get("deferred", 0),
        "applied": states.get("applied", 0) + states.get("approved", 0),
        "rejected": states.get("rejected", 0),
        "reverted": states.get("reverted", 0),
        "holding": held.get("holding", 0),
        "held": held.get("held", 0),
        "failed": held.get("failed", 0),
    }


def _worth(console: Console, connection: Connection) -> dict[str, Any]:
    """Failures averted by the changes that are watched, against regressions and what it cost; each with its parts.

    `averted` and all that follows from it is None where no change with a measured rate before is watched.
    """
    prices = console.settings.prices
    exposures, expected, recurred = averted(connection, console.project)
    runs = trained(connection, console.project)
    promoted = [each for each in runs if each.decision == "promoted"]
    newly_wrong = sum(each.metrics.get("flips_newly_wrong") or 0.0 for each in promoted)
    verdicts = verdict_count(connection, console.project)
    timed, seconds = review_seconds(connection, console.project)
    review_usd = (seconds + max(0, verdicts - timed) * REVIEW_S) / 3600 * prices.review_usd_per_hour
    machine_usd = sum(each.seconds for each in runs) / 3600 * prices.cpu_usd_per_hour
    harm_usd = newly_wrong * prices.failure_usd * prices.regression_factor
    saved = None if expected is None else expected - recurred
    net = None if saved is None else saved * prices.failure_usd - harm_usd - review_usd - machine_usd
    return {
        "exposures": exposures,
        "expected": expected,
        "recurred": recurred,
        "averted": saved,
        "failure_usd": prices.failure_usd,
        "newly_wrong": newly_wrong,
        "harm_usd": harm_usd,
        "verdicts": verdicts,
        "review_usd": review_usd,
        "fits": len(runs),
        "machine_usd": machine_usd,
        "net_usd": net,
    }
