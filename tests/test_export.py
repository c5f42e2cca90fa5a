"""Releases, rules and tickets as files: whole, safe to read while they are replaced, and nothing in them is markup or code."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from filmroom.main import main
from filmroom.release_folder import export_release
from filmroom.signature import is_signed
from filmroom.signing_key import signing_key
from filmroom.ticket_files import ticket_markdown, ticket_test
from flows.champion import found_model
from flows.workspace import Workspace
from store.errors import Refused
from store.records import Operation, Ticket
from tests.live_server import change, fact, live, rule
from tests.shop_log import working_in

POISON = "x\"\"\"'''\n`````\n</pre><script>alert(1)</script> {{ 7*7 }} {0.__class__} ${HOME} \x00\x1b[31m\u202e"
TICKET = Ticket(
    id="tkt_1",
    tool="update_order",
    title="`update_order`: fails",
    trace_ids=("trc_1",),
    call={"order_id": "104"},
    error="Error: no",
)


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Workspace]:
    with working_in(tmp_path / "shop") as opened:
        monkeypatch.chdir(opened.settings.home)
        yield opened


def opened(ticket: Ticket) -> Operation:
    value = ticket.model_dump(mode="json", exclude={"id"})
    return Operation(target="tooling", verb="ticket_open", key=ticket.id, value=value)


def said(capfd: pytest.CaptureFixture[str], *arguments: str) -> str:
    capfd.readouterr()
    assert main(list(arguments)) == 0
    return capfd.readouterr().out


def test_a_folder_holds_the_signed_release_and_what_it_names(
    workspace: Workspace, capfd: pytest.CaptureFixture[str]
) -> None:
    found_model(workspace, "intents")
    change(workspace, "memory", [fact("fact_1", "u3", "pickup_shop", "Elm Street")])
    out = workspace.settings.home / "out"
    printed = json.loads(said(capfd, "export", "release", str(out), "--memory", "--json"))
    found = json.loads((out / "release.json").read_text())
    files = sorted(path.relative_to(out).as_posix() for path in out.rglob("*") if path.is_file())
    assert (printed["release"], found["release"]) == (live(workspace).id, live(workspace).id)
    assert is_signed(found, signing_key(workspace.settings.home))
    model = f"models/{found['models']['intents']['artifact']}.skops"
    assert files == ["context.md", found["memory"]["file"], model, "release.json"]
    assert (out / found["memory"]["file"]).stat().st_mode & 0o777 == 0o600


def test_what_the_release_before_named_stays_for_whoever_reads_it_now(workspace: Workspace) -> None:
    out = workspace.settings.home / "out"
    names = []
    for number in range(3):
        change(workspace, "memory", [fact(f"fact_{number}", "u3", "size", number)])
        names.append(exported(workspace, out)["memory"]["file"])
    assert sorted(path.name for path in out.glob("memory-*")) == sorted(names[1:])


def exported(workspace: Workspace, out: Path) -> dict[str, Any]:
    with workspace.store.read() as connection:
        return export_release(
            connection, workspace.project, out, schemas={}, artifacts=workspace.artifacts, key="key",
            now_us=workspace.clock(), memory=True,
        )  # fmt: skip


def test_a_release_without_its_model_file_is_not_exported(workspace: Workspace) -> None:
    found_model(workspace, "intents")
    for path in workspace.artifacts.glob("*.skops"):
        path.unlink()
    with pytest.raises(Refused, match="model 'intents' is missing"):
        exported(workspace, workspace.settings.home / "out")
    assert not (workspace.settings.home / "out" / "release.json").exists()


def test_the_rules_as_a_block_for_a_prompt(workspace: Workspace, capfd: pytest.CaptureFixture[str]) -> None:
    operations = [
        rule("rule_1", "Offer a voucher.", intent="cancel"),
        rule("rule_2", "update_order", action="confirm_before"),
    ]
    change(workspace, "context", operations)
    confirm = "- Before `update_order`, ask the user to confirm, and wait for the answer.\n"
    assert said(capfd, "export", "context") == "## Rules\n- When the intent is cancel: Offer a voucher.\n" + confirm
    assert said(capfd, "export", "context", "--intent", "status") == "## Rules\n" + confirm


def test_a_ticket_is_markdown_and_a_test(workspace: Workspace, capfd: pytest.CaptureFixture[str]) -> None:
    change(workspace, "tooling", [opened(TICKET)])
    printed = said(capfd, "export", "ticket", "tkt_1", "--to", "tickets")
    assert printed == "tickets/tkt_1.md, tickets/test_tkt_1.py\n"
    assert Path("tickets/tkt_1.md").read_text() == ticket_markdown(TICKET)
    assert '```json\n{\n  "order_id": "104"\n}\n```' in said(capfd, "export", "ticket", "tkt_1")


def test_an_unknown_ticket_is_named(workspace: Workspace, capfd: pytest.CaptureFixture[str]) -> None:
    change(workspace, "tooling", [opened(TICKET)])
    assert main(["export", "ticket", "tkt_9"]) == 1
    assert capfd.readouterr().err == "filmroom: no ticket tkt_9; there are: tkt_1\n"


TOOL = """
def broken(order_id):
    raise ValueError("order_id is not valid")
def mended(**arguments):
    assert arguments == {arguments!r}
    return {{"ok": True}}
def polite(**arguments):
    return {{"error": "no"}}
"""


@pytest.mark.parametrize(("function", "outcome"), [("broken", 1), ("polite", 1), ("mended", 0), ("", 0)])
def test_the_test_of_a_ticket_fails_until_the_tool_is_mended(tmp_path: Path, function: str, outcome: int) -> None:
    ticket = TICKET.model_copy(update={"call": {"order_id": POISON}, "error": POISON, "tool": f"update_order{POISON}"})
    (tmp_path / "test_ticket.py").write_text(ticket_test(ticket))
    (tmp_path / "shop_tool.py").write_text(TOOL.format(arguments=ticket.call))
    done = run_pytest(tmp_path, f"shop_tool:{function}" if function else "")
    assert done.returncode == outcome, done.stdout
    assert ("1 skipped" in done.stdout) == (not function)


def run_pytest(folder: Path, tool: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "pytest", "-q", "-rs", "-p", "no:cacheprovider", "test_ticket.py"]
    environment = {**os.environ, "FILMROOM_TOOL": tool, "PYTHONPATH": str(folder)}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


def test_nothing_of_a_log_is_markup_in_a_ticket() -> None:
    ticket = TICKET.model_copy(update={"title": POISON, "tool": POISON, "call": {"a": POISON}, "error": POISON})
    lines = ticket_markdown(ticket).splitlines()
    fences = [n for n, each in enumerate(lines) if each.startswith("`" * 6)]
    inside = {n for start, end in zip(fences[::2], fences[1::2], strict=True) for n in range(start, end + 1)}
    outside = [each for n, each in enumerate(lines) if n not in inside and "<script>" in each]
    assert len(fences) == 4
    assert all(each.count("`") % 2 == 0 and "<script>" not in "".join(each.split("`")[::2]) for each in outside)
    assert all(each.isprintable() for each in lines)
