"""Facts by user, kept for one release: what was fetched stays until it is fetched again."""

import threading
import time
from collections.abc import Callable
from typing import NamedTuple

from filmroom_live.documents import BadDocument, Fact, Release
from filmroom_live.server import Unavailable

MAX_USERS = 10_000
"""Users whose facts are kept; beyond, whoever was fetched first is dropped and fetched again when asked for."""
FRESH_S = 30.0
"""Older facts are fetched again in the background when they are asked for, so that what was erased or has expired goes."""
RETRY_S = 0.2
"""Pause after facts could not be fetched."""
AHEAD_USERS = 200
AHEAD_S = 900.0
"""At most so many users, asked for within this time, have their facts of the next release before it is taken."""


class Whose(NamedTuple):
    """Whose facts."""

    user: str
    tenant: str | None


class Entry:
    """What one user's facts were when they were fetched, and when they were asked for last."""

    def __init__(self, facts: tuple[Fact, ...], asked_at: float) -> None:
        self.facts = facts
        self.fetched_at = time.monotonic()
        self.asked_at = asked_at


class KeptFacts:
    """The facts of one release. Written by one thread, read by all."""

    def __init__(self, release: Release, reader: "FactReader", entries: "dict[Whose, Entry] | None" = None) -> None:
        self.release = release
        self.entries = entries or {}
        self.pending: dict[Whose, threading.Event] = {}
        self._reader = reader

    def of(self, whose: Whose, wait_s: float) -> tuple[Fact, ...]:
        """What is known of this user; empty where nothing was fetched within `wait_s`."""
        return self._reader.facts(self, whose, wait_s)

    def put(self, whose: Whose, facts: tuple[Fact, ...]) -> None:
        old = self.entries.get(whose)
        self.entries[whose] = Entry(facts, time.monotonic() if old is None else old.asked_at)
        while len(self.entries) > MAX_USERS:
            self.entries.pop(next(iter(self.entries)))

    def active(self) -> list[Whose]:
        """Who was asked for lately, the latest first."""
        since = time.monotonic() - AHEAD_S
        asked = sorted(
            ((each.asked_at, whose) for whose, each in dict(self.entries).items()), key=lambda pair: -pair[0]
        )
        return [whose for at, whose in asked[:AHEAD_USERS] if at > since]


class FactReader:
    """Reads facts without waiting for the network: `fetch` runs in a thread, and what it brought is there the next time."""

    def __init__(self, fetch: Callable[[Release, Whose], tuple[Fact, ...]]) -> None:
        self._fetch = fetch
        self.restart()

    def restart(self) -> None:
        """Begin anew, as after a fork."""
        from queue import SimpleQueue

        self._asked: SimpleQueue[tuple[KeptFacts, Whose] | None] = SimpleQueue()
        self._thread: threading.Thread | None = None
        self._starting = threading.Lock()

    def facts(self, kept: KeptFacts, whose: Whose, wait_s: float) -> tuple[Fact, ...]:
        """The facts known of this user; empty where none were fetched within `wait_s`."""
        entry = kept.entries.get(whose)
        now = time.monotonic()
        if entry is None or now - entry.fetched_at > FRESH_S:
            came = self._ask(kept, whose)
            if entry is None and wait_s > 0 and came.wait(wait_s):
                entry = kept.entries.get(whose)
        if entry is None:
            return ()
        entry.asked_at = now
        now_us = time.time_ns() // 1000
        return tuple(fact for fact in entry.facts if fact.is_in_force(now_us))

    def following(self, kept: KeptFacts, release: Release) -> KeptFacts:
        """The facts for the next release: those kept where the memory has not moved, else fetched for who is active.

        Raises what `fetch` raises: without its facts a release is not taken.
        """
        if release.position == kept.release.position and kept.release.id:
            return KeptFacts(release, self, dict(kept.entries))
        made = KeptFacts(release, self)
        for whose in kept.active():
            made.put(whose, self._fetch(release, whose))
        return made

    def close(self) -> None:
        self._asked.put(None)

    def _ask(self, kept: KeptFacts, whose: Whose) -> threading.Event:
        pending = kept.pending.get(whose)
        if pending is not None:
            return pending
        event = kept.pending.setdefault(whose, threading.Event())
        self._asked.put((kept, whose))
        if self._thread is None:
            with self._starting:
                if self._thread is None:
                    self._thread = threading.Thread(target=self._run, name="filmroom-memory", daemon=True)
                    self._thread.start()
        return event

    def _run(self) -> None:
        while (asked := self._asked.get()) is not None:
            kept, whose = asked
            try:
                kept.put(whose, self._fetch(kept.release, whose))
            except (Unavailable, BadDocument):
                self._give_up()
                time.sleep(RETRY_S)
            _came(kept, whose)

    def _give_up(self) -> None:
        """Let all who wait go: they ask again, which a line of requests that each wait for a dead server would only delay."""
        while not self._asked.empty():
            asked = self._asked.get()
            if asked is None:
                return self._asked.put(None)
            _came(*asked)
        return None


def _came(kept: KeptFacts, whose: Whose) -> None:
    event = kept.pending.pop(whose, None)
    if event is not None:
        event.set()
