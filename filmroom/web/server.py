"""Runs the console and the HTTP API until it is told to end."""

import socket
import threading
from collections.abc import Callable

import uvicorn

from filmroom.console.app import console_of, console_routes
from filmroom.console.home_view import warm
from filmroom.served_address import served_at
from filmroom.signing_key import signing_key
from filmroom.web.access import Access, Stored, access_of
from filmroom.web.app import Api, make_app
from filmroom.web.live_document import LiveDocument
from filmroom.web.predictions import Predictor
from filmroom.web.release import Releases
from flows.workspace import Workspace, read_tools
from store.database import Store
from store.errors import FilmroomError
from store.group_commit import GroupWriter
from store.redaction import redactor_for
from store.settings import Settings
from store.source_names import source_names
from store.sources.contract import SourceOptions
from store.tokens import is_stale, mark_used, token_for
from store.users import count_users, make_link

SOURCE = "otlp"
"""The source of what comes in over HTTP, unless it names another: feedback finds its trace by it."""

MAX_REQUESTS = 200
"""At the same time; beyond, clients are told to come again."""


class CannotListen(FilmroomError):
    """The address cannot be listened on: name another with --port."""


def serve(workspace: Workspace, *, host: str, port: int, started: Callable[[str, str | None], None]) -> None:
    """Serve until a signal; `started` is told the URL once it listens, and the code of a link that makes the first user,
    where there is none. What was taken in is durable before this returns.

    Raises SettingsError where other machines could reach it and nobody could log in, CannotListen.
    """
    settings, store = workspace.settings, workspace.store
    with store.read() as connection:
        users = count_users(connection, store.project) > 0
    access = access_of(settings.console, host, stored=stored_tokens(workspace), users=users)
    redactor = redactor_for(store, settings.policy)
    sources = source_names(settings)
    with _listening(host, port) as listener, GroupWriter(store, redactor=redactor, sources=sources) as writer:
        api, console = api_of(settings, store, writer, access), console_of(workspace)
        config = uvicorn.Config(
            make_app(api, console_routes(console)), log_level="warning", access_log=False,
            lifespan="off", server_header=False, limit_concurrency=MAX_REQUESTS, timeout_graceful_shutdown=30,
        )  # fmt: skip
        shown = f"[{host}]" if ":" in host else host
        code = None if users else _first_link(workspace)
        threading.Thread(target=warm, args=(console,), daemon=True).start()
        url = f"http://{shown}:{listener.getsockname()[1]}"
        here = url.replace("//0.0.0.0:", "//127.0.0.1:").replace("//[::]:", "//127.0.0.1:")
        with served_at(settings.home, here):
            started(url, code)
            _Server(config, api).run(sockets=[listener])


def stored_tokens(workspace: Workspace) -> Stored:
    """Whether a token that the console made has a scope; `admin` has all."""

    def has(secret: str, scope: str) -> bool:
        now_us = workspace.clock()
        with workspace.store.read() as connection:
            found = token_for(connection, workspace.project, secret, now_us=now_us)
        if found is None or not found["scopes"] & {scope, "admin"}:
            return False
        if is_stale(found["used_us"], now_us):
            with workspace.store.write() as connection:
                mark_used(connection, found["id"], now_us)
        return True

    return has


def _first_link(workspace: Workspace) -> str:
    with workspace.store.write() as connection:
        return make_link(connection, workspace.project, now_us=workspace.clock())


def api_of(settings: Settings, store: Store, writer: GroupWriter, access: Access) -> Api:
    """What the endpoints of this project work with. Raises SettingsError for a tools file or key that cannot be read."""
    zones = {section.timezone for section in settings.sources.values()}
    zone = zones.pop() if len(zones) == 1 else None
    options = SourceOptions(project=settings.project, source=SOURCE, timezone=zone)
    key = signing_key(settings.home)
    live = LiveDocument(store, read_tools(settings), key)
    predictor = Predictor(store, live, settings.home / ".filmroom" / "artifacts")
    max_bytes = settings.console.max_body_mb << 20
    return Api(store, writer, options, access, max_bytes, Releases(store, live, key), predictor, settings.console.hosts)


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
        listener = socket.create_server((host, port), family=family, backlog=1024)
        # asyncio sets it only on sockets that name their protocol; without it an answer waits 40 ms for an acknowledgement.
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return listener
    except (OSError, OverflowError) as error:
        raise CannotListen(
            f"{host}:{port} cannot be listened on: {error}; name another with --host or --port"
        ) from error
