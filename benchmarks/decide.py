"""How fast are failures decided on? From traces in a store to routed clusters: pickup, cluster, route.

    python benchmarks/decide.py [--quick] [--failures N] [--json FILE]

The failures are those of the closed simulation (`benchmarks/fault_families`), a hundred requests a fault, each trace with
two to four steps, in SQLite. Filling the store is not counted. Each size runs in a process of its own. `slope` is that of
log time over log failures, between a tenth of the failures and all of them: 1.04 is 11 times the time for 10 times the
failures. The last line is the pure part without the probe contrast: signals, fingerprint and evidence of failures in memory.
"""

import argparse
import json
import math
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.fault_scenario import Draw, Family
from benchmarks.fault_shop import MODEL, TOOLS
from benchmarks.fault_truth import streamed
from benchmarks.faults import FAMILIES, read_families
from flows.pickup import pickup
from flows.route import cluster, route
from flows.workspace import open_workspace
from models.deployment import Deployment
from models.detector import detect, is_failure, judge
from models.evidence import FEATURES, weigh
from models.features import probes
from models.fingerprint import fingerprint
from store.ingest import Item, ingest
from store.records import Case, Episode, Failure, Policy
from store.settings import AgentSection, Settings
from store.settings_weights import WeightsSection

FAILURES = 10_000
HITS = 100
"""Requests a fault is drawn with."""
SHARE = 0.78
"""Share of them that are picked up, about: not everybody complains, not every fault is always felt."""


class Many(Draw):
    """Draws many requests a fault, under ids that no other fault's have."""

    def size(self, low: int = 0, high: int = 0) -> int:
        return HITS


def drawn(failures: int) -> Iterator[Episode]:
    """Episodes of as many faults as bring about so many failures."""
    families = read_families([FAMILIES])
    for at in range(math.ceil(failures / (HITS * SHARE))):
        yield from _drawn(families[at % len(families)], at)


def _drawn(family: Family, at: int) -> Iterator[Episode]:
    drawing = Many(np.random.default_rng([7, at]))
    drawing.count = at * 1_000_000
    scenario = family.draw(drawing)
    yield from streamed(scenario, drawing.requests(HITS // 10), drawing.rng).episodes.values()


def items(failures: int) -> Iterator[Item]:
    for episode in drawn(failures):
        yield episode.trace
        yield from episode.spans
        yield from episode.feedback


def decided(failures: int) -> dict[str, Any]:
    """Fill a store and decide; seconds a stage, and the most memory this process has held."""
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        (home / "tools.json").write_text(
            json.dumps({name: tool.schema for name, tool in TOOLS.items()}), encoding="utf-8"
        )
        settings = Settings(home=home, agent=AgentSection(tools="tools.json"), weights={MODEL: WeightsSection()})
        with open_workspace(settings, actor="benchmark", create=True) as workspace:
            ingest(workspace.store, items(failures))
            took: dict[str, Any] = {}
            began, cpu = time.perf_counter(), time.process_time()
            for name, stage in (("pickup", pickup), ("cluster", cluster), ("route", route)):
                started = time.perf_counter()
                result: Any = stage(workspace)
                took[name] = round(time.perf_counter() - started, 2)
                if name == "pickup":
                    took["failures"] = result.failures
                if name == "route":
                    took["clusters"] = len(result.lines)
            took |= {"seconds": round(time.perf_counter() - began, 2), "cpu_s": round(time.process_time() - cpu, 2)}
    return {**took, "peak_rss_mb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, 1)}


def in_memory(failures: int) -> float:
    """Failures a second from episode to evidence, without the store and without the probe contrast."""
    episodes = list(drawn(failures))
    deployment = Deployment(tools={name: tool.schema for name, tool in TOOLS.items()}, models={MODEL: None})
    began = time.perf_counter()
    groups: dict[str, list[Case]] = {}
    count = 0
    satisfied = []
    for episode in episodes:
        signals = detect(episode, meanings={}, out_of_scope={MODEL: None})
        if not is_failure(signals):
            satisfied.append(episode)
            continue
        failure = Failure(
            trace_id=episode.trace.id, picked_us=0, probability=judge(signals), source=episode.trace.user or ""
        )
        case = Case(failure=failure, episode=episode, signals=signals)
        groups.setdefault(fingerprint(case).key, []).append(case)
        count += 1
    batch = [case.episode for group in groups.values() for case in group][:300]
    names = [name for name in FEATURES if name not in probes.FEATURES]
    for group in groups.values():
        weigh(group[:200], satisfied[:300], deployment=deployment, policy=Policy(), batch=batch, only=names)
    return count / (time.perf_counter() - began)


def _in_child(failures: int) -> dict[str, Any]:
    command = [sys.executable, "-m", "benchmarks.decide", "--one", str(failures)]
    done = subprocess.run(
        command, cwd=Path(__file__).resolve().parent.parent, stdout=subprocess.PIPE, text=True, check=True
    )
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="2,000 failures")
    parser.add_argument("--failures", type=int, default=FAILURES)
    parser.add_argument("--one", type=int, help="measure this many in this process, and print the figures as JSON")
    parser.add_argument("--json", type=Path, help="write the figures here")
    given = parser.parse_args()
    if given.one:
        print(json.dumps(decided(given.one)))
        return
    most = 2000 if given.quick else given.failures
    few, many = _in_child(most // 10), _in_child(most)
    slope = math.log(many["seconds"] / few["seconds"]) / math.log(many["failures"] / few["failures"])
    rate = in_memory(min(most, 3000))
    for row in (few, many):
        print(f"{row['failures']:7d} failures, {row['clusters']:5d} clusters: pickup {row['pickup']:.1f} s, cluster"
              f" {row['cluster']:.1f} s, route {row['route']:.1f} s, all {row['seconds']:.1f} s ({row['cpu_s']:.1f} s CPU),"
              f" {row['peak_rss_mb']:.0f} MB")  # fmt: skip
    print(f"{rate:,.0f} failures/s in memory without the probe contrast; slope {slope:.2f}")
    if given.json:
        figures = {**many, "slope": slope, "sizes": [few, many], "failures_per_s_without_probes": rate}
        given.json.write_text(json.dumps(figures, indent=2), encoding="utf-8")


if __name__ == "__main__":
    main()
