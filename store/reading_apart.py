"""A large log is read in a process of its own: one core reads and lays out records while the other writes them.

What crosses is whole batches, ready to be written, and a thread takes them ahead of the writer. Those that wait when the writer
comes for the next are written in one transaction: where writing is the slower half, fewer commits make up for it. The reading
process ends with this one, however that ends: it finds nobody to hand its next batch to.
"""

import multiprocessing
import os
import pickle
import signal
from collections.abc import Iterable, Iterator
from multiprocessing.connection import Connection
from pathlib import Path
from typing import NamedTuple

from store.errors import InputError
from store.handover import Handover
from store.ingest import Batch, batches
from store.records import Rejected
from store.redaction import Redactor
from store.sources.contract import Item, SourceOptions
from store.sources.meter import Meter
from store.sources.registry import read

WORTH_BYTES = 16 * 1024 * 1024
"""Size of a log from which another process pays: starting one takes about a second."""
TOGETHER = 8
"""Batches a transaction at the most: what is written holds the store's write lock."""


class Reading(NamedTuple):
    """What is read, and how."""

    path: Path
    format: str
    options: SourceOptions
    project: str
    redactor: Redactor
    place: str | None = None
    """What rejected pieces are said to be from, where the path is a copy."""


def read_batches(reading: Reading, meter: Meter) -> Iterator[Iterable[Batch]]:
    """The batches of a log, in another process where it is large; those that come together wait for the writer together.

    Raises what `store.sources.read` raises.
    """
    if meter.total < WORTH_BYTES or (os.cpu_count() or 1) < 2:
        yield from ((batch,) for batch in _batches(reading, meter))
        return
    receiver, sender = multiprocessing.get_context("spawn").Pipe(duplex=False)
    process = multiprocessing.get_context("spawn").Process(target=_send, args=(sender, reading), daemon=True)
    process.start()
    sender.close()
    handover = Handover(receiver)
    try:
        while (batch := _taken(handover, meter)) is not None:
            yield _together(batch, handover, meter)
    finally:
        process.terminate()
        handover.end()
        process.join()


def _together(first: Batch, handover: Handover, meter: Meter) -> Iterator[Batch]:
    """This batch, and those that wait by the time the one before is written."""
    yield first
    for _ in range(TOGETHER - 1):
        if not handover.waits:
            return
        batch = _taken(handover, meter)
        if batch is None:
            return
        yield batch


def _taken(handover: Handover, meter: Meter) -> Batch | None:
    """The next batch; None: there are no more. Raises what went wrong where the log is read."""
    data = handover.take()
    if data is None:
        raise InputError("the process that reads the log ended early: run the command again")
    position, found = pickle.loads(data)  # noqa: S301  # from a process that this one started
    meter.told(position)
    if isinstance(found, Exception):
        raise found
    return found  # type: ignore[no-any-return]  # a batch, or None


def _send(sender: Connection, reading: Reading) -> None:
    """In the other process: the batches, then None or what went wrong."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches both: the one that writes ends this one
    meter = Meter(reading.path)
    try:
        try:
            for batch in _batches(reading, meter):
                sender.send((meter.position(), batch))
            sender.send((meter.total, None))
        except InputError as error:
            sender.send((meter.position(), error))
    except BrokenPipeError:
        return


def _batches(reading: Reading, meter: Meter) -> Iterator[Batch]:
    items = read(reading.path, format=reading.format, options=reading.options, meter=meter)
    return batches(_placed(items, reading.place), reading.project, reading.redactor)


def _placed(items: Iterator[Item], place: str | None) -> Iterator[Item]:
    for item in items:
        yield item if place is None or not isinstance(item, Rejected) else item.model_copy(update={"path": place})
