"""HTTP to one server: connections that are kept, an end to every answer in size and time, no redirects, no proxies."""

import time
from collections import deque
from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from http.client import HTTPConnection

CONNECT_S = 5.0
MOST_IDLE = 8


class Unavailable(Exception):
    """The server does not answer, or not in time, or not in HTTP."""


class Reply(NamedTuple):
    """An answer, read whole."""

    status: int
    headers: Mapping[str, str]
    """Names in lower case."""
    body: bytes


class _Asked(NamedTuple):
    method: str
    path: str
    body: bytes | None
    headers: Mapping[str, str]
    ends: float
    """On the monotonic clock, in seconds."""
    limit: int

    @property
    def left_s(self) -> float:
        return max(0.001, self.ends - time.monotonic())


class Server:
    """A filmroom server. Safe to use from several threads."""

    def __init__(self, url: str, token: str | None) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"url: {url!r} is not an http address, for example http://127.0.0.1:8010")
        self._parts = parts
        self._base = parts.path.rstrip("/")
        self._token = token
        self._closed = False
        self._idle: deque[HTTPConnection] = deque()
        self._busy: set[HTTPConnection] = set()

    def ask(
        self, method: str, path: str, *, timeout_s: float, limit: int, body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Reply:  # fmt: skip
        """The answer, of at most `limit` bytes and within `timeout_s`. Raises Unavailable."""
        ends = time.monotonic() + timeout_s
        given = {**(headers or {}), **({} if self._token is None else {"Authorization": f"Bearer {self._token}"})}
        asked = _Asked(method, self._base + path, body, given, ends, limit)
        kept = self._kept()
        if kept is not None:
            try:
                return self._exchange(kept, asked)
            except Unavailable:  # it may have been closed by the server meanwhile: once more, by a new one
                if time.monotonic() >= ends:
                    raise
        return self._exchange(self._new(), asked)

    def close(self) -> None:
        """End what is under way, those who wait get Unavailable, and what is kept."""
        import socket

        self._closed = True
        for connection in list(self._busy):
            if connection.sock is not None:
                with suppress(OSError):
                    connection.sock.shutdown(socket.SHUT_RDWR)
        self._close_idle()

    def forget_connections(self) -> None:
        """Drop what was inherited from a parent process, whose connections they are: closing ours leaves them open."""
        self._busy = set()
        self._close_idle()

    def _close_idle(self) -> None:
        while (kept := self._kept()) is not None:
            kept.close()

    def _exchange(self, connection: "HTTPConnection", asked: _Asked) -> Reply:
        self._busy.add(connection)
        try:
            reply, is_kept = _answer(connection, asked)
        except Exception as error:
            connection.close()
            if isinstance(error, Unavailable):
                raise
            raise Unavailable(f"{self._parts.netloc}: {type(error).__name__}: {error}"[:300]) from error
        finally:
            self._busy.discard(connection)
        if is_kept and len(self._idle) < MOST_IDLE:
            self._idle.append(connection)
        else:
            connection.close()
        if self._closed:
            self._close_idle()
        return reply

    def _kept(self) -> "HTTPConnection | None":
        try:
            return self._idle.pop()
        except IndexError:
            return None

    def _new(self) -> "HTTPConnection":
        from http.client import HTTPConnection, HTTPSConnection

        kind = HTTPSConnection if self._parts.scheme == "https" else HTTPConnection
        return kind(self._parts.hostname or "", self._parts.port)


def _answer(connection: "HTTPConnection", asked: _Asked) -> tuple[Reply, bool]:
    """The answer, and whether the connection can be used again."""
    if connection.sock is None:
        connection.timeout = min(CONNECT_S, asked.left_s)
        connection.connect()
    connection.sock.settimeout(asked.left_s)
    connection.request(asked.method, asked.path, body=asked.body, headers=dict(asked.headers))
    response = connection.getresponse()
    parts: list[bytes] = []
    size = 0
    while part := response.read1(65_536):
        size += len(part)
        parts.append(part)
        if size > asked.limit or time.monotonic() > asked.ends:
            raise Unavailable("an answer that is too long, or comes too slowly")
    headers = {name.lower(): value for name, value in response.getheaders()}
    return Reply(response.status, headers, b"".join(parts)), not response.will_close
