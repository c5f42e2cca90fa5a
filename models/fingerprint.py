"""What failures of one cluster have in common, and what that is called."""

from collections.abc import Iterable

from models.corrections import Comparison, differing, is_confirmed, replied
from models.error_class import edit_class, error_class, named_argument
from models.steps import (
    arguments,
    error_text,
    failed_steps,
    is_consequential,
    label_in,
    leaf_first,
    step_name,
)
from store.records import Case, Episode, Fingerprint, Signal, Span

__all__ = ["FINGERPRINT_VERSION", "cluster_name", "edit_class", "error_class", "failing_step", "fingerprint"]

FINGERPRINT_VERSION = 1

ANSWER = "answer"
"""Component where the whole answer was wrong and no act of the program stands out."""

_LABEL_LIMIT = 64
"""A label of more characters is free text, and enters as an edit class: characters."""


def failing_step(episode: Episode, signals: Iterable[Signal]) -> Span | None:
    """The step that failed; None: the trace as a whole.

    The step a correction is about; else the last step with an error that was not recovered; else the step a bad
    verdict is about; else the last consequential call with a recovered error; else the only prediction of a trace
    that has no other step, unless the reply after it was corrected, or its label confirmed.
    """
    known = tuple(signals)
    corrected = differing(episode, known)
    if corrected and corrected[-1].span is not None:
        return corrected[-1].span
    failed = failed_steps(episode.spans)
    unrecovered = leaf_first(span for span, recovered in reversed(failed) if not recovered)
    if unrecovered:
        return unrecovered[0]
    return (
        _judged(episode, known)
        or next((span for span, _ in reversed(failed) if is_consequential(span)), None)
        or _only_prediction(episode, is_corrected=bool(corrected))
    )


def fingerprint(case: Case) -> Fingerprint:
    """What the case has in common with others: labels and identifiers verbatim, free text only as an edit class.

    A failure without any failing step is known by the last consequential act of the program, else as `answer`.
    """
    episode = case.episode
    step = failing_step(episode, case.signals)
    corrections = [item for item in differing(episode, case.signals) if item.span == step or step is None]
    served, corrected = _edit(corrections[-1] if corrections else None, step, has_signals=bool(case.signals))
    error, path, missing = _error(step)
    if missing and not corrected:
        corrected = "missing"
    last = _last_act(episode) if step is None and not corrections else None
    return Fingerprint(
        version=FINGERPRINT_VERSION,
        component=step_name(step) if step else step_name(last) if last else ANSWER,
        kind=step.kind if step else "agent",
        error_class=error if step else error_class(episode.trace.error, None),
        schema_path=path,
        served=served,
        corrected=corrected,
        intent=_intent(episode, step),
        scope=episode.trace.channel or "",
    )


def cluster_name(fingerprint: Fingerprint) -> str:
    """What a person understands, in one line.

    >>> cluster_name(Fingerprint(version=1, component="update_order", kind="tool", error_class="validation",
    ...                          schema_path="address", corrected="missing"))
    '`update_order` fails: address missing'
    """
    where = "".join(
        f" {word} {value}" for word, value in (("for", fingerprint.intent), ("on", fingerprint.scope)) if value
    )
    return _what(fingerprint) + where


def _what(fp: Fingerprint) -> str:
    component = f"`{fp.component}`"
    if fp.kind == "predict" and fp.error_class == "none":
        right = f"`{fp.corrected}` is right" if fp.corrected else "the right answer is not said"
        return f"{component} answers {f'`{fp.served}`' if fp.served else 'nothing'} where {right}"
    if fp.error_class != "none":
        return f"{component} fails: {_error_phrase(fp)}"
    if fp.corrected:
        return (
            f"{'answer' if fp.component == ANSWER else component} corrected: {_EDITS.get(fp.corrected, fp.corrected)}"
        )
    if fp.component == ANSWER:
        return "answer judged wrong, no step failed"
    if fp.kind == "agent":
        return f"judged wrong after {component}, no step failed"
    return f"{component} judged wrong"


_EDITS = {
    "negation": "the opposite was meant",
    "number": "another number",
    "entity": "another name",
    "format": "another format",
    "missing": "something was missing",
    "other": "reworded",
}
_ERRORS = {
    "transient": "temporarily unavailable",
    "auth": "not allowed",
    "not_found": "not found",
    "validation": "not accepted",
    "other": "other error",
}


def _error_phrase(fp: Fingerprint) -> str:
    if fp.schema_path and fp.corrected == "missing":
        return f"{fp.schema_path} missing"
    phrase = _ERRORS.get(fp.error_class, fp.error_class)
    return f"{fp.schema_path} {phrase}" if fp.schema_path else phrase


def _error(step: Span | None) -> tuple[str, str, bool]:
    """Of a step: its error class, the argument the error is about, and whether that was missing."""
    if step is None:
        return "none", "", False
    text = error_text(step)
    found = error_class(text, step.error_type)
    if found == "none" or step.kind != "tool":
        return found, "", False
    path, missing = named_argument(text, arguments(step))
    return found, path, missing


def _edit(item: Comparison | None, step: Span | None, *, has_signals: bool) -> tuple[str, str]:
    if item is None:
        is_prediction = step is not None and step.kind == "predict" and has_signals
        return (_label(label_in(step.output)), "") if step and is_prediction else ("", "")
    if item.is_label and max(len(item.served), len(item.corrected)) <= _LABEL_LIMIT:
        return item.served, item.corrected
    return "", edit_class(item.served, item.corrected)


def _label(label: str) -> str:
    return label if len(label) <= _LABEL_LIMIT else ""


def _judged(episode: Episode, signals: tuple[Signal, ...]) -> Span | None:
    """The step that a bad verdict names."""
    bad = {signal.feedback_id for signal in signals if signal.weight > 0 and signal.feedback_id is not None}
    named = {item.span_external_id for item in episode.feedback if item.id in bad and item.span_external_id}
    return next((span for span in reversed(episode.spans) if span.external_id in named), None)


def _only_prediction(episode: Episode, *, is_corrected: bool) -> Span | None:
    steps = [span for span in episode.spans if span.kind not in ("user", "chain", "evaluator")]
    if len(steps) != 1 or steps[0].kind != "predict":
        return None
    is_right = replied(episode, steps[0]) and (is_corrected or is_confirmed(episode, steps[0]))
    return None if is_right else steps[0]


def _last_act(episode: Episode) -> Span | None:
    return next((span for span in reversed(episode.spans) if is_consequential(span)), None)


def _intent(episode: Episode, step: Span | None) -> str:
    """What an earlier prediction of the trace said; empty: there is none."""
    for span in episode.spans:
        if step is not None and span.external_id == step.external_id:
            return ""
        if span.kind == "predict":
            return _label(label_in(span.output))
    return ""
