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

from flows.prefect_environment import importable
from store.errors import FilmroomError, NotAllowed

LOG_NAME = "server.log"
_GRACE_S = 10.0


@contextmanager
def embedded_server(folder: Path, port: int, *, timeout_s: float = 120.0) -> Iterator["subprocess.Popen[bytes]"]:
    """A Prefect server that answers on `port`, with its database in `folder`, for the length of the block.

    The environment must have been applied. It brings its database up to date by itself.
    Raises NotAllowed when the port is taken, FilmroomError when it does not answer within `timeout_s`.
    """
    _refuse_taken(port)
    server = _spawn(folder, port)
    try:
        _wait_until_healthy(server, port, folder / LOG_NAME, timeout_s)
        yield server
    finally:
        _end(server)


@contextmanager
def bound_to(server: "subprocess.Popen[bytes]") -> Iterator[None]:
    """Within the block, the end of the server ends this process as well, by SIGTERM."""
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


def _refuse_taken(port: int) -> None:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError as error:
            raise NotAllowed(f"port {port} is taken by another program: set another `[schedule] port`") from error


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
