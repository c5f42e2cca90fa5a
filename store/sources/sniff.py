"""A first look at a log: what is in it, what is missing, and what each missing part switches off. Changes nothing."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from pydantic import JsonValue

from store.records import Feedback, Rejected, Span, Trace
from store.records.identity import canonical_json
from store.sources import tabular
from store.sources.contract import Item, SourceOptions
from store.sources.findings import FeedbackFound, Findings
from store.sources.registry import read, recognise
from store.sources.times import WITHOUT_OFFSET
from store.sources.unknowns import unknowns_of

SAMPLE_RECORDS = 2_000
"""Traces, feedback and rejected pieces that are looked at; spans come with their traces."""

_LOW_IS_GOOD = (
    "error",
    "toxic",
    "halluc",
    "latency",
    "cost",
    "risk",
    "harm",
    "bias",
    "complain",
    "effort",
    "churn",
    "incorrect",
)
_HIGH_IS_GOOD = (
    *("thumb", "reward", "score", "correct", "accura", "rating", "star", "helpful", "relevan", "faithful", "satisf"),
    *("csat", "nps", "quality", "success", "resolved", "pass", "like", "grounded", "complete"),
)


def sniff(path: Path, *, options: SourceOptions | None = None) -> Findings:
    """The findings on a file or folder from its first records. Raises what `store.sources.read` raises."""
    options = options or SourceOptions()
    reader = recognise(path) if not options.columns else tabular
    look = _Look()
    look.take(read(path, options=options))
    without_offset = look.without_offset and options.timezone is None
    if without_offset:
        look = _Look()
        look.take(read(path, options=options.model_copy(update={"timezone": "UTC"})))
    guessed = reader.name == tabular.name and not options.columns and not path.is_dir()
    columns = tabular.guess_columns(path) if guessed else options.columns
    return look.findings(path, reader.name, columns, without_offset=without_offset)


def sniff_items(place: str, format: str, *parts: Iterator[Item]) -> Findings:
    """The findings on what a running system gives, from the first records of each part."""
    look = _Look()
    for part in parts:
        look.take(part)
    found = look.findings(Path(place), format, {}, without_offset=False)
    return found.model_copy(update={"path": place, "pull": place})


class _Look:
    """Counts what goes by."""

    def __init__(self) -> None:
        self.rejected = 0
        self.without_offset = False
        """Whether something is rejected since its time has no offset."""
        self._complete = False
        self._first: str | None = None
        self._counts: Counter[str] = Counter()
        self._users: set[str] = set()
        self._sessions: set[str] = set()
        self._with_time = 0
        self._unnamed = False
        self._tools: dict[str, dict[str, None]] = {}
        self._models: dict[str, Counter[str]] = {}
        self._kinds: set[str] = set()
        self._feedback: dict[str, list[Feedback]] = {}

    def take(self, items: Iterator[Item]) -> None:
        seen = 0
        for item in items:
            seen += not isinstance(item, Span)
            if seen > SAMPLE_RECORDS:
                return
            self._add(item)
        self._complete = True

    def _add(self, item: Item) -> None:
        if isinstance(item, Rejected):
            self.rejected += 1
            self.without_offset = self.without_offset or WITHOUT_OFFSET in item.reason
            self._first = self._first or f"line {item.line or 1}: {item.reason}"
        elif isinstance(item, Trace):
            self._counts["traces"] += 1
            self._users.update(filter(None, (item.user,)))
            self._sessions.update(filter(None, (item.session,)))
            self._with_time += item.started_us is not None
        elif isinstance(item, Span):
            self._counts["spans"] += 1
            self._add_span(item)
        else:
            self._counts["feedback"] += 1
            self._feedback.setdefault(item.name, []).append(item)

    def _add_span(self, span: Span) -> None:
        self._kinds.add(span.kind)
        if span.kind == "tool":
            seen = self._tools.setdefault(span.name or "tool", {})
            seen.update(dict.fromkeys(span.input if isinstance(span.input, dict) else ()))
        if span.kind == "predict":
            self._unnamed = self._unnamed or not (span.model or span.name)
            labels = self._models.setdefault(span.model or span.name or "model", Counter())
            labels[_label(span.output)] += 1

    def findings(self, path: Path, format: str, columns: dict[str, str], *, without_offset: bool) -> Findings:
        names = tuple(_found(name, given) for name, given in self._feedback.items())
        found = Findings(
            path=str(path),
            format=format,
            complete=self._complete,
            traces=self._counts["traces"],
            spans=self._counts["spans"],
            feedback=self._counts["feedback"],
            rejected=self.rejected,
            first_rejection=self._first,
            users=len(self._users),
            with_time=self._with_time,
            sessions=len(self._sessions),
            without_offset=without_offset,
            feedback_names=names,
            tools={tool: tuple(arguments) for tool, arguments in sorted(self._tools.items())},
            models={model: dict(labels.most_common()) for model, labels in self._models.items()},
            unnamed_model=self._unnamed,
            agent=bool(self._kinds & {"llm", "tool", "agent"}),
            columns=columns,
        )
        return found.model_copy(update={"unknowns": unknowns_of(found)})


def _label(output: JsonValue) -> str:
    if output is None:
        return ""
    return output if isinstance(output, str) else canonical_json(output)


def _found(name: str, given: list[Feedback]) -> FeedbackFound:
    scores = [item.score for item in given if item.score is not None]
    labels = Counter(item.label for item in given if item.label is not None)
    return FeedbackFound(
        name=name,
        count=len(given),
        lowest=min(scores, default=None),
        highest=max(scores, default=None),
        labels=dict(labels.most_common()),
        corrected=sum(item.corrected_output is not None for item in given),
        kind="person" if any(item.source_kind == "human" for item in given) else "evaluation",
        good=_polarity(name),
        threshold=_threshold(min(scores), max(scores)) if scores else None,
    )


def _polarity(name: str) -> Literal["high", "low"] | None:
    """Whether a high score is good, by the name.

    >>> _polarity("User Rating"), _polarity("hallucination_score"), _polarity("x7")
    ('high', 'low', None)
    """
    lowered = name.lower()
    if any(word in lowered for word in _LOW_IS_GOOD):
        return "low"
    return "high" if any(word in lowered for word in _HIGH_IS_GOOD) else None


def _threshold(lowest: float, highest: float) -> float:
    """Where bad ends on the usual scale these scores fit: -1 to 1, 0 to 1, 1 to 5, 0 to 10, 0 to 100; else halfway.

    >>> _threshold(-1, 1), _threshold(0, 1), _threshold(1, 5), _threshold(0, 10)
    (0.0, 0.5, 3.0, 5.0)
    """
    if -1 <= lowest < 0 < highest <= 1:
        return 0.0
    for top, threshold in ((1.0, 0.5), (5.0, 3.0), (10.0, 5.0), (100.0, 50.0)):
        if lowest >= 0 and highest <= top:
            return threshold
    return (lowest + highest) / 2
