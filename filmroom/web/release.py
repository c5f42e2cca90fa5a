"""`GET /v1/release` and `GET /v1/memory`: what the running program takes, once it has changed and not before."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import NamedTuple

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from filmroom.release_document import etag, memory_document
from filmroom.signature import signed
from filmroom.web.access import Access
from filmroom.web.body import BadBody
from filmroom.web.live_document import LOOK_S, LiveDocument, wire
from filmroom.web.replies import refused
from store.database import Clock, Store, wall_clock
from store.errors import ModelRefused, NotFound, StoreError

LONGEST_WAIT_S = 60.0
MAX_WAITING = 100
"""Programs that may wait at the same time; one more is answered at once and asks again later."""

Handler = Callable[[Request], Awaitable[Response]]


class Releases(NamedTuple):
    """What these endpoints work with."""

    store: Store
    live: LiveDocument
    key: str
    clock: Clock = wall_clock


def release_routes(releases: Releases, access: Access) -> list[Route]:
    """The two routes, behind the same token as the others."""
    waiting: set[Request] = set()

    async def release(request: Request) -> Response:
        return await _release(releases.live, request, waiting)

    async def memory(request: Request) -> Response:
        return await run_in_threadpool(_memory, releases, request)

    return [
        Route("/v1/release", guarded(access, release), methods=["GET"]),
        Route("/v1/memory", guarded(access, memory), methods=["GET"]),
    ]


def guarded(access: Access, handle: Handler) -> Handler:
    """`handle` behind the token, with every refusal as `{"message": ...}`."""

    async def endpoint(request: Request) -> Response:
        if not access.allows(request):
            return refused("", 401, "the token is missing or wrong: send `Authorization: Bearer TOKEN`")
        try:
            return await handle(request)
        except BadBody as error:
            return refused("", error.status, error.reason)
        except NotFound as error:
            return refused("", 404, str(error))
        except (StoreError, ModelRefused) as error:
            return refused("", 503, str(error))

    return endpoint


def unless_known(request: Request, tag: str, body: bytes) -> Response:
    """The body with its entity tag, or 304 where the request has that one already."""
    headers = {"ETag": tag, "Cache-Control": "private, no-cache"}
    if _knows(request, tag):
        return Response(status_code=304, headers=headers)
    return Response(body, headers=headers, media_type="application/json")


async def _release(live: LiveDocument, request: Request, waiting: set[Request]) -> Response:
    """The live release; with `wait`, and where it is known already, the next one or 304 when the time is over."""
    ends = asyncio.get_running_loop().time() + _wait_s(request)
    found = await run_in_threadpool(live.current)
    if _knows(request, found.etag) and len(waiting) < MAX_WAITING:
        waiting.add(request)
        try:
            while _knows(request, found.etag) and asyncio.get_running_loop().time() < ends and not live.closing:
                await asyncio.sleep(LOOK_S)
                if await request.is_disconnected():
                    break
                found = await run_in_threadpool(live.recent)
        finally:
            waiting.discard(request)
    return unless_known(request, found.etag, found.body)


def _memory(releases: Releases, request: Request) -> Response:
    user = _one(request, "user")
    if not user:
        raise BadBody(400, "user: whose facts? send ?user=ID")
    with releases.store.read() as connection:
        value = memory_document(
            connection,
            releases.store.project,
            user=user,
            tenant=_one(request, "tenant"),
            now_us=releases.clock(),
            release_id=_one(request, "release"),
        )
    return unless_known(request, etag(value), wire(signed(value, releases.key)))


def _one(request: Request, name: str) -> str | None:
    """The query parameter, given once at most."""
    given = request.query_params.getlist(name)
    if len(given) > 1:
        raise BadBody(400, f"{name}: given {len(given)} times")
    if any("\0" in each for each in given):
        raise BadBody(400, f"{name}: holds a null character")
    return given[0] if given else None


def _wait_s(request: Request) -> float:
    text = _one(request, "wait") or "0"
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds <= LONGEST_WAIT_S:
        raise BadBody(400, f"wait: seconds between 0 and {LONGEST_WAIT_S:.0f} are needed")
    return seconds


def _knows(request: Request, tag: str) -> bool:
    known = request.headers.get("if-none-match", "")
    return tag in {each.strip().removeprefix("W/") for each in known.split(",")}
