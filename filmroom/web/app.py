"""The HTTP API: traces by OTLP, feedback, the live release, and whether all is well.

A request is answered once what it sent is durable.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import NamedTuple

from pydantic import JsonValue
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.middleware import Middleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route
from starlette.types import Receive, Scope, Send

from filmroom.web.access import LOOPBACK_NAMES, Access
from filmroom.web.body import BadBody, read_body
from filmroom.web.predictions import Predictor, prediction_routes
from filmroom.web.release import Releases, release_routes
from filmroom.web.replies import PROTOBUF, accepted_traces, refused
from store.database import Store
from store.errors import InputError, StoreError, WriterBusy
from store.group_commit import GroupWriter
from store.records import Rejected
from store.sources.contract import BadRecord, Item, SourceOptions, with_origin
from store.sources.native import feedback_items
from store.sources.otlp import decode_request, rejected_spans
from store.sources.sanitise import parse_json

Handler = Callable[["Api", Request, str], Awaitable[Response]]

_DECODER = ThreadPoolExecutor(1, thread_name_prefix="decoder")
"""Decoding holds Python's lock: several threads of it would only take it from each other, and from the writer."""

_REASONS = 3
"""Reasons that are told in full; the rest is in quarantine."""


class Api(NamedTuple):
    """What the endpoints work with."""

    store: Store
    writer: GroupWriter
    options: SourceOptions
    access: Access
    max_bytes: int
    releases: Releases | None = None
    """None: it only takes in."""
    predictor: Predictor | None = None
    hosts: tuple[str, ...] = ()
    """Names by which a proxy asks, beside this machine's own."""


def make_app(api: Api, more: Sequence[BaseRoute] = ()) -> Starlette:
    """The application, with `more` routes (the console's) behind those of programs.

    Without a token a request must name this machine, so that no web page can reach it by another name.
    """
    names = [*LOOPBACK_NAMES, *api.hosts]
    guards = [Middleware(TrustedHostMiddleware, allowed_hosts=names)] if api.access.is_open else []
    routes: list[BaseRoute] = [
        Route("/v1/traces", _endpoint(api, _traces, ("application/json", PROTOBUF)), methods=["POST"]),
        Route("/v1/feedback", _endpoint(api, _feedback, ("application/json",)), methods=["POST"]),
        Route("/health", _health_of(api), methods=["GET"]),
        *([] if api.releases is None else release_routes(api.releases, api.access)),
        *([] if api.predictor is None else prediction_routes(api.predictor, api.access, api.max_bytes)),
    ]
    routes.append(Route("/v1/{path:path}", _Other(routes)))
    return Starlette(routes=[*routes, *more], middleware=guards)


class _Other:
    """What is asked of `/v1` in another way than its routes answer: told as JSON, to programs."""

    def __init__(self, routes: Sequence[BaseRoute]) -> None:
        self._routes = [each for each in routes if isinstance(each, Route)]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        asked = scope["path"]
        ways = sorted({way for each in self._routes if each.path_regex.match(asked) for way in each.methods or ()})
        if ways:
            answer = JSONResponse(
                {"message": f"{asked[:200]} takes {', '.join(ways)}"}, 405, {"allow": ", ".join(ways)}
            )
        else:
            known = ", ".join(sorted({each.path for each in self._routes}))
            answer = JSONResponse({"message": f"there is no {asked[:200]}; there are {known}"}, 404)
        await answer(scope, receive, send)


def _endpoint(api: Api, handle: Handler, media_types: tuple[str, ...]) -> Callable[[Request], Awaitable[Response]]:
    """`handle` behind the token and the media types, with every refusal in the request's encoding."""

    async def endpoint(request: Request) -> Response:
        media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if not api.access.allows(request):
            return refused(media_type, 401, "the token is missing or wrong: send `Authorization: Bearer TOKEN`")
        if media_type not in media_types:
            return refused(media_type, 415, f"content-type {media_type[:60]!r}: send {' or '.join(media_types)}")
        try:
            return await handle(api, request, media_type)
        except BadBody as error:
            return refused(media_type, error.status, error.reason)
        except (BadRecord, InputError) as error:
            return refused(media_type, 400, str(error))
        except (WriterBusy, StoreError) as error:
            return refused(media_type, 503, str(error))
        except ClientDisconnect:
            return Response(status_code=400)

    return endpoint


async def _traces(api: Api, request: Request, media_type: str) -> Response:
    """OTLP's export of spans; what cannot be read is counted in the answer, and kept in quarantine."""
    body = await read_body(request, api.max_bytes)
    decode = partial(decode_request, body, content_type=media_type, options=api.options)
    read = await asyncio.get_running_loop().run_in_executor(_DECODER, decode)
    items = list(with_origin(read, "otlp", api.options))
    await _store(api, items)
    rejected = _rejected(items)
    return accepted_traces(media_type, rejected_spans(items), _summary(rejected))


async def _feedback(api: Api, request: Request, _: str) -> Response:
    """One feedback or a list of them, in the native format's fields, also where its trace is not there yet."""
    value = parse_json(await read_body(request, api.max_bytes))
    values: list[JsonValue] = value if isinstance(value, list) else [value]
    items = list(with_origin(feedback_items(values, api.options, place=request.url.path), "native", api.options))
    await _store(api, items)
    rejected = _rejected(items)
    reasons = [{"number": each.line, "reason": each.reason} for each in rejected[:_REASONS]]
    counts = {"accepted": len(items) - len(rejected), "rejected": len(rejected), "reasons": reasons}
    return JSONResponse(counts, 400 if values and len(rejected) == len(items) else 202)


async def _store(api: Api, items: list[Item]) -> None:
    if items:
        await asyncio.wrap_future(api.writer.submit(items))


def _rejected(items: list[Item]) -> list[Rejected]:
    return [item for item in items if isinstance(item, Rejected)]


def _summary(rejected: list[Rejected]) -> str:
    if not rejected:
        return ""
    reasons = list(dict.fromkeys(each.reason for each in rejected))
    more = f"; and {len(reasons) - _REASONS} other reasons" if len(reasons) > _REASONS else ""
    return f"{len(rejected)} kept in quarantine: {'; '.join(reasons[:_REASONS])}{more}"


def _health_of(api: Api) -> Callable[[Request], Awaitable[Response]]:
    def look() -> None:
        with api.store.read() as connection:
            connection.exec_driver_sql("SELECT 1")

    async def health(_: Request) -> Response:
        try:
            await run_in_threadpool(look)
        except StoreError as error:
            return JSONResponse({"ok": False, "reason": str(error)}, 503)
        return JSONResponse({"ok": True, "waiting": api.writer.waiting, "redacted": api.writer.redacted})

    return health
