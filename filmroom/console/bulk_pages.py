"""One verdict on all that a filter shows, after a preview of what it touches; and the reviewers' agreement."""

import hashlib
from statistics import median
from typing import Any

from starlette.responses import Response

from filmroom.console.ask import Ask
from filmroom.console.console import Console
from filmroom.console.guard import Page
from filmroom.console.review_pages import _parsed, read_target
from filmroom.console.review_view import filter_query, matching_ids, read_filter
from flows.opinions import Bulk, ask_reviewers, give_opinions, overall, pairwise, take_back
from flows.workspace import Workspace
from store.errors import FilmroomError, NotAllowed
from store.opinions import Opinion, all_opinions, ended_holds
from store.queue_page import MOST, QueueFilter, claims_of, items
from store.records import Target, Verdict

SHOWN = 25


def preview(ask: Ask) -> Response:
    """What the filter touches."""
    wanted = read_filter(dict(ask.request.query_params))
    return ask.page("bulk.html", query=filter_query(wanted), most=MOST,
                    targets=ask.workspace.settings.agent.targets,
                    **bulk_preview(ask.console, wanted, ask.who.actor))  # fmt: skip


def decide(ask: Ask) -> Response:
    """Do it, where the filter still shows what the preview showed."""
    wanted = read_filter(_parsed(ask.form.get("filter", "")))
    seen = bulk_preview(ask.console, wanted, ask.who.actor)
    if ask.form.get("digest") != seen["digest"]:
        return ask.see(f"/review/bulk?{filter_query(wanted)}", wrong=True,
                       note="The queue has changed since you looked: this is what the filter touches now.")  # fmt: skip
    named, _, place = ask.form.get("verdict", "").partition(" ")
    done = bulk_verdict(ask.workspace, seen["ids"], named, place, reason=ask.form.get("reason", "").strip())
    return ask.page("bulk_done.html", query=filter_query(wanted), verdict=ask.form.get("verdict", ""),
                    done=[each.correction for each in done.done], failed=done.failed)  # fmt: skip


def undo_all(ask: Ask) -> Response:
    """Take back each of them."""
    done, failed = 0, {}
    for id_ in ask.chosen.get("id", [])[:MOST]:
        try:
            take_back(ask.workspace, id_, reason=ask.form.get("reason", "bulk undo"))
            done += 1
        except FilmroomError as error:
            failed[id_] = str(error)
    left = f"; {len(failed)} left: {next(iter(failed.values()))}" if failed else ""
    return ask.see("/review", note=f"{done} taken back{left}.", wrong=bool(failed))


def agreement(ask: Ask) -> Response:
    """Who agrees with whom."""
    view = agreement_view(ask.console)
    return ask.page("agreement.html", reviewers=ask.console.settings.console.reviewers,
                    blind=ask.console.settings.console.blind, **view)  # fmt: skip


def bulk_preview(console: Console, wanted: QueueFilter, me: str) -> dict[str, Any]:
    """What a verdict over the filter would touch: `ids`, `matching`, counts, and a digest of it all."""
    found = matching_ids(console, wanted, me)
    ids = found[:MOST]
    with console.store.read() as connection:
        rows = items(connection, console.project, ids, now_us=console.now_us(), routed=False)
        shown = items(connection, console.project, ids[:SHOWN], now_us=console.now_us())
        taken = claims_of(connection, console.project, ids, now_us=console.now_us())
    busy = {id_ for id_, names in taken.items() if any(name != me for name in names)}
    by_target: dict[str, int] = {}
    for each in rows:
        by_target[each["target"] or "none"] = by_target.get(each["target"] or "none", 0) + 1
    chosen = [each["correction"] for each in rows if each["correction"] not in busy]
    facts = "|".join(f"{each['correction']}:{each['state']}:{each['target']}:{each['summary']}" for each in rows)
    return {
        "ids": chosen,
        "matching": len(ids),
        "too_many": len(found) > MOST,
        "claimed": len(busy),
        "by_target": by_target,
        "failures": sum(each["failures"] for each in rows),
        "wanting": sum(1 for each in rows if each["needs_answer"] or each["target"] is None),
        "shown": shown,
        "digest": hashlib.sha256(facts.encode()).hexdigest()[:24],
    }


def bulk_verdict(workspace: Workspace, ids: list[str], named: str, place: str, *, reason: str) -> Bulk:
    """Carry `named` out on each. Raises NotAllowed for a verdict that there is not."""
    if named == "ask" and place.isdecimal() and len(place) < 3:
        ask_reviewers(workspace, ids, int(place))
        return Bulk(done=(), failed={})
    if named not in ("approve", "reroute", "reject", "defer"):
        raise NotAllowed(f"{named[:40]!r} is no verdict: approve, reroute, reject, defer")
    verdict: Verdict = named  # type: ignore[assignment]
    target: Target | None = read_target(place) if named == "reroute" else None
    return give_opinions(workspace, ids, verdict, to=target, reason=reason)


def agreement_view(console: Console) -> dict[str, Any]:
    """Agreement of all, of every two, and each reviewer's speed and how often their place held."""
    with console.store.read() as connection:
        given = all_opinions(connection, console.project)
        held = ended_holds(connection, console.project)
    pairs = [{"first": names[0], "second": names[1], "agreement": found} for names, found in pairwise(given).items()]
    people = sorted({each.reviewer for each in given})
    return {"overall": overall(given), "pairs": pairs, "people": [_reviewer(name, given, held) for name in people]}


def _reviewer(name: str, given: list[Opinion], held: dict[str, tuple[str, bool]]) -> dict[str, Any]:
    mine = [each for each in given if each.reviewer == name]
    seconds = [each.seconds for each in mine if each.seconds is not None]
    placed = [(each, held[each.correction_id]) for each in mine if each.target and each.correction_id in held]
    judged = [(each.target == target) == did_hold for each, (target, did_hold) in placed
              if did_hold or each.target == target]  # fmt: skip
    return {
        "reviewer": name,
        "verdicts": len(mine),
        "seconds": median(seconds) if seconds else None,
        "judged": len(judged),
        "held": sum(judged),
        "settled": sum(each.decides for each in mine),
        "last_us": mine[-1].at_us,
    }


PAGES = [
    Page("/review/bulk", preview, role="reviewer"),
    Page("/review/bulk", decide, role="reviewer", method="POST"),
    Page("/review/bulk/undo", undo_all, role="reviewer", method="POST"),
    Page("/review/agreement", agreement),
]
