"""How long the console's pages take over a long log: at the server, on the wire, and to the next correction.

    python benchmarks/console.py [--quick] [--keep FOLDER] [--json FILE]

1,000,000 traces, 100,000 failures and 5,000 corrections in SQLite (`--quick`: a hundredth of it). The server is
`filmroom serve`, a process of its own; each page is asked for 30 times, of as many things as there are. Milliseconds are
wall time from the request to the last byte on loopback, so that the server's time is in them with a little more; the first
request of each page is the `first` column. Bytes are as they come over the wire, compressed.
"""

import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT)]  # a checkout need not be installed

from benchmarks.console_rows import Size, build, cluster_id, correction_id, trace_id  # noqa: E402  # after the path to it

WHOLE, QUICK = Size(1_000_000, 100_000, 5_000), Size(10_000, 1_000, 50)
TIMES = 30
VERDICTS = 30
PASSWORD = "a long password"  # noqa: S105 -- of nobody

Measured = dict[str, dict[str, float]]


def pages(size: Size) -> dict[str, Callable[[int], str]]:
    """Name to the address of the n-th look at it."""
    middle = size.traces // 2
    return {
        "home": lambda n: "/",
        "review list": lambda n: f"/review?page={1 + n % 20}",
        "review filtered": lambda n: f"/review?target=memory&min_failures={1 + n}",
        "review words": lambda n: f"/review?text=intent+{n}",
        "correction": lambda n: f"/review/{correction_id(8 * (n % (size.corrections // 8)))}",
        "bulk preview": lambda n: "/review/bulk?target=context",
        "reviewers": lambda n: "/review/agreement",
        "changes": lambda n: f"/changes?page={1 + n % 5}",
        "change": lambda n: f"/changes/chg_{3 + 40 * (n % max(1, size.corrections // 50)):020d}",
        "cluster": lambda n: f"/clusters/{cluster_id(n)}",
        "why": lambda n: f"/why/{cluster_id(n)}",
        "releases": lambda n: "/releases",
        "retrains": lambda n: f"/retrains?page={1 + n % 10}",
        "traces": lambda n: "/traces",
        "traces deep": lambda n: f"/traces?start={1_767_225_600_000_000 + 86_400_000_000 * (1 + n)}.{trace_id(middle)}",
        "traces failed": lambda n: "/traces?failed=yes",
        "traces of a user": lambda n: f"/traces?user=u{n * 37}",
        "traces of a cluster": lambda n: f"/traces?cluster={cluster_id(n)}",
        "traces of words": lambda n: "/traces?text=receipt+stock",
        "traces of rare words": lambda n: f"/traces?text=zebra+{n}",
        "trace": lambda n: f"/traces/{trace_id(n * 7)}",
        "schedules": lambda n: "/schedules",
        "settings": lambda n: "/settings",
    }


@contextmanager
def serving(home: Path) -> Iterator[tuple[str, str | None]]:
    """The URL of the home's console, and the path of its first login."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("FILMROOM_")}
    command = [sys.executable, "-m", "filmroom", "serve", "--port", "0", "--json"]
    process = subprocess.Popen(command, cwd=home, stdout=subprocess.PIPE, text=True,
                               env={**environment, "PYTHONPATH": str(ROOT)})  # fmt: skip
    try:
        assert process.stdout is not None
        text = ""
        while not text.rstrip().endswith("}"):
            text += process.stdout.readline()
        told = json.loads(text)
        yield told["url"], told["login"]
    finally:
        process.terminate()
        process.wait()


def run(home: Path, size: Size) -> tuple[Measured, dict[str, float]]:
    """Figures a page, and those of the verdicts."""
    with serving(home) as (url, login), httpx.Client(base_url=url, trust_env=False, timeout=120) as client:
        if login:
            fields = {"name": "ann", "password": PASSWORD, "again": PASSWORD}
            client.post(login.removeprefix(url), data=fields)
        else:
            client.post("/login", data={"name": "ann", "password": PASSWORD})
        found = {name: _page(client, address) for name, address in pages(size).items()}
        verdicts = _verdicts(client)
        paint = _first_paint(url, dict(client.cookies))
    return found, {**verdicts, **({} if paint is None else {"first_paint_ms": paint})}


def _page(client: httpx.Client, address: Callable[[int], str]) -> dict[str, float]:
    taken, sizes = [], []
    for n in range(TIMES):
        started = time.perf_counter()
        answer = client.get(address(n))
        taken.append(1000 * (time.perf_counter() - started))
        sizes.append(answer.num_bytes_downloaded)
        if answer.status_code != 200:
            raise SystemExit(f"{address(n)}: {answer.status_code} {re.sub('<[^>]*>', ' ', answer.text)[-400:]}")
    return {"first_ms": taken[0], "p50_ms": statistics.median(taken), "p95_ms": _p95(taken),
            "wire_kb": max(sizes) / 1024}  # fmt: skip


def _verdicts(client: httpx.Client) -> dict[str, float]:
    """From the verdict to the whole of the next correction, asked for as the page's own script does."""
    answer = client.get("/review/next", follow_redirects=True)
    here, taken = answer.url.path, []
    for _ in range(VERDICTS):
        token = re.search(r'name="csrf" value="([0-9a-f]+)"', answer.text)
        if token is None or not here.startswith("/review/cor_"):
            break
        fields = {"csrf": token[1], "filter": "", "reason": "benchmark"}
        started = time.perf_counter()
        answer = client.post(f"{here}/reject", data=fields, headers={"hx-request": "true"})
        taken.append(1000 * (time.perf_counter() - started))
        here = answer.headers.get("hx-push-url", "")
    return {
        "verdict_to_next_p50_ms": statistics.median(taken),
        "verdict_to_next_p95_ms": _p95(taken),
    }


def _first_paint(url: str, cookies: dict[str, str]) -> float | None:
    """Milliseconds to the first contentful paint of home, in Chromium; None where there is none."""
    try:
        from tests.console_browser import chromium
    except ImportError:
        return None
    with chromium() as browser:
        if browser is None:
            return None
        context = browser.new_context()
        context.add_cookies([{"name": name, "value": value, "url": url} for name, value in cookies.items()])
        page = context.new_page()
        paints = []
        for path in ("/", "/review", "/traces") * 3:
            page.goto(url + path)
            script = "performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? 0"
            while not (painted := float(page.evaluate(script))):
                page.wait_for_timeout(5)
            paints.append(painted)
        return max(paints)


def _p95(values: list[float]) -> float:
    return sorted(values)[max(0, round(0.95 * len(values)) - 1)]


def show(found: Measured, more: dict[str, float]) -> None:
    print(f"{'page':22} {'first ms':>9} {'p50 ms':>8} {'p95 ms':>8} {'KB':>7}")
    for name, each in found.items():
        print(f"{name:22} {each['first_ms']:9.0f} {each['p50_ms']:8.0f} {each['p95_ms']:8.0f} {each['wire_kb']:7.1f}")
    for name, value in more.items():
        print(f"{name:30} {value:8.0f}")
    slowest = max(found, key=lambda name: found[name]["p95_ms"])
    print(f"slowest page at p95: {slowest}, {found[slowest]['p95_ms']:.0f} ms")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a hundredth of the rows")
    parser.add_argument(
        "--keep", type=Path, help="folder of the store: made where it is not there, used again where it is"
    )
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    arguments = parser.parse_args()
    size = QUICK if arguments.quick else WHOLE
    with tempfile.TemporaryDirectory(prefix="filmroom-console-") as folder:
        home = arguments.keep or Path(folder)
        if not (home / "filmroom.db").exists():
            started = time.perf_counter()
            build(home, size)
            print(f"store of {size.traces:,} traces written in {time.perf_counter() - started:.0f} s")
        found, more = run(home, size)
    show(found, more)
    if arguments.json:
        value: dict[str, Any] = {"size": size._asdict(), "pages": found, **more}
        arguments.json.write_text(json.dumps(value, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
