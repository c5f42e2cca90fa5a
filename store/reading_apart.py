"""A large log is read in a process of its own: one core reads and lays out records while the other writes them.

What crosses is whole batches, ready to be written, one ahead at the most. The reading process ends with this one, however that
ends: it finds nobody to hand its next batch to.
"""

import multiprocessing
import os
import signal
from collections.abc import Iterator
from multiprocessing.connection import Connection
from pathlib import Path
from typing import NamedTuple

from store.errors import InputError
from store.ingest import Batch, batches
from store.records import Rejected
from store.redaction import Redactor
from store.sources.contract import Item, SourceOptions
from store.sources.meter import Meter
from store.sources.registry import read

WORTH_BYTES = 16 * 1024 * 1024
"""Size of a log from which another process pays: starting one takes about a second."""


class Reading(NamedTuple):
    """What is read, and how."""

    path: Path
    format: str
    options: SourceOptions
    project: str
    redactor: Redactor
    place: str | None = None
    """What rejected pieces are said to be from, where the path is a copy."""


def read_batches(reading: Reading, meter: Meter) -> Iterator[Batch]:
    """The batches of a log, in another process where it is large. Raises what `store.sources.read` raises."""
    if meter.total < WORTH_BYTES or (os.cpu_count() or 1) < 2:
        yield from _batches(reading, meter)
        return
    receiver, sender = multiprocessing.get_context("spawn").Pipe(duplex=False)
    process = multiprocessing.get_context("spawn").Process(target=_send, args=(sender, reading), daemon=True)
    process.start()
    sender.close()
    try:
        yield from _received(receiver, meter)
    finally:
        receiver.close()
        process.join()


def _received(receiver: Connection, meter: Meter) -> Iterator[Batch]:
    while True:
        try:
            position, found = receiver.recv()
        except EOFError as error:
            raise InputError("the process that reads the log ended early: run the command again") from error
        meter.told(position)
        if isinstance(found, Exception):
            raise found
        if found is None:
            return
        yield found


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
