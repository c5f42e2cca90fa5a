"""What should have been answered, set against what was served."""

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from pydantic import JsonValue

from models.steps import answer_text, label_in, text_of
from store.records import Episode, Feedback, Meaning, Signal, Span

TRUTH_NAMES = frozenset({"label", "target", "truth", "ground_truth", "y_true", "actual", "expected", "gold"})
"""Feedback of these names carries the right label itself, where it is no verdict such as `good`."""

_LABEL_LIMIT = 64
_SENTENCE = re.compile(r"[.!?]\s*$|[.!?,;:]\s|\n")
"""What a sentence has and a label has not."""

MACHINE = Meaning(kind="evaluation")
PERSON = Meaning()


@dataclass(frozen=True)
class Comparison:
    """One correction beside what it corrects."""

    feedback: Feedback
    span: Span | None
    """The step it is about; None: the answer as a whole."""
    served: str
    corrected: str
    is_label: bool
    """Both are labels of a prediction; else free text."""

    @property
    def differs(self) -> bool:
        return _folded(self.served) != _folded(self.corrected)


def meaning_of(feedback: Feedback, meanings: Mapping[str, Meaning]) -> Meaning:
    """What this feedback's name means; undeclared, a `reward` and what a program says count as an evaluation."""
    declared = meanings.get(feedback.name)
    if declared is not None:
        return declared
    return MACHINE if feedback.name == "reward" or feedback.source_kind == "program" else PERSON


def verdict_label(feedback: Feedback, meaning: Meaning) -> bool | None:
    """Whether the feedback's label is a word for good (True) or for bad (False); None: it is neither."""
    label = (feedback.label or "").strip().casefold()
    if label in {word.casefold() for word in meaning.bad_labels}:
        return False
    return True if label in {word.casefold() for word in meaning.good_labels} else None


def right_answer(feedback: Feedback, meaning: Meaning) -> JsonValue:
    """The answer this feedback calls right: its corrected output, else its label where its name says so; None: not said."""
    if feedback.corrected_output is not None:
        return feedback.corrected_output
    if feedback.name.casefold() not in TRUTH_NAMES or verdict_label(feedback, meaning) is not None:
        return None
    return feedback.label or None


def judged_step(episode: Episode, feedback: Feedback, right: JsonValue = None) -> Span | None:
    """The step a feedback is about; None: the answer as a whole.

    The span it names; else the prediction of its name; else the only prediction, where the feedback carries a label
    or the trace has no other answer. Where an agent replied, words that are right for the whole trace are about the
    reply, unless the feedback's name says that it is a label and they have the form of one.
    """
    named = feedback.span_external_id
    if named is not None:
        return next((span for span in episode.spans if span.external_id == named), None)
    predictions = [span for span in episode.spans if span.kind == "predict"]
    by_name = [span for span in predictions if feedback.name in (span.name, span.model)]
    if by_name:
        return by_name[-1]
    if len(predictions) != 1:
        return None
    [only] = predictions
    is_label = feedback.name.casefold() in TRUTH_NAMES
    if replied(episode, only):
        said = label_in(right)
        return only if is_label and said and has_form_of_label(said) else None
    others = any(span.kind not in ("predict", "user", "chain") for span in episode.spans)
    return only if is_label or not others else None


def naming_labels(episode: Episode, labels: Mapping[str, Collection[str]]) -> Episode:
    """The episode in which a correction that is a known label names the only prediction, though an agent replied after it.

    `labels`: model to the labels it is known to give. A prediction that somebody confirmed is left alone.
    """
    predictions = [span for span in episode.spans if span.kind == "predict"]
    if len(predictions) != 1 or not replied(episode, predictions[0]) or is_confirmed(episode, predictions[0]):
        return episode
    [only] = predictions
    known = {_folded(label) for name in (only.model, only.name) for label in labels.get(name or "", ())}
    said = tuple(
        each.model_copy(update={"span_external_id": only.external_id})
        if each.span_external_id is None and _folded(label_in(each.corrected_output)) in known
        else each
        for each in episode.feedback
    )
    return episode if said == episode.feedback else episode.model_copy(update={"feedback": said})


def replied(episode: Episode, prediction: Span) -> bool:
    """Whether the trace has an answer of its own beside the label of this prediction."""
    answer, label = answer_text(episode), label_in(prediction.output)
    if not answer.strip():
        return False
    if not label:
        return not has_form_of_label(answer) or len(answer.split()) > 1
    folded = {_folded(answer), _folded(label_in(answer)), _folded(label_in(episode.trace.output))}
    return _folded(label) not in folded and _folded(answer) != _folded(text_of(prediction.output))


def has_form_of_label(text: str) -> bool:
    """Whether a text may be a class's name: at most 64 characters, and no sentence.

    >>> has_form_of_label("lost card"), has_form_of_label("Are you sure? All is lost."), has_form_of_label("Yes.")
    (True, False, False)
    """
    return len(text) <= _LABEL_LIMIT and _SENTENCE.search(text.strip()) is None


def is_confirmed(episode: Episode, prediction: Span) -> bool:
    """Whether somebody said of this prediction that its label is right."""
    named = (right_answer(said, PERSON) for said in episode.feedback if said.span_external_id == prediction.external_id)
    served = _folded(label_in(prediction.output))
    return any(right is not None and _folded(label_in(right)) == served for right in named)


def compare(
    episode: Episode, feedback: Feedback, right: JsonValue, *, out_of_scope: Mapping[str, str | None]
) -> Comparison:
    """The correction `right` beside what was served; a model's out-of-scope label and no label are the same."""
    span = judged_step(episode, feedback, right)
    model = span.model or span.name if span else episode.trace.model
    if span is not None and span.kind == "predict":
        reject = out_of_scope.get(model or "")
        served, corrected = _unless(label_in(span.output), reject), _unless(label_in(right), reject)
        return Comparison(feedback, span, served, corrected, is_label=True)
    served = text_of(span.output) if span else answer_text(episode)
    return Comparison(feedback, span, served, text_of(right), is_label=False)


def comparisons(
    episode: Episode, *, meanings: Mapping[str, Meaning], out_of_scope: Mapping[str, str | None]
) -> tuple[Comparison, ...]:
    """Every feedback that says what would have been right, beside what was served, in the order of the feedback."""
    found = []
    for feedback in episode.feedback:
        right = right_answer(feedback, meaning_of(feedback, meanings))
        if right is not None:
            found.append(compare(episode, feedback, right, out_of_scope=out_of_scope))
    return tuple(found)


def differing(episode: Episode, signals: Iterable[Signal] = ()) -> tuple[Comparison, ...]:
    """The corrections that differ from what was served, earliest first.

    Where signals were computed they decide which count: they know the feedback's meaning and the out-of-scope labels.
    """
    known = tuple(signals)
    counted = {
        signal.feedback_id for signal in known if signal.weight > 0 and signal.detector in ("correction", "late_label")
    }
    found = [item for item in comparisons(_as_read(episode, known), meanings={}, out_of_scope={}) if item.differs]
    if known:
        found = [item for item in found if item.feedback.id in counted]
    return tuple(sorted(found, key=lambda item: item.feedback.given_us or 0))


def _as_read(episode: Episode, signals: Iterable[Signal]) -> Episode:
    """The episode whose feedback names the prediction that its signal says it is about."""
    steps = {span.id: span.external_id for span in episode.spans if span.kind == "predict"}
    read = {each.feedback_id: steps[each.span_id] for each in signals if each.feedback_id and each.span_id in steps}
    if not any(each.span_external_id is None and each.id in read for each in episode.feedback):
        return episode
    said = tuple(
        each.model_copy(update={"span_external_id": each.span_external_id or read.get(each.id)})
        for each in episode.feedback
    )
    return episode.model_copy(update={"feedback": said})


def _unless(label: str, reject: str | None) -> str:
    return "" if reject is not None and _folded(label) == _folded(reject) else label


def _folded(text: str) -> str:
    return " ".join(text.split()).casefold()
