"""The body of a request: measured while it comes in, decompressed within the same bound, so that no bomb unfolds."""

import zlib

from starlette.requests import Request

_GZIP = 31
"""Window bits that mean gzip's own header."""


class BadBody(Exception):
    """A request that is turned away, with its HTTP status and reason."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status = status
        self.reason = reason


async def read_body(request: Request, limit: int) -> bytes:
    """The decompressed body, at most `limit` bytes. Raises BadBody: 413 beyond that, 415 for another coding, 400 for a
    damaged one.
    """
    coding = request.headers.get("content-encoding", "identity").strip().lower()
    if coding not in ("identity", "gzip", ""):
        raise BadBody(415, f"content-encoding {coding[:40]!r} is not read; send gzip or none")
    announced = request.headers.get("content-length", "")
    if announced.isdecimal() and int(announced) > limit:
        raise _too_large(limit)
    unpack = _Gunzip(limit) if coding == "gzip" else None
    parts: list[bytes] = []
    size = 0
    async for chunk in request.stream():
        part = unpack.feed(chunk) if unpack else chunk
        size += len(part)
        if size > limit:
            raise _too_large(limit)
        parts.append(part)
    if unpack and not unpack.complete:
        raise BadBody(400, "the gzip body ends early")
    return b"".join(parts)


class _Gunzip:
    """Decompresses a stream of one or more gzip members, never more than one byte beyond the limit."""

    def __init__(self, limit: int) -> None:
        self._left = limit + 1
        self._limit = limit
        self._stream = zlib.decompressobj(_GZIP)
        self.complete = True
        """Whether it may end here."""

    def feed(self, data: bytes) -> bytes:
        parts: list[bytes] = []
        while data:
            if self._stream.eof:
                self._stream = zlib.decompressobj(_GZIP)
            try:
                part = self._stream.decompress(data, self._left)
            except zlib.error as error:
                raise BadBody(400, f"the gzip body is damaged: {error}") from error
            parts.append(part)
            self._left -= len(part)
            if self._left <= 0:
                raise _too_large(self._limit)
            self.complete = self._stream.eof
            data = self._stream.unused_data if self._stream.eof else self._stream.unconsumed_tail
        return b"".join(parts)


def _too_large(limit: int) -> BadBody:
    return BadBody(413, f"the body is larger than {limit >> 20} MiB decompressed ([console] max_body_mb)")
