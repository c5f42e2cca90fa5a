"""What the router is measured against: constant answers, the majority, a text classifier, the cheapest place."""

from collections import Counter
from collections.abc import Callable, Sequence
from typing import TypeAlias

from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from benchmarks.attribution import Line
from models.router import NONE
from models.steps import text_of
from store.records import TARGETS

Probabilities: TypeAlias = dict[str, float]
Baseline: TypeAlias = Callable[[Sequence[Line]], list[Probabilities]]


def always(target: str) -> Baseline:
    """The same place for everything."""
    return lambda lines: [_certain(target) for _ in lines]


def majority(lines: Sequence[Line]) -> list[Probabilities]:
    """The most frequent place among the clear lines of the other sources."""
    best = {}
    for source in {line.source for line in lines}:
        counts = Counter(line.truth for line in lines if line.clear and line.source != source)
        best[source] = min(counts, key=lambda name: (-counts[name], name)) if counts else NONE
    return [_certain(best[line.source]) for line in lines]


def cheapest_first(lines: Sequence[Line]) -> list[Probabilities]:
    """The cheapest place there is: a fact of the user's where the user is known, else a rule."""
    return [_certain("memory" if line.case.episode.trace.user else "context") for line in lines]


def text_classifier(lines: Sequence[Line]) -> list[Probabilities]:
    """TF-IDF of everything in the trace and logistic regression, trained on the clear lines of the other sources."""
    texts = [_text(line) for line in lines]
    found: list[Probabilities] = [_certain(NONE) for _ in lines]
    for source in sorted({line.source for line in lines}):
        train = [at for at, line in enumerate(lines) if line.clear and line.source != source]
        test = [at for at, line in enumerate(lines) if line.source == source]
        if len({lines[at].truth for at in train}) < 2:
            continue
        model = make_pipeline(
            TfidfVectorizer(min_df=2, max_features=20_000, sublinear_tf=True),
            LogisticRegression(class_weight="balanced", max_iter=1000),
        )
        model.fit([texts[at] for at in train], [lines[at].truth for at in train])
        for at, row in zip(test, model.predict_proba([texts[at] for at in test]), strict=True):
            found[at] = {
                **dict.fromkeys((*TARGETS, NONE), 0.0),
                **dict(zip(model.classes_, map(float, row), strict=True)),
            }
    return found


def _text(line: Line) -> str:
    episode = line.case.episode
    steps = [text_of(value) for span in episode.spans for value in (span.input, span.output)]
    said = [text for each in episode.feedback for text in (each.comment or "", text_of(each.corrected_output))]
    return "\n".join([*steps, *said])[:20_000]


def _certain(target: str) -> Probabilities:
    return {name: float(name == target) for name in (*TARGETS, NONE)}


BASELINES: dict[str, Baseline] = {
    "always context": always("context"),
    "always weights": always("weights"),
    "majority of the other sources": majority,
    "TF-IDF, other sources": text_classifier,
    "cheapest first": cheapest_first,
}
