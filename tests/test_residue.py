"""Unlike texts of one fingerprint are parted, alike single failures joined, and a cluster keeps its id as it grows."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from flows.opinions import give_opinion
from flows.pickup import pickup
from flows.route import cluster, route
from flows.workspace import Workspace
from models.residue import Said, is_vague, regroup
from store.corrections import waiting
from store.failures import clusters_of
from store.ledger import events_of
from store.records import Cluster, Fingerprint
from store.why import why
from tests.shop_log import said, take_in, trace, working_in

VOUCHER = ["Apply my voucher to order {n}", "voucher code {n} is refused at checkout", "why is voucher {n} not applied"]
COURIER = ["The courier lost parcel {n}", "where is the courier with parcel {n}", "courier left parcel {n} outside"]


def thumbs(texts: list[str], start: int, count: int, **values: Any) -> list[dict[str, Any]]:
    """Failures with nothing but a thumb down."""
    found = []
    for n in range(start, start + count):
        found += [
            trace(n, input=texts[n % len(texts)].format(n=n), output="Sorry."),
            said(n, name="thumb", score=0, **values),
        ]
    return found


def texts(kind: list[str], cluster_id: str, start: int, count: int, source: str = "u") -> list[Said]:
    return [Said(failure_id=f"{start + n:03d}", cluster_id=cluster_id, source=f"{source}{n}", text=kind[n % len(kind)].format(n=n))
            for n in range(count)]  # fmt: skip


def turned(workspace: Workspace, *groups: list[dict[str, Any]]) -> dict[str, Cluster]:
    """The clusters after these lines were taken in and routed, by name."""
    take_in(workspace, *groups)
    for stage in (pickup, cluster, route):
        stage(workspace)
    with workspace.store.read() as connection:
        return {each.name: each for each in clusters_of(connection, workspace.project)}


@pytest.fixture
def workspace(tmp_path: Path, store_url: str) -> Iterator[Workspace]:
    with working_in(tmp_path, url=store_url) as opened:
        yield opened


def test_what_says_unlike_things_is_two_groups_with_names() -> None:
    them = texts(VOUCHER, "base", 0, 9) + texts(COURIER, "base", 100, 9)
    found = regroup(them, owners=[], frozen=[])
    assert sorted((group.topic[0], len(group.failures)) for group in found) == [("courier", 9), ("voucher", 9)]
    assert found == regroup(them, owners=[], frozen=[])


def test_several_ways_to_word_it_are_one_group() -> None:
    them = texts(VOUCHER, "base", 0, 60) + texts(COURIER, "base", 100, 60)
    assert sorted(len(group.failures) for group in regroup(them, owners=[], frozen=[])) == [60, 60]


def test_what_says_the_same_stays_together() -> None:
    assert regroup(texts(["cancel it"], "base", 0, 30), owners=[], frozen=[]) == []
    assert regroup(texts(VOUCHER, "base", 0, 4), owners=[], frozen=[]) == []
    assert (
        regroup([each.model_copy(update={"text": ""}) for each in texts(VOUCHER, "b", 0, 9)], owners=[], frozen=[])
        == []
    )


def test_words_of_one_person_alone_are_no_name() -> None:
    alone = [each.model_copy(update={"source": "ann"}) for each in texts(VOUCHER, "base", 0, 9)]
    found = regroup(alone + texts(COURIER, "base", 100, 9), owners=[], frozen=[])
    assert () in [group.topic for group in found]


def test_single_failures_that_say_the_same_are_joined() -> None:
    them = [each.model_copy(update={"cluster_id": f"c{at}"}) for at, each in enumerate(texts(VOUCHER, "", 0, 6))]
    [group] = regroup(them, owners=[], frozen=[], singles={each.cluster_id for each in them})
    assert (len(group.failures), set(group.come_from.values())) == (6, {1})


def test_a_judged_cluster_gives_nothing_away_and_takes_more_in() -> None:
    them = texts(VOUCHER, "mine", 0, 9) + texts(COURIER, "base", 100, 9) + texts(VOUCHER, "base", 200, 2)
    found = regroup(them, owners=["mine"], frozen=["mine", "base"])
    assert found == []
    grown = regroup(them, owners=["mine"], frozen=["mine"])
    assert {group.owner: len(group.failures) for group in grown} == {"mine": 2, None: 9}


def test_two_clusters_that_came_to_say_the_same_are_one() -> None:
    them = texts(VOUCHER, "one", 0, 9) + texts(VOUCHER, "two", 50, 6) + texts(COURIER, "base", 100, 9)
    joined = next(group for group in regroup(them, owners=["one", "two"], frozen=[]) if group.owner == "one")
    assert joined.come_from == {"two": 6}


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({}, True),
        ({"error_class": "validation"}, False),
        ({"schema_path": "a"}, False),
        ({"kind": "predict"}, False),
        ({"intent": "orders"}, True),
    ],
)
def test_only_what_no_field_tells_apart_is_looked_at(values: dict[str, str], expected: bool) -> None:
    plain = {"version": 1, "component": "answer", "kind": "agent", "error_class": "none"}
    assert is_vague(Fingerprint.model_validate({**plain, **values})) is expected


def test_unlike_failures_have_clusters_and_names_of_their_own(workspace: Workspace) -> None:
    found = turned(workspace, thumbs(VOUCHER, 0, 9), thumbs(COURIER, 100, 9))
    assert {name.split(": ")[-1].split(",")[0]: each.failures for name, each in found.items()} == {
        "`voucher`": 9,
        "`courier`": 9,
    }
    with workspace.store.read() as connection:
        assert len(waiting(connection, workspace.project)) == 2


def test_a_cluster_keeps_its_id_as_it_grows(workspace: Workspace) -> None:
    before = turned(workspace, thumbs(VOUCHER, 0, 9), thumbs(COURIER, 100, 9))
    after = turned(workspace, thumbs(VOUCHER, 300, 4))
    assert {name: each.id for name, each in after.items()} == {name: each.id for name, each in before.items()}
    assert sorted(each.failures for each in after.values()) == [9, 13]


def test_a_split_is_told_by_why(workspace: Workspace) -> None:
    [base] = turned(workspace, thumbs(VOUCHER, 0, 9)).values()
    found = turned(workspace, thumbs(COURIER, 100, 9))
    made = next(each for each in found.values() if each.id != base.id and "courier" in each.name)
    with workspace.store.read() as connection:
        assert {event["event"] for event in events_of(connection, workspace.project, base.id)} >= {"split", "clustered"}
        causes = {node["id"] for node in why(connection, workspace.project, made.id)["causes"]}
    assert base.id in causes


def test_single_failures_that_are_joined_close_their_own_proposals(workspace: Workspace) -> None:
    first = thumbs(VOUCHER, 0, 1) + thumbs(VOUCHER, 1, 1, corrected_output="1")
    assert len(turned(workspace, first)) == 2
    rest = [
        thumbs(VOUCHER, n, 1, corrected_output=text)
        for n, text in enumerate(["Yes.", "- a\n- b", "not refused"], start=2)
    ]
    found = turned(workspace, *rest)
    with workspace.store.read() as connection:
        assert len(waiting(connection, workspace.project)) == len(found)


def test_a_correction_that_was_judged_keeps_its_failures(workspace: Workspace) -> None:
    [base] = turned(workspace, thumbs(VOUCHER, 0, 9)).values()
    with workspace.store.read() as connection:
        [(correction, _, _)] = waiting(connection, workspace.project)
    give_opinion(workspace, correction.id, "defer")
    found = turned(workspace, thumbs(COURIER, 100, 9))
    assert [(each.id, each.failures) for each in found.values()] == [(base.id, 18)]


FEE = ("It costs 5 euros.", ["the fee of 5 euros is missing", "nobody told me the fee", "there is a fee"])
CARD = ("Please bring an identity card.", ["they wanted my identity card", "say that an identity card is needed"])
WORDED = ["where can I collect it", "which shop has parcel {n}", "pick up please", "my parcel {n}, where do I get it"]


def complaints(kind: tuple[str, list[str]], start: int, count: int, *, corrects: int = 2) -> list[dict[str, Any]]:
    """Failures of one intent; every `corrects`th says the right answer, and those between only comment."""
    right, comments = kind
    found = []
    for n in range(start, start + count):
        step = {"id": "p", "kind": "predict", "name": "intents", "input": "x", "output": "pickup", "confidence": 0.9}
        words: dict[str, Any] = {"corrected_output": f"At Main Street. {right}"} if n % corrects == 0 else {}
        found += [
            trace(n, input=WORDED[n % len(WORDED)].format(n=n), output="At Main Street.", spans=[step, {"id": "a", "kind": "llm"}]),
            said(n, name="thumb", score=0, comment=comments[n % len(comments)], **words),
        ]  # fmt: skip
    return found


def test_two_causes_that_share_an_intent_are_two_clusters(workspace: Workspace) -> None:
    found = turned(workspace, complaints(FEE, 0, 24), complaints(CARD, 100, 18))
    parted = [each for each in found.values() if each.fingerprint.topic]
    assert [each.failures for each in parted] == [18]
    assert "`card`" in parted[0].name
    assert sum(each.failures for each in found.values()) == 42
    grown = turned(workspace, complaints(CARD, 200, 6), complaints(FEE, 300, 6))
    assert {name: each.failures for name, each in grown.items() if each.fingerprint.topic} == {parted[0].name: 24}


def test_one_cause_told_in_many_words_is_not_parted(workspace: Workspace) -> None:
    found = turned(workspace, complaints(FEE, 0, 40))
    assert not any(each.fingerprint.topic for each in found.values())


def test_wishes_of_many_users_for_one_answer_are_one_cause(workspace: Workspace) -> None:
    lines = [line for at, shop in enumerate(("Elm", "Harbour", "Mill"))
             for line in complaints(("", ["for me it is another"]), 100 * at, 10, corrects=1)]  # fmt: skip
    for line in lines:
        if "corrected_output" in line:
            line["corrected_output"] = f"At {('Elm', 'Harbour', 'Mill')[int(line['id'][1:]) // 100]} Street."
    found = turned(workspace, lines)
    assert not any(each.fingerprint.topic for each in found.values())
