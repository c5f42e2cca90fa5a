"""Forgotten facts of long conversations: corrected once, they are found; a memory service that is down teaches nothing."""

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from filmroom.release_document import memory_document
from filmroom_live import Fact
from filmroom_live.documents import NO_RELEASE, read_facts
from filmroom_live.folder import FolderFacts
from filmroom_live.pinned import Pinned
from flows.review import approve, reroute
from flows.turn import turn
from flows.workspace import Workspace
from store.releases import live_release
from store.review_queue import review_queue
from tests.shop_log import START_S, satisfied, take_in, working_in

NAME = "attribution_locomo.jsonl.gz"
NEAREST = 1
"""Only the fact that fits best is asked for, so that finding it is no chance."""
FILLER = {
    "what",
    "when",
    "where",
    "did",
    "does",
    "is",
    "was",
    "the",
    "a",
    "an",
    "to",
    "of",
    "on",
    "in",
    "for",
    "with",
    "has",
}


def rows(shared: Path, source: str, confidence: str) -> list[dict[str, Any]]:
    path = shared / "data" / "noncommercial" / NAME
    if not path.exists():
        pytest.skip(f"{NAME} is not there")
    with gzip.open(path, "rt", encoding="utf-8") as file:
        found = [json.loads(line) for line in file]
    return [row for row in found if (row["source"], row["mapping_confidence"]) == (source, confidence)]


def logged(row: dict[str, Any], number: int) -> list[dict[str, Any]]:
    """The failing conversation as production would have logged it, its user being the conversation's."""
    asked = next(step["content"] for step in row["trajectory"] if step["role"] == "user")
    answered = row["trajectory"][-1]["content"]
    recalled = [] if "0 memories recalled" in row["trajectory"][0]["content"] else {"recalled": 50}
    read = {"id": "m", "kind": "memory", "name": "memory", "output": recalled}
    said = [{"type": "trace", "id": f"e{number}-{at}", "user": row["group"], "started": START_S + number,
             "input": step["content"], "output": "I see."}
            for at, step in enumerate(row["trajectory"]) if step["role"] == "earlier session"]  # fmt: skip
    failed = {"type": "trace", "id": f"q{number}", "user": row["group"], "started": START_S + 9000 + number,
              "input": asked, "output": answered, "spans": [read]}  # fmt: skip
    right = row["correction"].removeprefix("gold: ")
    told = {"type": "feedback", "id": f"f{number}", "trace": f"q{number}", "given": START_S + 9100 + number,
            "principal": row["group"], "name": "correction", "score": 0, "corrected_output": right}  # fmt: skip
    return [*said, failed, told]


def question(row: dict[str, Any]) -> str:
    return str(next(step["content"] for step in row["trajectory"] if step["role"] == "user"))


def paraphrases(asked: str) -> Iterator[str]:
    """The same question in other words: as a request, without its small words, and from its end."""
    words = asked.rstrip("?").split()
    yield f"Please tell me, {asked[0].lower()}{asked[1:]}"
    yield " ".join(word for word in words if word.lower() not in FILLER)
    yield " ".join([*words[len(words) // 2 :], *words[: len(words) // 2]])


def served(workspace: Workspace, user: str) -> dict[str, Any]:
    with workspace.store.read() as connection:
        return memory_document(connection, workspace.project, user=user, tenant=None, now_us=workspace.clock())


def found(workspace: Workspace, user: str, asked: str) -> tuple[Fact, ...]:
    """The facts nearest to a question, as the client chooses them."""
    document = served(workspace, user)
    facts = FolderFacts({("user", user): read_facts(document, document["release"])})
    return Pinned(NO_RELEASE, facts, {}, lambda *_: None).memory(user, about=asked, most=NEAREST)


@pytest.fixture(scope="module")
def corrected(
    shared: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Workspace, list[dict[str, Any]]]]:
    """All clear forgotten facts but one conversation's, corrected in memory by a person; that one stays uncorrected."""
    known = rows(shared, "automem_locomo_cf", "clear")
    with working_in(tmp_path_factory.mktemp("home")) as workspace:
        take_in(workspace, *(satisfied(n) for n in range(40)), *(logged(row, n) for n, row in enumerate(known)))
        turn(workspace)
        for each in review_queue(workspace.store):
            if each["target"] == "memory":
                approve(workspace, each["correction"])
            else:
                reroute(workspace, each["correction"], to="memory")
        yield workspace, known


def test_the_same_question_finds_the_fact(corrected: tuple[Workspace, list[dict[str, Any]]]) -> None:
    workspace, known = corrected
    missing = [question(row) for row in known if not _is_found(workspace, row, question(row))]
    assert missing == []


def test_paraphrases_find_the_fact(corrected: tuple[Workspace, list[dict[str, Any]]]) -> None:
    workspace, known = corrected
    asked = [(row, words) for row in known for words in paraphrases(question(row))]
    missing = [words for row, words in asked if not _is_found(workspace, row, words)]
    assert len(missing) <= 0.02 * len(asked), missing


def test_other_users_have_none_of_it(corrected: tuple[Workspace, list[dict[str, Any]]]) -> None:
    workspace, known = corrected
    for user in ("u0", "nobody", *{row["group"] for row in known}):
        whose = {fact["scope_id"] for fact in served(workspace, user)["facts"]}
        assert whose <= {user}
    assert served(workspace, "u0")["facts"] == []


def test_an_outage_writes_no_memory(shared: Path, tmp_path: Path) -> None:
    with working_in(tmp_path) as workspace:
        take_in(workspace, *(satisfied(n) for n in range(40)),
                *(logged(row, n) for n, row in enumerate(rows(shared, "automem_outage", "arguable"))))  # fmt: skip
        turn(workspace)
        assert "memory" not in {each["target"] for each in review_queue(workspace.store)}
        for each in review_queue(workspace.store):
            if each["target"] is not None and each["needs_answer"] is None:
                approve(workspace, each["correction"])
        with workspace.store.read() as connection:
            assert live_release(connection, workspace.project).memory == 0


def _is_found(workspace: Workspace, row: dict[str, Any], asked: str) -> bool:
    right = row["correction"].removeprefix("gold: ")
    return any(
        isinstance(fact.value, dict) and fact.value["answer"] == right for fact in found(workspace, row["group"], asked)
    )
