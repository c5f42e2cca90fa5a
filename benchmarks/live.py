"""What `filmroom_live.Live` adds to a request: from a server that is quiet, swaps releases, is slow, or is gone.

    python benchmarks/live.py [--quick] [--json FILE]

The server is `filmroom serve`, a process of its own. The release has 100 rules (50 of them in scope), 50 examples of which
the three most like the input are chosen, one policy with a schema of six arguments, and 20 facts for the user. A request is
one `pin`, then `context`, `memory` and `tool_call`.
Milliseconds of wall time, measured on whatever else the machine does.
"""

import argparse
import json
import os
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [
    str(ROOT / "client"),
    str(ROOT),
]  # the client is a wheel of its own, and a checkout has not installed it

from filmroom_live import Live, Pinned  # noqa: E402  # after the path to it
from flows.workspace import Workspace  # noqa: E402
from store.records import Operation  # noqa: E402
from tests.live_server import change, fact, policy, rule  # noqa: E402
from tests.shop_log import working_in  # noqa: E402

USER = "u3"
CITIES = ("Berlin", "Hamburg", "Lyon", "Porto", "Graz", "Turin", "Ghent")
ARGUMENTS = {
    "order_id": " 104",
    "change": "delivery",
    "date": "May 20th, 2024",
    "slot": "evening",
    "note": "",
    "count": 2,
}
SCHEMA = {
    "type": "object",
    "required": ["order_id", "change"],
    "properties": {
        "order_id": {"type": "string", "pattern": "^#[0-9]+$"},
        "change": {"enum": ["cancel", "address", "delivery"]},
        "date": {"type": "string", "pattern": "^[0-9]{4}-[0-9]{2}-[0-9]{2}$"},
        "slot": {"type": "string"},
        "note": {"type": "string", "maxLength": 200},
        "count": {"type": "integer", "minimum": 1},
    },
}
NORMALISERS = {"order_id": ["trim", "prefix:#"], "date": ["date_iso"], "slot": ["trim", "lower"]}
IMPORT = "import time; t = time.perf_counter(); import filmroom_live; print(1000 * (time.perf_counter() - t))"

Measured = dict[str, dict[str, float]]


def release(workspace: Workspace) -> None:
    """One of everything, in a realistic size."""
    rules = [
        rule(f"rule_{n}", f"Rule number {n}: offer a voucher first.", intent="cancel" if n % 2 else "status")
        for n in range(100)
    ]
    examples = [
        example(f"ex_{n}", f"where is parcel {n} that I sent to {CITIES[n % len(CITIES)]}", f"It is in {n}.")
        for n in range(50)
    ]
    change(workspace, "context", [*rules, *examples])
    change(workspace, "memory", [fact(f"fact_{n}", USER, f"predicate_{n}", f"value {n}") for n in range(20)])
    change(workspace, "tooling", [policy("update_order", normalisers=NORMALISERS, retries=2)])


def example(key: str, asked: str, answer: str) -> Operation:
    """A few-shot example."""
    value: dict[str, Any] = {"scope": {}, "input": asked, "output": answer, "author": "staff:ann"}
    return Operation(target="context", verb="add", key=key, value=value)


def request(held: Pinned) -> None:
    held.context("cancel my order", intent="cancel", channel="app")
    held.memory(USER)
    held.tool_call("update_order", ARGUMENTS)


def measure(live: Live, rounds: int) -> Measured:
    """Call to its p50, p99 and longest time, in milliseconds."""
    calls: dict[str, Callable[[], object]] = {
        "pin": live.pin,
        "context": lambda: live.context("cancel my order", intent="cancel", channel="app"),
        "memory": lambda: live.memory(USER),
        "tool_call": lambda: live.tool_call("update_order", ARGUMENTS),
        "feedback": lambda: live.feedback("t1", name="thumb", score=1),
        "a request": lambda: request(live.pin()),
    }
    return {name: _times(call, 50 if name == "feedback" else rounds) for name, call in calls.items()}


def _times(call: Callable[[], object], rounds: int) -> dict[str, float]:
    taken = []
    for _ in range(rounds):
        started = time.perf_counter()
        call()
        taken.append(1000 * (time.perf_counter() - started))
    taken.sort()
    return {"p50": taken[len(taken) // 2], "p99": taken[int(len(taken) * 0.99)], "max": taken[-1]}


@contextmanager
def serving(home: Path) -> Iterator[tuple[str, "subprocess.Popen[str]"]]:
    """`filmroom serve` in the folder, and its URL."""
    command = [sys.executable, "-m", "filmroom", "serve", "--port", "0", "--json"]
    process = subprocess.Popen(
        command, cwd=home, env={**os.environ, "PYTHONPATH": str(ROOT)}, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    try:
        text = ""
        while not text.endswith("}\n"):
            text += process.stdout.readline()
        yield json.loads(text)["url"], process
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


@contextmanager
def swapping(workspace: Workspace) -> Iterator[list[int]]:
    """A new release ten times a second; the list counts them."""
    stop, swaps = threading.Event(), [0]

    def swap() -> None:
        while not stop.wait(0.1):
            swaps[0] += 1
            change(workspace, "context", [rule("rule_1", f"Say {swaps[0]}.", verb="edit", intent="cancel")])

    thread = threading.Thread(target=swap)
    thread.start()
    try:
        yield swaps
    finally:
        stop.set()
        thread.join()


@contextmanager
def silent() -> Iterator[str]:
    """A server that takes connections and never answers."""
    with socket.create_server(("127.0.0.1", 0), backlog=64) as listener:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"


def run(home: Path, rounds: int) -> dict[str, Measured]:
    cache = home / "cache"
    found: dict[str, Measured] = {}
    with working_in(home) as workspace:
        (home / "tools.json").write_text(json.dumps({"update_order": SCHEMA}), encoding="utf-8")
        release(workspace)
        with serving(home) as (url, process), Live(url=url, cache=cache) as live:
            assert live.ready(30)
            assert len(live.memory(USER, wait_s=30)) == 20
            found["quiet"] = measure(live, rounds)
            with swapping(workspace) as swaps:
                found["swapping"] = measure(live, rounds)
            found["swapping"]["releases"] = {"made": swaps[0], "taken": live.release.number}
            process.kill()
            found["gone"] = measure(live, rounds)
        with silent() as url, Live(url=url, cache=cache) as live:
            found["silent, from the disk"] = measure(live, rounds)
    return found


def imports() -> float:
    """Milliseconds to import the client in a fresh interpreter, the best of five."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "client")}
    command = [sys.executable, "-S", "-c", IMPORT]
    return min(
        float(subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout)
        for _ in range(5)
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="2,000 calls each, not 20,000")
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="filmroom-live-") as folder:
        found = run(Path(folder), 2_000 if arguments.quick else 20_000)
    import_ms = imports()
    show(found, import_ms)
    if arguments.json:
        headline = {
            "p50_ms": {server: each["a request"]["p50"] for server, each in found.items()},
            "import_ms": import_ms,
        }
        arguments.json.write_text(json.dumps({**headline, "calls": found}, indent=1), encoding="utf-8")


def show(found: dict[str, Measured], import_ms: float) -> None:
    print(f"{'server':24}{'call':12}{'p50 ms':>10}{'p99 ms':>10}{'max ms':>10}")
    for server, calls in found.items():
        for call, times in calls.items():
            if call != "releases":
                print(f"{server:24}{call:12}{times['p50']:10.4f}{times['p99']:10.4f}{times['max']:10.2f}")
    counts: Any = found["swapping"]["releases"]
    print(f"releases while swapping: {counts['made']:.0f} made; the last one taken was number {counts['taken']:.0f}")
    print(f"import filmroom_live: {import_ms:.0f} ms")
    worst = max(each["a request"]["p50"] for each in found.values())
    print(
        f"a request with all of it takes {found['quiet']['a request']['p50']:.3f} ms (p50), {worst:.3f} ms at worst of the servers"
    )


if __name__ == "__main__":
    main()
