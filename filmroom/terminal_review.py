"""The review queue in a terminal, a key a verdict: one correction at a time, with the verdicts of the console.

Keys are read one at a time by readchar and shown by rich, which Prefect and the tables of the command line bring along.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from rich.console import Console
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from filmroom.answer import read_answer
from filmroom.session import printable
from filmroom.ways_said import way_lines
from flows.opinions import claim, give_opinion, panel, take_back
from flows.ways import ways_of
from flows.workspace import Workspace
from store.corrections import route_of
from store.errors import FilmroomError, NotAllowed
from store.opinions import next_for
from store.queue_page import QueueFilter, Show, matching, onward, queue_counts
from store.records import TARGETS, Target, Verdict
from store.review_queue import review_item

KEYS = (
    "a approve   1-4 reroute to context, memory, tooling, weights   e edit   r reject   d defer   "
    "j next   k before   w ways to yes   u undo   ? keys   q quit"
)

Read = Callable[[], str]
"""The next key."""
Ask = Callable[[str], str]
"""A line that is written; empty: nothing."""


@dataclass
class Desk:
    """Where the reviewer is."""

    workspace: Workspace
    screen: Console
    read: Read
    ask: Ask
    done: list[str] = field(default_factory=list)
    """Corrections decided here, for `u`."""
    note: str = ""

    def ids(self, show: Show = "waiting") -> list[str]:
        """What waits, in the queue's order; `queued`: without what was put off."""
        with self.workspace.store.read() as connection:
            return matching(connection, self.workspace.project, QueueFilter(show=show), cap=self.workspace.policy.queue_cap,
                            reviewers=self.workspace.settings.console.reviewers, me=self.workspace.actor,
                            now_us=self.workspace.clock())  # fmt: skip


def review_by_keys(workspace: Workspace, screen: Console, *, read: Read, ask: Ask) -> int:
    """Go through the queue until it is empty or `q`; returns how many verdicts were given."""
    desk = Desk(workspace, screen, read, ask)
    at = _first(desk)
    while at is not None:
        _claim(desk, at)
        _show(desk, at)
        key = read()
        if key in ("q", "\x03", "\x04"):
            break
        at = _pressed(desk, at, key)
    if at is None:
        screen.print("Nothing waits for you." if not desk.note else printable(desk.note))
    return len(desk.done)


def _pressed(desk: Desk, at: str, key: str) -> str | None:
    """Do what the key says; returns the correction to show next."""
    desk.note = ""
    if key in ("j", "k"):
        return _moved(desk, at, 1 if key == "j" else -1)
    if key == "w":
        desk.note = _ways(desk, at)
        return at
    if key == "u":
        return _undone(desk) or at
    if key in "ard" or (key.isdecimal() and 1 <= int(key) <= len(TARGETS)) or key == "e":
        return _decided(desk, at, key)
    desk.note = KEYS
    return at


def _decided(desk: Desk, at: str, key: str) -> str | None:
    verdicts: dict[str, Verdict] = {"a": "approve", "e": "approve", "r": "reject", "d": "defer"}
    verdict: Verdict = verdicts.get(key, "reroute")
    to: Target | None = TARGETS[int(key) - 1] if verdict == "reroute" else None
    before = desk.ids()
    item = review_item(desk.workspace.store, at)
    answer = None
    if key == "e" or (verdict == "approve" and item["needs_answer"]):
        text = desk.ask(item["needs_answer"] or "your answer").strip()
        if not text:
            desk.note = "nothing was written: nothing is changed"
            return at
        answer = read_answer(text)
    try:
        done = give_opinion(desk.workspace, at, verdict, to=to, answer=answer)
    except FilmroomError as error:
        desk.note = str(error)
        return at
    desk.note = f"{at}: {done.state}; {done.next}"
    if verdict == "reroute" and done.change is None and done.state == "proposed" and done.undo is None:
        return at
    desk.done.append(at)
    return _first(desk, onward(before, at, desk.ids("queued")))


def _ways(desk: Desk, at: str) -> str:
    """What would make it go without a person, and how long that takes."""
    with desk.workspace.store.read() as connection:
        decided = route_of(connection, at)
        lines = way_lines(ways_of(connection, desk.workspace.project, decided))
    return "\n".join(
        [f"shortest way to a certificate: {decided.to_yes if decided else 'it is not routed yet'}", *lines]
    )


def _undone(desk: Desk) -> str | None:
    if not desk.done:
        desk.note = "nothing was decided here yet"
        return None
    id_ = desk.done.pop()
    try:
        desk.note = f"taken back: {', '.join(take_back(desk.workspace, id_).undone)}"
    except FilmroomError as error:
        desk.note = str(error)
    return id_ if id_ in desk.ids() else None


def _first(desk: Desk, ids: list[str] | None = None) -> str | None:
    """The first of these corrections, else of the queue, that nobody else is at."""
    ids = desk.ids("queued") if ids is None else ids
    with desk.workspace.store.read() as connection:
        return next_for(connection, desk.workspace.project, ids, desk.workspace.actor, now_us=desk.workspace.clock())


def _moved(desk: Desk, at: str, step: int) -> str:
    ids = desk.ids()
    if at not in ids:
        return ids[0] if ids else at
    return ids[max(0, min(len(ids) - 1, ids.index(at) + step))]


def _claim(desk: Desk, at: str) -> None:
    try:
        claim(desk.workspace, at)
    except NotAllowed as error:
        desk.note = desk.note or str(error)


def _show(desk: Desk, at: str) -> None:
    screen, workspace = desk.screen, desk.workspace
    item = review_item(workspace.store, at)
    with workspace.store.read() as connection:
        seen = panel(connection, workspace, at)
        counts = queue_counts(connection, workspace.project, cap=workspace.policy.queue_cap,
                              reviewers=workspace.settings.console.reviewers)  # fmt: skip
    screen.clear()
    screen.print(
        Text(
            f"queued {counts.queued}   held {counts.held}   deferred {counts.deferred}   done {counts.done}",
            style="dim",
        )
    )
    screen.print(Text(printable(f"{item['name']}: {item['failures']} failures"), style="bold"))
    for example in item["examples"][:1]:
        lines = [*example["steps"], *(f"  said: {line}" for line in example["feedback"])]
        screen.print(Panel(Text(printable("\n".join(lines))), title=example["trace"], title_align="left"))
    screen.print(_places(item))
    screen.print(Text(printable(f"why: {item['reason']}")))
    screen.print(Text(printable(f"proposed: {item['summary']}"), style="bold"))
    if item["needs_answer"]:
        screen.print(Text(printable(f"it needs from you: {item['needs_answer']}"), style="yellow"))
    if seen.wanted > 1:
        screen.print(
            Text(f"reviewer {min(seen.count + 1, seen.wanted)} of {seen.wanted}; {seen.stage}", style="yellow")
        )
    if desk.note:
        screen.print(Text(printable(desk.note), style="green"))
    screen.print(Text(KEYS, style="dim"))


def _places(item: dict[str, Any]) -> Table:
    shown = Table(box=None, show_header=False, pad_edge=False)
    ranked = sorted(item["probabilities"].items(), key=lambda pair: -pair[1])
    for name, value in ranked[:3]:
        bar = "\N{FULL BLOCK}" * round(20 * value)
        shown.add_row(name if name != "none" else "no place", f"{100 * value:.0f} %", bar)
    return shown
