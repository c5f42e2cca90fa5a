"""The parts of the benchmark in which classes come later, on a small made-up set."""

from pathlib import Path

from benchmarks.class_arrival import BASE_ROWS, NIGHTS, accuracy, arrival, everything, play
from benchmarks.hint3 import MODEL, settings_of
from flows.training import training_rows

VERBS = ("track", "refund", "cancel")
TRAIN = [(f"{verb} my thing {n} please", verb) for verb in VERBS for n in range(BASE_ROWS + 8)]


def test_late_classes_are_held_back_and_everything_learns_them(tmp_path: Path) -> None:
    given = arrival("small", TRAIN, TRAIN, 1, tmp_path)
    known = {row.label for row in training_rows(settings_of(given.bot, tmp_path), MODEL)}
    assert (len(known), set(given.bot.labels)) == (2, set(VERBS))
    assert len(given.bot.texts) == len(TRAIN) - 2 * BASE_ROWS
    assert accuracy(everything(given.bot, tmp_path), TRAIN) == 1.0


def test_a_policy_is_played_over_all_nights(tmp_path: Path) -> None:
    given = arrival("small", TRAIN, TRAIN, 1, tmp_path)
    model, played = play(given.bot, "never")
    assert (len(played.answers), played.fits, NIGHTS) == (len(given.bot.texts), 0, 20)
    assert accuracy(model, TRAIN) == 2 / 3
