"""The load of the ingest benchmark: traces of four spans, as a file of lines and as OTLP requests over HTTP."""

import http.client
import json
import random
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

TEXT = 550
SPANS = 4
KINDS = ("agent", "llm", "tool", "llm")
SENDERS = 8
TRACES_A_REQUEST = 32
"""128 spans: a quarter of what a stock exporter sends at the most."""
BUSY = (429, 502, 503, 504)
"""Answers after which an exporter sends again."""
START_NS = 1_767_225_600_000_000_000


def texts(count: int = 2000) -> list[str]:
    """Texts of random words: they compress as prose does, to about half."""
    chance = random.Random(1)
    words = ["".join(chance.choices("etaoinshrdlucmfw", k=chance.randint(2, 10))) for _ in range(3000)]
    return [" ".join(chance.choices(words, k=200))[:TEXT] for _ in range(count)]


def write_log(path: Path, *, traces: int | None = None, size: int | None = None) -> int:
    """Write so many traces, or so many bytes of them, as native JSONL; returns how many traces."""
    pool, chance, written, number = texts(), random.Random(2), 0, 0
    with path.open("w", encoding="utf-8") as file:
        while (traces is not None and number < traces) or (size is not None and written < size):
            start = START_NS // 1000 + number * 1000
            steps = [
                {"id": str(step), "parent": None if step == 0 else "0", "kind": kind, "name": f"step {step}",
                 "input": chance.choice(pool), "output": chance.choice(pool), "started": start + step,
                 "ended": start + step + 100, "status": "ok"}
                for step, kind in enumerate(KINDS)
            ]  # fmt: skip
            line = {"type": "trace", "id": f"t{number}", "started": start, "user": f"u{number % 100}",
                    "session": f"s{number // 5}", "input": chance.choice(pool), "output": chance.choice(pool),
                    "status": "ok", "spans": steps}  # fmt: skip
            written += file.write(json.dumps(line) + "\n")
            number += 1
    return number


def write_langfuse(path: Path, size: int) -> int:
    """Write so many bytes as a Langfuse export, one JSON array of observations; returns how many traces."""
    pool, chance, written, number = texts(), random.Random(4), 0, 0
    with path.open("w", encoding="utf-8") as file:
        while written < size:
            moment = datetime.fromtimestamp(START_NS // 1_000_000_000 + number, tz=UTC)
            for step, kind in enumerate(("SPAN", "GENERATION", "SPAN", "GENERATION")):
                row: dict[str, object] = {
                    "id": f"o{number}.{step}", "trace_id": f"t{number}", "project_id": "p", "type": kind,
                    "parent_observation_id": f"o{number}.0" if step else None,
                    "start_time": f"{moment:%Y-%m-%d %H:%M:%S}.{step:06d}", "end_time": None, "name": f"step {step}",
                    "level": "DEFAULT", "input": chance.choice(pool), "output": chance.choice(pool), "metadata": {},
                    "user_id": f"u{number % 100}", "session_id": f"s{number // 5}", "trace_name": "support",
                }  # fmt: skip
                written += file.write((",\n" if written else "[") + json.dumps(row))
            number += 1
        file.write("]")
    return number


def requests(count: int) -> Iterator[bytes]:
    """Export requests with so many traces in all."""
    pool, chance = texts(500), random.Random(3)
    for first in range(0, count, TRACES_A_REQUEST):
        request = ExportTraceServiceRequest()
        holder = request.resource_spans.add().scope_spans.add().spans
        for number in range(first, min(first + TRACES_A_REQUEST, count)):
            for step in range(SPANS):
                start = START_NS + number * 1_000_000 + step * 1000
                span = holder.add(
                    trace_id=(number + 1).to_bytes(16, "big"), span_id=(number * SPANS + step + 1).to_bytes(8, "big"),
                    parent_span_id=(number * SPANS + 1).to_bytes(8, "big") if step else b"", name=f"step {step}",
                    start_time_unix_nano=start, end_time_unix_nano=start + 100_000,
                )  # fmt: skip
                for key in ("input.value", "output.value"):
                    span.attributes.add(key=key).value.string_value = chance.choice(pool)
                span.attributes.add(key="openinference.span.kind").value.string_value = KINDS[step].upper()
        yield request.SerializeToString()


def send(url: str, count: int, headers: dict[str, str] | None = None) -> float:
    """Send so many traces over several connections; returns the seconds until the last was answered."""
    bodies_, lock, refused = requests(count), threading.Lock(), list[str]()
    sent = {"Content-Type": "application/x-protobuf", **(headers or {})}

    def work() -> None:
        connection = http.client.HTTPConnection(url.removeprefix("http://"), timeout=600)
        while True:
            with lock:
                body = next(bodies_, None)
            if body is None:
                return
            while True:
                connection.request("POST", "/v1/traces", body, sent)
                answer = connection.getresponse()
                said = answer.read()
                if answer.status not in BUSY:
                    break
                time.sleep(0.5)
            if said or answer.status != 200:
                refused.append(f"{answer.status} {said[:200]!r}")

    began = time.perf_counter()
    threads = [threading.Thread(target=work) for _ in range(SENDERS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not [each for each in refused if not each.startswith("200")], refused[:3]
    return time.perf_counter() - began
