"""The API as one application, with every refusal as `{"message": ...}`."""

from fastapi import FastAPI, HTTPException, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from filmroom.console.api import access_routes, history_routes, log_routes, review_routes
from filmroom.console.console import Console
from store.errors import FilmroomError, NotFound, StoreError

MOST_BYTES = 1 << 20
"""Largest body."""


def api_app(console: Console) -> FastAPI:
    """The API of a console."""
    shown = {"application/json": {"schema": _MESSAGE}}
    app = FastAPI(
        title="filmroom",
        version="1",
        openapi_url="/openapi.json",
        docs_url=None,
        redoc_url=None,
        description="Reviews, changes, retrains, traces and schedules of one project.",
        redirect_slashes=False,
        responses={code: {"description": text, "content": shown} for code, text in _REFUSALS.items()},
    )
    app.state.console = console
    for routes in (review_routes, history_routes, log_routes, access_routes):
        app.include_router(routes.router)
    app.add_exception_handler(FilmroomError, _refused)
    app.add_exception_handler(HTTPException, _http)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_middleware(_Bounded)
    return app


_MESSAGE = {"type": "object", "properties": {"message": {"type": "string"}}, "required": ["message"]}
_REFUSALS: dict[int | str, str] = {
    400: "the body cannot be read",
    401: "nobody is logged in",
    403: "the role does not suffice, or the session's token is missing",
    404: "there is nothing with this id",
    409: "this cannot be done to it in its present state",
    413: "the body is too large",
    422: "a parameter or field is wrong",
    503: "the store does not answer",
}


def _refused(_: Request, error: Exception) -> JSONResponse:
    status = 404 if isinstance(error, NotFound) else 503 if isinstance(error, StoreError) else 409
    return JSONResponse({"message": str(error).encode("utf-8", "replace").decode()}, status)


def _http(_: Request, error: Exception) -> JSONResponse:
    status, detail = (error.status_code, error.detail) if isinstance(error, HTTPException) else (500, "")
    headers = {"www-authenticate": "Bearer"} if status == 401 else {}
    return JSONResponse({"message": str(detail)}, status, headers)


def _invalid(_: Request, error: Exception) -> JSONResponse:
    first = error.errors()[0] if isinstance(error, RequestValidationError) else {"loc": (), "msg": str(error)}
    where = ".".join(str(part) for part in first["loc"])
    return JSONResponse({"message": f"{where}: {first['msg']}".encode("utf-8", "replace").decode()}, 422)


class _Bounded:
    """Turns a body away that is larger than any that makes sense."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        body, more = b"", scope["method"] not in ("GET", "HEAD")
        while more:
            message = await receive()
            body += message.get("body", b"")
            more = message.get("more_body", False)
            if len(body) > MOST_BYTES:
                await JSONResponse({"message": f"more than {MOST_BYTES >> 20} MiB"}, 413)(scope, receive, send)
                return
        given = False

        async def replay() -> Message:
            nonlocal given
            if given:
                return await receive()
            given = True
            return {"type": "http.request", "body": body, "more_body": False}

        await self._app(scope, replay, send)
