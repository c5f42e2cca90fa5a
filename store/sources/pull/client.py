"""JSON over HTTP from a system that may be slow, busy or broken: patient with the first two, exact about the third."""

import time
from collections.abc import Callable, Mapping, Sequence
from email.utils import parsedate_to_datetime
from types import TracebackType
from typing import Any

import httpx
from pydantic import JsonValue

from store.errors import SourceUnreachable
from store.sources.contract import BadRecord
from store.sources.sanitise import parse_json

TRIES = 5
"""Requests before a page counts as broken, or the system as out of reach; the waits between them double from 0.5 s."""
LONGEST_WAIT_S = 120.0
"""Longest `Retry-After` that is waited for."""
_FIRST_WAIT_S = 0.5
_TRANSIENT = frozenset({408, 425, 429, 500, 502, 503, 504})
_KEPT_RAW = 1_000_000

Params = Mapping[str, str | int | Sequence[str]]


class BrokenPage(Exception):
    """A page that cannot be read: it is kept in quarantine, and the listing goes on elsewhere."""

    def __init__(self, place: str, reason: str, raw: str = "") -> None:
        super().__init__(reason)
        self.place = place
        self.reason = reason
        self.raw = raw[:_KEPT_RAW]


class Missing(BrokenPage):
    """The system has no such page (404)."""


class Client:
    """Asks one system. Use it as a context manager.

    Raises SourceUnreachable where it does not answer, or refuses the key; BrokenPage where one page cannot be read.
    """

    def __init__(
        self,
        url: str,
        *,
        token: str | None = None,
        login: tuple[str, str] | None = None,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        self._url = url.rstrip("/")
        self._http = httpx.Client(timeout=httpx.Timeout(60, connect=10), headers=headers, auth=login)
        self._sleep = sleep

    def __enter__(self) -> "Client":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._http.close()

    def get(self, path: str, params: Params | None = None, *, tries: int = TRIES) -> JsonValue:
        """The clean JSON value at a path."""
        return self._ask("GET", path, params=dict(params or {}), tries=tries)

    def post(self, path: str, body: JsonValue, *, tries: int = TRIES) -> JsonValue:
        """The clean JSON value that answers a body."""
        return self._ask("POST", path, json=body, tries=tries)

    def _ask(self, method: str, path: str, *, tries: int, **what: Any) -> JsonValue:
        wait_s = _FIRST_WAIT_S
        for attempt in range(1, TRIES + 1):
            try:
                response = self._http.request(method, self._url + path, **what)
            except httpx.HTTPError as error:
                if attempt >= tries:
                    raise SourceUnreachable(f"{self._url} does not answer: {error or type(error).__name__}") from error
                self._sleep(wait_s)
            else:
                busy = response.status_code == 429
                if response.status_code not in _TRANSIENT or (attempt >= tries and not busy):
                    return self._value(response)
                self._sleep(max(wait_s, _retry_after_s(response)))
            wait_s *= 2
        raise SourceUnreachable(f"{self._url} is busy (429) after {TRIES} tries; run again later")

    def _value(self, response: httpx.Response) -> JsonValue:
        place = str(response.request.url)
        if response.status_code in (401, 403):
            raise SourceUnreachable(
                f"{self._url} refuses the key ({response.status_code}): check the variables that "
                "`token_env`, `user_env` and `password_env` name"
            )
        if response.status_code == 404:
            raise Missing(place, "404: there is no such page", response.text)
        if response.status_code != 200:
            raise BrokenPage(place, f"answered with status {response.status_code}", response.text)
        try:
            return parse_json(response.content)
        except BadRecord as error:
            raise BrokenPage(place, str(error), response.text) from error


def _retry_after_s(response: httpx.Response) -> float:
    """Seconds that the system asks to wait, as a number or as a date; at most LONGEST_WAIT_S."""
    said = response.headers.get("retry-after", "")
    try:
        wait_s = float(said)
    except ValueError:
        try:
            wait_s = parsedate_to_datetime(said).timestamp() - time.time()
        except ValueError:
            return 0.0
    return min(max(wait_s, 0.0), LONGEST_WAIT_S)
