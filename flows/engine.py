"""Where the fits of a retrain run: one after the other, in threads, or on a Dask cluster; with the same numbers.

Here is how it is done without Prefect. In a tracked turn `flows.improve` hands in Prefect's task runners in their place.
"""

import pickle
import platform
import time
import zlib
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import partial
from importlib.metadata import version
from typing import Any
from uuid import uuid4

from models.fold_fit import FoldAnswers, FoldFit, Mapper, one_core
from store.errors import EngineAway, FilmroomError
from store.settings_engine import EngineSection

Call = Callable[[], FoldAnswers]
Result = Callable[[float | None], FoldAnswers]
"""Waits so many seconds, None: for ever, and raises TimeoutError."""
Submit = Callable[[str, Call], Result]
"""Begins a call under a name."""
Engine = Callable[[EngineSection], AbstractContextManager[Submit]]

CONNECT_S = 10.0
"""Longest wait for the scheduler, and for a first worker, seconds."""
TRACKERS = ("prefect", "httpx")
"""Whose errors say that the turn's tracking is away, and nothing about the cluster."""


@contextmanager
def opened_engine(section: EngineSection, engine: Engine | None = None) -> Iterator[Mapper | None]:
    """What runs several fits at once; None where the settings ask for one after the other.

    `engine` begins the calls, by default without Prefect. Raises EngineAway for a cluster that does not answer.
    """
    if section.dask is None:
        if section.threads == 1:
            yield None
            return
        # set by the threads themselves the limit cost word_logistic 13.5 s for 1.4 s: it is set before they begin
        with one_core(), (engine or in_threads)(section) as submit:
            yield _Submitting(submit)
        return
    with _told(section.dask):
        opened = (engine or on_dask)(section)
        submit = opened.__enter__()
    try:
        yield _OnCluster(submit, section.dask, section.timeout_s)
    finally:
        with suppress(Exception):  # all answers are in: how a cluster takes leave decides nothing
            opened.__exit__(None, None, None)


@contextmanager
def in_threads(section: EngineSection) -> Iterator[Submit]:
    """Threads of this process."""
    pool = ThreadPoolExecutor(section.threads, thread_name_prefix="filmroom-fit")
    try:
        yield lambda name, call: pool.submit(call).result
    finally:
        pool.shutdown(cancel_futures=True)


@contextmanager
def on_dask(section: EngineSection) -> Iterator[Submit]:
    """Workers of a Dask cluster."""
    import distributed

    connect: Any = distributed.Client
    with connect(section.dask, timeout=CONNECT_S, set_as_default=False) as client:
        refuse_idle(client)

        def submit(name: str, call: Call) -> Result:
            future = client.submit(call, key=f"{name}-{uuid4().hex}", pure=False)
            return partial(_dask_result, future)

        yield submit


def refuse_idle(client: Any) -> None:
    """Raises TimeoutError where a cluster has no worker within `CONNECT_S`."""
    client.wait_for_workers(1, timeout=CONNECT_S)


def run_packed(packed: bytes, made_by: str) -> FoldAnswers:
    """On a worker: the call that was packed here. Raises RuntimeError where its programs are others."""
    if programs() != made_by:
        raise RuntimeError(f"a worker has {programs()}, and here is {made_by}: install the same on both")
    function, job = pickle.loads(zlib.decompress(packed))  # noqa: S301 - what this very turn packed
    answers: FoldAnswers = function(job)
    return answers


def programs() -> str:
    """What must be the same for the numbers to be the same."""
    names = ("filmroom", "scikit-learn", "numpy", "scipy")
    return ", ".join([f"Python {platform.python_version()}", *(f"{name} {version(name)}" for name in names)])


class _Submitting:
    """A `Mapper` over what can be submitted."""

    def __init__(self, submit: Submit) -> None:
        self._submit = submit

    def map(self, function: Callable[[FoldFit], FoldAnswers], jobs: Sequence[FoldFit]) -> list[FoldAnswers]:
        return self._results([self._submit(_name(job), self._call(function, job)) for job in jobs])

    def _call(self, function: Callable[[FoldFit], FoldAnswers], job: FoldFit) -> Call:
        return partial(function, job)

    def _results(self, results: Sequence[Result]) -> list[FoldAnswers]:
        return [result(None) for result in results]


class _OnCluster(_Submitting):
    """The same over a cluster, which may go away, or take too long."""

    def __init__(self, submit: Submit, address: str, timeout_s: float) -> None:
        super().__init__(submit)
        self._address, self._timeout_s = address, timeout_s

    def map(self, function: Callable[[FoldFit], FoldAnswers], jobs: Sequence[FoldFit]) -> list[FoldAnswers]:
        with _told(self._address):
            return super().map(function, jobs)

    def _call(self, function: Callable[[FoldFit], FoldAnswers], job: FoldFit) -> Call:
        packed = zlib.compress(pickle.dumps((function, job)), 1)
        return partial(run_packed, packed, programs())

    def _results(self, results: Sequence[Result]) -> list[FoldAnswers]:
        until = time.monotonic() + self._timeout_s
        try:
            return [result(max(0.0, until - time.monotonic())) for result in results]
        except TimeoutError as error:
            raise EngineAway(f"[engine] dask: {self._address}: not done within {self._timeout_s:g} s") from error


@contextmanager
def _told(address: str) -> Iterator[None]:
    """Whatever a cluster raises, in a line."""
    try:
        yield
    except FilmroomError:
        raise
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in ("distributed", "dask", "prefect_dask"):
            raise EngineAway(f"[engine] dask: {address}: a worker lacks {error.name}") from error
        raise EngineAway("[engine] dask: Dask is not installed here: pip install 'filmroom[dask]'") from error
    except Exception as error:
        if type(error).__module__.startswith(TRACKERS):
            raise
        said = " ".join(str(error).split()) or type(error).__name__
        raise EngineAway(f"[engine] dask: {address}: {said[:300]}") from error


def _dask_result(future: Any, timeout: float | None) -> FoldAnswers:
    answers: FoldAnswers = future.result(timeout=timeout)
    return answers


def _name(job: FoldFit) -> str:
    return f"fit-{job.arm.name}"
