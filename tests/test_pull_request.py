"""A change as a branch of the user's repository: nothing else of it is touched, and merging applies it."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from filmroom.main import main
from flows.pull_request import open_pull_request
from flows.turn import turn
from flows.undo import undo
from flows.workspace import Workspace
from store.corrections import correction
from store.errors import NotAllowed, SettingsError
from store.releases import live_release, version
from store.review_queue import review_queue
from tests.shop_log import SETTINGS, bad_argument, forgotten_fact, satisfied, take_in, unwritten_rule, working_in

IDENTITY = {
    f"GIT_{role}_{part}": f"{part.lower()}@example.org"
    for role in ("AUTHOR", "COMMITTER")
    for part in ("NAME", "EMAIL")
}
SENTENCE = "Offer a voucher first."


def git(folder: Path, *arguments: str) -> str:
    done = subprocess.run(["git", "-C", str(folder), *arguments], capture_output=True, text=True, check=True,
                          env={**os.environ, **IDENTITY})  # fmt: skip
    return done.stdout.strip()


@pytest.fixture
def agent(tmp_path: Path) -> Path:
    """A repository with one commit, and work that is not committed."""
    folder = tmp_path / "agent"
    folder.mkdir()
    git(folder, "init", "--quiet", "--initial-branch", "main")
    (folder / "agent.py").write_text("print('hello')\n")
    git(folder, "add", "agent.py")
    git(folder, "commit", "--quiet", "-m", "first")
    (folder / "agent.py").write_text("print('at work')\n")
    return folder


@pytest.fixture
def workspace(agent: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Workspace]:
    settings = SETTINGS.replace("[agent]\n", '[agent]\nrepository = "../agent"\n')
    with working_in(tmp_path / "home", settings) as opened:
        take_in(opened, *(satisfied(n) for n in range(20)), *(bad_argument(n) for n in range(40, 45)),
                *(unwritten_rule(n) for n in range(50, 55)), *(forgotten_fact(n) for n in range(60, 65)))  # fmt: skip
        turn(opened)
        monkeypatch.chdir(tmp_path / "home")
        yield opened


def waiting(workspace: Workspace, target: str) -> str:
    return next(str(row["correction"]) for row in review_queue(workspace.store) if row["target"] == target)


def opened(workspace: Workspace, capfd: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    capfd.readouterr()
    assert main(["pr", *arguments, "--json"]) == 0
    found: dict[str, Any] = json.loads(capfd.readouterr().out)
    return found


def rules(workspace: Workspace) -> list[str]:
    with workspace.store.read() as connection:
        content: Any = version(connection, live_release(connection, workspace.project).context).content
    return [each["argument"] for each in content["rules"]]


def test_a_branch_is_written_and_nothing_else_is_touched(
    workspace: Workspace, agent: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    before = git(agent, "rev-parse", "HEAD"), git(agent, "status", "--porcelain")
    id_ = waiting(workspace, "context")
    done = opened(workspace, capfd, id_, "--answer", SENTENCE)
    assert (git(agent, "rev-parse", "HEAD"), git(agent, "status", "--porcelain")) == before
    changed = git(agent, "diff", "--name-status", "main", done["branch"]).split("\n")
    assert changed == [f"A\tfilmroom/changes/{id_}.json", f"A\tfilmroom/changes/{id_}.md", "A\tfilmroom/context.json",
                       f"A\ttests/filmroom/test_{id_}.py"]  # fmt: skip
    assert SENTENCE in git(agent, "show", f"{done['branch']}:filmroom/context.json")
    assert rules(workspace) == []


@pytest.mark.parametrize("way", ["merge", "squash", "rebase"])
def test_merging_applies_it_in_the_next_turn(
    workspace: Workspace, agent: Path, capfd: pytest.CaptureFixture[str], way: str
) -> None:
    id_ = waiting(workspace, "context")
    branch = opened(workspace, capfd, id_, "--answer", SENTENCE)["branch"]
    turn(workspace)
    assert rules(workspace) == []
    git(agent, "stash", "--quiet")
    if way == "squash":
        git(agent, "merge", "--quiet", "--squash", branch)
        git(agent, "commit", "--quiet", "-m", "squashed")
    else:
        git(agent, *(("merge", "--quiet", "--no-ff", branch) if way == "merge" else ("rebase", "--quiet", branch)))
    turn(workspace)
    assert rules(workspace) == [SENTENCE]
    turn(workspace)
    with workspace.store.read() as connection:
        assert correction(connection, workspace.project, id_).state == "applied"


def test_another_change_under_its_name_is_not_applied(
    workspace: Workspace, agent: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    id_ = waiting(workspace, "context")
    opened(workspace, capfd, id_, "--answer", SENTENCE)
    path = agent / "filmroom" / "changes" / f"{id_}.json"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps({"correction": id_, "digest": "0" * 64, "operations": []}))
    git(agent, "add", "filmroom")
    git(agent, "commit", "--quiet", "-m", "by hand")
    turn(workspace)
    assert rules(workspace) == []


def test_its_test_fails_without_the_change_and_passes_with_it(
    workspace: Workspace, agent: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    id_ = waiting(workspace, "tooling")
    branch = opened(workspace, capfd, id_)["branch"]
    git(agent, "stash", "--quiet")
    git(agent, "merge", "--quiet", branch)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"tests/filmroom/test_{id_}.py"]
    assert subprocess.run(command, cwd=agent, capture_output=True, check=False).returncode == 0
    (agent / "filmroom" / "tooling.json").write_text('{"policies": [], "tickets": []}')
    assert subprocess.run(command, cwd=agent, capture_output=True, check=False).returncode == 1


def test_users_words_are_in_it_only_where_they_are_asked_for(
    workspace: Workspace, agent: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    id_ = waiting(workspace, "context")
    done = opened(workspace, capfd, id_, "--answer", SENTENCE)
    assert "cancel it" not in git(agent, "show", done["branch"])
    done = opened(workspace, capfd, id_, "--inputs")
    assert "cancel it" in git(agent, "show", f"{done['branch']}:tests/filmroom/test_{id_}.py")


def test_one_that_is_not_merged_can_be_taken_back(workspace: Workspace, capfd: pytest.CaptureFixture[str]) -> None:
    id_ = waiting(workspace, "context")
    opened(workspace, capfd, id_, "--answer", SENTENCE)
    assert id_ not in {row["correction"] for row in review_queue(workspace.store)}
    undo(workspace, id_)
    assert id_ in {row["correction"] for row in review_queue(workspace.store)}


def test_a_memory_is_no_pull_request(workspace: Workspace) -> None:
    with pytest.raises(NotAllowed, match="only context and tooling go by pull request"):
        open_pull_request(workspace, waiting(workspace, "memory"), {})


def test_a_folder_that_is_no_repository_is_named(workspace: Workspace, tmp_path: Path) -> None:
    section = workspace.settings.agent.model_copy(update={"repository": str(tmp_path / "home")})
    elsewhere = workspace.acting(settings=workspace.settings.model_copy(update={"agent": section}))
    with pytest.raises(SettingsError, match="is no Git repository"):
        open_pull_request(elsewhere, waiting(workspace, "tooling"), {})
