"""Training rows: their digest, the caps per source, one label an input, and labels held back as suspect.

Every row that was considered gets an entry saying whether it is in and why; nothing is dropped in silence.
"""

from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from models.inputs import input_key
from models.one_vs_rest import fit_one_vs_rest
from models.reject import Floats, linear_scores
from models.taught_rows import Labels
from models.text_features import REPRESENTATIONS
from models.text_folds import text_folds
from models.text_model import FOLDS, LEARNERS, MANY_ROWS
from store.records.identity import canonical_json, content_hash
from store.records.production import Record
from store.records.weights import DatasetRow

FEWEST_ROWS = 30
"""Below it no label is held as suspect."""
MANY_FOLDS = 3
"""Of many rows: two thirds of them are enough to dispute a label."""
SUSPECT_SHARE = 0.05
"""Share of the correction rows held back for a second look at the most."""

Why = Literal["used", "over the cap of its source", "outvoted on the same input", "label held as suspect"]


class Entry(Record):
    """One row's place in a training set."""

    row: str
    """Its digest: `row_digest`."""
    trace_id: str | None
    correction_id: str | None
    source: str
    used: bool
    why: Why
    detail: str = ""


class Training(Record):
    """The rows to train on, and the account of all that were considered."""

    rows: tuple[DatasetRow, ...]
    entries: tuple[Entry, ...]
    digest: str


def text_of(row: DatasetRow) -> str:
    """The row's input as the text a model sees: strings as they are, anything else as canonical JSON."""
    return row.input if isinstance(row.input, str) else canonical_json(row.input)


def row_digest(row: DatasetRow) -> str:
    """Identifies a row by all it says."""
    return content_hash(row.model_dump(mode="json"))


def dataset_digest(rows: Sequence[DatasetRow]) -> str:
    """SHA-256 of what a model would learn from `rows`: inputs, labels and weights, in any order.

    >>> a, b = DatasetRow(input="hi", label="greet"), DatasetRow(input="bye", label="part")
    >>> dataset_digest([a, b]) == dataset_digest([b, a]) != dataset_digest([a])
    True
    """
    return content_hash(sorted(canonical_json([row.input, row.label, row.weight]) for row in rows))


def prepare(
    rows: Sequence[DatasetRow],
    *,
    cap_per_source: int | None,
    max_source_share: float = 1.0,
    suspects: Sequence[int] = (),
) -> Training:
    """The training set of correction `rows`: suspects held, caps applied in order of arrival, the majority kept.

    `cap_per_source` bounds the rows of one source with one label (None: no bound), `max_source_share` a source's share
    of all rows; authorities and the base set are under neither. `suspects` are positions in `rows`.
    """
    verdicts: list[tuple[Why, str]] = [("used", "")] * len(rows)
    for position in suspects:
        verdicts[position] = ("label held as suspect", "out of fold, another label is more probable")
    _apply_caps(rows, verdicts, cap_per_source, max_source_share)
    _apply_majority(rows, verdicts)
    kept = tuple(row for row, (why, _) in zip(rows, verdicts, strict=True) if why == "used")
    return Training(rows=kept, entries=tuple(map(_entry, rows, verdicts)), digest=dataset_digest(kept))


def suspect_labels(rows: Sequence[DatasetRow], *, share: float = SUSPECT_SHARE, seed: int) -> tuple[int, ...]:
    """Positions of the at most `share` of rows whose label is most probably wrong, most suspicious first.

    Ranked by self-confidence, the score a linear model trained on the other folds gives to the row's own label
    (Northcutt et al., Confident Learning, JAIR 2021); only rows for which it prefers another label are suspect.
    Rows of the base set count as training rows and are never suspect; below 30 rows nothing is said.
    """
    if len(rows) < FEWEST_ROWS:
        return ()
    labels: Labels = np.asarray([row.label for row in rows], dtype=np.str_)
    own, best = _self_confidence([text_of(row) for row in rows], labels, seed)
    judged = [i for i, row in enumerate(rows) if row.source != "base"]
    suspect = sorted(
        (i for i in judged if own[i] < best[i]), key=lambda i: (own[i], text_of(rows[i]), rows[i].trace_id or "")
    )
    return tuple(suspect[: int(share * len(judged))])


def _self_confidence(texts: list[str], labels: Labels, seed: int) -> tuple[Floats, Floats]:
    """Out-of-fold scores of each row's own label and of the best other one; a label unseen in the fold scores -1."""
    order = np.array(sorted(range(len(texts)), key=lambda i: (texts[i], str(labels[i]))))
    own, best = _ordered_confidence([texts[i] for i in order], labels[order], seed)
    back = np.argsort(order)
    return own[back], best[back]


def _ordered_confidence(texts: list[str], labels: Labels, seed: int) -> tuple[Floats, Floats]:
    classes, y = np.unique(labels, return_inverse=True)
    X = REPRESENTATIONS["word_char"](len(texts) >= MANY_ROWS).fit_transform(texts)
    scores = np.full((len(texts), len(classes)), -1.0)
    many = len(texts) >= MANY_ROWS
    near: Any = None
    for train, test in text_folds(texts, MANY_FOLDS if many else FOLDS, seed=seed):
        if len(np.unique(labels[train])) < 3:
            continue
        model = LEARNERS["linear_svc"](seed)
        if many:
            start = (
                None
                if near is None or len(np.unique(labels[train])) < len(near.classes_)
                else linear_scores(near, X[train])
            )
            near = fit_one_vs_rest(model, X[train], labels[train], np.ones(len(train)), start=start, seed=seed)
        else:
            model.fit(X[train], labels[train])
        scores[np.ix_(test, np.searchsorted(classes, model.classes_))] = model.decision_function(X[test])
    rows = np.arange(len(y))
    own = scores[rows, y].copy()
    scores[rows, y] = -np.inf
    return own, np.asarray(scores.max(axis=1))


def _capped(row: DatasetRow) -> bool:
    return not row.authority and row.source != "base"


def _apply_caps(rows: Sequence[DatasetRow], verdicts: list[tuple[Why, str]], cap: int | None, share: float) -> None:
    in_label: Counter[tuple[str, str]] = Counter()
    in_all: Counter[str] = Counter()
    most = max(1, int(share * len(rows)))
    for position, row in enumerate(rows):
        if verdicts[position][0] != "used" or not _capped(row):
            continue
        if cap is not None and in_label[row.source, row.label] >= cap:
            verdicts[position] = ("over the cap of its source", f"{cap} of one source with one label")
            continue
        if in_all[row.source] >= most:
            verdicts[position] = ("over the cap of its source", f"{share:.0%} of all rows")
            continue
        in_label[row.source, row.label] += 1
        in_all[row.source] += 1


def _apply_majority(rows: Sequence[DatasetRow], verdicts: list[tuple[Why, str]]) -> None:
    """Of rows with one input only those with its majority label stay; an authority outvotes, a tie goes to the latest."""
    by_input: defaultdict[str, list[int]] = defaultdict(list)
    for position, row in enumerate(rows):
        if verdicts[position][0] == "used":
            by_input[input_key(row)].append(position)
    for positions in by_input.values():
        winner = _majority([rows[position] for position in positions])
        for position in positions:
            if rows[position].label != winner:
                verdicts[position] = ("outvoted on the same input", f"most say {winner}")


def _majority(rows: list[DatasetRow]) -> str:
    voters = [row for row in rows if row.authority] or rows
    votes = Counter(row.label for row in voters)
    most = max(votes.values())
    return next(row.label for row in reversed(voters) if votes[row.label] == most)


def _entry(row: DatasetRow, verdict: tuple[Why, str]) -> Entry:
    why, detail = verdict
    return Entry(
        row=row_digest(row),
        trace_id=row.trace_id,
        correction_id=row.correction_id,
        source=row.source,
        used=why == "used",
        why=why,
        detail=detail,
    )
