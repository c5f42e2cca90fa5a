"""One fit of one fold: a job that can run in this thread, in another, or on another machine, with the same numbers.

liblinear draws from one generator a process, whoever asks: two fits at once in one process would take each other's numbers.
Where it may be at work, a job therefore holds `_LIBLINEAR` for its length.
"""

import threading
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import NamedTuple, Protocol

from threadpoolctl import threadpool_limits

from models.dataset import text_of
from models.fitting import Arm, Task, fit_arm
from models.predictions import Considered, Prediction
from models.text_model import TextModel
from store.records.weights import DatasetRow

Asked = Considered | tuple[Prediction, ...]
"""What a model said: with every other answer where it is a text model."""


class FoldFit(NamedTuple):
    """Learn `base` and `new`, and answer `held`; everything that the answers depend on."""

    arm: Arm
    base: Sequence[DatasetRow]
    new: Sequence[DatasetRow]
    held: Sequence[DatasetRow]
    task: Task


class FoldAnswers(NamedTuple):
    """What came of a `FoldFit`."""

    asked: Asked
    """What is said to the held-out rows, in order."""
    estimator_fits: int = 0
    seconds: float = 0.0
    """Wall time where it ran."""
    error: str = ""
    """Why it could not be fitted; empty: it was."""
    where: str = ""
    """The traceback of the error."""


class FoldFailed(ValueError):
    """A fold that could not be fitted, with the estimator's own error as its text."""


class Mapper(Protocol):
    """Runs jobs, several at a time or elsewhere."""

    def map(self, function: Callable[[FoldFit], FoldAnswers], jobs: Sequence[FoldFit]) -> list[FoldAnswers]:
        """The result of each job, in order of the jobs. Raises EngineAway where they cannot be run."""
        ...


def fit_fold(job: FoldFit) -> FoldAnswers:
    """Fit and answer, on one core. What an estimator raises is returned as its error, and never raised."""
    if not job.held:
        return FoldAnswers(())
    started = time.perf_counter()
    try:
        with _LIBLINEAR if _may_use_liblinear(job.arm) else nullcontext(), one_core():
            model = fit_arm(job.arm, job.base, job.new, task=job.task)
            texts = [text_of(row) for row in job.held]
            asked = model.considered(texts) if isinstance(model, TextModel) else model.predict(texts)
    except Exception as error:  # noqa: BLE001 - an estimator may raise anything, and it may not survive being pickled
        said = f"{type(error).__name__}: {error}"
        return FoldAnswers((), 0, time.perf_counter() - started, said, traceback.format_exc())
    return FoldAnswers(asked, model.estimator_fits, time.perf_counter() - started)


def predictions_of(asked: Asked) -> tuple[Prediction, ...]:
    """The predictions alone."""
    return asked.predictions if isinstance(asked, Considered) else asked


def _may_use_liblinear(arm: Arm) -> bool:
    """The reject model of texts is fitted by it whatever the learner, and a classifier of the user's may hold it."""
    return arm.task == "text" or arm.learner == "estimator"


class _OneCore:
    """Limits the linear algebra of this process to one thread while anybody is within.

    Limits that overlap in time restore each other's: only the first to enter sets it, and the last to leave lifts it.
    """

    def __init__(self) -> None:
        self._lock, self._within = threading.Lock(), 0
        self._limits: threadpool_limits | None = None

    @contextmanager
    def __call__(self) -> Iterator[None]:
        with self._lock:
            self._limits = self._limits or threadpool_limits(1)
            self._within += 1
        try:
            yield
        finally:
            with self._lock:
                self._within -= 1
                if not self._within and self._limits is not None:
                    self._limits.restore_original_limits()
                    self._limits = None


_LIBLINEAR = threading.Lock()
one_core = _OneCore()
