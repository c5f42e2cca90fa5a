"""The live release, kept current by a thread and handed out by reference."""

import atexit
import os
import threading
import time
import weakref
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Protocol

from filmroom_live import model as in_process
from filmroom_live.disk import read_whole, write_whole
from filmroom_live.documents import NO_RELEASE, BadDocument, Fact, Release, Rule, read_document, read_release
from filmroom_live.folder import FolderSource
from filmroom_live.model import LoadedModel
from filmroom_live.nearest import Nearest
from filmroom_live.outbox import Outbox
from filmroom_live.pinned import Facts, Pinned
from filmroom_live.prediction import Prediction
from filmroom_live.remote import MAX_MODEL_BYTES, MAX_RELEASE_BYTES, Fetched, RemoteSource
from filmroom_live.server import Unavailable
from filmroom_live.tool_call import ToolCall

WAIT_S = 25.0
"""How long one request waits for the next release."""
PAUSE_S = (0.2, 15.0)
"""First and longest pause after the source was away, in seconds; each is drawn at random up to twice its length."""
SHORTEST_ROUND_S = 1.0
"""A server that does not let us wait is asked this often."""


class Source(Protocol):
    """Where releases come from. Its methods raise Unavailable and BadDocument."""

    def release(self, tag: str, wait_s: float) -> Fetched | None: ...
    def facts_for(self, release: Release, before: Any) -> Facts: ...
    def model_file(self, digest: str) -> bytes: ...
    def restart(self) -> None: ...
    def close(self) -> None: ...


class Status(NamedTuple):
    """How fresh what is served is."""

    release: str
    """`rel_...`; empty before there is one."""
    number: int
    age_s: float | None
    """Since the source last confirmed it; None: not yet in this process."""
    error: str
    """Why the source could not be asked the last time; empty: it could."""
    feedback_waiting: int
    """Feedback (files, and lines in memory) that is not sent yet."""
    feedback_dropped: int
    """Feedback that found no place or was refused."""


class Live:
    """Context, memory, tool calls and predictions of the live release. Safe to use from any thread; never raises for a
    server that is away, slow or broken: the last good release goes on being served."""

    def __init__(
        self, *, url: str | None = None, folder: str | Path | None = None, cache: str | Path | None = None,
        key: str | None = None, token: str | None = None, in_process: bool | None = None,
    ) -> None:  # fmt: skip
        """Take releases from a server's `url` or from a `folder`.

        `cache`: folder for the last good release and for feedback that is not sent yet. `key`: what `.filmroom/release.key`
        holds; with it nothing unsigned is taken. `token`: the server's. `in_process`: load the models here (default: only
        with a folder, where scikit-learn and skops are installed).
        """
        if (url is None) == (folder is None):
            raise ValueError("give either url or folder")
        self._key = key
        self._cache = None if cache is None else Path(cache)
        self._remote = None if url is None else RemoteSource(url, token, key)
        self._source: Source = self._remote or FolderSource(Path(str(folder)), key)
        wanted = self._remote is None if in_process is None else in_process
        self._loads_models = wanted and in_process_possible(required=bool(in_process))
        self._outbox = Outbox(
            None if self._cache is None else self._cache / "feedback",
            None if self._remote is None else self._remote.send,
        )
        self._closed = False
        self._tag, self._confirmed_at, self._error = "", 0.0, ""
        self._pinned = self._first()
        self._begin()
        live = weakref.ref(self)
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=lambda: _after_fork(live()))
        atexit.register(self.close)

    def pin(self) -> Pinned:
        """The release of this moment, for a whole request: its answers all come from it, whatever happens meanwhile."""
        return self._pinned

    @property
    def release(self) -> Release:
        """The release that is served now; log its `id` with each trace."""
        return self._pinned.release

    @property
    def status(self) -> Status:
        """How fresh it is, and what waits to be sent."""
        return Status(
            release=self.release.id,
            number=self.release.number,
            age_s=time.monotonic() - self._confirmed_at if self._confirmed_at else None,
            error=self._error,
            feedback_waiting=self._outbox.waiting,
            feedback_dropped=self._outbox.dropped,
        )

    def ready(self, timeout_s: float = 10.0) -> bool:
        """Wait until there is a release, from the source or the disk; returns whether there is."""
        ends = time.monotonic() + timeout_s
        while not self.release.id and time.monotonic() < ends:
            self._fetched.wait(min(0.1, timeout_s))
        return bool(self.release.id)

    def rules(self, **scope: str | None) -> tuple[Rule, ...]:
        """See `Pinned.rules`."""
        return self._pinned.rules(**scope)

    def context(self, input: str = "", /, *, examples: int = 3, **scope: str | None) -> str:
        """See `Pinned.context`."""
        return self._pinned.context(input, examples=examples, **scope)

    def memory(
        self, user: str, *, tenant: str | None = None, wait_s: float = 0.0, about: str = "", most: int | None = None
    ) -> tuple[Fact, ...]:
        """See `Pinned.memory`."""
        return self._pinned.memory(user, tenant=tenant, wait_s=wait_s, about=about, most=most)

    def tool_call(self, name: str, arguments: dict[str, Any]) -> ToolCall:
        """See `Pinned.tool_call`."""
        return self._pinned.tool_call(name, arguments)

    def predict(self, model: str, text: str | Mapping[str, Any], *, timeout_s: float = 2.0) -> Prediction | None:
        """See `Pinned.predict`."""
        return self._pinned.predict(model, text, timeout_s=timeout_s)

    def feedback(self, trace: str, **said: Any) -> None:
        """Queue what was said of a trace: `name`, `score`, `label`, `comment`, `corrected_output`, `principal`, `span`,
        `source` of the trace, or anything else. It is sent in the background, and kept on the disk while the server is away.
        """
        given = {"given": time.time(), "id": f"live-{os.urandom(16).hex()}", **said}
        self._outbox.put({"type": "feedback", "trace": trace, **given})

    def close(self) -> None:
        """End the threads; feedback that cannot be sent now stays in the cache folder for the next start."""
        if self._closed:
            return
        self._closed = True
        self._stop.set()
        self._outbox.close(timeout_s=2.0)
        self._source.close()
        self._thread.join(timeout=2.0)
        atexit.unregister(self.close)

    def __enter__(self) -> "Live":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def _begin(self) -> None:
        self._stop, self._fetched = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._refresh, name="filmroom-live", daemon=True)
        self._thread.start()

    def _refresh(self) -> None:
        pause_s = PAUSE_S[0]
        while not self._stop.is_set():
            started = time.monotonic()
            try:
                self._take(self._source.release(self._tag, WAIT_S if self._tag else 0.0))
            except Exception as error:  # noqa: BLE001  # nothing that a source does may end the thread that asks it
                self._error = f"{type(error).__name__}: {error}"[:300]
                self._stop.wait(pause_s * (1 + os.urandom(1)[0] / 255))
                pause_s = min(2 * pause_s, PAUSE_S[1])
                continue
            self._error, self._confirmed_at, pause_s = "", time.monotonic(), PAUSE_S[0]
            if time.monotonic() - started < SHORTEST_ROUND_S and self._remote is not None and self._unchanged:
                self._stop.wait(SHORTEST_ROUND_S)

    def _take(self, fetched: Fetched | None) -> None:
        """Serve what was fetched, once everything that belongs to it is here."""
        self._unchanged = fetched is None
        if fetched is None:
            return
        self._pinned = self._made(read_release(fetched.document), self._pinned)
        self._tag = fetched.tag
        self._fetched.set()
        if self._cache is not None:
            try:
                write_whole(self._cache / "release.json", fetched.data)
            except OSError as error:
                self._error = f"cache: {error}"

    def _made(self, release: Release, before: Pinned | None) -> Pinned:
        facts = self._source.facts_for(release, None if before is None else before.facts)
        models = self._models(release, before) if self._loads_models else {}
        near = Nearest([each.input for each in release.examples]) if release.examples else None
        return Pinned(release, facts, models, self._ask, near)

    def _models(self, release: Release, before: Pinned | None) -> dict[str, LoadedModel]:
        found = {}
        for name, served in release.models.items():
            old = None if before is None else before.release.models.get(name)
            if before is not None and old == served and name in before.models:
                found[name] = before.models[name]
                continue
            with suppress(in_process.OnlyServed):  # a newer filmroom's: the rest of the release does not wait for it
                found[name] = in_process.load(self._model_file(served.artifact), served.artifact)
        return found

    def _model_file(self, digest: str) -> bytes:
        if self._cache is None or self._remote is None:
            return self._source.model_file(digest)
        path = self._cache / "models" / f"{digest}.skops"
        kept = read_whole(path, MAX_MODEL_BYTES)
        if kept is not None:
            return kept
        data = self._source.model_file(digest)
        write_whole(path, data)
        return data

    def _first(self) -> Pinned:
        """The last good release on the disk, where it can still be trusted; else an empty one."""
        data = None if self._cache is None else read_whole(self._cache / "release.json", MAX_RELEASE_BYTES)
        if data is not None:
            try:
                return self._made(read_release(read_document(data, self._key)), None)
            except (BadDocument, Unavailable, OSError) as error:
                self._error = f"cache: {error}"
        return Pinned(NO_RELEASE, self._empty(), {}, self._ask)

    def _empty(self) -> Facts:
        return self._source.facts_for(NO_RELEASE, None)

    def _ask(self, model: str, version: str, text: str, timeout_s: float) -> Prediction | None:
        """The server's answer, from a thread, so that not even a name that is slow to resolve holds the caller longer."""
        if self._remote is None:
            return None
        remote, answers = self._remote, []

        def ask() -> None:
            try:
                value = remote.predict(model, version, text, timeout_s)
                answers.append(Prediction(str(value["label"]), float(value["confidence"]), bool(value["rejected"])))
            except Exception as error:  # noqa: BLE001  # no answer, whatever the reason
                self._error = f"predict: {type(error).__name__}: {error}"[:300]

        thread = threading.Thread(target=ask, name="filmroom-predict", daemon=True)
        thread.start()
        thread.join(timeout_s)
        return answers[0] if answers else None


def in_process_possible(*, required: bool) -> bool:
    """Whether models can be loaded here. Raises ValueError where they must and cannot."""
    possible = in_process.can_load()
    if required and not possible:
        raise ValueError("in_process: scikit-learn and skops are not installed here")
    return possible


def _after_fork(live: Live | None) -> None:
    """Threads and connections are the parent's: the child goes on with the release it has, and begins its own."""
    if live is None or live._closed:
        return
    live._source.restart()
    live._outbox.restart()
    live._begin()
