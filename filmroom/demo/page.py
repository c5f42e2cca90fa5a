"""The page of plain text that the demo ends with."""

import textwrap
from typing import Any

WIDTH = 100


def page(result: dict[str, Any]) -> str:
    """What failed, what was routed where and why, what was retrained or not and why, before and after, and what to type next."""
    parts = [
        _opening(result),
        "WHERE CORRECTIONS WENT",
        *_verdicts(result),
        "RETRAINING, NIGHT BY NIGHT",
        *_retrains(result),
        "FAILURES IN THE LAST DAYS, HAD NOTHING BEEN CORRECTED, AND AS IT WAS",
        *_rates(result),
        "NEXT",
        *_next(result),
    ]
    return "\n".join(parts)


def _opening(result: dict[str, Any]) -> str:
    text = (
        f"A season of a small support agent: {result['conversations']} conversations over {result['days']} days, "
        f"{result['failures']} failures picked up from its log. The agent is a real program, the shop and its people are "
        f"made up, and so are all words of this log. A scripted colleague gave {len(result['verdicts'])} verdicts. "
        f"It took {result['seconds']} s.\n"
    )
    return textwrap.fill(text, WIDTH) + "\n"


def _verdicts(result: dict[str, Any]) -> list[str]:
    largest: dict[str, dict[str, Any]] = {}
    for verdict in result["verdicts"]:
        largest.setdefault(verdict["name"], verdict)
    lines = []
    for target in ("context", "memory", "tooling", "weights"):
        shown = [v for v in largest.values() if v["target"] == target]
        lines.append(f"  {target}: {len(shown)} clusters")
        lines += [_verdict(v) for v in sorted(shown, key=lambda v: -v["failures"])[:3]]
    rejected = [v for v in largest.values() if v["verdict"] == "reject"]
    lines.append(f"  none: {len(rejected)} clusters were no failures, or nothing lasting would have helped")
    lines += [_verdict(v) for v in rejected[:2]]
    held = result["holds"]
    lines.append(f"  watched since: {held['held']} held, {held['holding']} still holding, {held['failed']} failed\n")
    return lines


def _verdict(verdict: dict[str, Any]) -> str:
    kept = verdict["routed"] == verdict["target"] or verdict["target"] is None
    moved = "" if kept else f" (it was routed to {verdict['routed'] or 'no place'})"
    return "    " + _line(f"{verdict['failures']:2d}  {verdict['name']}{moved}: {verdict['why']}")


def _line(text: str) -> str:
    return textwrap.shorten(text, WIDTH + 30, placeholder=" ...")


def _retrains(result: dict[str, Any]) -> list[str]:
    lines = []
    for number, row in enumerate(result["retrains"]):
        lines.append(
            textwrap.shorten(
                f"  night {number + 1:2d}  {row['decision']:8} {row['reason']}", WIDTH + 20, placeholder=" ..."
            )
        )
    return [*lines, ""]


def _rates(result: dict[str, Any]) -> list[str]:
    lines = [f"  {'family':18} {'uncorrected':>12} {'as it was':>10}"]
    for family, (failed, total) in result["before"].items():
        now_failed, now_total = result["after"].get(family, (0, total))
        lines.append(f"  {family:18} {failed:5d} of {total:3d} {now_failed:5d} of {now_total:3d}")
    return [*lines, ""]


def _next(result: dict[str, Any]) -> list[str]:
    shown = ("served model", result["promoted"]) if result["promoted"] else ("live release", result["release"])
    commands = {
        f"cd {result['folder']}": "where its store lies",
        "filmroom review list": "what still waits for a person",
        f"filmroom why {shown[1]}": f"from the {shown[0]} back to the traces",
        "filmroom history": "every retrain that was weighed, and why",
        "filmroom init --from LOG": "your own log, in a folder of its own",
    }
    return [f"  {command:40} {what}" for command, what in commands.items()]
