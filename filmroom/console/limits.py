"""How often someone may try to log in."""

import threading
from collections import deque
from collections.abc import Callable

ATTEMPTS = 10
WINDOW_S = 300.0
_MOST_KEYS = 10_000


class LoginLimit:
    """At most `ATTEMPTS` failed attempts in `WINDOW_S` seconds for each address and for each name."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._failed: dict[str, deque[float]] = {}
        self._lock = threading.Lock()

    def is_over(self, *keys: str) -> bool:
        """Whether one of the keys has failed too often."""
        with self._lock:
            return any(len(self._recent(key)) >= ATTEMPTS for key in keys)

    def failed(self, *keys: str) -> None:
        with self._lock:
            for key in keys:
                self._recent(key).append(self._clock())
            while len(self._failed) > _MOST_KEYS:
                self._failed.pop(next(iter(self._failed)))

    def succeeded(self, *keys: str) -> None:
        with self._lock:
            for key in keys:
                self._failed.pop(key, None)

    def _recent(self, key: str) -> deque[float]:
        times = self._failed.setdefault(key, deque(maxlen=ATTEMPTS))
        while times and times[0] < self._clock() - WINDOW_S:
            times.popleft()
        return times
