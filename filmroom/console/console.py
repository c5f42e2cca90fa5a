"""What every page of the console works with."""

import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from filmroom.console.cookies import Signer
from filmroom.console.limits import LoginLimit
from flows.workspace import Workspace
from store.database import Store
from store.errors import FilmroomError
from store.home_page import state_mark
from store.settings import Settings


@dataclass(frozen=True)
class Console:
    """One project's console."""

    workspace: Workspace
    signer: Signer
    limit: LoginLimit = field(default_factory=lambda: LoginLimit(time.monotonic))
    kept: "Kept" = field(default_factory=lambda: Kept())

    @property
    def store(self) -> Store:
        return self.workspace.store

    @property
    def settings(self) -> Settings:
        return self.workspace.settings

    @property
    def project(self) -> str:
        return self.store.project

    def now_us(self) -> int:
        return self.workspace.clock()


class Kept:
    """Figures that take long to add up, kept while the store has not changed, and for some seconds while it does."""

    MOST_S = 30.0
    """How old a figure may be while traces keep coming in."""

    def __init__(self) -> None:
        self._values: dict[str, tuple[Mark, float, Any]] = {}
        self._locks: dict[str, threading.Lock] = {}
        self._lock = threading.Lock()

    def get(self, console: Console, name: str, make: Callable[[], Any], *, patient: bool = False) -> Any:
        """The figure called `name`; of many who ask at once, one adds it up.

        `patient`: where there is an older one it is returned at once, and added up anew for whoever asks next.
        """
        with self._lock:
            lock = self._locks.setdefault(name, threading.Lock())
        mark = _mark(console)
        found = self._values.get(name)
        if found is not None and (found[0] == mark or self._is_young(found, mark)):
            return found[2]
        if found is not None and patient:
            if lock.acquire(blocking=False):
                threading.Thread(target=self._anew, args=(lock, name, mark, make), daemon=True).start()
            return found[2]
        with lock:
            found = self._values.get(name)
            if found is not None and found[0] == mark:
                return found[2]
            return self._add_up(name, mark, make)

    def _anew(self, lock: threading.Lock, name: str, mark: "Mark", make: Callable[[], Any]) -> None:
        try:
            with suppress(FilmroomError):
                self._add_up(name, mark, make)
        finally:
            lock.release()

    def _add_up(self, name: str, mark: "Mark", make: Callable[[], Any]) -> Any:
        value = make()
        self._values[name] = (mark, time.monotonic(), value)
        return value

    def _is_young(self, found: tuple["Mark", float, Any], mark: "Mark") -> bool:
        """New traces may wait for some seconds; what a person did shows at once."""
        return found[0][1] == mark[1] and time.monotonic() - found[1] < self.MOST_S


Mark = tuple[int, int]


def _mark(console: Console) -> Mark:
    with console.store.read() as connection:
        return state_mark(connection, console.project)
