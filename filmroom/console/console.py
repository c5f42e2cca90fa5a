"""What every page of the console works with."""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from filmroom.console.cookies import Signer
from filmroom.console.limits import LoginLimit
from flows.workspace import Workspace
from store.database import Store
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
        self._values: dict[str, tuple[tuple[int, int], float, Any]] = {}
        self._locks: dict[str, threading.Lock] = {}
        self._lock = threading.Lock()

    def get(self, console: Console, name: str, make: Callable[[], Any]) -> Any:
        """The figure called `name`; of many who ask at once, one adds it up."""
        with self._lock:
            lock = self._locks.setdefault(name, threading.Lock())
        with console.store.read() as connection:
            mark = state_mark(connection, console.project)
        with lock:
            found = self._values.get(name)
            if found is not None and (found[0] == mark or self._is_young(found, mark)):
                return found[2]
            value = make()
            self._values[name] = (mark, time.monotonic(), value)
            return value

    def _is_young(self, found: tuple[tuple[int, int], float, Any], mark: tuple[int, int]) -> bool:
        """New traces may wait for some seconds; what a person did shows at once."""
        return found[0][1] == mark[1] and time.monotonic() - found[1] < self.MOST_S
