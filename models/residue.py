"""What deterministic fingerprints leave: failures of one vague fingerprint that say unlike things, and single ones that say alike.

Texts are grouped by HDBSCAN (Campello, Moulavi & Sander 2013) over TF-IDF and a truncated SVD. A group keeps the cluster in
which most of its failures are already; `flows.residue` carries the plan out.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components
from sklearn.cluster import HDBSCAN
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.preprocessing import normalize
from sklearn.utils.extmath import randomized_svd

from models.corrections import differing
from models.fingerprint import failing_step
from models.residue_causes import CHARACTERS, content_words, of_one_cause, wanted_change
from models.steps import error_text, input_text
from store.records import Case, Cluster, Fingerprint, Record

FEWEST = 5
"""Failures of a group at least."""
MOST = 1500
"""Newest failures that are looked at together."""
UNLIKE = 0.15
"""A group is one of its own where its texts are by so much closer to each other than to the rest, in cosine."""
ALIKE = 0.35
"""Mean cosine to their centre from which texts without any rest to compare with are one group."""
TOGETHER = 0.3
"""Cosine of two centres from which their groups are one."""
COMMON = 0.75
"""Share of all texts above which a word says nothing of a group."""
WORDS = 3
_DIMENSIONS = 50
_UNKNOWN = "unknown"

Matrix = NDArray[np.float64]


class Said(Record):
    """One failure as text."""

    changes: frozenset[str] = frozenset()
    """Words its correction adds, and with a hyphen before them words it takes out of an answer that it mostly keeps."""

    failure_id: str
    cluster_id: str
    """Where it is now."""
    source: str
    text: str


class Group(Record):
    """Failures that say alike, and the cluster they belong in."""

    owner: str | None
    """The cluster that keeps its id; None: a new one."""
    failures: tuple[str, ...]
    """Those that move there; the owner's own failures are not listed."""
    come_from: dict[str, int]
    """Cluster to how many of them leave it."""
    topic: tuple[str, ...]
    """Words that most of its texts have and few others do, none of them one person's alone; may be empty."""


def is_vague(print_: Fingerprint) -> bool:
    """Whether its failures may have nothing in common: no label, argument or known error tells them apart.

    An intent alone does not: two things may be wrong with the answers to one.
    """
    told = print_.kind == "predict" or print_.schema_path
    return not told and print_.error_class in ("none", "other")


def without_edit(print_: Fingerprint) -> Fingerprint:
    """The fingerprint without what was corrected: what single failures of one step are pooled by."""
    return print_.model_copy(update={"served": "", "corrected": ""})


def pools(known: Sequence[Cluster], changed: Collection[str]) -> list[tuple[Fingerprint, list[Cluster]]]:
    """The clusters that are looked at together: one fingerprint and what came of it, with single ones that differ in the edit."""
    pooled: dict[str, list[Cluster]] = defaultdict(list)
    for each in known:
        if is_vague(each.fingerprint):
            is_single = each.failures == 1 and not each.fingerprint.topic
            base = without_edit(each.fingerprint) if is_single or each.fingerprint.intent else each.fingerprint
            pooled[base.model_copy(update={"topic": ""}).key].append(each)
    found = []
    for clusters in pooled.values():
        if sum(each.failures for each in clusters) >= FEWEST and any(each.id in changed for each in clusters):
            first = next((each for each in clusters if each.failures > 1), clusters[0]).fingerprint
            is_mixed = first.intent or all(each.failures == 1 for each in clusters)
            base = without_edit(first) if is_mixed else first
            found.append((base.model_copy(update={"topic": ""}), clusters))
    return found


def said(case: Case) -> Said:
    """What was asked, what went wrong and what people said of it, as one text."""
    step = failing_step(case.episode, case.signals)
    corrections = [item.corrected for item in differing(case.episode, case.signals) if not item.is_label]
    comments = [feedback.comment for feedback in case.episode.feedback if feedback.comment]
    parts = (input_text(case.episode), error_text(step) if step else None, *corrections, *comments)
    text = "\n".join(part[:CHARACTERS] for part in parts if part)
    return Said(
        failure_id=case.failure.id, cluster_id=case.failure.cluster_id or "", source=case.failure.source, text=text
    )


def said_of_answer(case: Case) -> Said:
    """What people said of the answer, without what was asked: of one intent that is worded in many ways for one cause."""
    asked = content_words(input_text(case.episode))
    comments = "\n".join(feedback.comment[:CHARACTERS] for feedback in case.episode.feedback if feedback.comment)
    changes, _ = wanted_change(case)
    text = " ".join(sorted((content_words(comments) - asked) | {word for word in changes if word[0] != "-"}))
    return Said(
        failure_id=case.failure.id, cluster_id=case.failure.cluster_id or "", source=case.failure.source, text=text,
        changes=changes,
    )  # fmt: skip


def regroup(
    them: Sequence[Said],
    *,
    owners: Collection[str],
    frozen: Collection[str],
    singles: Collection[str] = (),
    answers: bool = False,
    seed: int = 0,
) -> list[Group]:
    """Which failures belong together, largest group first; empty: everything stays where it is.

    `owners`: clusters made by an earlier regrouping, which keep their id. `frozen`: clusters whose failures must not leave.
    `singles`: clusters of one failure, which may be one group without any rest to be unlike of.
    `answers`: it is what was said of the answers to one intent. Then only one of several groups leaves: what is said in
    many words for one cause stays together, and so does what nobody said anything of with the largest group.
    """
    them = [each for each in them if each.text or each.changes] if answers else them
    if len(them) < FEWEST:
        return []
    words = [content_words(each.text) | each.changes for each in them]
    x = _vectors(words, seed=seed)
    if x is None:
        return []
    alone = all(each.cluster_id in singles for each in them)
    changes = [each.changes for each in them] if answers else None
    labels = _joined(x, _labels(x, words, changes, alone=alone and not answers), them, owners)
    members: dict[str | int, list[int]] = defaultdict(list)
    for at, label in enumerate(labels):
        if label != -1:
            members[label].append(at)
    taken: set[str] = set()
    found = []
    stays = answers
    for places in sorted(members.values(), key=len, reverse=True):
        held = Counter(them[at].cluster_id for at in places if them[at].cluster_id in owners)
        owner = next((id_ for id_, _ in held.most_common() if id_ not in taken), None)
        if owner is not None:
            taken.add(owner)
        if owner is None and stays:
            stays = False
            continue
        moving = [at for at in places if them[at].cluster_id != owner and them[at].cluster_id not in frozen]
        if not moving or (owner is None and len(moving) < FEWEST):
            continue
        found.append(Group(
            owner=owner, failures=tuple(them[at].failure_id for at in moving),
            come_from=dict(Counter(them[at].cluster_id for at in moving)), topic=_topic(them, places),
        ))  # fmt: skip
    return found


def named(base: str, topic: Sequence[str], key: str) -> str:
    """The name of a cluster of texts.

    >>> named("answer judged wrong", ["refund", "voucher"], "clu_12ab34"), named("answer judged wrong", [], "clu_12ab34")
    ('answer judged wrong: `refund`, `voucher`', 'answer judged wrong: alike texts 12ab34')
    """
    about = ", ".join(f"`{word}`" for word in topic) or f"alike texts {key.removeprefix('clu_')[:6]}"
    return f"{base}: {about}"


def _vectors(words: Sequence[Collection[str]], *, seed: int) -> Matrix | None:
    """Unit vectors, shape `(n, at most 50)`; None where no text has a word."""
    if not any(words):
        return None
    x = TfidfVectorizer(analyzer=sorted, max_features=20_000).fit_transform(words)
    size = min(_DIMENSIONS, x.shape[0] - 1, x.shape[1] - 1)
    if size < 2:
        return np.asarray(normalize(x.toarray()), dtype=np.float64)
    left, values, _ = randomized_svd(x, size, random_state=seed)
    return np.asarray(normalize(left * values), dtype=np.float64)


def _labels(
    x: Matrix, words: Sequence[Collection[str]], changes: Sequence[Collection[str]] | None, *, alone: bool
) -> list[int]:
    """Group of each text, -1 for none; a group is unlike the rest, or all there is."""
    found = HDBSCAN(min_cluster_size=FEWEST, copy=True).fit_predict(x) if len(x) >= 2 * FEWEST else np.full(len(x), -1)
    found = _united(x, found, words) if changes is None else of_one_cause(x, found, words, changes)
    kept = np.full(len(x), -1)
    for label in sorted(set(found.tolist()) - {-1}):
        inside = found == label
        centre, rest = x[inside].mean(axis=0), x[~inside]
        within = float((x[inside] @ centre).mean())
        if len(rest) and within - float((rest @ centre).mean()) >= UNLIKE:
            kept[inside] = label
    if alone and not (kept != -1).any() and float((x @ x.mean(axis=0)).mean()) >= ALIKE:
        kept[:] = 0
    return [int(label) for label in kept]


def _united(x: Matrix, labels: NDArray[np.int64], words: Sequence[Collection[str]]) -> NDArray[np.int64]:
    """The labels with groups made one that are near, or that share a word most of both have: paraphrases are no difference.

    A word that most of all the texts have says nothing.
    """
    names = sorted(set(labels.tolist()) - {-1})
    if len(names) < 2:
        return labels
    common = Counter(word for each in words for word in each)
    telling = [
        {
            word
            for word, count in Counter(
                word for at in np.flatnonzero(labels == name).tolist() for word in words[at]
            ).items()
            if 2 * count >= int((labels == name).sum()) and common[word] <= COMMON * len(words)
        }
        for name in names
    ]
    centres = normalize(np.vstack([x[labels == name].mean(axis=0) for name in names]))
    shared = np.array([[bool(one & other) for other in telling] for one in telling])
    _, parts = connected_components((centres @ centres.T >= TOGETHER) | shared, directed=False)
    found = labels.copy()
    for name, part in zip(names, parts, strict=True):
        found[labels == name] = part
    return found


def _joined(x: Matrix, labels: Sequence[int], them: Sequence[Said], owners: Collection[str]) -> list[str | int]:
    """The groups, and each text without one in the earlier cluster it is as close to as nine in ten of that cluster's own."""
    found: list[str | int] = list(labels)
    near: list[tuple[str | int, Matrix, float]] = []
    for owner in sorted(set(owners)):
        own = [at for at, each in enumerate(them) if each.cluster_id == owner]
        if not own:
            continue
        centre = x[own].mean(axis=0)
        grouped = Counter(labels[at] for at in own if labels[at] != -1)
        label: str | int = grouped.most_common(1)[0][0] if grouped else owner
        near.append((label, centre, max(float(np.quantile(x[own] @ centre, 0.1)), UNLIKE)))
        for at in own:  # what was together stays, unless it is in another group now
            found[at] = label if labels[at] == -1 else labels[at]
    for at, label in enumerate(labels):
        if label == -1 and them[at].cluster_id not in owners:
            close = [(float(x[at] @ centre), group) for group, centre, least in near if float(x[at] @ centre) >= least]
            found[at] = max(close, key=lambda pair: pair[0])[1] if close else -1
    return found


def _topic(them: Sequence[Said], places: Sequence[int]) -> tuple[str, ...]:
    inside = set(places)
    counts: Counter[str] = Counter()
    others: Counter[str] = Counter()
    sources: dict[str, set[str]] = defaultdict(set)
    for at, each in enumerate(them):
        words = content_words(each.text)
        (counts if at in inside else others).update(words)
        if at in inside and each.source != _UNKNOWN:
            for word in words:
                sources[word].add(each.source)
    rest = max(1, len(them) - len(inside))
    telling = {
        word: count / len(inside) - others[word] / rest
        for word, count in counts.items()
        if count * 2 >= len(inside) and len(sources[word]) > 1
    }
    best = sorted((word for word in telling if telling[word] > 0), key=lambda word: (-telling[word], word))
    return tuple(best[:WORDS])
