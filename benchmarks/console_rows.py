"""A store of any size for the console's benchmark, written by bulk inserts: the shapes are the loop's, the values made up."""

import json
import random
import sqlite3
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from flows.workspace import open_workspace
from store.bodies import encode
from store.records import Cluster, Fingerprint, Operation, Proposal, Retrain, Route, derived_id
from store.settings import read_settings

DAY_US = 86_400_000_000
START_US = 1_767_225_600_000_000
DAYS = 60
WORDS = ("order", "refund", "delivery", "invoice", "address", "cancel", "return", "late", "broken", "where", "change",
         "please", "again", "parcel", "account", "password", "receipt", "colour", "size", "stock")  # fmt: skip

Names = tuple[str, ...]


class Size(NamedTuple):
    """How many rows of what."""

    traces: int
    failures: int
    corrections: int


def build(folder: Path, size: Size) -> None:
    """Write settings and a store of this size into `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "filmroom.toml").write_text('[policy]\nprofile = "standard"\n', encoding="utf-8")
    settings = read_settings(folder / "filmroom.toml")
    with open_workspace(settings, actor="benchmark", create=True):
        pass
    connection = sqlite3.connect(folder / "filmroom.db")
    connection.execute("PRAGMA synchronous=OFF")
    connection.execute("PRAGMA cache_size=-262144")
    with connection:
        _log(connection, size)
    with connection:
        _decisions(connection, size)
    with connection:
        _history(connection, size)
    connection.execute("ANALYZE")
    connection.commit()
    connection.close()


def trace_id(number: int) -> str:
    return f"trc_{number * 2654435761 % 2**64:020x}"


def cluster_id(number: int) -> str:
    return f"clu_{number * 2654435761 % 2**64:020x}"


def correction_id(number: int) -> str:
    return derived_id("cor", cluster_id(number), "1")


def _log(connection: sqlite3.Connection, size: Size) -> None:
    names: Names = ("id", "project", "source", "external_id", "started_us", "started_ns", "ended_us", "name", "session", "user",
             "status", "cost_usd", "digest")  # fmt: skip
    _insert(connection, "traces", names, _traces(size))
    names = ("id", "project", "source", "trace_id", "trace_external_id", "external_id", "kind", "name", "position",
             "started_us", "started_ns", "ended_us", "status", "digest")  # fmt: skip
    _insert(connection, "spans", names, _spans(size))
    _insert(connection, "bodies", ("id", "project", "data"), _bodies(size))
    arrivals = ((f"{n}", "default", "trace", trace_id(n), START_US) for n in range(size.traces))
    _insert(connection, "arrivals", ("seq", "project", "kind", "trace_id", "at_us"), arrivals)
    names = ("id", "project", "source", "trace_id", "trace_external_id", "external_id", "name", "score", "source_kind",
             "principal", "given_us", "digest")  # fmt: skip
    _insert(connection, "feedback", names, _feedback(size))


def _traces(size: Size) -> Iterator[tuple[Any, ...]]:
    step = DAYS * DAY_US // size.traces
    for n in range(size.traces):
        at = START_US + n * step
        yield (trace_id(n), "default", "native", f"t{n}", at, 0, at + 2_000_000, "chat", f"s{n // 4}", f"u{n % 20_000}",
               "error" if n % 50 == 0 else "ok", 0.002, f"{n:020d}")  # fmt: skip


def _spans(size: Size) -> Iterator[tuple[Any, ...]]:
    for n in range(size.traces):
        yield (f"spn_{n:020d}", "default", "native", trace_id(n), f"t{n}", "a", "tool", "get_order", 0, START_US, 0,
               START_US + 1, "ok", f"{n:020d}")  # fmt: skip


def _bodies(size: Size) -> Iterator[tuple[Any, ...]]:
    rng = random.Random(0)
    for n in range(size.traces):
        text = " ".join(rng.choices(WORDS, k=12))
        yield (trace_id(n), "default", encode({"input": f"{text} {n}", "output": "It is on its way."}))
        yield (f"spn_{n:020d}", "default", encode({"input": {"order_id": f"{n}"}, "output": "shipped"}))


def _feedback(size: Size) -> Iterator[tuple[Any, ...]]:
    for n in range(0, size.traces, 5):
        score = 0.0 if _fails(n, size) else 1.0
        yield (f"fbk_{n:020d}", "default", "native", trace_id(n), f"t{n}", f"f{n}", "thumb", score, "human",
               f"u{n % 20_000}", START_US, f"{n:020d}")  # fmt: skip


def _fails(number: int, size: Size) -> bool:
    return number % (size.traces // size.failures) == 0


def _decisions(connection: sqlite3.Connection, size: Size) -> None:
    rng = random.Random(1)
    weights = [1 / (n + 1) ** 0.7 for n in range(size.corrections)]
    chosen = rng.choices(range(size.corrections), weights, k=size.failures)
    every = size.traces // size.failures
    names: Names = ("id", "project", "trace_id", "picked_us", "probability", "q", "span_id", "source", "authority",
             "cluster_id", "withdrawn")  # fmt: skip
    rows = (
        (f"fail_{n:020d}", "default", trace_id(n * every), START_US, 0.9, 1.0, f"spn_{n * every:020d}", "u1", 0,
         cluster_id(each), 0)
        for n, each in enumerate(chosen)
    )  # fmt: skip
    _insert(connection, "failures", names, rows)
    clusters = (_cluster(n) for n in range(size.corrections))
    names = ("id", "project", "name", "fingerprint", "created_us", "no_single_place", "changed_us")
    _insert(connection, "clusters", names, (
        (each.id, "default", each.name, each.fingerprint.model_dump_json(), START_US, 0, START_US) for each in clusters
    ))  # fmt: skip
    _corrections(connection, size)


def _cluster(number: int) -> Cluster:
    tool = f"tool_{number % 40}"
    print_ = Fingerprint(version=1, component=tool, kind="tool", error_class="validation", intent=f"intent_{number}")
    return Cluster(id=cluster_id(number), name=f"`{tool}` fails: argument not accepted for intent {number}",
                   fingerprint=print_, created_us=START_US)  # fmt: skip


def _state(number: int) -> str:
    return ("proposed", "proposed", "proposed", "applied", "applied", "rejected", "deferred", "proposed")[number % 8]


def _target(number: int) -> Any:
    return ("tooling", "context", "memory", "tooling", None)[number % 5]


def _corrections(connection: sqlite3.Connection, size: Size) -> None:
    names: Names = ("id", "project", "cluster_id", "attempt", "state", "target", "created_us")
    numbers = range(size.corrections)
    _insert(connection, "corrections", names, (
        (correction_id(n), "default", cluster_id(n), 1, _state(n), _target(n), START_US) for n in numbers
    ))  # fmt: skip
    _insert(connection, "bodies", ("id", "project", "data"), (
        (correction_id(n), "default", encode(_proposal(n).model_dump(mode="json"))) for n in numbers if _target(n)
    ))  # fmt: skip
    names = ("id", "project", "correction_id", "cluster_id", "decided_us", "target", "certified", "failures", "router",
             "decision")  # fmt: skip
    _insert(connection, "routes", names, (_route(n) for n in numbers))


def _proposal(number: int) -> Proposal:
    target = _target(number)
    values: dict[str, dict[str, Any]] = {
        "tooling": {"normalisers": {"order_id": ["prefix:#"]}},
        "context": {"action": "instruct", "argument": f"Say it {number} times.", "scope": {}, "author": "router"},
        "memory": {"scope": "user", "scope_id": f"u{number}", "subject": f"u{number}", "predicate": "shop",
                   "value": "Elm Street", "source": f"u{number}", "authority": False},
    }  # fmt: skip
    keys = {"tooling": f"tool_{number}", "context": f"rule_{number:020d}", "memory": f"fact_{number:020d}"}
    operation = Operation(target=target, verb="add", key=keys[target], value=values[target])
    return Proposal(target=target, summary=f"Mend case {number}", operations=(operation,))


def _route(number: int) -> tuple[Any, ...]:
    target = _target(number)
    value = Route(
        correction_id=correction_id(number), cluster_id=cluster_id(number), decided_us=START_US,
        probabilities={"context": 0.2, "memory": 0.1, "tooling": 0.5, "weights": 0.05, "none": 0.15}, target=target,
        runner_up="context", certified=False, reason="tooling at 0.50: calls break the schema (schema_violation 0.90)",
        to_yes="approve it", evidence={f"feature_{n}": 0.1 * n for n in range(60)} | {"schema_violation": 0.9},
        failures=20, router="rules-4",
    )  # fmt: skip
    return (value.id, "default", value.correction_id, value.cluster_id, START_US, target, 0, 20, "rules-4",
            value.model_dump_json())  # fmt: skip


def _history(connection: sqlite3.Connection, size: Size) -> None:
    applied = [n for n in range(size.corrections) if _state(n) == "applied" and _target(n) in ("tooling", "context")]
    query = "SELECT id, context, tooling FROM releases"
    release, context, tooling = connection.execute(query).fetchone()
    state = {"context": context, "tooling": tooling}
    changes = [
        (f"chg_{n:020d}", "default", correction_id(n), _target(n), state[_target(n)], state[_target(n)], release,
         START_US + n, "staff:ann", 1, "live")
        for n in applied
    ]  # fmt: skip
    names: Names = ("id", "project", "correction_id", "target", "before", "after", "release_id", "applied_us", "actor",
             "probation", "state")  # fmt: skip
    _insert(connection, "changes", names, changes)
    names = ("id", "project", "change_id", "cluster_id", "state", "baseline", "exposures", "recurrences", "needed",
             "since_us", "updated_us")  # fmt: skip
    _insert(connection, "holds", names, (
        (f"hld_{n:020d}", "default", f"chg_{n:020d}", cluster_id(n), "holding", 0.4, 20, 1, 34, START_US, START_US)
        for n in applied
    ))  # fmt: skip
    names = ("id", "project", "model", "at_us", "decision", "record")
    _insert(connection, "retrains", names, (_retrain(n) for n in range(2_000)))
    every = size.traces // size.failures
    events = (
        (f"{n}", "default", START_US, "benchmark", "picked up", f"fail_{n:020d}", "", "{}")
        for n in range(size.failures)
    )
    _insert(connection, "ledger", ("seq", "project", "at_us", "actor", "event", "subject", "reason", "detail"), events)
    links = [("default", trace_id(n * every), f"fail_{n:020d}") for n in range(size.failures)]
    pairs = connection.execute("SELECT id, cluster_id FROM failures").fetchall()
    links += [("default", failure, cluster) for failure, cluster in pairs]
    links += [("default", cluster_id(n), correction_id(n)) for n in range(size.corrections)]
    links += [("default", correction_id(n), f"chg_{n:020d}") for n in applied]
    _insert(connection, "links", ("project", "cause", "effect"), links)


def _retrain(number: int) -> tuple[Any, ...]:
    value = Retrain(id=f"ret_{number:020d}", model="intents", at_us=START_US + number * 3_600_000_000, decision="skipped",
                    reason="too little: 4 failures count as 4", to_yes="1 more failure", numbers={"failures": 4.0})  # fmt: skip
    return (value.id, "default", "intents", value.at_us, "skipped", json.dumps(value.model_dump(mode="json")))


def _insert(connection: sqlite3.Connection, table: str, names: Names, rows: Iterable[tuple[Any, ...]]) -> None:
    columns = ", ".join(f'"{name}"' for name in names)
    marks = ", ".join("?" for _ in names)
    connection.executemany(f'INSERT INTO "{table}" ({columns}) VALUES ({marks})', rows)  # noqa: S608 -- names of ours
