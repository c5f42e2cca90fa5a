"""Is every kind of fault sent where it can be mended? A closed simulation: a support agent, faults, and fixes that are run.

    python benchmarks/faults.py [--quick] [--seeds N] [--families FOLDER ...] [--json FILE]

A scripted agent with a trained intent model answers 60 days of requests in a world with one fault; customers say what
they say; the product's own detector, fingerprints, evidence, router and certificates decide on every cluster of three
failures or more. Whether a place was right is found by putting each place's fix into that world and running the same
requests again. `--families` adds folders with more files like those of `benchmarks/fault_families`.
"""

import argparse
import importlib.util
import json
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.fault_clusters import clustered
from benchmarks.fault_scenario import Draw, Family
from benchmarks.fault_shop import DAY_US, MODEL, START_US, TOOLS
from benchmarks.fault_truth import Stream, streamed, valid_targets
from models.abstention import Certificate, Sent, certify, kind_of
from models.deployment import Deployment
from models.detector import detect, is_failure, judge
from models.evidence import weigh
from models.fingerprint import cluster_name, failing_step, fingerprint
from models.router import NONE, PRIOR
from store.records import TARGETS, Case, Episode, Failure, Policy

FAMILIES = Path(__file__).with_name("fault_families")
ORDINARY = 120
"""Requests beside those that a fault is about."""
VARIANTS = 3
"""Scenarios of a family and seed."""
LEAST = 3
"""Failures of a cluster that is judged."""
BUDGETS = (50, 100, 200)
RISK, CONFIDENCE = 0.10, 0.90
RESAMPLINGS = 200


@dataclass(frozen=True)
class Judged:
    """One cluster, its decision, and the places that would have mended it."""

    family: str
    name: str
    failures: int
    choice: str
    score: float
    valid: frozenset[str]
    evidence: Mapping[str, float | None]

    @property
    def right(self) -> bool:
        return self.choice in self.valid


def read_families(folders: Iterable[Path]) -> list[Family]:
    """The family of every file in these folders, by name."""
    found = []
    for folder in folders:
        for path in sorted(folder.glob("[a-z]*.py")):
            spec = importlib.util.spec_from_file_location(f"fault_family_{path.stem}", path)
            if spec is None or spec.loader is None:
                raise SystemExit(f"{path}: cannot be read")
            module = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(module)
            found.append(module.FAMILY)
    return found


def judged_clusters(family: Family, seed: int) -> list[Judged]:
    """Every cluster of one scenario of the family, decided by the rules and judged by the fixes."""
    drawing = Draw(np.random.default_rng([seed, *family.name.encode()]))
    scenario = family.draw(drawing)
    stream = streamed(scenario, drawing.requests(ORDINARY), drawing.rng)
    cases, satisfied = picked(stream)
    groups = clustered(cases, satisfied)
    deployment = Deployment(
        tools={name: tool.schema for name, tool in TOOLS.items()},
        models={MODEL: None},
        context_changed_us=_day(scenario.context_changed_day),
    )
    batch = [case.episode for group in groups for case in group]
    found = []
    for group in groups:
        if len(group) < LEAST:
            continue
        evidence = weigh(group, satisfied, deployment=deployment, policy=Policy(), batch=batch)
        given = PRIOR.probabilities(evidence, deployment)
        choice = min(given, key=lambda name: (-given[name], (*TARGETS, NONE).index(name)))
        valid = valid_targets(stream, [case.episode.trace.id for case in group])
        name = cluster_name(fingerprint(group[0]))
        found.append(Judged(family.name, name, len(group), choice, given[choice], valid, evidence))
    return found


def picked(stream: Stream) -> tuple[list[Case], list[Episode]]:
    """The failures, and the traces that somebody was content with."""
    cases, satisfied = [], []
    for episode in stream.episodes.values():
        signals = detect(episode, meanings={}, out_of_scope={MODEL: None})
        if not is_failure(signals):
            if episode.feedback or not episode.spans:
                satisfied.append(episode)
            continue
        step = failing_step(episode, signals)
        failure = Failure(trace_id=episode.trace.id, picked_us=0, probability=judge(signals),
                          source=episode.trace.user or "unknown", span_id=step.id if step else None)  # fmt: skip
        cases.append(Case(failure=failure, episode=episode, signals=signals))
    return cases, satisfied


def certified(rows: Sequence[Judged], reviews: int, resamplings: int) -> dict[str, Any]:
    """Coverage and realised risk on the clusters left over when `reviews` of them, drawn at random, were judged by a person.

    As flows certify; `none` never goes without a person. `exceeded`: share of the draws in which the realised risk is above
    the certified one.
    """
    choices, scores = np.array([row.choice for row in rows]), np.array([row.score for row in rows])
    right, kinds = np.array([row.right for row in rows]), np.array([kind_of(row.evidence) for row in rows])
    generator = np.random.default_rng(0)
    coverage, risks = [], []
    for _ in range(resamplings):
        order = generator.permutation(len(rows))
        drawn, rest = order[: min(reviews, len(rows) * 4 // 5)], order[min(reviews, len(rows) * 4 // 5) :]
        passed = np.zeros(len(rows), dtype=bool)
        judged = {
            target: [Sent(float(scores[at]), bool(right[at]), kinds[at]) for at in drawn if choices[at] == target]
            for target in TARGETS
        }
        for target, given in certify(judged, risks=dict.fromkeys(TARGETS, RISK), confidence=CONFIDENCE).items():
            if isinstance(given, Certificate):
                sure = (scores >= given.threshold) & ~np.isin(kinds, given.without)
                passed[rest[((choices == target) & sure)[rest]]] = True
        coverage.append(float(passed[rest].mean()))
        if passed.any():
            risks.append(float(1 - right[passed].mean()))
    return {
        "coverage": float(np.mean(coverage)),
        "realised_risk": float(np.mean(risks)) if risks else None,
        "exceeded": sum(risk > RISK for risk in risks) / resamplings,
    }


def measure(families: Sequence[Family], seeds: int, resamplings: int) -> tuple[dict[str, Any], list[Judged]]:
    rows = [
        row
        for family in families
        for seed in range(seeds)
        for variant in range(VARIANTS)
        for row in judged_clusters(family, 1000 * seed + variant)
    ]
    curve = {str(budget): certified(rows, budget, resamplings) for budget in BUDGETS}
    return {
        "any_valid": _mean([row.right for row in rows]),
        "coverage": curve["200"]["coverage"],
        "realised_risk": curve["200"]["realised_risk"],
        "clusters": len(rows),
        "needless_retrains": sum(row.choice == "weights" and not row.right for row in rows),
        "certified": curve,
        "families": {
            family.name: _of_family([row for row in rows if row.family == family.name]) for family in families
        },
    }, rows


def _of_family(rows: Sequence[Judged]) -> dict[str, Any]:
    chosen = {name: sum(row.choice == name for row in rows) for name in (*TARGETS, NONE)}
    valid = {name: sum(name in row.valid for row in rows) for name in (*TARGETS, NONE)}
    return {"clusters": len(rows), "any_valid": _mean([row.right for row in rows]), "chosen": chosen, "valid": valid}


def _day(day: float | None) -> int | None:
    return None if day is None else START_US + int(day * DAY_US)


def _mean(values: Sequence[bool]) -> float | None:
    return sum(values) / len(values) if values else None


def report(figures: Mapping[str, Any], seconds: float) -> None:
    """Print the table, the headline last."""
    print(f"{'family':22}{'clusters':>9}{'any-valid':>11}   chosen / right places")
    for name, row in figures["families"].items():
        chosen = " ".join(f"{each} {count}" for each, count in row["chosen"].items() if count)
        valid = " ".join(f"{each} {count}" for each, count in row["valid"].items() if count)
        share = "-" if row["any_valid"] is None else f"{row['any_valid']:.3f}"
        print(f"{name:22}{row['clusters']:9d}{share:>11}   {chosen} / {valid}")
    for budget, found in figures["certified"].items():
        risk = "-" if found["realised_risk"] is None else f"{found['realised_risk']:.3f}"
        print(f"{budget:>5} reviews: coverage {found['coverage']:.3f}, realised risk {risk}, above it in {found['exceeded']:.1%}"
              " of draws")  # fmt: skip
    print(f"{figures['clusters']} clusters of {len(figures['families'])} families in {seconds:.0f} s: any-valid"
          f" {figures['any_valid']:.3f}, {figures['needless_retrains']} needless retrains")  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="2 seeds")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--families", type=Path, nargs="*", default=[], help="folders with more families")
    parser.add_argument("--wrong", action="store_true", help="name every cluster that was sent to a wrong place")
    parser.add_argument("--json", type=Path, help="write the figures here")
    given = parser.parse_args()
    started = time.perf_counter()
    families = read_families([FAMILIES, *given.families])
    figures, rows = measure(families, 2 if given.quick else given.seeds, RESAMPLINGS)
    if given.wrong:
        for row in (row for row in rows if not row.right):
            shown = {name: round(value, 2) for name, value in row.evidence.items() if value}
            print(
                f"{row.family}: {row.name} ({row.failures}): {row.choice} {row.score:.2f}, right {sorted(row.valid)} {shown}"
            )
    report(figures, time.perf_counter() - started)
    if given.json:
        given.json.write_text(json.dumps(figures, indent=2), encoding="utf-8")


if __name__ == "__main__":
    main()
