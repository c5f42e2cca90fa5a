"""MLflow and Phoenix as servers on loopback, and the readers of exported training data, each in an environment of its own
outside the repository.

`FILMROOM_TEST_PEERS=1` installs what is missing (about 620 MB each); without it the tests that need one are skipped
unless it is installed. `FILMROOM_TEST_CACHE` names another folder than `~/.cache/filmroom-tests`.
"""

import fcntl
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

WANTED = os.environ.get("FILMROOM_TEST_PEERS", "")
CACHE = Path(os.environ.get("FILMROOM_TEST_CACHE", Path.home() / ".cache" / "filmroom-tests"))
PACKAGES = {
    "mlflow": ["mlflow==3.17.2"],
    "phoenix": ["arize-phoenix==20.26.1"],
    "consumers": ["datasets==5.2.0", "jinja2==3.1.6", "openai==3.57.0", "together==3.1.1", "transformers==5.24.0"],
}
ALONE = {"consumers": ["trl==1.16.0"]}
"""Installed without what they depend on: TRL's formats are read without torch."""
START_S = 240
"""Their servers import for a while."""


def programs(name: str) -> Path:
    """The folder of a peer's programs; installed where that is wanted, else the test is skipped."""
    folder = CACHE / name
    installed = folder / ".installed"
    if not installed.exists() and WANTED != "1":
        pytest.skip(f"{name} is not installed; FILMROOM_TEST_PEERS=1 installs it in {folder}")
    with _alone(name):
        _install(name, folder, installed)
    return folder / "bin"


@contextmanager
def _alone(name: str) -> Iterator[None]:
    """While no other process, such as another worker of the tests, installs it."""
    CACHE.mkdir(parents=True, exist_ok=True)
    with (CACHE / f"{name}.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _install(name: str, folder: Path, installed: Path) -> None:
    if not installed.exists():
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(folder)], check=True)
        pip = [str(folder / "bin" / "python"), "-m", "pip", "--disable-pip-version-check", "install", "--quiet"]
        subprocess.run([*pip, *PACKAGES[name]], check=True)
        if name in ALONE:
            subprocess.run([*pip, "--no-deps", *ALONE[name]], check=True)
        installed.touch()


@contextmanager
def mlflow(home: Path) -> Iterator[str]:
    """The URL of an MLflow server with an empty store in `home`."""
    port = _free_port()
    command = [
        str(programs("mlflow") / "mlflow"), "server", "--host", "127.0.0.1", "--port", str(port), "--workers", "1",
        "--backend-store-uri", f"sqlite:///{home / 'mlflow.db'}", "--artifacts-destination", str(home / "artifacts"),
    ]  # fmt: skip
    with _running(command, home, f"http://127.0.0.1:{port}", "/health", {"MLFLOW_DISABLE_TELEMETRY": "true"}) as url:
        yield url


@contextmanager
def phoenix(home: Path) -> Iterator[str]:
    """The URL of a Phoenix server with an empty store in `home`."""
    port = _free_port()
    variables = {
        "PHOENIX_WORKING_DIR": str(home),
        "PHOENIX_HOST": "127.0.0.1",
        "PHOENIX_PORT": str(port),
        "PHOENIX_GRPC_PORT": str(_free_port()),
        "PHOENIX_TELEMETRY_ENABLED": "false",
    }
    command = [str(programs("phoenix") / "phoenix"), "serve"]
    with _running(command, home, f"http://127.0.0.1:{port}", "/healthz", variables) as url:
        yield url


@contextmanager
def _running(command: list[str], home: Path, url: str, health: str, variables: dict[str, str]) -> Iterator[str]:
    kept = {name: os.environ[name] for name in ("HOME", "LANG", "TMPDIR") if name in os.environ}
    environment = {**kept, "PATH": f"{Path(command[0]).parent}:{os.defpath}", **variables}
    with (home / "server.log").open("wb") as log:
        server = subprocess.Popen(
            command, cwd=home, env=environment, stdout=log, stderr=log, stdin=subprocess.DEVNULL, start_new_session=True
        )
    try:
        _wait_for(url + health, server, home / "server.log")
        yield url
    finally:
        os.killpg(server.pid, signal.SIGTERM)
        try:
            server.wait(20)
        except subprocess.TimeoutExpired:
            os.killpg(server.pid, signal.SIGKILL)
            server.wait()


def _wait_for(url: str, server: "subprocess.Popen[bytes]", log: Path) -> None:
    end = time.monotonic() + START_S
    while time.monotonic() < end and server.poll() is None:
        try:
            if httpx.get(url, timeout=5, trust_env=False).status_code == 200:
                return
        except httpx.HTTPError:
            time.sleep(0.5)
    pytest.fail(f"{url} did not start: {log.read_text(errors='replace')[-2000:]}")


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port: int = taken.getsockname()[1]
        return port
