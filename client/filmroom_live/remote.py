"""A release taken from a filmroom server."""

import json
from typing import Any, NamedTuple
from urllib.parse import quote, urlencode

from filmroom_live.documents import BadDocument, Fact, Release, read_document, read_facts
from filmroom_live.kept_facts import FactReader, KeptFacts, Whose
from filmroom_live.server import Reply, Server, Unavailable

ANSWER_S = 10.0
"""Longest time for an answer, beyond what was asked to wait."""
MAX_RELEASE_BYTES = 16 << 20
MAX_FACTS_BYTES = 4 << 20
MAX_MODEL_BYTES = 512 << 20
_REFUSED = (400, 413, 415, 422)


class Fetched(NamedTuple):
    """A release as it came."""

    document: dict[str, Any]
    data: bytes
    tag: str


class RemoteSource:
    """The endpoints of one server. What it raises: Unavailable, BadDocument."""

    def __init__(self, url: str, token: str | None, key: str | None) -> None:
        self._server = Server(url, token)
        self._key = key
        self._reader = FactReader(self.facts)

    def release(self, tag: str, wait_s: float) -> Fetched | None:
        """The live release, once it is another than `tag`; None: it was not within `wait_s`."""
        headers = {"If-None-Match": tag} if tag else {}
        reply = self._get(f"/v1/release?wait={wait_s:g}", wait_s + ANSWER_S, MAX_RELEASE_BYTES, headers)
        if reply.status == 304:
            return None
        return Fetched(read_document(_good(reply), self._key), reply.body, reply.headers.get("etag", ""))

    def facts_for(self, release: Release, before: KeptFacts | None) -> KeptFacts:
        """The facts to serve with a release, those of active users fetched."""
        return KeptFacts(release, self._reader) if before is None else self._reader.following(before, release)

    def facts(self, release: Release, whose: Whose) -> tuple[Fact, ...]:
        """One user's facts at a release, refused whole where any of them is another user's."""
        asked = {"user": whose.user, "release": release.id, **({"tenant": whose.tenant} if whose.tenant else {})}
        reply = self._get(f"/v1/memory?{urlencode(asked)}", ANSWER_S, MAX_FACTS_BYTES, {})
        document = read_document(_good(reply), self._key)
        if (document.get("user"), document.get("tenant")) != (whose.user, whose.tenant):
            raise BadDocument("facts of another user than was asked for")
        found = read_facts(document, release.id)
        if not all(concerns(fact, whose) for fact in found):
            raise BadDocument("a fact in another user's scope")
        return found

    def model_file(self, digest: str) -> bytes:
        return _good(self._get(f"/v1/models/{quote(digest, safe='')}", 60 + ANSWER_S, MAX_MODEL_BYTES, {}))

    def predict(self, model: str, version: str, text: str, timeout_s: float) -> dict[str, Any]:
        """The answer of this version of the model."""
        body = json.dumps({"model": model, "version": version, "texts": [text]}).encode("ascii")
        headers = {"Content-Type": "application/json"}
        reply = self._server.ask("POST", "/v1/predict", timeout_s=timeout_s, limit=1 << 20, body=body, headers=headers)
        try:
            value = json.loads(_good(reply))
            if value["version"] != version:
                raise BadDocument("an answer of another version")
            return dict(value["predictions"][0])
        except (ValueError, KeyError, TypeError, IndexError, RecursionError) as error:
            raise BadDocument(f"no prediction: {error}") from error

    def send(self, lines: bytes) -> bool | None:
        """Feedback: taken, refused for good, or (None) the server is away."""
        headers = {"Content-Type": "application/json"}
        try:
            reply = self._server.ask(
                "POST", "/v1/feedback", timeout_s=ANSWER_S, limit=1 << 20, body=lines, headers=headers
            )
        except Unavailable:
            return None
        if reply.status in _REFUSED:
            return False
        return True if 200 <= reply.status < 300 else None

    def restart(self) -> None:
        """Begin anew, as after a fork."""
        self._server.forget_connections()
        self._reader.restart()

    def close(self) -> None:
        self._reader.close()
        self._server.close()

    def _get(self, path: str, timeout_s: float, limit: int, headers: dict[str, str]) -> Reply:
        return self._server.ask("GET", path, timeout_s=timeout_s, limit=limit, headers=headers)


def concerns(fact: Fact, whose: Whose) -> bool:
    """Whether a fact may be told to this user.

    >>> fact = Fact("fact_1", "user", "ann", "ann", "size", "M", authority=False)
    >>> concerns(fact, Whose("ann", None)), concerns(fact, Whose("bob", "ann"))
    (True, False)
    """
    if fact.scope == "global":
        return True
    return {"user": whose.user, "tenant": whose.tenant}.get(fact.scope) == fact.scope_id


def _good(reply: Reply) -> bytes:
    if reply.status != 200:
        raise Unavailable(f"status {reply.status}: {reply.body[:200].decode('utf-8', 'replace')}")
    return reply.body
