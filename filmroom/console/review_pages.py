"""The review queue: the list, one correction at a time, and what people decide there."""

from dataclasses import replace
from typing import Any

from starlette.responses import Response

from filmroom.answer import read_answer
from filmroom.console.ask import Ask
from filmroom.console.frame import counts
from filmroom.console.guard import Page
from filmroom.console.review_view import (
    filter_query,
    following,
    item_view,
    matching_ids,
    neighbours,
    queue_view,
    read_filter,
)
from flows.opinions import claim, give_opinion, take_back
from flows.review import Reviewed
from store.errors import FilmroomError, NotAllowed, NotFound
from store.queue_page import SHOWS, QueueFilter
from store.records import TARGETS, Target, Verdict
from store.saved_filters import drop_filter, filters_for, save_filter

LONGEST_LOOK_S = 1800.0
"""A correction that was open for longer was not looked at all the time: its seconds are not measured."""

ANSWERS = {
    "context": (
        "The rule, in your words",
        "One sentence for the prompt; you sign it. Or JSON with action and argument, a note, or an example.",
    ),
    "memory": ("The fact", 'JSON, for example {"predicate": "pickup_shop", "value": "Elm Street"}.'),
    "tooling": ("The policy", 'JSON, for example {"retries": 2, "timeout_s": 10}. It replaces what is proposed.'),
    "weights": ("The right label", "As the model names it."),
    None: ("What would have been right", "Then send it to the place where it belongs."),
}


def queue(ask: Ask) -> Response:
    """The list."""
    wanted = read_filter(dict(ask.request.query_params))
    view = queue_view(ask.console, wanted, ask.who.actor, page=_page(ask))
    with ask.console.store.read() as connection:
        kept = filters_for(connection, ask.console.project, ask.who.actor)
    return ask.page("review.html", wanted=wanted, view=view, query=filter_query(wanted), shows=SHOWS, filters=kept,
                    counts=counts(ask.console), cap=ask.console.workspace.policy.queue_cap)  # fmt: skip


def next_item(ask: Ask) -> Response:
    """Go to the first correction of the filter that nobody is at."""
    wanted = read_filter(dict(ask.request.query_params))
    found = following(ask.console, wanted, ask.who.actor, "")
    if found is None:
        return ask.see(_list(wanted), note="Nothing is left in this filter that nobody else is at.")
    return ask.see(_address(found, wanted))


def item(ask: Ask) -> Response:
    """One correction; whoever may decide claims it by opening it."""
    return _item(ask, ask.part("id"), read_filter(dict(ask.request.query_params)))


def verdict(ask: Ask) -> Response:
    """Give the verdict that the address names, and go on to the next."""
    correction_id, named = ask.part("id"), ask.part("verdict")
    wanted = read_filter(_parsed(ask.form.get("filter", "")))
    before = matching_ids(ask.console, wanted, ask.who.actor)
    try:
        done = _give(ask, correction_id, named)
    except NotFound:
        raise
    except FilmroomError as error:
        return _item(ask, correction_id, wanted, problem=str(error), status=409)
    if done.state == "proposed" and done.undo is None:
        return ask.see(_address(correction_id, wanted), note=f"Moved to {ask.form.get('to')}; {_plain(done.next)}")
    after = following(ask.console, wanted, ask.who.actor, correction_id, before=before)
    note = f"{correction_id[:12]}… {_said(done)}; {_plain(done.next)}."
    undo_id = done.change or correction_id
    if after is None:
        return ask.see(_list(wanted), note=note, undo=undo_id)
    if ask.request.headers.get("hx-request") != "true":
        return ask.see(_address(after, wanted), note=note, undo=undo_id)
    return _straight(ask, after, wanted, note, undo_id)


def undo(ask: Ask) -> Response:
    """Take a verdict, change, version or release back."""
    back = ask.form.get("back", "/")
    try:
        done = take_back(ask.workspace, ask.form.get("id", ""), reason=ask.form.get("reason", ""))
    except FilmroomError as error:
        return ask.see(back, note=str(error), wrong=True)
    return ask.see(back, note=f"Taken back: {', '.join(done.undone)}; {_plain(done.next)}.")


def keep_filter(ask: Ask) -> Response:
    """Save a filter under a name."""
    wanted = read_filter(_parsed(ask.form.get("query", "")))
    query = filter_query(wanted)
    with ask.console.store.write() as connection:
        save_filter(connection, ask.console.project, ask.who.actor, ask.form.get("name", ""), query,
                    shared=ask.form.get("shared") == "true", now_us=ask.console.now_us())  # fmt: skip
    return ask.see(f"/review?{query}", note="The filter is kept.")


def forget_filter(ask: Ask) -> Response:
    """Drop a saved filter."""
    with ask.console.store.write() as connection:
        drop_filter(connection, ask.console.project, ask.who.actor, ask.part("id"))
    return ask.see("/review", note="The filter is forgotten.")


def _straight(ask: Ask, correction_id: str, wanted: QueueFilter, note: str, undo_id: str) -> Response:
    """The next correction in the answer to the verdict, without the way over a redirect, which takes as long again."""
    fresh = replace(ask, form={}, chosen={})
    response = _item(fresh, correction_id, wanted, here=f"/review/{correction_id}",
                     note={"text": note, "undo": undo_id, "wrong": False})  # fmt: skip
    response.headers["hx-push-url"] = _address(correction_id, wanted)
    return response


def _item(
    ask: Ask, correction_id: str, wanted: QueueFilter, *, problem: str = "", status: int = 200, **more: Any
) -> Response:
    workspace = ask.workspace
    view = item_view(workspace, correction_id)
    is_open = view["state"] in ("proposed", "deferred")
    if is_open and ask.who.may("reviewer"):
        _claim(ask, correction_id)
    label, help_ = ANSWERS[view["target"]]
    return ask.page(
        "review_item.html", status=status, item=view, is_open=is_open, query=filter_query(wanted),
        near=neighbours(ask.console, wanted, ask.who.actor, correction_id), problem=problem,
        others=[each for each in view["claimed_by"] if each != ask.who.actor], answer_label=label, answer_help=help_,
        answer=ask.form.get("answer", ""), reason=ask.form.get("reason", ""), corrected=_corrected(view),
        targets=workspace.settings.agent.targets, **more,
    )  # fmt: skip


def _claim(ask: Ask, correction_id: str) -> None:
    """Whoever comes second sees who is at it, and may still decide."""
    try:
        claim(ask.workspace, correction_id)
    except NotAllowed:
        return


def _give(ask: Ask, correction_id: str, named: str) -> Reviewed:
    if named not in ("approve", "reroute", "reject", "defer"):
        raise NotFound(f"no verdict {named}")
    verdict_: Verdict = named  # type: ignore[assignment]
    place: Target | None = None
    if named == "reroute":
        place = read_target(ask.form.get("to", ""))
    text = ask.form.get("answer", "").strip()
    answer = read_answer(text) if text and named in ("approve", "reroute") else None
    return give_opinion(ask.workspace, correction_id, verdict_, to=place, answer=answer,
                        reason=ask.form.get("reason", "").strip(), seconds=_seconds(ask))  # fmt: skip


def read_target(text: str) -> Target:
    """The target of this name. Raises NotAllowed."""
    for target in TARGETS:
        if target == text:
            return target
    if not text:
        raise NotAllowed(f"say where it belongs: {', '.join(TARGETS)}")
    raise NotAllowed(f"{text[:40]!r} is no place: {', '.join(TARGETS)}")


def _seconds(ask: Ask) -> float | None:
    opened = ask.form.get("opened", "")
    if not opened.isdecimal() or len(opened) > 20:
        return None
    seconds = (ask.console.now_us() - int(opened)) / 1_000_000
    return seconds if 0 <= seconds <= LONGEST_LOOK_S else None


def _said(done: Reviewed) -> str:
    words = {"applied": "applied", "approved": "approved", "rejected": "rejected", "deferred": "deferred"}
    return words.get(done.state, f"your {done.verdict} is kept")


def _plain(text: str) -> str:
    """A next step without the commands of the terminal.

    >>> _plain("it needs an answer: a label; then `filmroom review approve cor_0 --answer ...`")
    'it needs an answer: a label'
    """
    return text.split("; then `", 1)[0].replace(" (--answer '...')", "").replace(" (--answer)", "")


def _corrected(view: dict[str, Any]) -> list[str]:
    """What people said, shown beside the empty field and never in it."""
    found: dict[str, None] = {}
    for trace in view["examples"]:
        for said in trace["feedback"]:
            for value in (said["comment"], said["corrected_output"]):
                if value is not None:
                    found[str(value)[:400]] = None
    return list(found)[:5]


def _parsed(query: str) -> dict[str, str]:
    from urllib.parse import parse_qsl

    return dict(parse_qsl(query, max_num_fields=50))


def _page(ask: Ask) -> int:
    text = ask.query("page")
    return int(text) if text.isdecimal() and len(text) < 8 else 1


def _list(wanted: QueueFilter) -> str:
    query = filter_query(wanted)
    return f"/review?{query}" if query else "/review"


def _address(correction_id: str, wanted: QueueFilter) -> str:
    query = filter_query(wanted)
    return f"/review/{correction_id}?{query}" if query else f"/review/{correction_id}"


PAGES = [
    Page("/review", queue),
    Page("/review/next", next_item, role="reviewer"),
    Page("/review/filters", keep_filter, role="reviewer", method="POST"),
    Page("/review/filters/{id}/forget", forget_filter, role="reviewer", method="POST"),
    Page("/undo", undo, role="reviewer", method="POST"),
]
ITEM_PAGES = [
    Page("/review/{id}", item),
    Page("/review/{id}/{verdict}", verdict, role="reviewer", method="POST"),
]
"""After the others: their addresses would match those too."""
