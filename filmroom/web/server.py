"""Runs the HTTP API until it is told to end."""

import socket
from collections.abc import Callable

import uvicorn

from filmroom.signing_key import signing_key
from filmroom.web.access import Access, access_of
from filmroom.web.app import Api, make_app
from filmroom.web.live_document import LiveDocument
from filmroom.web.predictions import Predictor
from filmroom.web.release import Releases
from flows.workspace import read_tools
from store.database import Store
from store.errors import FilmroomError
from store.group_commit import GroupWriter
from store.settings import Settings
from store.sources.contract import SourceOptions

SOURCE = "otlp"
"""The source of what comes in over HTTP, unless it names another: feedback finds its trace by it."""

MAX_REQUESTS = 200
"""At the same time; beyond, clients are told to come again."""


class CannotListen(FilmroomError):
    """The address cannot be listened on: name another with --port."""


def serve(settings: Settings, store: Store, *, host: str, port: int, started: Callable[[str], None]) -> None:
    """Serve until a signal; `started` is told the URL once it listens. What was taken in is durable before this returns.

    Raises SettingsError where it would be open to other machines without a token, CannotListen.
    """
    access = access_of(settings.console, host)
    with _listening(host, port) as listener, GroupWriter(store) as writer:
        api = api_of(settings, store, writer, access)
        config = uvicorn.Config(
            make_app(api), log_level="warning", access_log=False, lifespan="off", server_header=False,
            limit_concurrency=MAX_REQUESTS, timeout_graceful_shutdown=30,
        )  # fmt: skip
        shown = f"[{host}]" if ":" in host else host
        started(f"http://{shown}:{listener.getsockname()[1]}")
        _Server(config, api).run(sockets=[listener])


def api_of(settings: Settings, store: Store, writer: GroupWriter, access: Access) -> Api:
    """What the endpoints of this project work with. Raises SettingsError for a tools file or key that cannot be read."""
    zones = {section.timezone for section in settings.sources.values()}
    zone = zones.pop() if len(zones) == 1 else None
    options = SourceOptions(project=settings.project, source=SOURCE, timezone=zone)
    key = signing_key(settings.home)
    live = LiveDocument(store, read_tools(settings), key)
    predictor = Predictor(store, live, settings.home / ".filmroom" / "artifacts")
    max_bytes = settings.console.max_body_mb << 20
    return Api(store, writer, options, access, max_bytes, Releases(store, live, key), predictor)


class _Server(uvicorn.Server):
    """Answers those who wait for a new release before it waits for requests to end."""

    def __init__(self, config: uvicorn.Config, api: Api) -> None:
        super().__init__(config)
        self._api = api

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        if self._api.releases is not None:
            self._api.releases.live.closing = True
        await super().shutdown(sockets)


def _listening(host: str, port: int) -> socket.socket:
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        return socket.create_server((host, port), family=family, backlog=1024)
    except (OSError, OverflowError) as error:
        raise CannotListen(
            f"{host}:{port} cannot be listened on: {error}; name another with --host or --port"
        ) from error
