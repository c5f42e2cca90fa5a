"""The hook in child processes of the user's interpreter: one a thread, each with an end to its time and its output."""

import json
import os
import select
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from flows.replay.hook import MOST_BYTES, Answer, Asked, HookFailed, read_answer

RUNNER = Path(__file__).with_name("runner.py")
_PART = 65_536
_TAIL = 2_000
"""Bytes of what the child wrote to stderr that are kept."""


class ChildHook:
    """Runs `module:function` below `home`, with the interpreter that is given."""

    def __init__(self, place: str, *, python: str | None, home: Path, check: str | None, timeout_s: float,
                 safe: tuple[str, ...]) -> None:  # fmt: skip
        self.name = place
        self._command = [python or sys.executable, "-u", str(RUNNER), place, *([check] if check else [])]
        self._home = home
        self._timeout_s = timeout_s
        self._safe = list(safe)
        self._own = threading.local()
        self._all: list[_Child] = []

    def ask(self, asked: Asked) -> Answer:
        """The answer within the time limit. A child that hangs, crashes or talks without end is killed with all it started."""
        child: _Child | None = getattr(self._own, "child", None)
        if child is None or not child.is_alive:
            child = self._own.child = _Child(self._command, self._home)
            self._all.append(child)
        line = json.dumps({**asked._asdict(), "safe": self._safe}).encode() + b"\n"
        try:
            return read_answer(child.exchange(line, self._timeout_s))
        except HookFailed:
            if not child.is_sound:
                child.kill()
            raise

    def probe(self) -> str:
        child = _Child(self._command, self._home)
        try:
            read_answer(child.exchange(b'{"probe": true}\n', self._timeout_s))
        finally:
            child.kill()
        return f"it loads in {self._command[0]}"

    def close(self) -> None:
        for child in self._all:
            child.kill()


class _Child:
    """One process, asked by one thread at a time."""

    def __init__(self, command: list[str], home: Path) -> None:
        try:
            self._process = subprocess.Popen(  # noqa: S603  # the command is the settings' own
                command, cwd=home, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                start_new_session=True,
            )  # fmt: skip
        except OSError as error:
            raise HookFailed(f"[agent] python: {command[0]}: {error.strerror or error}") from error
        self.is_sound = True
        """Whether it is ready for the next line."""
        self._said = b""
        self._is_mute = False
        """Whether it closed its stderr."""
        self._ends = [self._fd(each) for each in (self._process.stdin, self._process.stdout, self._process.stderr)]
        for end in self._ends:
            os.set_blocking(end, False)

    @property
    def is_alive(self) -> bool:
        return self.is_sound and self._process.poll() is None

    def exchange(self, line: bytes, timeout_s: float) -> Any:
        """The JSON value that answers a line. Raises HookFailed."""
        self.is_sound = False
        ends_at = time.monotonic() + timeout_s
        answer = bytearray()
        left = memoryview(line)
        while b"\n" not in answer:
            left = self._step(left, answer, ends_at)
            if len(answer) > MOST_BYTES:
                raise HookFailed(f"an answer of more than {MOST_BYTES >> 20} MiB")
        try:
            value = json.loads(bytes(answer).split(b"\n", 1)[0])
        except (ValueError, RecursionError) as error:
            raise HookFailed(f"the answer is not JSON: {error}"[:300]) from error
        self.is_sound = True
        return value

    def kill(self) -> None:
        """End it and all that it started."""
        self.is_sound = False
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout, self._process.stderr):
            if pipe is not None:
                with suppress(BrokenPipeError):
                    pipe.close()

    def _step(self, left: memoryview, answer: bytearray, ends_at: float) -> memoryview:
        """Write and read what can be at once; returns what is left to write."""
        into, out, said = self._ends
        wait_s = ends_at - time.monotonic()
        if wait_s <= 0:
            raise HookFailed("no answer within the time limit")
        listened = [out] if self._is_mute else [out, said]
        ready, writable, _ = select.select(listened, [into] if left else [], [], wait_s)
        if said in ready:
            part = _read(said)
            self._is_mute = not part
            self._said = (self._said + part)[-_TAIL:]
        if out in ready:
            part = _read(out)
            if not part:
                raise HookFailed(f"the process ended: {self._last_words()}")
            answer += part
        if writable:
            try:
                left = left[os.write(into, left[:_PART]) :]
            except BrokenPipeError as error:
                raise HookFailed(f"the process ended: {self._last_words()}") from error
        return left

    def _last_words(self) -> str:
        self._said = (self._said + _read(self._ends[2]))[-_TAIL:]
        lines = [line for line in self._said.decode(errors="replace").splitlines() if line.strip()]
        return lines[-1][:300] if lines else f"exit code {self._process.poll()}"

    @staticmethod
    def _fd(pipe: Any) -> int:
        return int(pipe.fileno())


def _read(end: int) -> bytes:
    try:
        return os.read(end, _PART)
    except BlockingIOError:
        return b""
