"""Is a correction sent where it can be repaired? The router on annotated failures and on fixes that were run.

    python benchmarks/routing.py [--data FOLDER] [--quick] [--json FILE]

Each line is one failure and one decision; what else failed in its source is the batch beside it. Accuracy is any-valid:
the place that repaired the failure where fixes were run, else the annotators' label; clear lines only, per source.
Whatever is trained is trained on the other sources. Repairs per decision counts every line whose fixes were run, the
arguable ones too. Coverage is what may go without a person at a certified risk of 10 %, after so many reviews drawn at
random; realised risk is the share of that in a wrong place.
"""

import argparse
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from benchmarks.attribution import Line, read_lines
from benchmarks.routing_baselines import BASELINES, Probabilities
from models.abstention import Certificate, Sent, certify, kind_of
from models.deployment import Deployment
from models.evidence import weigh
from models.learned_router import TrainingRow, fit_router
from models.router import NONE, PRIOR
from models.router_gate import candidate, too_few
from store.records import TARGETS, Policy

BUDGETS = (50, 100, 200, 400)
"""Reviews that a certificate is computed from."""
RESAMPLINGS = 200
RISK, CONFIDENCE = 0.10, 0.90
OUTAGE = "outage"
"""A source of this name is one broken service: no line of it may lead to a retrain."""

Evidence: TypeAlias = Mapping[str, float | None]
Router: TypeAlias = Callable[[Sequence[Line], Sequence[Evidence]], list[Probabilities]]


@dataclass(frozen=True)
class Decided:
    """One router's decision on one line."""

    line: Line
    choice: str
    score: float
    kind: str = ""
    """As certificates tell clusters apart."""

    @property
    def right(self) -> bool:
        return self.choice in self.line.valid

    @property
    def needless(self) -> bool:
        """A retrain that does not repair: tried and failed, or nothing was to be repaired."""
        tried = self.line.outcomes or {}
        return self.choice == "weights" and (self.line.gold_is_wrong or tried.get("weights") is False)


def evidence_of(lines: Sequence[Line]) -> list[Evidence]:
    """The evidence on each line alone, beside what else failed in its source."""
    batches = {
        name: tuple(line.case.episode for line in lines if line.source == name)
        for name in {line.source for line in lines}
    }
    return [
        weigh((line.case,), line.earlier, deployment=line.deployment, policy=Policy(), batch=batches[line.source])
        for line in lines
    ]


def rules(lines: Sequence[Line], evidence: Sequence[Evidence]) -> list[Probabilities]:
    return [PRIOR.probabilities(found, line.deployment) for line, found in zip(lines, evidence, strict=True)]


def learned(lines: Sequence[Line], evidence: Sequence[Evidence]) -> list[Probabilities]:
    """Fitted, for each source, to the clear lines of the others."""
    found: list[Probabilities] = [{} for _ in lines]
    for source in sorted({line.source for line in lines}):
        rows = [
            TrainingRow(evidence=dict(given), valid=line.valid, group=line.group)
            for line, given in zip(lines, evidence, strict=True)
            if line.clear and line.source != source
        ]
        router = fit_router(rows).router
        for at, line in enumerate(lines):
            if line.source == source:
                found[at] = router.probabilities(evidence[at], line.deployment)
    return found


def own_verdicts(lines: Sequence[Line], evidence: Sequence[Evidence]) -> list[Probabilities]:
    """What flows use: the rules, or per source what its own other groups' clear lines teach, where that is better."""
    found = rules(lines, evidence)
    for source in sorted({line.source for line in lines}):
        at = [place for place, line in enumerate(lines) if line.source == source and line.clear]
        rows = [TrainingRow(evidence=dict(evidence[i]), valid=lines[i].valid, group=lines[i].group) for i in at]
        if too_few(rows):
            continue
        deployment = Deployment(models={name: None for i in at for name in lines[i].models})
        said = [PRIOR.probabilities(row.evidence, deployment) for row in rows]
        judged = candidate(rows, said, champion=PRIOR.version, deployment=deployment)
        print(f"{source}: {judged.gate.reason}")
        for place, given in zip(at, judged.fit.out_of_fold, strict=True) if judged.gate.passed else ():
            found[place] = given
    return found


ROUTERS: dict[str, Router] = {
    "rules only": rules,
    "learned, other sources": learned,
    "rules or own verdicts (clear)": own_verdicts,
}
HEADLINE = "rules only"


def decide_all(
    lines: Sequence[Line], probabilities: Sequence[Probabilities], evidence: Sequence[Evidence] | None = None
) -> list[Decided]:
    order = (*TARGETS, NONE)
    found = []
    for line, given, weighed in zip(lines, probabilities, evidence or [{}] * len(lines), strict=True):
        choice = min(given, key=lambda name: (-given[name], order.index(name)))
        found.append(Decided(line, choice, given[choice], kind_of(weighed)))
    return found


def accuracy(decided: Sequence[Decided]) -> dict[str, float]:
    """Any-valid accuracy per source over the clear lines."""
    names = sorted({each.line.source for each in decided if each.line.clear})
    return {name: _mean([d.right for d in decided if d.line.clear and d.line.source == name]) for name in names}


def repairs(decided: Sequence[Decided]) -> dict[str, dict[str, float]]:
    """Per source with outcomes: lines, repairs per decision, the oracle's, their ratio, and needless retrains."""
    found = {}
    for name in sorted({each.line.source for each in decided if each.line.outcomes}):
        rows = [each for each in decided if each.line.source == name and each.line.outcomes]
        repaired = sum(each.choice in each.line.repaired for each in rows)
        possible = sum(bool(each.line.repaired) for each in rows)
        found[name] = {
            "lines": len(rows),
            "repairs": repaired,
            "per_decision": repaired / len(rows),
            "oracle": possible / len(rows),
            "of_oracle": repaired / possible if possible else 0.0,
            "needless_retrains": sum(each.needless for each in rows),
        }
    return found


def outage(decided: Sequence[Decided]) -> dict[str, float]:
    """On sources that are one broken service: lines, share sent to tooling, retrains (each would be needless)."""
    rows = [each for each in decided if OUTAGE in each.line.source]
    return {
        "lines": len(rows),
        "tooling": _mean([each.choice == "tooling" for each in rows]),
        "retrains": sum(each.choice == "weights" for each in rows),
    }


def certified(decided: Sequence[Decided], reviews: int, resamplings: int, seed: int = 0) -> dict[str, Any]:
    """Coverage and realised risk over the clear lines when `reviews` of them, drawn with replacement, were judged.

    As flows certify; `none` is never routed without a person. `exceeded`: share of the draws whose realised risk is above
    the certified one; it should be at most 10 %.
    """
    rows = [each for each in decided if each.line.clear]
    choices, scores = np.array([d.choice for d in rows]), np.array([d.score for d in rows])
    right, sources = np.array([d.right for d in rows]), np.array([d.line.source for d in rows])
    kinds = np.array([d.kind for d in rows])
    generator = np.random.default_rng(seed)
    passed = np.zeros((resamplings, len(rows)), dtype=bool)
    for draw in range(resamplings):
        drawn = generator.integers(0, len(rows), reviews)
        judged = {
            target: [Sent(float(scores[at]), bool(right[at]), kinds[at]) for at in drawn if choices[at] == target]
            for target in TARGETS
        }
        for target, given in certify(judged, risks=dict.fromkeys(TARGETS, RISK), confidence=CONFIDENCE).items():
            if isinstance(given, Certificate):
                passed[draw] |= (choices == target) & (scores >= given.threshold) & ~np.isin(kinds, given.without)
    risks = _risks(passed, right)
    return {
        "coverage": float(passed.mean()),
        "realised_risk": _average(risks),
        "exceeded": _mean([(risk or 0.0) > RISK for risk in risks]),
        "sources": {
            name: {
                "coverage": float(passed[:, sources == name].mean()),
                "realised_risk": _average(_risks(passed[:, sources == name], right[sources == name])),
            }
            for name in sorted(set(sources))
        },
    }


def _risks(passed: np.ndarray, right: np.ndarray) -> list[float | None]:
    """Per draw: the share of wrong ones among those that passed; None where none did."""
    return [float(1 - right[row].mean()) if row.any() else None for row in passed]


def _average(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return _mean(known) if known else None


def _mean(values: Sequence[float | bool | None]) -> float:
    known = [float(value) for value in values if value is not None]
    return sum(known) / len(known) if known else 0.0


def measure(lines: Sequence[Line], resamplings: int) -> dict[str, Any]:
    """Every figure of the table."""
    evidence = evidence_of(lines)
    decided = {name: decide_all(lines, router(lines, evidence), evidence) for name, router in ROUTERS.items()}
    for name, baseline in BASELINES.items():
        decided[name] = decide_all(lines, baseline(lines))
    ours = decided[HEADLINE]
    curve = {str(budget): certified(ours, budget, resamplings) for budget in BUDGETS}
    at_200 = curve["200"]["sources"]
    counts = {name: sum(d.line.clear and d.line.source == name for d in ours) for name in accuracy(ours)}
    return {
        "router": HEADLINE,
        "sources": {
            name: {"n": counts[name], "accuracy": value, **at_200[name]} for name, value in accuracy(ours).items()
        },
        "repairs_per_decision": repairs(ours),
        "outage": outage(ours),
        "certified": {budget: {k: v for k, v in found.items() if k != "sources"} for budget, found in curve.items()},
        "baselines": {
            name: {"accuracy": accuracy(found), "repairs_per_decision": repairs(found), "outage": outage(found)}
            for name, found in decided.items()
        },
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    default = Path(__file__).resolve().parent.parent.parent / "shared" / "data"
    parser.add_argument("--data", type=Path, default=default, help="folder with attribution*.jsonl.gz, at any depth")
    parser.add_argument("--quick", action="store_true", help="20 resamplings in place of 200")
    parser.add_argument("--json", type=Path, help="write the figures here")
    given = parser.parse_args()
    lines = read_lines(given.data)
    if not lines:
        raise SystemExit(f"no annotated failures in {given.data}: it needs attribution*.jsonl.gz")
    figures = measure(lines, 20 if given.quick else RESAMPLINGS)
    report(figures)
    if given.json:
        given.json.write_text(json.dumps(figures, indent=2), encoding="utf-8")


def report(figures: Mapping[str, Any]) -> None:
    """Print the tables, the headline last."""
    names = list(figures["sources"])
    print(f"{'any-valid accuracy, clear lines':34}" + "".join(f"{name[:14]:>15}" for name in names))
    print(f"{'n':34}" + "".join(f"{figures['sources'][name]['n']:15d}" for name in names))
    for router, row in figures["baselines"].items():
        print(f"{router:34}" + "".join(f"{row['accuracy'].get(name, 0.0):15.3f}" for name in names))
    print("\nrepairs per decision, of the oracle's, needless retrains; outage batch: share to tooling, retrains")
    for router, row in figures["baselines"].items():
        done = "".join(
            f"  {name[:12]} {r['per_decision']:.3f} {r['of_oracle']:.2f} {r['needless_retrains']:3d}"
            for name, r in row["repairs_per_decision"].items()
        )
        print(f"{router:34}{done}  outage {row['outage']['tooling']:.2f} {row['outage']['retrains']}")
    print(f"\n{figures['router']}: certified at {RISK:.0%} risk")
    for budget, found in figures["certified"].items():
        over = found["exceeded"]
        risk = "none routed" if found["realised_risk"] is None else f"realised risk {found['realised_risk']:.3f}"
        print(f"  {budget:>4} reviews: coverage {found['coverage']:.3f}, {risk}, above it in {over:.1%} of draws")
    met = sum(row["accuracy"] >= 0.8 for row in figures["sources"].values())
    print(f"{figures['router']}: any-valid at least 0.80 on {met} of {len(names)} sources")


if __name__ == "__main__":
    main()
