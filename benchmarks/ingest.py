"""How fast a log comes in: a file's import, OTLP over HTTP, and bare inserts of the same rows, in one run on one machine.

    python benchmarks/ingest.py [--quick] [--peers] [--memory GB] [--json FILE]

A trace has four spans; every input and output is a text of 550 characters. The store is SQLite, every commit synced to the
disk; client and server share the machine. `--memory 2` imports two files of two gigabytes as well, native and Langfuse's;
`--peers` sends the OTLP load to MLflow and Phoenix, which it installs in an environment of their own.
"""

import argparse
import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple, cast

import httpx
from sqlalchemy import insert, select

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from benchmarks.ingest_load import SPANS, send, write_langfuse, write_log  # noqa: E402
from store.database import open_store  # noqa: E402  # the repository's root is not on the path of a script
from store.tables import arrivals, bodies, spans, traces  # noqa: E402
from store.traces import count_traces  # noqa: E402


class Measured(NamedTuple):
    """What a process took."""

    seconds: float
    cpu_s: float
    peak_rss_mb: float


def filmroom(home: Path, *arguments: str, **more: Any) -> "subprocess.Popen[str]":
    command = [sys.executable, "-m", "filmroom", *arguments]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.Popen(command, cwd=home, env=environment, stdout=subprocess.PIPE, text=True, **more)


def ended(process: "subprocess.Popen[str]", began: float) -> Measured:
    """Wait for a process; its CPU time and its peak memory."""
    peak_kb = 0
    while True:
        peak_kb = max(peak_kb, _peak_kb(process.pid))
        pid, status, usage = os.wait4(process.pid, os.WNOHANG)
        if pid:
            break
        time.sleep(0.05)
    process.returncode = os.waitstatus_to_exitcode(status)
    seconds = time.perf_counter() - began
    return Measured(seconds, usage.ru_utime + usage.ru_stime, (peak_kb or usage.ru_maxrss) / 1024)


def _peak_kb(pid: int) -> int:
    """The peaks of a running process and of those it started; `ru_maxrss` counts its parent's memory too. 0 where the
    system does not say."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text(encoding="ascii", errors="replace").splitlines()
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split()
    except OSError:
        return 0
    own = next((int(line.split()[1]) for line in lines if line.startswith("VmHWM")), 0)
    return own + sum(_peak_kb(int(child)) for child in children)


def import_file(home: Path, log: Path) -> Measured:
    """`filmroom ingest`, from its start to its end."""
    home.mkdir()
    began = time.perf_counter()
    process = filmroom(home, "ingest", str(log), "--json")
    measured = ended(process, began)
    said = json.loads(cast(Any, process.stdout).read())
    assert said["quarantined"] == 0, said
    return measured


def stored_in(home: Path) -> int:
    """Whole traces in the store."""
    store = open_store(f"sqlite:///{home / 'filmroom.db'}")
    with store.read() as connection:
        counts = count_traces(connection, "default")
    store.close()
    assert counts["spans"] == SPANS * counts["traces"], counts
    return counts["traces"]


def bare_inserts(home: Path, into: Path) -> Measured:
    """The rows of a store inserted into an empty one by SQLAlchemy alone, 5,000 records a transaction."""
    source = open_store(f"sqlite:///{home / 'filmroom.db'}")
    target = open_store(f"sqlite:///{into / 'bare.db'}", create=True)
    seconds = cpu_s = 0.0
    streams: dict[Any, Iterator[Any]] = {}
    with source.read() as connection:
        shares = ((traces, 1000), (spans, 4000), (bodies, 5000), (arrivals, 2000))
        for table, _ in shares:
            columns = [column for column in table.columns if column.name != "seq"]
            streams[table] = iter(connection.execution_options(yield_per=5000).execute(select(*columns)))
        while batch := {table: [dict(row._mapping) for row in islice(streams[table], n)] for table, n in shares}:
            if not batch[traces]:
                break
            began, cpu = time.perf_counter(), time.process_time()
            with target.write() as writing:
                for table, rows in batch.items():
                    if rows:
                        writing.execute(insert(table), rows)
            seconds += time.perf_counter() - began
            cpu_s += time.process_time() - cpu
    source.close()
    target.close()
    return Measured(seconds, cpu_s, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)


def over_http(home: Path, count: int) -> Measured:
    """The same traces sent to `filmroom serve`."""
    home.mkdir()
    filmroom(home, "init", "--json").communicate()
    server = filmroom(home, "serve", "--port", "0", "--json")
    try:
        out = cast(Any, server.stdout)
        url = json.loads("".join(iter(out.readline, "}\n")) + "}")["url"]
        seconds = send(url, count)
        server.send_signal(signal.SIGINT)
        usage = ended(server, time.perf_counter())
    finally:
        if server.returncode is None:
            server.kill()
    return Measured(seconds, usage.cpu_s, usage.peak_rss_mb)


@contextmanager
def peer(name: str, home: Path) -> Iterator[str]:
    os.environ.setdefault("FILMROOM_TEST_PEERS", "1")
    from tests import peers

    home.mkdir()
    start: Callable[[Path], Any] = getattr(peers, name)
    with start(home) as url:
        yield url


def over_peers(folder: Path, count: int) -> dict[str, float | None]:
    """The same load on MLflow and Phoenix; traces a second until the last was stored, which Phoenix does after it answers.

    None: some were lost.
    """
    figures: dict[str, float | None] = {}
    for name, headers in (("mlflow", {"x-mlflow-experiment-id": "0"}), ("phoenix", {})):
        with peer(name, folder / name) as url:
            began = time.perf_counter()
            send(url, count, headers)
            whole = name != "phoenix" or _stored_by_phoenix(url, count)
            figures[f"{name}_otlp_traces_per_s"] = round(count / (time.perf_counter() - began), 1) if whole else None
    return figures


def _stored_by_phoenix(url: str, count: int) -> bool:
    """Wait until so many traces are listed; False: they are not within five minutes, so some are lost."""
    end = time.monotonic() + 300
    while time.monotonic() < end:
        try:
            if _listed_by_phoenix(url) >= count:
                return True
        except httpx.HTTPError as error:
            print(f"phoenix does not answer: {error}")
        time.sleep(0.5)
    return False


def _listed_by_phoenix(url: str) -> int:
    found = 0
    cursor: str | None = ""
    while cursor is not None:
        more = {"cursor": cursor} if cursor else {}
        page = httpx.get(f"{url}/v1/projects/default/traces", params={"limit": 1000, **more}, timeout=60).json()
        found += len(page.get("data", ()))
        cursor = page.get("next_cursor")
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="within a minute: 15,000 and 8,000 traces, not 100,000")
    parser.add_argument("--peers", action="store_true", help="MLflow and Phoenix under the same load")
    parser.add_argument("--memory", type=float, metavar="GB", help="import files of so many gigabytes as well")
    parser.add_argument("--json", type=Path, metavar="FILE")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="filmroom-ingest-") as name:
        figures = measure(Path(name), given.quick)
        if given.memory:
            figures |= memory(Path(name), int(given.memory * 1e9))
        if given.peers:
            figures |= over_peers(Path(name), 200 if given.quick else 2000)
    report(figures)
    if given.json:
        given.json.write_text(json.dumps(figures, indent=2), encoding="utf-8")


def measure(folder: Path, quick: bool) -> dict[str, Any]:
    """The three figures and what was lost on the way."""
    in_file, over_wire = (15_000, 8_000) if quick else (100_000, 100_000)
    log = folder / "log.jsonl"
    write_log(log, traces=in_file)
    imported = import_file(folder / "import", log)
    log.unlink()
    assert stored_in(folder / "import") == in_file
    bare = bare_inserts(folder / "import", folder)
    sent = over_http(folder / "otlp", over_wire)
    shown = (("import", in_file, imported), ("bare_insert", in_file, bare), ("otlp", over_wire, sent))
    for name, count, took in shown:
        print(f"{name:12} {count:7d} traces {took.seconds:7.1f} s {count / took.seconds:7.0f}/s; "
              f"{took.cpu_s:6.1f} s of CPU, {count / took.cpu_s:6.0f} a CPU second; {took.peak_rss_mb:4.0f} MB")  # fmt: skip
    rates = {f"{name}_traces_per_s": round(count / took.seconds, 1) for name, count, took in shown}
    cpu = {f"{name}_traces_per_cpu_s": round(count / took.cpu_s, 1) for name, count, took in shown}
    peak = round(max(imported.peak_rss_mb, sent.peak_rss_mb), 1)
    return {**rates, "sent": over_wire, "stored": stored_in(folder / "otlp"), "peak_rss_mb": peak, **cpu}


def memory(folder: Path, size: int) -> dict[str, Any]:
    """The import of large files, native lines and one array of Langfuse's."""
    figures: dict[str, Any] = {"large_file_gb": size / 1e9}
    for name, write in (("native", partial(write_log, size=size)), ("langfuse", partial(write_langfuse, size=size))):
        log = folder / f"{name}.json"
        count = write(log)
        took = import_file(folder / name, log)
        log.unlink()
        assert stored_in(folder / name) == count
        print(f"{name:12} {count:7d} traces {took.seconds:7.1f} s {count / took.seconds:7.0f}/s; "
              f"{took.cpu_s:6.1f} s of CPU; {took.peak_rss_mb:4.0f} MB for {size / 1e9:.1f} GB")  # fmt: skip
        figures[f"{name}_peak_rss_mb"] = round(took.peak_rss_mb, 1)
    return figures


def report(figures: dict[str, Any]) -> None:
    """The figures, and the headline last."""
    for name, value in figures.items():
        print(f"  {name:28} {value}")
    ratio = figures["import_traces_per_s"] / figures["bare_insert_traces_per_s"]
    met = {
        "import >= 2,000/s": figures["import_traces_per_s"] >= 2000,
        "OTLP >= 1,000/s": figures["otlp_traces_per_s"] >= 1000,
        "half of bare inserts": ratio >= 0.5,
        "nothing lost": figures["sent"] == figures["stored"],
        "under 400 MB": max(value for name, value in figures.items() if name.endswith("peak_rss_mb")) < 400,
    }
    missed = [name for name, is_met in met.items() if not is_met]
    print(f"{'MISSED ' + ', '.join(missed) if missed else 'PASS'}: import {figures['import_traces_per_s']:.0f} traces/s "
          f"({ratio:.2f} of bare inserts), OTLP {figures['otlp_traces_per_s']:.0f} traces/s, "
          f"{figures['sent'] - figures['stored']} of {figures['sent']} lost, {figures['peak_rss_mb']:.0f} MB")  # fmt: skip


if __name__ == "__main__":
    main()
