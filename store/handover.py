"""What another process sends, taken ahead by a thread: few messages, and not too many bytes of them."""

import threading
from collections import deque
from multiprocessing.connection import Connection

AHEAD = 8
"""Messages that wait at the most."""
AHEAD_BYTES = 16 * 1024 * 1024
"""Bytes of messages that wait, from which no further one is taken."""


class Handover:
    """The messages of a connection, in order. The thread ends with the connection, or with `end`."""

    def __init__(self, receiver: Connection) -> None:
        self._receiver = receiver
        self._waiting: deque[bytes] = deque()
        self._bytes = 0
        self._over = False
        """No further message comes, or none is wanted."""
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._run, name="handover", daemon=True)
        self._thread.start()

    @property
    def waits(self) -> bool:
        """Whether a message waits beside the last one, which may say that something went wrong."""
        with self._changed:
            return len(self._waiting) > 1

    def take(self) -> bytes | None:
        """The next message, as soon as it is there; None: the other side is gone."""
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._over)
            if not self._waiting:
                return None
            data = self._waiting.popleft()
            self._bytes -= len(data)
            self._changed.notify_all()
            return data

    def end(self) -> None:
        """Take no further message; the other side, which must have been ended before, is let go."""
        with self._changed:
            self._over = True
            self._changed.notify_all()
        self._thread.join()
        self._receiver.close()

    def _run(self) -> None:
        while self._has_room():
            try:
                data = self._receiver.recv_bytes()
            except (EOFError, OSError):
                break
            with self._changed:
                self._waiting.append(data)
                self._bytes += len(data)
                self._changed.notify_all()
        with self._changed:
            self._over = True
            self._changed.notify_all()

    def _has_room(self) -> bool:
        """Wait until another message may be taken; False: none is wanted."""
        with self._changed:
            self._changed.wait_for(lambda: self._over or (len(self._waiting) < AHEAD and self._bytes < AHEAD_BYTES))
            return not self._over
