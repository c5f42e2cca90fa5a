"""A PostgreSQL server for the tests, started from the machine's own `initdb` and `postgres`.

It listens on a free loopback port, keeps its data in a temporary folder and gives up durability for speed. Whoever
runs the tests as root runs the server as `postgres` or `nobody`, since PostgreSQL refuses root.
"""

import os
import pwd
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psycopg
from psycopg import sql

USER = "filmroom"
START_TIMEOUT_S = 60.0
FAST = {
    "fsync": "off",
    "synchronous_commit": "off",
    "full_page_writes": "off",
    "shared_buffers": "32MB",
    "max_connections": "60",
}


@dataclass(frozen=True, kw_only=True)
class Server:
    """A running server and its superuser's password."""

    port: int
    password: str

    def url(self, database: str) -> str:
        """SQLAlchemy URL of `database`."""
        return f"postgresql+psycopg://{USER}:{self.password}@127.0.0.1:{self.port}/{database}"

    @contextmanager
    def database(self) -> Iterator[str]:
        """The URL of an empty database that is dropped afterwards, whoever is still connected to it."""
        name = f"t_{secrets.token_hex(6)}"
        self._administer("CREATE DATABASE {} TEMPLATE template0", name)
        try:
            yield self.url(name)
        finally:
            self._administer("DROP DATABASE IF EXISTS {} WITH (FORCE)", name)

    def connect(self) -> psycopg.Connection:
        """A connection to the administrative database, in autocommit mode."""
        return psycopg.connect(
            host="127.0.0.1",
            port=self.port,
            user=USER,
            password=self.password,
            dbname="postgres",
            autocommit=True,
            connect_timeout=5,
        )

    def _administer(self, statement: str, database: str) -> None:
        with self.connect() as connection:
            connection.execute(sql.SQL(statement).format(sql.Identifier(database)))


def find_programs() -> Path | None:
    """The folder with `initdb` and `postgres`, the newest where there are several; None where there is none."""
    debian = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: int(path.parent.name), reverse=True)
    on_path = [Path(folder) for folder in os.get_exec_path()]
    return next((folder for folder in [*debian, *on_path] if _has_server(folder)), None)


@contextmanager
def running(programs: Path) -> Iterator[Server]:
    """A server that is stopped, and its folder removed, at the end.

    Raises RuntimeError, with the end of the server's log, when it does not start.
    """
    folder = Path(tempfile.mkdtemp(prefix="filmroom-postgres-"))
    account = _account()
    if account is not None:
        os.chown(folder, account.pw_uid, account.pw_gid)
    try:
        password = _create_cluster(programs, folder, account)
        server = Server(port=_free_port(), password=password)
        with _process(programs, folder, account, server):
            yield server
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _has_server(folder: Path) -> bool:
    return all(os.access(folder / name, os.X_OK) for name in ("initdb", "postgres"))


def _account() -> pwd.struct_passwd | None:
    """Whom to run the server as; None: as whoever runs the tests."""
    if os.geteuid() != 0:
        return None
    names = {entry.pw_name: entry for entry in pwd.getpwall()}
    return names.get("postgres") or names["nobody"]


def _create_cluster(programs: Path, folder: Path, account: pwd.struct_passwd | None) -> str:
    password = secrets.token_hex(16)
    secret = folder / "password"
    secret.touch(mode=0o600)
    secret.write_text(password, encoding="ascii")
    if account is not None:
        os.chown(secret, account.pw_uid, account.pw_gid)
    options = ["--auth=scram-sha-256", "--encoding=UTF8", "--locale=C", "--no-sync", f"--username={USER}"]
    command = [str(programs / "initdb"), f"--pgdata={folder / 'data'}", f"--pwfile={secret}", *options]
    if _start(command, folder, account).wait(timeout=START_TIMEOUT_S):
        raise RuntimeError(f"initdb failed: {_end_of_log(folder)}")
    secret.unlink()
    return password


@contextmanager
def _process(programs: Path, folder: Path, account: pwd.struct_passwd | None, server: Server) -> Iterator[None]:
    settings = FAST | {"port": str(server.port), "listen_addresses": "127.0.0.1", "unix_socket_directories": ""}
    options = [f"--{name}={value}" for name, value in settings.items()]
    process = _start([str(programs / "postgres"), "-D", str(folder / "data"), *options], folder, account)
    try:
        _wait(process, folder, server)
        yield
    finally:
        process.send_signal(signal.SIGINT)  # PostgreSQL's fast shutdown, which does not wait for clients
        process.wait(timeout=START_TIMEOUT_S)


def _start(command: list[str], folder: Path, account: pwd.struct_passwd | None) -> subprocess.Popen[bytes]:
    """The command as a process of `account`, in a group of its own: Ctrl-C ends the tests first, and they end it."""
    with (folder / "log").open("ab") as output:
        return subprocess.Popen(
            command,
            cwd=folder,
            env={"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C", "TZ": "UTC", "HOME": str(folder)},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            process_group=0,
            user=None if account is None else account.pw_uid,
            group=None if account is None else account.pw_gid,
            extra_groups=None if account is None else [],
        )


def _wait(process: subprocess.Popen[bytes], folder: Path, server: Server) -> None:
    """Returns when the server answers; raises RuntimeError when it ended or is not there in time."""
    deadline = time.monotonic() + START_TIMEOUT_S
    while process.poll() is None and time.monotonic() < deadline:
        try:
            server.connect().close()
        except psycopg.OperationalError:
            time.sleep(0.05)
        else:
            return
    raise RuntimeError(f"PostgreSQL did not start: {_end_of_log(folder)}")


def _end_of_log(folder: Path) -> str:
    return (folder / "log").read_text(encoding="utf-8", errors="replace")[-2000:]


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
