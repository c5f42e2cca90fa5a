"""How far each source of labels can be believed."""

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from flows.turn import turn
from flows.workspace import Workspace
from models.trust import source_trust
from store.records import DatasetRow
from store.trust import outcomes_of_sources
from tests.shop_log import bad_argument, satisfied, take_in, working_in

WORDS = {
    "order": ["track", "parcel", "where", "arrive", "delivery"],
    "refund": ["money", "back", "refund", "reimburse", "return"],
    "account": ["password", "login", "email", "profile", "account"],
}


def rows(source: str, n: int, *, wrong: bool = False, authority: bool = False) -> list[DatasetRow]:
    chosen = random.Random(source)
    found = []
    for _ in range(n):
        label = chosen.choice(sorted(WORDS))
        text = " ".join(chosen.choices(WORDS[label], k=3))
        said = chosen.choice([other for other in WORDS if other != label]) if wrong else label
        found.append(DatasetRow(input=text, label=said, source=source, authority=authority))
    return found


BASE = rows("base", 60)
HONEST = [row for n in range(20) for row in rows(f"user{n}", 5)]


@pytest.mark.parametrize("accounts", [1, 5, 20])
def test_accounts_that_push_wrong_labels_are_named_and_nobody_else(accounts: int) -> None:
    pushed = [row for n in range(accounts) for row in rows(f"mallory{n}", 10, wrong=True)]
    honest = [row for n in range(20) for row in rows(f"user{n}", 5 * accounts)]
    found = source_trust([*BASE, *honest, *pushed], {}, seed=0)
    assert sorted(each.source for each in found if each.doubtful) == sorted(f"mallory{n}" for n in range(accounts))


def test_an_authority_is_counted_and_never_doubtful() -> None:
    staff = rows("staff:ann", 12, wrong=True, authority=True)
    found = {each.source: each for each in source_trust([*BASE, *HONEST, *staff], {}, seed=0)}
    assert (found["staff:ann"].authority, found["staff:ann"].disputed > 6, found["staff:ann"].doubtful) == (
        True,
        True,
        False,
    )


def test_trust_follows_what_became_of_the_changes() -> None:
    found = {each.source: each.trust for each in source_trust(HONEST, {"user1": (8, 0), "user2": (0, 8)}, seed=0)}
    assert (found["user1"], found["user2"], found["user3"]) == (0.9, 0.1, 0.5)


@pytest.fixture
def workspace(tmp_path: Path, store_url: str) -> Iterator[Workspace]:
    with working_in(tmp_path, url=store_url) as opened:
        take_in(opened, *(satisfied(n) for n in range(10)), *(bad_argument(n) for n in range(40, 43)))
        turn(opened)
        yield opened


def test_sources_without_a_change_are_listed(workspace: Workspace) -> None:
    with workspace.store.read() as connection:
        found = outcomes_of_sources(connection, workspace.project)
    assert (len(found), set(found.values())) == (3, {(0, 0)})
