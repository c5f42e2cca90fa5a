"""`filmroom demo`: a season of the agent, with a turn of the loop every night and a colleague at the review queue."""

import csv
import json
import shutil
import time
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from filmroom.demo.agent import MODEL, OUT_OF_SCOPE
from filmroom.demo.live import LiveRelease, serve_release
from filmroom.demo.people import feedback_due
from filmroom.demo.reviewer import REVIEWER, review
from filmroom.demo.season import Day, base_training, season
from filmroom.demo.shop import Shop, tool_schemas
from filmroom.demo.stage import play
from filmroom.demo.truth import Conversation, failure_rates
from filmroom.demo.users import STAFF
from flows import review as verdicts
from flows.champion import found_model
from flows.turn import turn
from flows.workspace import Workspace, open_workspace
from store.changes import changes_of, holds_of
from store.errors import NotAllowed, Refused
from store.ingest import ingest
from store.records import Release
from store.releases import live_release
from store.retrains import retrains_of
from store.review_queue import review_item, review_queue
from store.settings import FILE_NAME, read_settings
from store.sources import read
from store.traces import episodes

DAYS, PER_DAY = 16, 90
FIRST_REVIEW = 3
"""The colleague looks at the queue from this day on, when there is something to compare."""
REVIEWS_A_DAY = 12
MENDED_AFTER = 2
"""Days after a ticket was opened, the tool's owner has mended the tool."""
LATE = 4
"""Days at the end that are compared with the same days under the first release."""
MARK = "# Written by `filmroom demo`; it is replaced when the demo is played again.\n"

Progress = Callable[[str, int | None], AbstractContextManager[Callable[[int], None]]]


@dataclass
class Stage:
    """What has been played so far."""

    folder: Path
    last_review: int = DAYS
    talks: list[Conversation] = field(default_factory=list)
    turns: list[dict[str, Any]] = field(default_factory=list)
    verdicts: list[dict[str, Any]] = field(default_factory=list)
    tickets: dict[str, int] = field(default_factory=dict)
    """Tool to the day on which a ticket was opened for it."""

    def shop(self, day: int) -> Shop:
        return Shop(repaired=frozenset(tool for tool, opened in self.tickets.items() if day >= opened + MENDED_AFTER))


def play_season(folder: Path, *, progress: Progress, seed: int = 0, last_review: int = DAYS) -> dict[str, Any]:
    """Play the season into `folder` and return what happened; its store stays there to look around in.

    After day `last_review` the colleague is away, and the queue fills.

    Raises NotAllowed for a folder that holds something else.
    """
    started = time.perf_counter()
    _make_folder(folder)
    settings = read_settings(folder / FILE_NAME)
    stage = Stage(folder, last_review=last_review)
    moment = [0]
    with open_workspace(settings, actor="demo", clock=lambda: moment[0], create=True) as workspace:
        days = list(season(seed, days=DAYS, per_day=PER_DAY))
        moment[0] = _us(days[0]) - 86_400_000_000
        found_model(workspace, MODEL)
        with workspace.store.read() as connection:
            first = live_release(connection, workspace.project)
        with progress("playing the season", DAYS) as advance:
            for day in days:
                moment[0] = _us(day)
                _play_day(workspace, stage, day)
                advance(1)
        untouched = _without_corrections(workspace, days, first)
        return _result(workspace, stage, untouched, time.perf_counter() - started)


def _make_folder(folder: Path) -> None:
    file = folder / FILE_NAME
    if folder.exists() and any(folder.iterdir()) and not (file.exists() and file.read_text().startswith(MARK)):
        raise NotAllowed(f"{folder} holds something that the demo did not make: name another with --folder")
    if folder.exists():
        shutil.rmtree(folder)
    folder.mkdir(parents=True)
    with (folder / "base.csv").open("w", newline="", encoding="utf-8") as out:
        csv.writer(out).writerows([("text", "label"), *base_training()])
    (folder / "tools.json").write_text(json.dumps(tool_schemas(), indent=1), encoding="utf-8")
    trusted = ", ".join(f'"{name}"' for name in STAFF)
    file.write_text(
        f'{MARK}[agent]\ntools = "tools.json"\n\n[weights.{MODEL}]\ntraining = "base.csv"\n'
        f'out_of_scope = "{OUT_OF_SCOPE}"\nchampion = "ours"\n\n[policy]\nprofile = "small"\ntrusted = [{trusted}]\n',
        encoding="utf-8",
    )


def _play_day(workspace: Workspace, stage: Stage, day: Day) -> None:
    """The agent works all day with what is live; at night the log is read, the loop turns, and the colleague reviews."""
    served = serve_release(workspace, [request.message.text for request in day.requests])
    played = play(day, served, stage.shop(day.number))
    stage.talks += played
    log = stage.folder / f"day-{day.number:02}.jsonl"
    lines = [talk.reply.trace for talk in played] + feedback_due(stage.talks, day.number)
    log.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    ingest(workspace.store, read(log), clock=workspace.clock)
    stage.turns.append({"day": day.number, **turn(workspace).model_dump(mode="json")})
    if FIRST_REVIEW <= day.number <= stage.last_review:
        _review(workspace.acting(actor=REVIEWER), stage, day.number)


def _review(workspace: Workspace, stage: Stage, day: int) -> None:
    known = {talk.id: talk for talk in stage.talks}
    for item in review_queue(workspace.store)[:REVIEWS_A_DAY]:
        shown = review_item(workspace.store, item["correction"])
        with workspace.store.read() as connection:
            seen = episodes(connection, [example["trace"] for example in shown["examples"]])
        judgement = review(item["target"], [known[each.trace.external_id] for each in seen])
        done = _say(workspace, item, judgement)
        stage.verdicts.append(
            {
                "day": day,
                "name": item["name"],
                "routed": item["target"],
                "failures": item["failures"],
                "why": shown["reason"],
                **done,
            }
        )
        if done["verdict"] in ("approve", "reroute") and done["target"] == "tooling":
            _note_tickets(workspace, stage, day)


def _say(workspace: Workspace, item: dict[str, Any], judgement: Any) -> dict[str, Any]:
    """Carry a verdict out through the same functions that the command line calls."""
    id_, reason = item["correction"], judgement.reason
    try:
        if judgement.verdict == "approve":
            answer = judgement.answer if item["needs_answer"] else None
            verdicts.approve(workspace, id_, answer=answer, reason=reason)
        elif judgement.verdict == "reroute":
            moved = verdicts.reroute(workspace, id_, to=judgement.target, reason=reason)
            if moved.change is None:
                verdicts.approve(workspace, id_, answer=judgement.answer, reason=reason)
        elif judgement.verdict == "reject":
            verdicts.reject(workspace, id_, reason=reason)
        else:
            verdicts.defer(workspace, id_, reason=reason)
    except (NotAllowed, Refused) as error:
        return {"verdict": "defer", "target": None, "reason": str(error)}
    return {"verdict": judgement.verdict, "target": judgement.target, "reason": reason}


def _note_tickets(workspace: Workspace, stage: Stage, day: int) -> None:
    for ticket in serve_release(workspace, []).tickets:
        stage.tickets.setdefault(ticket.tool, day)


def _us(day: Day) -> int:
    return int(day.ends.timestamp() * 1_000_000)


def _without_corrections(workspace: Workspace, days: Iterable[Day], first: Release) -> list[Conversation]:
    """The same last days, had nothing been corrected: the first release and the unmended shop."""
    late = list(days)[-LATE:]
    served: LiveRelease = serve_release(workspace, [r.message.text for day in late for r in day.requests], first)
    return [talk for day in late for talk in play(day, served, Shop())]


def _result(workspace: Workspace, stage: Stage, untouched: list[Conversation], seconds: float) -> dict[str, Any]:
    late = [talk for talk in stage.talks if talk.request.day >= DAYS - LATE]
    with workspace.store.read() as connection:
        retrains = retrains_of(connection, workspace.project)
        holds = [hold.state for hold in holds_of(connection, workspace.project)]
        changes = changes_of(connection, workspace.project)
        live = live_release(connection, workspace.project)
    return {
        "made_up": True,
        "folder": str(stage.folder),
        "days": DAYS,
        "conversations": len(stage.talks),
        "failures": sum(each["failures"] for each in stage.turns),
        "before": failure_rates(untouched),
        "after": failure_rates(late),
        "verdicts": stage.verdicts,
        "changes": [{"change": each.id, "target": each.target, "state": each.state} for each in changes],
        "tickets": stage.tickets,
        "holds": {state: holds.count(state) for state in ("holding", "held", "failed")},
        "retrains": [
            each.model_dump(mode="json", include={"id", "at_us", "decision", "reason", "arm", "version"})
            for each in reversed(retrains)
        ],
        "promoted": next((each.version for each in retrains if each.decision == "promoted"), None),
        "release": live.id,
        "waiting": len(review_queue(workspace.store)),
        "seconds": round(seconds, 1),
    }
