"""What a refit of the incumbent's arm would repair and break, before anything is trained to be served."""

from collections.abc import Sequence

from models.fitting import ARMS, BASE, truth_of
from models.out_of_fold import OutOfFold
from store.records.production import Record


class Probe(Record):
    """What a refit of the incumbent's arm on the other folds would have answered to the correction rows."""

    rows: int
    failures: int
    """Rows that were answered wrongly."""
    repaired: int
    broken: int
    slices: tuple[tuple[int, int, int], ...]
    """(repaired, broken, rows) in scope, and out of scope where there are such rows."""
    estimator_fits: int
    seconds: float
    """Of fitting, wherever it ran."""


def probe(out_of_fold: OutOfFold, served: Sequence[str | None], *, incumbent: str) -> Probe:
    """Repairs and breaks of the incumbent's arm on folds it was not trained on.

    `served` has the champion's logged answer to each new row, None where it rejected.
    """
    arm = ARMS[incumbent]
    fits, seconds = out_of_fold.cost_of(arm)
    out_of_fold.prepare(out_of_fold.places(arm))
    answers = out_of_fold.answers(arm)
    fits_now, seconds_now = out_of_fold.cost_of(arm)
    truths = [truth_of(row, out_of_fold.task) for row in out_of_fold.new]
    repaired, broken = changes(truths, served, answers)
    return Probe(
        rows=len(truths),
        failures=sum(truth != answer for truth, answer in zip(truths, served, strict=True)),
        repaired=repaired,
        broken=broken,
        slices=_slices(truths, served, answers),
        estimator_fits=fits_now - fits,
        seconds=seconds_now - seconds,
    )


def probe_learnt(out_of_fold: OutOfFold, *, incumbent: str) -> tuple[int, int]:
    """(repaired, broken) among the production rows that the champion has learnt: refits with the new rows against without."""
    arm, base = ARMS[incumbent], out_of_fold.base
    out_of_fold.prepare(place for new in (False, True) for place in out_of_fold.base_places(arm, with_new=new))
    before, after = (out_of_fold.base_answers(arm, with_new=with_new) for with_new in (False, True))
    rows = zip((base[i] for i in out_of_fold.asked_base), before, after, strict=True)
    learnt = [(truth_of(row, out_of_fold.task), old, new) for row, old, new in rows if row.source != BASE]
    return changes(*([each[part] for each in learnt] for part in range(3)))


def changes(truths: Sequence[str | None], before: Sequence[str | None], after: Sequence[str | None]) -> tuple[int, int]:
    """(newly right, newly wrong)."""
    repaired = sum(b != t == a for t, b, a in zip(truths, before, after, strict=True))
    broken = sum(b == t != a for t, b, a in zip(truths, before, after, strict=True))
    return repaired, broken


def _slices(
    truths: Sequence[str | None], before: Sequence[str | None], after: Sequence[str | None]
) -> tuple[tuple[int, int, int], ...]:
    rows = list(zip(truths, before, after, strict=True))
    parts = [row for row in rows if row[0] is not None], [row for row in rows if row[0] is None]
    return tuple(
        (*changes(*map(list, zip(*part, strict=True))), len(part)) for part in parts if part and len(part) < len(rows)
    )
