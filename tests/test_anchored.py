"""A challenger anchored at the champion: what stays, what is overruled, and how the lead is chosen."""

from pathlib import Path

import numpy as np
import pytest

from models.anchored import AnchoredModel, Leads, depth, labels_of, shortened
from models.anchored_out_of_fold import AnchoredOutOfFold, Compared, least_lead, least_leads
from models.artifacts import Manifest, environment, load, save, unchanged_by_saving
from models.fitting import ARMS, Task, fit_arm
from models.gate_stages import flips_to_choose
from models.judging import formerly_right, judge_rows
from models.out_of_fold import OutOfFold
from models.text_model import TextModel
from store.records import DatasetRow, Policy

VERBS = {"order": ("track", "find", "locate"), "refund": ("return", "repay", "reimburse")}
THINGS = ("book", "shoe", "lamp", "desk")
BASE = [
    DatasetRow(input=f"{verb} my {thing}", label=label, source="base")
    for label, verbs in VERBS.items() for verb in verbs for thing in THINGS
]  # fmt: skip
NEW = [
    DatasetRow(input=f"{verb} a plan {n}", label="subscribe", source="unknown") for verb in ("begin", "renew") for n in range(9)
] + [DatasetRow(input=f"{verb} a {thing} {n}", label=label, source="unknown")
     for label, verbs in VERBS.items() for verb in verbs[:2] for thing in THINGS for n in range(2)]  # fmt: skip
ARM = ARMS["word_char_svc"]
ASKED = [str(row.input) for row in NEW] + ["track my refund", "return the lamp"]


@pytest.fixture(scope="module")
def champion() -> TextModel:
    model = fit_arm(ARM, BASE, [], task=Task())
    assert isinstance(model, TextModel)
    return model


@pytest.fixture(scope="module")
def challenger() -> TextModel:
    model = fit_arm(ARM, BASE, NEW, task=Task())
    assert isinstance(model, TextModel)
    return model


def test_with_no_lead_asked_for_it_answers_as_the_challenger_and_with_an_endless_one_as_the_champion(
    champion: TextModel, challenger: TextModel
) -> None:
    free, bound = (AnchoredModel(champion, challenger, Leads(lead, lead)).predict(ASKED) for lead in (0.0, np.inf))
    assert [each.answer for each in free] == [each.answer for each in challenger.predict(ASKED)]
    assert [each.answer for each in bound] == [each.answer for each in champion.predict(ASKED)]
    assert all(0.0 <= each.confidence <= 1.0 for each in (*free, *bound))


def test_a_class_that_the_champion_does_not_have_needs_a_lead_of_its_own(
    champion: TextModel, challenger: TextModel
) -> None:
    assert labels_of(champion) == {"order", "refund"}
    model = AnchoredModel(champion, challenger, Leads(np.inf, 0.0))
    answers = [each.answer for each in model.predict(ASKED)]
    theirs = [each.answer for each in challenger.predict(ASKED)]
    kept = [each.answer for each in champion.predict(ASKED)]
    assert answers == [new if new == "subscribe" else old for new, old in zip(theirs, kept, strict=True)]


def test_its_file_answers_as_it_does(champion: TextModel, challenger: TextModel, tmp_path: Path) -> None:
    model = AnchoredModel(AnchoredModel(champion, challenger, Leads(2.0, 0.5)), challenger, Leads(0.3, 0.1))
    manifest = Manifest(training="", arm="", code_version="", environment=environment())
    assert unchanged_by_saving(model, load(tmp_path, save(model, tmp_path, manifest)), ASKED)


def test_the_oldest_model_goes_where_there_are_too_many(champion: TextModel, challenger: TextModel) -> None:
    model: TextModel | AnchoredModel = champion
    for _ in range(20):
        short = shortened(model)
        assert isinstance(short, TextModel | AnchoredModel)
        model = AnchoredModel(short, challenger, Leads(1.0, 1.0))
    assert depth(model) == 8


def test_the_lead_lets_no_more_right_answers_go_than_asked_for() -> None:
    leads, lost = np.array([3.0, 2.0, 1.0, 0.5]), np.array([False, True, True, True])
    chosen = [least_lead(leads, lost, most=most) for most in range(4)]
    assert [int((lost & (leads > lead)).sum()) for lead in chosen] == [0, 1, 2, 3]


def test_what_may_be_lost_is_shared_out_so_that_most_is_won() -> None:
    leads = np.array([9.0, 8.0, 7.0, 6.0, 5.0])
    lost = np.array([True, False, False, True, False])
    to_new = np.array([False, False, False, True, True])
    found = Compared(leads, lost, ~lost, to_new)
    assert [least_leads(found, most=most) for most in (0, 1, 2)] == [(9.0, 6.0), (0.0, 6.0), (0.0, 0.0)]


def test_an_anchored_arm_is_judged_by_its_own_answers(champion: TextModel) -> None:
    served = [each.answer for each in champion.predict([str(row.input) for row in NEW])]
    plain = OutOfFold(BASE, NEW, Task())
    right = formerly_right(ARM, plain, served, incumbent=ARM.name)
    rows = {}
    for most in (0, right):
        over = AnchoredOutOfFold(plain, ARM, champion, incumbent=ARM.name, most=most)
        rows[most] = judge_rows(ARM, over, served, incumbent=ARM.name)
    fresh = [row for row in rows[0] if row.in_cluster]
    assert sum(row.truth == "subscribe" == row.challenger for row in fresh) > 10
    assert sum(row.was_right and not row.is_right for row in fresh) <= 1
    assert sum(row.is_right for row in rows[right]) >= sum(row.is_right for row in rows[0])


@pytest.mark.parametrize(("right", "most"), [(298, None), (299, 0), (473, 0), (628, 0), (1049, 3)])
def test_it_aims_at_two_newly_wrong_answers_fewer_than_may_be(right: int, most: int | None) -> None:
    assert flips_to_choose(right, Policy()) == most
