"""Runs the HTTP API until it is told to end."""

import socket
from collections.abc import Callable

import uvicorn

from filmroom.web.access import access_of
from filmroom.web.app import Api, make_app
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
    options = SourceOptions(project=settings.project, source=SOURCE)
    with _listening(host, port) as listener, GroupWriter(store) as writer:
        app = make_app(Api(store, writer, options, access, settings.console.max_body_mb << 20))
        config = uvicorn.Config(
            app, log_level="warning", access_log=False, lifespan="off", server_header=False,
            limit_concurrency=MAX_REQUESTS, timeout_graceful_shutdown=30,
        )  # fmt: skip
        shown = f"[{host}]" if ":" in host else host
        started(f"http://{shown}:{listener.getsockname()[1]}")
        uvicorn.Server(config).run(sockets=[listener])


def _listening(host: str, port: int) -> socket.socket:
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        return socket.create_server((host, port), family=family, backlog=1024)
    except (OSError, OverflowError) as error:
        raise CannotListen(
            f"{host}:{port} cannot be listened on: {error}; name another with --host or --port"
        ) from error
