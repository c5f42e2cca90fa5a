"""The embedded Prefect server: a child process on loopback that ends with the process that started it.

Run as a module it is that child. It needs no watching from outside: its standard input is a pipe from its parent, and
the end of the pipe is the end of the parent, even of one that was killed.
"""

import http.client
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

from flows.prefect_environment import api_url, importable, prefect_home
from flows.schedule_process import running_schedule
from store.errors import FilmroomError, NotAllowed

LOG_NAME = "server.log"
_GRACE_S = 10.0


def refuse_taken(port: int) -> None:
    """Raises NotAllowed when something listens on the loopback port."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError as error:
            raise NotAllowed(f"port {port} is taken by another program: set another `[schedule] port`") from error


@contextmanager
def embedded_server(folder: Path, port: int, *, timeout_s: float = 120.0) -> Iterator["subprocess.Popen[bytes]"]:
    """A Prefect server that answers on `port`, with its database in `folder`, for the length of the block.

    The environment must have been applied, and the port be free. The database is brought up to date by the server.
    Raises FilmroomError when it ends, or gives no answer within `timeout_s`.
    """
    server = _spawn(folder, port)
    try:
        _wait_until_healthy(server, port, folder / LOG_NAME, timeout_s)
        yield server
    finally:
        _end(server)


@contextmanager
def bound_to(server: "subprocess.Popen[bytes]", log: Path) -> Iterator[None]:
    """Within the block, the end of the server ends this process as well, by SIGTERM.

    Raises FilmroomError at the end of the block when it was so.
    """
    left = threading.Event()

    def follow() -> None:
        server.wait()
        if not left.is_set():
            os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=follow, daemon=True).start()
    try:
        yield
    finally:
        left.set()
        if server.poll() is not None:
            raise FilmroomError(f"the Prefect server ended: see {log}, then start again")


def tracking_url(home: Path) -> str | None:
    """The Prefect API that should track a turn on this home, asked for within a second: the schedule's own where one
    runs, else that of `PREFECT_API_URL`; None where neither answers, and the turn runs untracked.
    """
    running = running_schedule(prefect_home(home))
    url = os.environ.get("PREFECT_API_URL") if running is None else api_url(running.port)
    return url if url and answers(url) else None


def answers(url: str, *, timeout_s: float = 1.0) -> bool:
    """Whether a Prefect API (`http://127.0.0.1:4210/api`) says within `timeout_s` that it is well."""
    parts = urlsplit(url)
    secure = parts.scheme == "https"
    kind = http.client.HTTPSConnection if secure else http.client.HTTPConnection
    connection = kind(parts.hostname or "", parts.port, timeout=timeout_s)
    try:
        connection.request("GET", f"{parts.path.rstrip('/')}/health")
        return connection.getresponse().status == http.client.OK
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


def _spawn(folder: Path, port: int) -> "subprocess.Popen[bytes]":
    """Its own session: a Ctrl-C must reach the runs first, and the server last."""
    with (folder / LOG_NAME).open("wb") as log:
        return subprocess.Popen(  # noqa: S603 - our own interpreter and module, no outside text
            [sys.executable, "-m", "flows.prefect_server", str(port)],
            stdin=subprocess.PIPE,
            stdout=log,
            stderr=subprocess.STDOUT,
            cwd=folder,
            env={**os.environ, **importable(), "PREFECT__SERVER_FINAL": "1"},
            start_new_session=True,
        )


def _wait_until_healthy(server: "subprocess.Popen[bytes]", port: int, log: Path, timeout_s: float) -> None:
    until = time.monotonic() + timeout_s
    while time.monotonic() < until:
        if server.poll() is not None:
            raise FilmroomError(f"the Prefect server ended at its start: see {log}")
        if answers(f"http://127.0.0.1:{port}/api"):
            return
        time.sleep(0.1)
    raise FilmroomError(f"the Prefect server gave no answer within {timeout_s:.0f} s: see {log}")


def _end(server: "subprocess.Popen[bytes]") -> None:
    server.terminate()
    try:
        server.communicate(timeout=_GRACE_S)
    except subprocess.TimeoutExpired:
        server.kill()
        server.communicate()


def _end_with_parent() -> None:
    sys.stdin.buffer.read()
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(_GRACE_S)
    os._exit(1)


def main() -> None:
    """Serve Prefect's API and page on the loopback port given as the only argument, until the parent ends."""
    import uvicorn

    threading.Thread(target=_end_with_parent, daemon=True).start()
    uvicorn.run(
        "prefect.server.api.server:create_app",
        factory=True,
        host="127.0.0.1",
        port=int(sys.argv[1]),
        log_level="warning",
        timeout_graceful_shutdown=5,
    )


if __name__ == "__main__":
    main()
