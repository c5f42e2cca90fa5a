"""A release taken from files: `release.json`, and beside it what it names. `filmroom export release FOLDER` writes them."""

import hashlib
import threading
import time
from pathlib import Path
from typing import Any, NamedTuple

from filmroom_live.disk import read_whole
from filmroom_live.documents import BadDocument, Fact, Release, read_document, read_facts
from filmroom_live.kept_facts import Whose
from filmroom_live.remote import MAX_MODEL_BYTES, MAX_RELEASE_BYTES, Fetched, concerns
from filmroom_live.server import Unavailable

FILE = "release.json"
MAX_MEMORY_BYTES = 256 << 20
LOOK_S = 0.5
"""How often the file is looked at, in seconds."""


class FolderFacts(NamedTuple):
    """All facts of one release."""

    by_scope: dict[tuple[str, str], tuple[Fact, ...]]

    def of(self, whose: Whose, wait_s: float) -> tuple[Fact, ...]:
        """What is known of this user, oldest first within each scope; there is nothing to wait for."""
        now_us = time.time_ns() // 1000
        scopes = [("global", "*"), ("user", whose.user), *([("tenant", whose.tenant)] if whose.tenant else [])]
        found = [fact for scope in scopes for fact in self.by_scope.get(scope, ())]
        return tuple(fact for fact in found if fact.is_in_force(now_us) and concerns(fact, whose))


class FolderSource:
    """The files of one folder. What it raises: Unavailable, BadDocument."""

    def __init__(self, folder: Path, key: str | None) -> None:
        self._folder = folder
        self._key = key
        self._closed = threading.Event()

    def release(self, tag: str, wait_s: float) -> Fetched | None:
        """The release in the folder, once it is another than `tag`; None: it was not within `wait_s`."""
        looks = max(1, round(wait_s / LOOK_S))
        for _ in range(looks):
            found = self._tag()
            if found is not None and found != tag:
                data = read_whole(self._folder / FILE, MAX_RELEASE_BYTES)
                if data is None:
                    break
                return Fetched(read_document(data, self._key), data, found)
            if found is None and not tag:
                break
            if self._closed.wait(LOOK_S):
                return None
        if self._tag() is None:
            raise Unavailable(f"no {FILE} in {self._folder}")
        return None

    def facts_for(self, release: Release, before: Any) -> FolderFacts:
        """The facts that were exported with the release; none where none were."""
        if not release.memory_file:
            return FolderFacts({})
        data = read_whole(self._beside(release.memory_file), MAX_MEMORY_BYTES)
        if data is None:
            raise Unavailable(f"{release.memory_file} is missing beside {FILE}")
        by_scope: dict[tuple[str, str], list[Fact]] = {}
        for fact in read_facts(read_document(data, self._key), release.id):
            place = "*" if fact.scope == "global" else fact.scope_id
            by_scope.setdefault((fact.scope, place), []).append(fact)
        return FolderFacts({scope: tuple(facts) for scope, facts in by_scope.items()})

    def model_file(self, digest: str) -> bytes:
        data = read_whole(self._beside(f"models/{digest}.skops"), MAX_MODEL_BYTES)
        if data is None:
            raise Unavailable(f"model file {digest[:12]} is missing beside {FILE}")
        return data

    def restart(self) -> None:
        """Begin anew, as after a fork."""
        self._closed = threading.Event()

    def close(self) -> None:
        self._closed.set()

    def _tag(self) -> str | None:
        try:
            found = (self._folder / FILE).stat()
        except OSError:
            return None
        return hashlib.sha256(f"{found.st_ino} {found.st_mtime_ns} {found.st_size}".encode()).hexdigest()

    def _beside(self, name: str) -> Path:
        path = (self._folder / name).resolve()
        if not path.is_relative_to(self._folder.resolve()):
            raise BadDocument(f"{name[:80]!r} leads out of the folder")
        return path
