"""A home with a schedule in a process of its own, for tests.

A flow of the tests' own stands for the turn: it writes a line to `turns.log`, and goes on for as long as there is a file
`hold`. A file `lease` stands for the store's lease.
"""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from flows.prefect_api import UNFINISHED, PrefectApi
from flows.prefect_environment import prefect_home
from flows.schedule import list_schedules
from store.settings import Settings, read_settings

ROOT = Path(__file__).resolve().parent.parent
START_S = 180.0
TURN_S = 60.0

FLOW = """
import time
from pathlib import Path
from prefect import flow

@flow
async def improve(settings_file: str) -> None:
    home = Path(settings_file).parent
    with (home / "turns.log").open("a") as log:
        print("turn", file=log)
    while (home / "hold").exists():
        time.sleep(0.1)
"""

STARTER = """
import sys
from pathlib import Path
from flows.schedule import start
from store.errors import FilmroomError
from store.settings import read_settings

home = Path(sys.argv[1])
try:
    start(read_settings(home / "filmroom.toml"), lease_held=(home / "lease").exists,
          say=lambda line: print(line, flush=True), entrypoint="scheduled_turn.improve")
except FilmroomError as error:
    sys.exit(str(error))
"""


class Home:
    """A home with its settings, and the processes started on it."""

    def __init__(self, folder: Path, interval_s: int = 3600) -> None:
        self.folder = folder
        (folder / "code").mkdir(parents=True)
        (folder / "code" / "scheduled_turn.py").write_text(FLOW)
        (folder / "filmroom.toml").write_text(f"[schedule]\ninterval_s = {interval_s}\nport = {free_port()}\n")
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def settings(self) -> Settings:
        return read_settings(self.folder / "filmroom.toml")

    @property
    def env(self) -> dict[str, str]:
        return {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), str(self.folder / "code")])}

    @property
    def command(self) -> list[str]:
        return [sys.executable, "-c", STARTER, str(self.folder)]

    def launch(self, *before: str) -> "subprocess.Popen[bytes]":
        with (self.folder / "said").open("wb") as said:
            return subprocess.Popen([*before, *self.command], env=self.env, stdout=said, stderr=said)

    def start(self, *before: str) -> None:
        self.process = self.launch(*before)
        wait_until(lambda: "turning every" in self.said or self.ended, START_S)
        assert not self.ended, self.said

    @property
    def ended(self) -> bool:
        return self.process is not None and self.process.poll() is not None

    @property
    def said(self) -> str:
        return (self.folder / "said").read_text(errors="replace")

    @property
    def turns(self) -> int:
        log = self.folder / "turns.log"
        return len(log.read_text().splitlines()) if log.exists() else 0

    @property
    def is_idle(self) -> bool:
        return not PrefectApi(self.settings.schedule.port).runs(*UNFINISHED, sort="START_TIME_DESC")

    @property
    def last_state(self) -> str:
        last = list_schedules(self.settings)[0].last_run
        return "none" if last is None else last.state

    def children(self) -> list[int]:
        """The processes that run under this home's environment, whoever their parent is."""
        mark = f"PREFECT_HOME={prefect_home(self.folder)}".encode()
        return [int(path.parent.name) for path in Path("/proc").glob("[0-9]*/environ") if mark in environ(path)]

    def end(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()
        for pid in self.children():
            os.kill(pid, signal.SIGKILL)


def environ(path: Path) -> list[bytes]:
    try:
        return path.read_bytes().split(b"\0")
    except OSError:
        return []


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def wait_until(true: Callable[[], object], timeout_s: float) -> None:
    until = time.monotonic() + timeout_s
    while not true():
        assert time.monotonic() < until, f"not within {timeout_s:g} s"
        time.sleep(0.1)
