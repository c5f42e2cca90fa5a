"""A model version's card: what it is, what it learnt, how it was judged, where it fails, how to take it back."""

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

from sqlalchemy import Connection

from flows.serving import artifact_of
from models.artifacts import Manifest, read_manifest
from models.fitting import ARMS
from store.records import Retrain, Version
from store.retrains import dataset_of, promotion


def model_card(
    found: Version, manifest: Manifest, promoted: Retrain | None, rows: Sequence[Mapping[str, object]]
) -> str:
    """Markdown. `promoted`: the retrain that made it, None for a first version; `rows`: corrections it learnt from.

    What the log said stands in backticks, without any of its own: as data, never as markup.
    """
    content = found.content if isinstance(found.content, dict) else {}
    parts = [f"# {_quoted(found.model or 'model')} {found.id}", _identity(found, manifest, content)]
    parts += [_learnt(content, rows), _judged(promoted), _failing(promoted)]
    parts.append(f"## Taking it back\n\n`filmroom undo {found.id}` serves {_quoted(found.parent or 'no model')} again.")
    return "\n\n".join(part for part in parts if part) + "\n"


def card_of(connection: Connection, artifacts: Path, found: Version) -> str:
    """The card of a stored model version. Raises ModelRefused where its manifest cannot be read."""
    made = promotion(connection, found.project, found.id)
    learnt = set(made.trace_ids) if made else set()
    rows = [row for row in dataset_of(connection, found.project, found.model or "") if row["trace_id"] in learnt]
    return model_card(found, read_manifest(artifacts, artifact_of(found)), made, rows)


def bound(numbers: Mapping[str, float | None]) -> str:
    """What a stage's numbers rule out with 95 % confidence, or its p-value; empty where it has neither.

    >>> bound({"loss_bound": 0.0124}), bound({"loss_bound": -0.02}), bound({"flip_bound": 0.01}), bound({"p": 0.03})
    ('at most 1.2 % lost', 'at least 2.0 % gained', 'at most 1.0 % flips', 'p 0.03')
    """
    flips, loss, p = (numbers.get(name) for name in ("flip_bound", "loss_bound", "p"))
    if flips is not None:
        return f"at most {100 * flips:.1f} % flips"
    if loss is not None:
        return f"at least {-100 * loss:.1f} % gained" if loss < 0 else f"at most {100 * loss:.1f} % lost"
    return "" if p is None else f"p {p:.3g}"


def _identity(found: Version, manifest: Manifest, content: Mapping[str, object]) -> str:
    arm = ARMS.get(manifest.arm)
    made = "first version" if found.parent is None else f"after {found.parent}"
    lines = [
        f"* made {_day(found.created_us)}, {made}",
        f"* arm `{manifest.arm}`" + (f": {arm.representation} features, {arm.learner}, {arm.treatment}" if arm else ""),
        f"* model file `{manifest.artifact}`",
        f"* filmroom {manifest.code_version}; "
        + ", ".join(f"{k} {v}" for k, v in sorted(manifest.environment.items())),
    ]
    return "\n".join(lines)


def _learnt(content: Mapping[str, object], rows: Sequence[Mapping[str, object]]) -> str:
    labels = Counter(str(row["label"]) for row in rows)
    sources = len({row["source"] for row in rows})
    lines = [f"## Data\n\n{content.get('rows', 'unknown')} rows, digest `{content.get('training', 'unknown')}`"]
    if rows:
        lines.append(f"of them {len(rows)} corrections approved from {sources} sources; most often:")
        lines.append("\n".join(f"* {_quoted(label)}: {count}" for label, count in labels.most_common(10)))
    return "\n\n".join(lines)


def _judged(promoted: Retrain | None) -> str:
    if promoted is None:
        return "## How it was judged\n\nNot at all: it is the first version, and there was nothing to compare it with."
    trials = ["| arm | score | rows | repaired | broken | seconds | |", "|---|---|---|---|---|---|---|"]
    for arm in promoted.arms:
        score = arm.get("score")
        remark = _cell(str(arm.get("error") or "")) or (
            "stopped: behind after the first fold" if arm.get("stopped") else ""
        )
        trials.append(
            f"| {arm['arm']} | {score:.3f} | " if isinstance(score, float) else f"| {arm['arm']} | not scored | "
        )
        trials[-1] += f"{arm['rows']} | {arm['repaired']} | {arm['broken']} | {_number(arm['seconds'])} | {remark} |"
    gate = ["| stage | verdict | bound | what was compared |", "|---|---|---|---|"]
    gate += [
        f"| {stage.stage} | {stage.verdict} | {bound(stage.numbers)} | {_cell(stage.sentence)} |"
        for stage in promoted.gate
    ]
    return (
        f"## How it was judged\n\n{_cell(promoted.reason)} (`{promoted.id}`, {promoted.estimator_fits} fits, "
        f"{promoted.seconds:.1f} s)\n\n" + "\n".join(trials) + "\n\n" + "\n".join(gate)
    )


def _failing(promoted: Retrain | None) -> str:
    lost = [each for each in promoted.examples if each.change == "newly wrong"] if promoted else []
    if not lost:
        return ""
    slices = Counter(each.truth or "out of scope" for each in lost)
    lines = [f"* {_quoted(label)}: {count} answers newly wrong" for label, count in slices.most_common()]
    lines += [
        f"* {each.trace_id or 'a base row'}: {_quoted(each.challenger or 'turned away')} and right was "
        f"{_quoted(each.truth or 'out of scope')}"
        for each in lost
    ]
    return "## Where it fails\n\nJudged rows that the version before answered right:\n\n" + "\n".join(lines)


def _quoted(text: str) -> str:
    return "`" + " ".join(text.replace("`", "'").split()) + "`"


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;")


def _day(at_us: int) -> str:
    return datetime.fromtimestamp(at_us / 1_000_000, tz=UTC).strftime("%Y-%m-%d %H:%M")


def _number(value: object) -> str:
    return f"{value:.1f}" if isinstance(value, float) else str(value)
