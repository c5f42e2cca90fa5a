"""Annotated failures as production would have logged them: one line of `attribution*.jsonl.gz` to a failing trace.

What only the annotators know (category, step, labels, notes, licence) never enters the trace; the description does,
as a reviewer's comment, except for sources whose name ends in `_cf`: there it gives the answer away.
"""

import gzip
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import JsonValue

from models.deployment import Deployment
from models.detector import detect
from models.router import NONE
from store.records import TARGETS, Case, Episode, Failure, Feedback, Span, Trace

NOT_A_CORRECTION = "not-a-correction"

_CALL = re.compile(r"TOOL_CALL\s+(\S+)\s*(\{.*?\})?\s*$", re.MULTILINE | re.DOTALL)
_PREDICTED = re.compile(r"(?P<label>.*?)\s*\(score (?P<score>[\d.]+)\)\s*$", re.DOTALL)
_RECALLED = re.compile(r"\b(\d+)(?: memories)? recalled\b")
_RIGHT = re.compile(r"(?:gold|expected \w+): ", re.IGNORECASE)
_TERMINAL = re.compile(r"terminal|executor|environment", re.IGNORECASE)
_FAILED = re.compile(r"exit ?code: [1-9]")
_REPORTS = ("report", "issue")
_PEOPLE = ("", "user", "human", "customer")
"""Names of a user's turn; under any other name another agent speaks."""


@dataclass(frozen=True)
class Line:
    """One annotated failure: what a router may see, and apart from it the truth."""

    source: str
    id: str
    group: str
    case: Case
    earlier: tuple[Episode, ...]
    """Earlier traces of the same user."""
    models: tuple[str, ...]
    """Models that answered in it: the deployment's weights."""
    truth: str
    """The mapped target, `none` for what is not a correction."""
    clear: bool
    outcomes: Mapping[str, bool | None] | None
    """Target to whether it repaired the failure, None where it was not tried; None: no fix was run."""
    gold_is_wrong: bool

    @property
    def valid(self) -> frozenset[str]:
        """Right places: `none` where the correction itself is wrong, else what repaired it, else the label."""
        if self.gold_is_wrong:
            return frozenset({NONE})
        return self.repaired or frozenset({self.truth})

    @property
    def repaired(self) -> frozenset[str]:
        """Places that were tried and repaired it; empty where the correction is wrong: nothing is to be repaired."""
        tried = {} if self.gold_is_wrong or self.outcomes is None else self.outcomes
        return frozenset(target for target, held in tried.items() if held)

    @property
    def deployment(self) -> Deployment:
        return Deployment(targets=TARGETS, models=dict.fromkeys(self.models))


def read_lines(folder: Path) -> list[Line]:
    """Every annotated failure below the folder, with its outcomes; empty where there is none."""
    outcomes = {
        (row["source"], row["id"]): row for path in sorted(folder.rglob("outcomes*.jsonl.gz")) for row in _rows(path)
    }
    return [
        line_of(row, outcomes.get((row["source"], row["id"])))
        for path in sorted(folder.rglob("attribution*.jsonl.gz"))
        for row in _rows(path)
    ]


def _rows(path: Path) -> Iterator[dict[str, Any]]:
    with gzip.open(path, "rt", encoding="utf-8") as file:
        yield from (json.loads(text) for text in file if text.strip())


def line_of(row: Mapping[str, Any], outcome: Mapping[str, Any] | None = None) -> Line:
    """The failure as flows would see it, beside its truth."""
    seen = _Log(row["source"], row["id"])
    for entry in row["trajectory"]:
        seen.add(entry)
    comment = None if row["source"].endswith("_cf") else (row.get("annotation") or {}).get("description")
    episode = seen.episode(row.get("correction"), comment)
    case = Case(
        failure=Failure(
            trace_id=episode.trace.id, picked_us=0, probability=1.0, source=episode.trace.user or "unknown"
        ),
        episode=episode,
        signals=detect(episode, meanings={}, out_of_scope={}),
    )
    named = sorted({span.model for span in episode.spans if span.model and span.kind in ("predict", "llm")})
    label = row["mapped_target"]
    return Line(
        source=row["source"],
        id=row["id"],
        group=row["group"],
        case=case,
        earlier=seen.earlier(),
        models=tuple(named),
        truth=NONE if label == NOT_A_CORRECTION else label,
        clear=row["mapping_confidence"] == "clear",
        outcomes=None if outcome is None else outcome["outcomes"],
        gold_is_wrong=bool(outcome and outcome.get("gold_is_wrong")) or label == NOT_A_CORRECTION,
    )


class _Log:
    """The steps of one trajectory, in order, as spans."""

    def __init__(self, source: str, id: str) -> None:
        self.key = {"source": source, "trace_external_id": id}
        self.spans: list[Span] = []
        self.seen: list[JsonValue] = []
        """What the model was shown since it last spoke."""
        self.reports: list[str] = []
        self.sessions: list[str] = []
        self.asked: str | None = None

    def add(self, entry: Mapping[str, Any]) -> None:
        role, name, text = str(entry["role"]), str(entry.get("name") or ""), str(entry["content"])
        if role in _REPORTS or (role == "user" and name in _REPORTS):
            self.reports.append(text)
        elif role == "model":
            self._predict(name, text)
        elif role == "tool" or (role == "user" and _TERMINAL.search(name)):
            self._result(name, text)
        elif role == "earlier session":
            self.sessions.append(text)
        elif role in ("system", "evidence") or (role == "user" and name.casefold() in _PEOPLE):
            self._shown(role, text)
        else:
            self._say(name, text)

    def _span(self, **fields: Any) -> None:
        at = len(self.spans)
        self.spans.append(Span(**self.key, external_id=str(at), position=at, **fields))

    def _shown(self, role: str, text: str) -> None:
        self.seen.append({"role": role, "content": text})
        recalled = _RECALLED.search(text) if role == "system" else None
        if recalled is not None:
            count = int(recalled[1])
            self._span(kind="memory", name="memory", output={"recalled": count} if count else [])
        if role == "user":
            self.asked = self.asked or text
            self._span(kind="user", name="user", input=text)

    def _predict(self, name: str, text: str) -> None:
        found = _PREDICTED.match(text)
        label, score = (found["label"], float(found["score"])) if found else (text, None)
        self._span(kind="predict", name=name, model=name, input=self.asked, output=label, confidence=score)

    def _result(self, name: str, text: str) -> None:
        error = text if _FAILED.search(text) else None
        waiting = next(
            (
                at
                for at, span in enumerate(self.spans)
                if span.kind == "tool" and span.name == name and span.output is None
            ),
            None,
        )
        if waiting is None:
            self._span(kind="tool", name=name or "tool", output=text, error=error)
        else:
            self.spans[waiting] = self.spans[waiting].model_copy(update={"output": text, "error": error})

    def _say(self, name: str, text: str) -> None:
        calls = list(_CALL.finditer(text))
        if not calls:
            self._span(
                kind="llm", name=name or "assistant", model=name or "assistant", input=self.seen or None, output=text
            )
        for call in calls:
            self._span(kind="tool", name=call[1], input=call[2] or "{}")
        self.seen = []

    def episode(self, correction: str | None, comment: str | None) -> Episode:
        """The failing trace with what was said of it. Times are places in the order of the log, not clock times."""
        answers = [span for span in self.spans if span.kind in ("llm", "predict")]
        trace = Trace(
            source=self.key["source"],
            external_id=self.key["trace_external_id"],
            input=self.asked,
            output=answers[-1].output if answers else None,
            user=self._user(),
            started_us=len(self.sessions) if self.sessions else None,
        )
        return Episode(trace=trace, spans=tuple(self.spans), feedback=tuple(self._feedback(correction, comment)))

    def _user(self) -> str | None:
        return f"user of {self.key['trace_external_id']}" if self.sessions else None

    def _feedback(self, correction: str | None, comment: str | None) -> Iterator[Feedback]:
        yield Feedback(**self.key, external_id="score", name="thumb", score=0.0)
        right = _RIGHT.match(correction or "")
        if correction and right:
            name = "label" if any(span.kind == "predict" for span in self.spans) else "correction"
            yield Feedback(**self.key, external_id="right", name=name, corrected_output=correction[right.end() :])
        said = [text for text in (*self.reports, comment, None if right else correction) if text]
        for at, text in enumerate(said):
            yield Feedback(**self.key, external_id=f"said{at}", name="comment", comment=text)

    def earlier(self) -> tuple[Episode, ...]:
        """The user's earlier sessions, each a trace of its own that nobody complained of."""
        source, id = self.key["source"], self.key["trace_external_id"]
        return tuple(
            Episode(trace=Trace(source=source, external_id=f"{id}#{at}", user=self._user(), input=text, started_us=at))
            for at, text in enumerate(self.sessions)
        )
