"""Pulls: reads a running system from where the last pull ended, and remembers where this one did.

The cursor of a source is the moment its last whole pull began; it moves once everything before it is durable. Reading again
what lies in the overlap stores nothing twice, so a pull that was killed is simply begun again.
"""

import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

from sqlalchemy import select

from store.bulk import listed
from store.database import Clock, Store, wall_clock
from store.errors import SettingsError, SourceUnreachable, UnknownFormat
from store.failures import cursor, move_cursor
from store.ingest import Tally, ingest
from store.records import Rejected, Span
from store.redaction import KEYS_ALONE, Redactor
from store.settings import SourceSection
from store.sources.contract import Item, SourceOptions, with_origin
from store.sources.pull import langfuse, mlflow, phoenix
from store.sources.pull.client import BrokenPage, Client
from store.sources.pull.contract import System, Task
from store.sources.pull.slices import DAY_US, Slice
from store.tables import spans, traces

SYSTEMS: dict[str, System] = {"langfuse": langfuse, "mlflow": mlflow, "phoenix": phoenix}


class _Probe(NamedTuple):
    """How a system is known: a field of what it answers at a path."""

    path: str
    field: str
    params: dict[str, int] = {}  # noqa: RUF012  # never changed


_PROBES = {
    "phoenix": _Probe("/v1/projects", "data"),
    "mlflow": _Probe("/api/2.0/mlflow/experiments/search", "experiments", {"max_results": 1}),
    "langfuse": _Probe("/api/public/health", "status"),
}

_HOUR_US = 3_600_000_000
_AHEAD_US = _HOUR_US
"""Clocks of other machines may be ahead of ours."""

_TOKENS = {"phoenix": "PHOENIX_API_KEY", "mlflow": "MLFLOW_TRACKING_TOKEN"}
_LOGINS = {
    "langfuse": ("LANGFUSE_PUBLIC_KEY", "LANGFUSE_SECRET_KEY"),
    "mlflow": ("MLFLOW_TRACKING_USERNAME", "MLFLOW_TRACKING_PASSWORD"),
}
"""Where the systems' own clients look."""


def pull_source(
    store: Store,
    name: str,
    section: SourceSection,
    *,
    clock: Clock = wall_clock,
    sleep: Callable[[float], None] = time.sleep,
    stored: Callable[[Tally], None] = lambda _tally: None,
    rejected: Callable[[Rejected], None] = lambda _reject: None,
    redactor: Redactor = KEYS_ALONE,
) -> Tally:
    """Read what is new or has changed in the system of `[sources.NAME]`; returns what became of it.

    Raises SettingsError for a system that cannot be pulled from or a key that is not there, SourceUnreachable.
    """
    system = SYSTEMS.get(section.format)
    if section.pull is None or system is None:
        raise SettingsError(f"[sources.{name}] pull: name `pull` (a URL) and `format`, one of {', '.join(SYSTEMS)}")
    options = SourceOptions.of(section, project=store.project, name=name)
    source, began_us = options.source or section.format, clock()
    fresh, settled = _windows(store, name, section, began_us)
    total = Tally()
    token, login = _token(name, section), _login(name, section)
    with Client(section.pull, token=token, login=None if token else login, sleep=sleep) as client:
        task = Task(
            client, options, fresh, settled, section.space, section.page_size,
            complete=lambda ids: _complete(store, source, ids), spans=lambda part: _spans(store, source, part),
        )  # fmt: skip
        for phase in (system.traces, system.feedback):
            items = with_origin(phase(task), section.format, options)
            total.add(ingest(store, items, clock=clock, stored=stored, rejected=rejected, redactor=redactor))
    with store.write() as connection:
        move_cursor(connection, store.project, _cursor_name(name), began_us)
    return total


def recognise_system(url: str) -> str:
    """Which system answers at a URL. Raises UnknownFormat where none of them does, SourceUnreachable where nothing does."""
    unreachable: SourceUnreachable | None = None
    answered = False
    for format, probe in _PROBES.items():
        section = SourceSection(format=format, pull=url)
        token = _token(format, section)
        with Client(url, token=token, login=None if token else _login(format, section)) as client:
            try:
                answer = client.get(probe.path, probe.params, tries=1)
            except BrokenPage:
                answered = True
                continue
            except SourceUnreachable as error:
                unreachable = error
                continue
        answered = True
        if isinstance(answer, dict) and probe.field in answer:
            return format
    if unreachable is not None and not answered:
        raise unreachable
    raise UnknownFormat(
        f"{url}: it answers, and is none of {', '.join(SYSTEMS)}: is it the address of the system itself?"
    )


@contextmanager
def sample(section: SourceSection, now_us: int) -> Iterator[tuple[Iterator[Item], Iterator[Item]]]:
    """What a system holds, for a first look: its traces, then its feedback. Raises what `pull_source` raises."""
    system = SYSTEMS[section.format]
    options = SourceOptions.of(section)
    fresh = Slice(now_us - int(section.since_days * DAY_US), now_us + _AHEAD_US)
    token, seen = _token(section.format, section), list[Span]()

    def started_in(part: Slice) -> list[tuple[str, str]]:
        return [
            (span.trace_external_id, span.external_id)
            for span in seen
            if part.start_us <= (span.started_us or 0) < part.end_us
        ]

    def traces_there(task: Task) -> Iterator[Item]:
        for item in system.traces(task):
            if isinstance(item, Span):
                seen.append(item)
            yield item

    login = None if token else _login(section.format, section)
    with Client(str(section.pull), token=token, login=login) as client:
        task = Task(client, options, fresh, Slice(fresh.start_us, fresh.start_us), section.space, section.page_size,
                    complete=lambda _ids: set(), spans=started_in)  # fmt: skip
        yield traces_there(task), system.feedback(task)


def _windows(store: Store, name: str, section: SourceSection, now_us: int) -> tuple[Slice, Slice]:
    """When traces started that may be new, and when the older ones did on which feedback may still come."""
    with store.read() as connection:
        before_us = cursor(connection, store.project, _cursor_name(name))
    first_us = now_us - int(section.since_days * DAY_US)
    fresh_us = max(before_us - int(section.overlap_hours * _HOUR_US), first_us) if before_us else first_us
    settled_us = min(now_us - int(section.feedback_days * DAY_US), fresh_us) if before_us else fresh_us
    return Slice(fresh_us, now_us + _AHEAD_US), Slice(settled_us, fresh_us)


def _cursor_name(name: str) -> str:
    return f"pull {name}"


def _complete(store: Store, source: str, ids: Sequence[str]) -> set[str]:
    with store.read() as connection:
        statement = select(traces.c.external_id).where(
            traces.c.project == store.project,
            traces.c.source == source,
            traces.c.ended_us.is_not(None),
            traces.c.external_id.in_(listed(connection, ids)),
        )
        return set(connection.execute(statement).scalars())


def _spans(store: Store, source: str, part: Slice) -> list[tuple[str, str]]:
    with store.read() as connection:
        statement = (
            select(spans.c.trace_external_id, spans.c.external_id)
            .join(traces, traces.c.id == spans.c.trace_id)
            .where(
                traces.c.project == store.project,
                traces.c.source == source,
                traces.c.started_us >= part.start_us,
                traces.c.started_us < part.end_us,
            )
            .order_by(traces.c.started_us, spans.c.id)
        )
        return [(row[0], row[1]) for row in connection.execute(statement)]


def _token(name: str, section: SourceSection) -> str | None:
    if section.token_env is not None:
        return _variable(name, section.token_env)
    return os.environ.get(_TOKENS.get(section.format, ""))


def _login(name: str, section: SourceSection) -> tuple[str, str] | None:
    if section.user_env is not None and section.password_env is not None:
        return _variable(name, section.user_env), _variable(name, section.password_env)
    user, password = (os.environ.get(variable) for variable in _LOGINS.get(section.format, ("", "")))
    return (user, password) if user and password else None


def _variable(name: str, variable: str) -> str:
    value = os.environ.get(variable)
    if not value:
        raise SettingsError(f"[sources.{name}]: the environment variable {variable} is not set")
    return value
