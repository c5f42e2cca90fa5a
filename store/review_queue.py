"""What a reviewer looks at: the queue, and one correction with its examples."""

import math
from typing import Any

from store.changes import hold_of
from store.corrections import correction, reviews_of, route_of, waiting
from store.database import Store
from store.failures import cases_of, cluster
from store.ledger import events_of
from store.records import Case, Correction, Route
from store.replays import replays_of

SURE = 0.1
EXAMPLES = 3
SHOWN = 200
"""Characters of a text shown in a line."""


def review_queue(store: Store) -> list[dict[str, Any]]:
    """The corrections that wait, the most valuable to judge first and deferred ones last.

    Each with `correction, cluster, name, failures, target, probability, runner_up, certified, summary, needs_answer, state,
    value`.
    """
    with store.read() as connection:
        rows = [
            _item(found, name, size, route_of(connection, found.id))
            for found, name, size in waiting(connection, store.project)
        ]
    return sorted(rows, key=lambda row: (row["state"] == "deferred", -row["value"]))


def review_item(store: Store, correction_id: str) -> dict[str, Any]:
    """One correction with its route, evidence, reviews and example traces. Raises NotFound."""
    with store.read() as connection:
        found = correction(connection, store.project, correction_id)
        each = cluster(connection, found.cluster_id)
        decided = route_of(connection, found.id)
        cases = cases_of(connection, found.cluster_id, EXAMPLES)
        said = reviews_of(connection, found.id)
        held = hold_of(connection, found.id)
        events = events_of(connection, store.project, found.id)
        replayed = replays_of(connection, found.id)
    return {
        **_item(found, each.name if each else "", each.failures if each else 0, decided),
        "attempt": found.attempt,
        "probabilities": decided.probabilities if decided else {},
        "reason": decided.reason if decided else "",
        "to_yes": decided.to_yes if decided else "",
        "evidence": decided.evidence if decided else {},
        "router": decided.router if decided else None,
        "proposal": found.proposal.model_dump(mode="json") if found.proposal else None,
        "reviews": [review.model_dump(mode="json") for review in said],
        "examples": [_example(case) for case in cases],
        "replay": {"replay": replayed[0].id, **replayed[0].model_dump(mode="json")} if replayed else None,
        "hold": held.model_dump(mode="json") if held else None,
        "refused": next((each["reason"] for each in reversed(events) if each["event"] == "held"), None),
    }


def _item(found: Correction, name: str, size: int, decided: Route | None) -> dict[str, Any]:
    proposal = found.proposal
    target = proposal.target if proposal else None
    return {
        "correction": found.id,
        "cluster": found.cluster_id,
        "name": _short(name),
        "failures": size,
        "target": target,
        "probability": decided.probabilities.get(target or "none", 0.0) if decided else 0.0,
        "runner_up": decided.runner_up if decided else None,
        "certified": decided.certified if decided else False,
        "summary": proposal.summary if proposal else "no single place found",
        "needs_answer": proposal.needs_answer if proposal else _nobody_said(decided),
        "state": found.state,
        "value": round(_value(decided, size), 4),
    }


def _value(decided: Route | None, failures: int) -> float:
    """What a verdict is worth: how unsure the route is (entropy, nats), and how many failures hang on it.

    A sure route is worth a tenth of a nat too: its correction still waits.
    """
    shares = [share for share in decided.probabilities.values() if share > 0] if decided else []
    return (SURE + math.fsum(-share * math.log(share) for share in shares)) * failures


def _nobody_said(decided: Route | None) -> str | None:
    """What a person must write where nobody said what would have been right; None: somebody did."""
    if decided is not None and decided.evidence.get("answered"):
        return None
    return "what would have been right, in the place where it belongs: reroute --to PLACE --answer '...'"


def _example(case: Case) -> dict[str, Any]:
    trace = case.episode.trace
    steps = [
        f"{'>' if span.id == case.failure.span_id else ' '} {span.kind} {_short(span.name or '')}: "
        f"{_short(span.input)} -> {_short(span.error or span.output)}"
        for span in case.episode.spans
    ]
    steps = [f"  asked: {_short(trace.input)}", *steps, f"  answered: {_short(trace.error or trace.output)}"]
    said = [
        " ".join(
            part
            for part in (
                _short(feedback.name),
                "" if feedback.score is None else f"{feedback.score:g}",
                _short(feedback.label or ""),
                _short(feedback.comment) if feedback.comment else "",
                "" if feedback.corrected_output is None else f"should be {_short(feedback.corrected_output)}",
                f"({_short(feedback.principal or 'unknown')})",
            )
            if part
        )
        for feedback in case.episode.feedback
    ]
    return {
        "trace": trace.id,
        "failure": case.failure.id,
        "user": None if trace.user is None else _short(trace.user),
        "steps": steps,
        "feedback": said,
    }


def _short(value: Any) -> str:
    text = " ".join(str(value if value is not None else "-").split())
    printable = "".join(each if each.isprintable() else "\N{REPLACEMENT CHARACTER}" for each in text)
    return printable if len(printable) <= SHOWN else printable[: SHOWN - 1] + "\N{HORIZONTAL ELLIPSIS}"
