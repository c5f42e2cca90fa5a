"""One process at a time: a lease with a heartbeat, so that a process that died frees its place by silence."""

import os
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from sqlalchemy import ColumnElement, Connection, and_, delete, select, update

from store.database import Clock, Store, insert_or_ignore, wall_clock
from store.errors import LeaseLost, StoreError, StoreInUse
from store.tables import leases

BEAT_S = 5.0
"""A holder gives a sign of life this often."""
SILENCE_S = 120.0
"""After so long without one the lease may be taken: longer than a writer waits for the database."""


class Lease:
    """A held lease. `check` raises LeaseLost in the transaction that would act without it."""

    def __init__(self, project: str, name: str, holder: str, attempt: int) -> None:
        self.project = project
        self.name = name
        self.holder = holder
        self.attempt = attempt

    def check(self, connection: Connection) -> None:
        """Raises LeaseLost unless this process still holds it, and keeps others out until the transaction ends."""
        touched = connection.execute(update(leases).where(self._mine()).values(attempt=self.attempt)).rowcount
        if touched != 1:
            raise LeaseLost

    def beat(self, connection: Connection, now_us: int) -> None:
        connection.execute(update(leases).where(self._mine()).values(beat_us=now_us))

    def release(self, connection: Connection) -> None:
        connection.execute(delete(leases).where(self._mine()))

    def _mine(self) -> ColumnElement[bool]:
        return and_(
            leases.c.project == self.project,
            leases.c.name == self.name,
            leases.c.holder == self.holder,
            leases.c.attempt == self.attempt,
        )


@contextmanager
def holding(store: Store, name: str = "turn", *, clock: Clock = wall_clock) -> Iterator[Lease]:
    """Hold the lease `name` of the project for the block. Raises StoreInUse when another process does.

    The holder's name has host and process id: a lease left by a process of this machine that is gone is taken at once.
    """
    lease = _acquire(store, name, clock)
    stop = threading.Event()
    thread = threading.Thread(target=_beat, args=(store, lease, stop, clock), daemon=True)
    thread.start()
    try:
        yield lease
    finally:
        stop.set()
        thread.join()
        with store.write() as connection:
            lease.release(connection)


def holder_of(store: Store, name: str = "turn", *, clock: Clock = wall_clock) -> str | None:
    """Who holds the lease and is alive; None: nobody."""
    with store.read() as connection:
        return live_holder(connection, store.project, name, now_us=clock())


def live_holder(connection: Connection, project: str, name: str, *, now_us: int) -> str | None:
    """`holder_of` within a transaction."""
    row = connection.execute(
        select(leases.c.holder, leases.c.beat_us).where(leases.c.project == project, leases.c.name == name)
    ).first()
    if row is None or _is_free(row.holder, row.beat_us, now_us):
        return None
    return str(row.holder)


def _acquire(store: Store, name: str, clock: Clock) -> Lease:
    me = f"{socket.gethostname()}:{os.getpid()}:{threading.get_ident()}"
    with store.write() as connection:
        now_us = clock()
        row = {"project": store.project, "name": name, "holder": me, "attempt": 1, "beat_us": now_us}
        if insert_or_ignore(connection, leases, [row]):
            return Lease(store.project, name, me, 1)
        held = connection.execute(
            select(leases).where(leases.c.project == store.project, leases.c.name == name).with_for_update()
        ).one()
        if not _is_free(held.holder, held.beat_us, now_us):
            raise StoreInUse(
                f"{held.holder} is at work on this store (a turn at a time): wait for it, or run again later"
            )
        lease = Lease(store.project, name, me, held.attempt + 1)
        connection.execute(
            update(leases)
            .where(leases.c.project == store.project, leases.c.name == name)
            .values(holder=me, attempt=lease.attempt, beat_us=now_us)
        )
    return lease


def _is_free(holder: str, beat_us: int, now_us: int) -> bool:
    host, pid, _ = holder.rsplit(":", 2)
    if host == socket.gethostname() and not _is_alive(int(pid)):
        return True
    return now_us - beat_us > SILENCE_S * 1_000_000


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _beat(store: Store, lease: Lease, stop: threading.Event, clock: Clock) -> None:
    """Beat until told to stop. A beat that finds the database busy is left out; the next one counts."""
    while not stop.wait(BEAT_S):
        with suppress(StoreError), store.write() as connection:
            lease.beat(connection, clock())
