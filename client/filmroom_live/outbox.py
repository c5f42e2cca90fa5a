"""Feedback on its way: queued, written to the disk, sent in the background, kept while the server is away.

A file holds lines of the native log format, so that what a folder alone has collected can be read with `filmroom ingest`.
Each has an id of its own: sending one twice is counted once.
"""

import json
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

MAX_WAITING = 10_000
"""Lines in memory; beyond, new ones are dropped and counted."""
MAX_FILES = 2_000
LONGEST_LINE = 100_000
"""Bytes."""
LINES_A_FILE = 200
PAUSE_S = (1.0, 60.0)
"""First and longest pause after the server was away."""

Send = Callable[[bytes], bool | None]
"""Sends a JSON list: True taken, False refused for good, None the server is away."""


class Outbox:
    """A queue, a folder (where there is one) and a thread."""

    def __init__(self, folder: Path | None, send: Send | None) -> None:
        self.dropped = 0
        """Feedback that found no place or was refused."""
        self._folder = folder
        self._send = send
        self._closed = False
        self._number = 0
        self._put = 0
        self.restart()

    def restart(self) -> None:
        """Begin anew, as after a fork: what waits in memory is the parent's."""
        self._lines: list[bytes] = []
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        if self._send is not None and self._files():
            self._start()

    @property
    def waiting(self) -> int:
        """Lines in memory and files on the disk."""
        return len(self._lines) + len(self._files())

    def put(self, value: dict[str, Any]) -> None:
        """Queue one feedback; never raises and never waits for the disk or the network."""
        try:
            line = json.dumps(value, default=str).encode("ascii")
        except (TypeError, ValueError, RecursionError):
            line = b""
        if not 0 < len(line) <= LONGEST_LINE or len(self._lines) >= MAX_WAITING or self._closed:
            self.dropped += 1
            return
        with self._changed:
            self._lines.append(line)
            self._put += 1
            self._changed.notify()
        if self._thread is None:
            self._start()

    def close(self, timeout_s: float) -> None:
        """Write or send what waits, within `timeout_s`."""
        self._closed = True
        with self._changed:
            self._changed.notify()
        if self._thread is not None:
            self._thread.join(timeout_s)
        self._write_all()

    def _start(self) -> None:
        with self._changed:
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="filmroom-feedback", daemon=True)
                self._thread.start()

    def _run(self) -> None:
        pause_s, next_try = PAUSE_S[0], 0.0
        while True:
            seen = self._put
            self._write_all()
            if time.monotonic() >= next_try or self._closed:
                is_there = self._send_all()
                pause_s = PAUSE_S[0] if is_there else min(2 * pause_s, PAUSE_S[1])
                next_try = 0.0 if is_there else time.monotonic() + pause_s
            if self._closed:
                return
            left_s = max(0.0, next_try - time.monotonic()) if next_try else None
            with self._changed:
                self._changed.wait_for(lambda seen=seen: self._closed or self._put != seen, left_s)  # type: ignore[misc]

    def _write_all(self) -> None:
        """Move what waits in memory to the disk; without a folder it stays in memory."""
        while self._folder is not None and self._lines and len(self._files()) < MAX_FILES:
            part = self._lines[:LINES_A_FILE]
            if not self._write(part):
                return
            with self._changed:
                del self._lines[: len(part)]

    def _write(self, lines: list[bytes]) -> bool:
        from filmroom_live.disk import write_whole

        self._number += 1
        name = f"{time.time_ns():020d}-{os.getpid()}-{self._number}.jsonl"
        try:
            write_whole(Path(str(self._folder)) / name, b"".join(line + b"\n" for line in lines))
        except OSError:
            return False
        return True

    def _send_all(self) -> bool:
        """Send files, oldest first, then what is in memory alone. Returns whether the server was there."""
        if self._send is None:
            return True
        for path in self._files():
            try:
                lines = path.read_bytes().splitlines()
            except OSError:
                continue  # another process sent it
            if not self._sent(lines):
                return False
            path.unlink(missing_ok=True)
        while self._lines:
            part = self._lines[:LINES_A_FILE]
            if not self._sent(part):
                return False
            with self._changed:
                del self._lines[: len(part)]
        return True

    def _sent(self, lines: list[bytes]) -> bool:
        done = self._send(b"[" + b",".join(lines) + b"]") if self._send is not None else None
        if done is False:
            self.dropped += len(lines)
        return done is not None

    def _files(self) -> list[Path]:
        try:
            return sorted(self._folder.glob("*.jsonl")) if self._folder is not None else []
        except OSError:
            return []
