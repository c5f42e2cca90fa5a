"""Two versions or releases side by side, of any of the four targets."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from filmroom.main import main
from flows.workspace import Workspace
from tests.live_server import change, fact, live, policy, rule, swap_all, two_models
from tests.shop_log import working_in


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Workspace]:
    with working_in(tmp_path) as opened:
        monkeypatch.chdir(tmp_path)
        yield opened


def compared(capfd: pytest.CaptureFixture[str], before: str, after: str) -> Any:
    capfd.readouterr()
    assert main(["compare", before, after, "--json"]) == 0
    return json.loads(capfd.readouterr().out)


def printed(capfd: pytest.CaptureFixture[str], before: str, after: str) -> list[str]:
    capfd.readouterr()
    assert main(["compare", before, after]) == 0
    return capfd.readouterr().out.splitlines()


def test_versions_of_the_context_by_their_entries(workspace: Workspace, capfd: pytest.CaptureFixture[str]) -> None:
    first = change(workspace, "context", [rule("rule_1", "Be brief."), rule("rule_2", "Be kind.")])
    second = change(workspace, "context", [rule("rule_1", "Be long.", verb="edit")])
    found = compared(capfd, first.context, second.context)
    assert [each["argument"] for each in found["removed"]] == ["Be brief."]
    assert [each["argument"] for each in found["added"]] == ["Be long."]
    assert compared(capfd, first.context, first.context)["added"] == []


def test_releases_in_all_four_places(workspace: Workspace, capfd: pytest.CaptureFixture[str]) -> None:
    one, two = two_models(workspace)
    first, second = swap_all(workspace, 0, one), swap_all(workspace, 1, two)
    found = compared(capfd, first.id, second.id)
    assert [each["argument"] for each in found["context"]["added"]] == ["Say 1."]
    assert [each["text"] for each in found["memory"]["added"]] == ["number = 1"]
    assert [each["retries"] for each in found["tooling"]["added"]] == [1]
    assert [(each["model"], each["newly_wrong"] > 0) for each in found["models"]] == [("intents", True)]
    lines = printed(capfd, first.id, second.id)
    assert lines[0] == f"context: {first.context} -> {second.context}"
    assert "+ facts: number = 1" in lines


def test_the_same_release_is_the_same(workspace: Workspace, capfd: pytest.CaptureFixture[str]) -> None:
    change(workspace, "memory", [fact("fact_1", "u1", "shop", "Elm")])
    now = change(workspace, "tooling", [policy("find", retries=1)])
    assert printed(capfd, now.id, now.id) == ["the same in all four places"]


def test_things_of_two_kinds_are_refused(workspace: Workspace, capfd: pytest.CaptureFixture[str]) -> None:
    now = live(workspace)
    assert main(["compare", now.context, now.id]) == 1
    assert main(["compare", now.context, now.tooling]) == 1
    assert main(["compare", "rel_9", now.id]) == 1
    assert capfd.readouterr().err.count("\n") == 3
