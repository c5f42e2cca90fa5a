"""Do the tests keep their level when they are looked at after every observation? Each under its own null, many times.

    python benchmarks/peeking.py [--quick] [--runs N] [--json FILE]

A run draws observations at the edge of the null hypothesis and is an error when the test ever decides against it.
"""

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np

from models.hold import judge_hold
from models.sequential import below_e_value, binomial_e_value, e_value, mcnemar_one_sided, spent_alpha

RUNS = 10_000
LOOKS = 300


class Sequential(NamedTuple):
    """One test as it is used: after `n` observations with `k` events it decides, or not."""

    name: str
    rate: float
    """Of events, at the edge of the null hypothesis."""
    nominal: float
    decides: Callable[[int, int], bool]
    looks: int = LOOKS


def _spending(k: int, n: int) -> bool:
    """Looks at the same cases after every 20 discordant pairs."""
    return n % 20 == 0 and mcnemar_one_sided(k, n - k) <= spent_alpha(0.05, n // 20)


TESTS = (
    Sequential("gate, harm: E(b, c) >= 20", 0.5, 0.05, lambda k, n: e_value(k, n - k) >= 20),
    Sequential("gate, looks at the same cases: spent alpha", 0.5, 0.07, _spending),
    Sequential("hold fails: E >= 20, baseline 20 %", 0.1, 0.05, lambda k, n: binomial_e_value(k, n, 0.1) >= 20),
    Sequential("hold held: E >= 10, baseline 20 %", 0.2 / 3, 0.10, lambda k, n: below_e_value(k, n, 0.2 / 3) >= 10),
    Sequential("hold held: E >= 10, baseline 60 %", 0.2, 0.10, lambda k, n: below_e_value(k, n, 0.2) >= 10),
    Sequential("blind audit, 10 % risk: E >= 20", 0.1, 0.05, lambda k, n: binomial_e_value(k, n, 0.1) >= 20),
    Sequential("blind audit, 5 % risk: E >= 20", 0.05, 0.05, lambda k, n: binomial_e_value(k, n, 0.05) >= 20),
)
"""The spent alpha is .05 at the first look and `.05 * 6 / (pi^2 k^2)` at look k: .07 over all by the union bound."""


def error_rate(test: Sequential, runs: int, seed: int = 0) -> float:
    """Share of the runs in which the test ever decides against its null; each count of events is judged once."""
    known: dict[tuple[int, int], bool] = {}
    events = np.random.default_rng(seed).random((runs, test.looks)) < test.rate
    counts = events.cumsum(axis=1)
    wrong = np.zeros(runs, dtype=bool)
    for look in range(test.looks):
        n = look + 1
        for k in np.unique(counts[~wrong, look]):
            known[int(k), n] = test.decides(int(k), n)
        wrong |= np.array([known.get((int(k), n), False) for k in counts[:, look]])
    return float(wrong.mean())


def early_failures(baseline: float, runs: int, seed: int = 0) -> float:
    """Share of fixes that hold, at a third of the baseline, and are called failed within 30 exposures."""
    outcomes = np.random.default_rng(seed).random((runs, 30)) < baseline / 3
    return float(np.mean([_fails(list(map(bool, row)), baseline) for row in outcomes]))


def _fails(outcomes: list[bool], baseline: float) -> bool:
    return any(judge_hold(outcomes[:n], baseline=baseline).state == "failed" for n in range(3, len(outcomes) + 1, 3))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="1,000 runs")
    parser.add_argument("--runs", type=int, default=RUNS)
    parser.add_argument("--json", type=Path, help="write the figures here")
    given = parser.parse_args()
    runs = 1000 if given.quick else given.runs
    figures: dict[str, dict[str, float]] = {}
    for test in TESTS:
        figures[test.name] = {"nominal": test.nominal, "error": error_rate(test, runs)}
    for baseline in (0.2, 0.6):
        name = f"hold fails early though it holds, baseline {baseline:.0%}"
        figures[name] = {"nominal": 0.05, "error": early_failures(baseline, min(runs, 300))}
    for name, row in figures.items():
        print(f"{name:52} nominal {row['nominal']:.3f}  wrong in {row['error']:.4f}")
    kept = sum(row["error"] <= row["nominal"] for row in figures.values())
    print(f"{kept} of {len(figures)} tests keep their level in {runs} runs of up to {LOOKS} looks")
    if given.json:
        given.json.write_text(json.dumps(figures, indent=2), encoding="utf-8")


if __name__ == "__main__":
    main()
