"""A small production log in the native format, with failures of all four kinds, and a workspace to turn it in."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from flows.workspace import Workspace, open_workspace
from store.ingest import Tally, ingest
from store.settings import Settings, read_settings
from store.sources import read

DAY_S = 86_400
START_S = 1_767_225_600
"""2026-01-01, UTC."""

TOOLS = {"update_order": {"type": "object", "required": ["order_id"], "properties": {
    "order_id": {"type": "string", "pattern": "^#[0-9]+$"}}}}  # fmt: skip

SETTINGS = """\
[agent]
tools = "tools.json"
[weights.intents]
training = "train.csv"
out_of_scope = "other"
[policy]
profile = "small"
trusted = ["staff:ann"]
"""


def trace(number: int, *, day: int = 0, user: str | None = None, **values: Any) -> dict[str, Any]:
    return {"type": "trace", "id": f"t{number}", "started": START_S + day * DAY_S + number,
            "user": user or f"u{number % 7}", "status": "ok", **values}  # fmt: skip


def said(number: int, *, day: int = 0, by: str | None = None, **values: Any) -> dict[str, Any]:
    return {"type": "feedback", "id": f"f{number}", "trace": f"t{number}", "given": START_S + day * DAY_S + number + 60,
            "principal": by or f"u{number % 7}", **values}  # fmt: skip


def satisfied(number: int, **values: Any) -> list[dict[str, Any]]:
    """A trace that its user was content with."""
    return [trace(number, input="hello", output="good day", **values), said(number, name="thumb", score=1)]


def bad_argument(number: int, *, day: int = 0) -> list[dict[str, Any]]:
    """Tooling: the tool wants `#123`, the agent passes `123`."""
    call = {"id": "c", "kind": "tool", "name": "update_order", "input": {"order_id": str(100 + number)},
            "status": "error", "error": "Error: order_id is not valid"}  # fmt: skip
    return [trace(number, day=day, input="change my order", output="that did not work", spans=[call]),
            said(number, day=day, name="thumb", score=0)]  # fmt: skip


def unwritten_rule(number: int, *, day: int = 0) -> list[dict[str, Any]]:
    """Context: the answer breaks a policy that nobody told the agent."""
    return [trace(number, day=day, input="cancel it", output="It is cancelled."),
            said(number, day=day, by="staff:ann", name="thumb", score=0, comment="You must always offer a voucher first.",
                 corrected_output="Before I cancel, may I offer you a voucher?")]  # fmt: skip


def forgotten_fact(number: int, *, day: int = 0, user: str = "u3") -> list[dict[str, Any]]:
    """Memory: a user has to say again what they said before."""
    return [trace(number, day=day, user=user, channel="app", input="where do I pick it up?", output="At the Main Street shop."),
            said(number, day=day, by=user, name="thumb", score=0, comment="As I told you, I prefer the Elm Street shop.",
                 corrected_output={"pickup_shop": "Elm Street"})]  # fmt: skip


def prediction(text: str, label: str, confidence: float = 0.7) -> dict[str, Any]:
    """The step in which the model answers a text."""
    return {"id": "p", "kind": "predict", "name": "intents", "input": text, "output": label, "confidence": confidence}


def misread(number: int, *, day: int = 0, text: str = "take it back", label: str = "return") -> list[dict[str, Any]]:
    """Weights: the model's own answer is wrong."""
    return [trace(number, day=day, input=text, output="status", spans=[prediction(text, "status")]),
            said(number, day=day, span="p", name="label", corrected_output=label)]  # fmt: skip


def write_lines(path: Path, *groups: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(line) + "\n" for group in groups for line in group), encoding="utf-8")
    return path


def make_home(folder: Path, settings: str = SETTINGS) -> Settings:
    """A folder with settings, tool schemas and a training file."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "filmroom.toml").write_text(settings, encoding="utf-8")
    (folder / "tools.json").write_text(json.dumps(TOOLS), encoding="utf-8")
    rows = [f"where is order {i},status" for i in range(20)] + [f"i want to return item {i},return" for i in range(20)]
    (folder / "train.csv").write_text("text,label\n" + "\n".join(rows) + "\n", encoding="utf-8")
    return read_settings(folder / "filmroom.toml")


@contextmanager
def working_in(folder: Path, settings: str = SETTINGS, *, url: str | None = None) -> Iterator[Workspace]:
    """An open workspace in a new home; `url`: of its store, default SQLite in the folder."""
    made = make_home(folder, settings)
    if url is not None:
        made = made.model_copy(update={"store": made.store.model_copy(update={"url": url})})
    with open_workspace(made, actor="staff:ann", create=True) as workspace:
        yield workspace


def take_in(workspace: Workspace, *groups: list[dict[str, Any]]) -> Tally:
    """Ingest lines as a file of the log."""
    path = write_lines(workspace.settings.home / "log.jsonl", *groups)
    return ingest(workspace.store, read(path), clock=workspace.clock)
