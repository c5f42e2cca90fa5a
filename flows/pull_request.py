"""Pull requests: an accepted change of the context or the tooling as a branch of the user's repository. Merging it applies it.

The branch is made by Git's plumbing over an index of its own: the work tree, the index and the current branch stay as they
are. Nothing is pushed.
"""

import json
import os
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import JsonValue

from flows.apply import apply_correction
from flows.replay.preview import preview
from flows.replay.trial import digest_of, tried
from flows.targets import FLOWS
from flows.workspace import Workspace
from store.corrections import correction, put_correction, put_review, waiting
from store.errors import FilmroomError, NotAllowed, Refused, SettingsError
from store.ledger import events_of, record_event
from store.records import Correction, Operation, Proposal, Record, Review
from store.settings import Settings

FOLDER = "filmroom"
"""Folder of the repository that holds what filmroom writes."""
TARGETS = ("context", "tooling")
TIMEOUT_S = 60


class PullRequest(Record):
    """The branch that was made."""

    correction: str
    branch: str
    commit: str
    base: str
    """The commit it starts from."""
    files: tuple[str, ...]
    next: str


class Merged(Record):
    """What merging applied this turn."""

    applied: tuple[str, ...] = ()
    lines: tuple[str, ...] = ()


def open_pull_request(
    workspace: Workspace, correction_id: str, files: Mapping[str, str], *, answer: JsonValue = None
) -> PullRequest:
    """Accept the correction, completed by `answer`, and write it as a branch; it is applied once the branch is merged.

    `files`: path to text of what a person reads beside it, evidence and regression test. Raises NotAllowed for a correction
    that is no such change, Refused where a check speaks against it, SettingsError without a repository.
    """
    root = repository(workspace)
    with workspace.store.read() as connection:
        found = correction(connection, workspace.project, correction_id)
    if found.state not in ("proposed", "deferred", "approved") or found.proposal is None:
        raise NotAllowed(f"{found.id} is {found.state}: only a correction that waits can become a pull request")
    if found.proposal.target not in TARGETS:
        raise NotAllowed(
            f"{found.id} is about {found.proposal.target}: only {' and '.join(TARGETS)} go by pull request"
        )
    completed = _completed(workspace, found, answer)
    with workspace.store.read() as connection:
        tried(connection, found, completed.operations)
    after = preview(workspace, completed.operations, users=[])["fix"].document
    texts = {
        **files,
        f"{FOLDER}/{completed.target}.json": _pretty(after[completed.target]),
        _marker(found.id): _pretty(_change(found, completed)),
    }
    branch = f"filmroom/{found.id}"
    base = _git(root, "rev-parse", "HEAD")
    commit = _commit(root, base, texts, f"{completed.summary}\n\nfilmroom {found.id}, accepted by {workspace.actor}")
    _git(root, "update-ref", f"refs/heads/{branch}", commit)
    _accept(workspace, found, completed, answer, commit)
    return PullRequest(correction=found.id, branch=branch, commit=commit, base=base, files=tuple(sorted(texts)),
                       next=f"merge {branch}; the next `filmroom run` then applies it")  # fmt: skip


def apply_merged(workspace: Workspace) -> Merged:
    """Apply every accepted correction whose branch was merged, in whatever way: its file is on the current branch."""
    if workspace.settings.agent.repository is None:
        return Merged()
    with workspace.store.read() as connection:
        accepted = [each for each, _, _ in waiting(connection, workspace.project, states=("approved",))]
    open_ = [each for each in accepted if each.proposal is not None and each.proposal.target in TARGETS]
    applied: list[str] = []
    lines: list[str] = []
    for each in open_:
        try:
            if _apply_merged(workspace, repository(workspace), each):
                applied.append(each.id)
        except FilmroomError as error:
            lines.append(f"{each.id} is merged and not applied: {error}")
    return Merged(applied=tuple(applied), lines=tuple(lines))


def repository(workspace: Workspace) -> Path:
    """The root of the user's repository. Raises SettingsError."""
    return repository_of(workspace.settings)


def repository_of(settings: Settings) -> Path:
    """The root of the repository that the settings name. Raises SettingsError."""
    named = settings.agent.repository
    if named is None:
        raise SettingsError("[agent] repository: name the folder of your agent's Git repository in the settings")
    folder = settings.home / named
    try:
        return Path(_git(folder, "rev-parse", "--show-toplevel"))
    except (NotAllowed, OSError) as error:
        raise SettingsError(f"[agent] repository: {folder} is no Git repository: {error}") from error


def _apply_merged(workspace: Workspace, root: Path, found: Correction) -> bool:
    if found.proposal is None or not _is_merged(root, found, found.proposal.operations):
        return False
    with workspace.write() as connection:
        told = events_of(connection, workspace.project, found.id)
        opened = next((each for each in reversed(told) if each["event"] == "opened as a pull request"), None)
        if opened is None:
            return False
        shown = tried(connection, found, found.proposal.operations)
        measured = shown is not None and shown.verdict == "repairs"
        apply_correction(connection, workspace, found, reviewer=opened["actor"], cause=str(opened["detail"]["review"]),
                         measured=measured)  # fmt: skip
        record_event(connection, workspace.project, at_us=workspace.clock(), actor=workspace.actor, event="merged",
                     subject=found.id, reason=f"its branch was merged in {root.name}")  # fmt: skip
    return True


def _is_merged(root: Path, found: Correction, operations: Sequence[Operation]) -> bool:
    """Whether the current branch holds the file of exactly this change, as after a merge, a squash or a rebase."""
    try:
        text = _git(root, "cat-file", "-p", f"HEAD:{_marker(found.id)}")
        return bool(json.loads(text)["digest"] == digest_of(operations))
    except (NotAllowed, ValueError, KeyError, TypeError):
        return False


def _completed(workspace: Workspace, found: Correction, answer: JsonValue) -> Proposal:
    if found.proposal is None:
        raise NotAllowed(f"{found.id} has no place yet")
    if found.state == "approved":
        return found.proposal
    return FLOWS[found.proposal.target].answered(found.proposal, answer, reviewer=workspace.actor)


def _accept(workspace: Workspace, found: Correction, completed: Proposal, answer: JsonValue, commit: str) -> None:
    review = Review(project=workspace.project, correction_id=found.id, verdict="approve", target=completed.target,
                    reason="as a pull request", answer=answer, reviewer=workspace.actor, authority=True,
                    at_us=workspace.clock())  # fmt: skip
    with workspace.write() as connection:
        put_correction(connection, found.model_copy(update={"proposal": completed, "state": "approved"}))
        put_review(connection, review)
        record_event(connection, workspace.project, at_us=review.at_us, actor=workspace.actor, event="reviewed",
                     subject=review.id, causes=[found.id], detail={"verdict": "approve"})  # fmt: skip
        record_event(connection, workspace.project, at_us=review.at_us, actor=workspace.actor,
                     event="opened as a pull request", subject=found.id, reason=completed.summary,
                     detail={"commit": commit, "review": review.id})  # fmt: skip


def _change(found: Correction, completed: Proposal) -> dict[str, Any]:
    """What the branch says of the change; the digest binds it to the deltas that were accepted."""
    return {
        "correction": found.id,
        "digest": digest_of(completed.operations),
        "summary": completed.summary,
        "operations": [each.model_dump(mode="json") for each in completed.operations],
    }


def _marker(correction_id: str) -> str:
    return f"{FOLDER}/changes/{correction_id}.json"


def _pretty(value: Any) -> str:
    return json.dumps(value, indent=2, sort_keys=True, ensure_ascii=True) + "\n"


def _commit(root: Path, base: str, texts: Mapping[str, str], message: str) -> str:
    """A commit on `base` with these files, made in an index of its own."""
    with tempfile.TemporaryDirectory() as folder:
        own = {"GIT_INDEX_FILE": str(Path(folder) / "index")}
        _git(root, "read-tree", base, environment=own)
        for path, text in texts.items():
            blob = _git(root, "hash-object", "-w", "--stdin", given=text)
            _git(root, "update-index", "--add", "--cacheinfo", f"100644,{blob},{path}", environment=own)
        tree = _git(root, "write-tree", environment=own)
    return _git(root, "commit-tree", tree, "-p", base, given=message, environment=_identity(root))


def _identity(root: Path) -> dict[str, str]:
    """Who commits: the repository's own user, or filmroom where it names none."""
    try:
        _git(root, "var", "GIT_COMMITTER_IDENT")
    except NotAllowed:
        return {f"GIT_{role}_{part}": value for role in ("AUTHOR", "COMMITTER")
                for part, value in (("NAME", "filmroom"), ("EMAIL", "filmroom@localhost"))}  # fmt: skip
    return {}


def _git(root: Path, *arguments: str, given: str | None = None, environment: Mapping[str, str] | None = None) -> str:
    """What Git answers. Raises NotAllowed with its last words; no prompt, no hook and no configured command is run."""
    command = ["git", "-c", "core.hooksPath=/dev/null", "-c", "commit.gpgSign=false", "-C", str(root), *arguments]
    try:
        done = subprocess.run(  # noqa: S603  # fixed words, ids and paths of ours
            command, input=given, capture_output=True, text=True, encoding="utf-8", timeout=TIMEOUT_S, check=False,
            env={**os.environ, "GIT_TERMINAL_PROMPT": "0", **(environment or {})},
        )  # fmt: skip
    except FileNotFoundError as error:
        raise SettingsError("git is not installed here") from error
    except subprocess.TimeoutExpired as error:
        raise Refused(f"git {arguments[0]} did not end within {TIMEOUT_S} s") from error
    if done.returncode:
        raise NotAllowed(f"git {arguments[0]}: {(done.stderr.strip().splitlines() or ['failed'])[-1][:300]}")
    return done.stdout.strip()
