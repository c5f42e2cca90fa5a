"""The hook behind a URL: one POST a case, read to an end in time and size; no redirects, no proxies."""

import json
import threading
import time
from typing import Any

import httpx

from flows.replay.hook import MOST_BYTES, Answer, Asked, HookFailed, read_answer
from store.records.identity import canonical_json


class UrlHook:
    """Posts `{"input", "release", "tools", "case"}`, where `tools` are the recorded calls that the service must answer from.

    It reports every call in `tool_calls`; one that is not among the recorded ones makes the case not measured.
    """

    def __init__(self, url: str, *, timeout_s: float, safe: tuple[str, ...]) -> None:
        self.name = url
        self._timeout_s = timeout_s
        self._safe = frozenset(safe)
        self._client = httpx.Client(trust_env=False, follow_redirects=False, timeout=timeout_s)

    def ask(self, asked: Asked) -> Answer:
        body = {"input": asked.input, "release": asked.release, "tools": asked.recorded, "case": asked.case}
        answer = read_answer(self._in_time(body))
        known = {_key(each) for each in asked.recorded}
        missing = [
            str(each["name"]) for each in answer.calls if _key(each) not in known and each["name"] not in self._safe
        ]
        return answer._replace(missing=[*answer.missing, *missing])

    def probe(self) -> str:
        return "it is asked when a change is tried"

    def close(self) -> None:
        self._client.close()

    def _in_time(self, body: dict[str, Any]) -> Any:
        """From a thread, so that not even a server that sends its headers byte by byte holds longer than the limit."""
        found: list[Any] = []

        def post() -> None:
            try:
                found.append(self._posted(body))
            except HookFailed as error:
                found.append(error)

        thread = threading.Thread(target=post, name="filmroom-replay", daemon=True)
        thread.start()
        thread.join(self._timeout_s + 1.0)
        if not found:
            raise HookFailed("no answer within the time limit")
        if isinstance(found[0], HookFailed):
            raise found[0]
        return found[0]

    def _posted(self, body: dict[str, Any]) -> Any:
        ends_at = time.monotonic() + self._timeout_s
        data = bytearray()
        try:
            with self._client.stream("POST", self.name, json=body) as response:
                for part in response.iter_bytes():
                    data += part
                    if len(data) > MOST_BYTES:
                        raise HookFailed(f"an answer of more than {MOST_BYTES >> 20} MiB")
                    if time.monotonic() > ends_at:
                        raise HookFailed("no answer within the time limit")
                status = response.status_code
        except httpx.TimeoutException as error:
            raise HookFailed("no answer within the time limit") from error
        except httpx.HTTPError as error:
            raise HookFailed(f"{type(error).__name__}: {error}"[:300]) from error
        if status != 200:
            raise HookFailed(f"it answers {status}")
        try:
            return json.loads(data)
        except (ValueError, RecursionError) as error:
            raise HookFailed(f"the answer is not JSON: {error}"[:300]) from error


def _key(call: dict[str, Any]) -> str:
    return f"{call['name']}\0{canonical_json(call.get('arguments') or {})}"
