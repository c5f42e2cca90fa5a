"""One writer for many: what arrives at the same time is committed together, and each sender waits until its part is durable.

A commit costs a write to the disk (5 to 20 ms); a thousand senders that each paid for one would wait for each other.
"""

import threading
from collections import deque
from collections.abc import Collection
from concurrent.futures import Future
from typing import NamedTuple

from store.database import Clock, Store, wall_clock
from store.errors import StoreError, WriterBusy
from store.ingest import BATCH, Batch, Item
from store.redaction import KEYS_ALONE, Redactor
from store.sources.registry import FORMATS

MAX_WAITING = 100_000
"""Records that may wait for the writer; a sender beyond is told to come again."""


class _Part(NamedTuple):
    """What one sender handed over."""

    items: list[Item]
    done: "Future[None]"


class GroupWriter:
    """A thread that writes. Use it as a context manager: leaving the block writes what waits, then ends the thread."""

    def __init__(
        self,
        store: Store,
        *,
        clock: Clock = wall_clock,
        redactor: Redactor = KEYS_ALONE,
        sources: Collection[str] = FORMATS,
    ) -> None:
        """`sources`: the logs in which feedback may find the trace that it calls by its name alone."""
        self.redacted = 0
        """Placeholders stored so far in place of keys and of what is personal."""
        self._store = store
        self._redactor = redactor
        self._sources = sources
        self._clock = clock
        self._parts: deque[_Part] = deque()
        self._waiting = 0
        self._ended = False
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._run, name="group-writer", daemon=True)

    def __enter__(self) -> "GroupWriter":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        with self._changed:
            self._ended = True
            self._changed.notify()
        self._thread.join()

    @property
    def waiting(self) -> int:
        """Records that are not durable yet."""
        return self._waiting

    def submit(self, items: list[Item]) -> "Future[None]":
        """Hand items over. The future is done once they are durable, or raises why they are not. Raises WriterBusy."""
        part = _Part(items, Future())
        with self._changed:
            if self._ended:
                raise WriterBusy("filmroom is shutting down: send it again in a moment")
            if self._waiting and self._waiting + len(items) > MAX_WAITING:
                raise WriterBusy
            self._parts.append(part)
            self._waiting += len(items)
            self._changed.notify()
        return part.done

    def _run(self) -> None:
        while parts := self._take():
            self._commit([part for part in parts if part.done.set_running_or_notify_cancel()])
            with self._changed:
                self._waiting -= sum(len(part.items) for part in parts)

    def _take(self) -> list[_Part]:
        """The parts of the next commit; empty: it is over."""
        with self._changed:
            while not self._parts and not self._ended:
                self._changed.wait()
            taken: list[_Part] = []
            size = 0
            while self._parts and (not taken or size + len(self._parts[0].items) <= BATCH):
                taken.append(self._parts.popleft())
                size += len(taken[-1].items)
            return taken

    def _commit(self, parts: list[_Part]) -> None:
        """Write the parts in one transaction; where one of them cannot be written, each in its own."""
        batch = Batch(self._store.project, self._redactor, self._sources)
        try:
            for part in parts:
                for item in part.items:
                    batch.add(item)
            self.redacted += batch.write(self._store, self._clock()).redacted
        except StoreError as error:
            _fail(parts, error)
        except Exception as error:  # noqa: BLE001  # one sender's records must not fail the others'
            if len(parts) == 1:
                return _fail(parts, error)
            for part in parts:
                self._commit([part])
        else:
            for part in parts:
                part.done.set_result(None)


def _fail(parts: list[_Part], error: Exception) -> None:
    for part in parts:
        part.done.set_exception(error)
