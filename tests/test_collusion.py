"""Sources that say the same unusual thing."""

from models.collusion import groups_of
from models.fitting import ARMS, Task, fit_arm
from models.poison import influences
from models.trust import source_trust
from store.records import DatasetRow

VERBS = {
    "order": ("track", "find", "locate"),
    "refund": ("return", "repay", "reimburse"),
    "cancel": ("stop", "end", "cancel"),
}
THINGS = ("book", "shoe", "lamp", "desk", "coat", "sofa")
BASE = [
    DatasetRow(input=f"{verb} my {thing}", label=label, source="base")
    for label, verbs in VERBS.items() for verb in verbs for thing in THINGS
]  # fmt: skip
HONEST = [
    DatasetRow(input=f"{verb} the {thing}", label=label, source=f"user {n}")
    for label, verbs in VERBS.items() for verb in verbs for n, thing in enumerate(THINGS)
]  # fmt: skip
PUSHED = [
    DatasetRow(input=f"{verb} the {thing} now", label="refund", source=f"mallory {n}")
    for n, verb in enumerate(VERBS["order"]) for thing in THINGS
]  # fmt: skip


def test_accounts_that_push_one_label_for_inputs_of_another_are_one_group() -> None:
    found = groups_of(BASE, [*HONEST, *PUSHED], seed=0)
    assert [(each.expected, each.label, each.sources, each.unusual) for each in found] == [
        ("order", "refund", ("mallory 0", "mallory 1", "mallory 2"), True)
    ]


def test_honest_labels_authorities_and_new_classes_make_no_group() -> None:
    staff = [row.model_copy(update={"authority": True}) for row in PUSHED]
    new = [row.model_copy(update={"label": "exchange"}) for row in PUSHED]
    assert [groups_of(BASE, rows, seed=0) for rows in (HONEST, staff, new, [])] == [()] * 4


def test_without_a_base_set_there_is_nothing_to_compare_with() -> None:
    assert groups_of([], PUSHED, seed=0) == ()


def test_a_group_is_left_out_together() -> None:
    pushed = [
        row.model_copy(update={"label": "refund", "source": f"mallory {n}"}) for row in BASE[:18] for n in range(3)
    ]
    rows = [*HONEST, *pushed]
    model = fit_arm(ARMS["word_char_svc"], BASE, rows, task=Task())
    groups = groups_of(BASE, rows, seed=0)
    found, _ = influences(
        model, lambda left: fit_arm(ARMS["word_char_svc"], BASE, left, task=Task()), BASE, rows, groups
    )
    alone, together = found[0], found[-1]
    assert (together.source, together.rows) == ("3 sources that call order refund", len(pushed))
    assert together.changed > alone.changed


def test_who_says_the_same_unusual_thing_is_doubtful() -> None:
    found = {
        each.source: (each.doubtful, each.together) for each in source_trust([*BASE, *HONEST, *PUSHED], {}, seed=0)
    }
    assert (found["mallory 1"], found["user 1"]) == ((True, 3), (False, 0))
