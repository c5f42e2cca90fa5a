"""The console as one application: its pages, its static files and its API, behind one set of headers."""

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Mount
from starlette.staticfiles import StaticFiles

from filmroom.console import (
    bulk_pages,
    change_pages,
    home_pages,
    login_pages,
    retrain_pages,
    review_pages,
    schedule_pages,
    settings_pages,
    trace_pages,
)
from filmroom.console.api.app import api_app
from filmroom.console.console import Console
from filmroom.console.cookies import Signer
from filmroom.console.guard import Page, SecurityHeaders, failed, route_of
from filmroom.console.page import STATIC
from filmroom.signing_key import signing_key
from flows.workspace import Workspace

PAGES: tuple[Page, ...] = (
    *home_pages.PAGES,
    *login_pages.PAGES,
    *review_pages.PAGES,
    *bulk_pages.PAGES,
    *review_pages.ITEM_PAGES,
    *change_pages.PAGES,
    *retrain_pages.PAGES,
    *trace_pages.PAGES,
    *schedule_pages.PAGES,
    *settings_pages.PAGES,
)


class _Static(StaticFiles):
    """Files whose address changes with their content."""

    def file_response(self, *args: object, **values: object) -> Response:
        response = super().file_response(*args, **values)  # type: ignore[arg-type]
        response.headers["cache-control"] = "public, max-age=31536000, immutable"
        return response


def console_of(workspace: Workspace) -> Console:
    """The console of a project; sessions are signed with the key beside the store. Raises SettingsError."""
    return Console(workspace, Signer(signing_key(workspace.settings.home)))


def console_routes(console: Console) -> list[BaseRoute]:
    """What is mounted behind the routes of programs: everything else."""
    return [Mount("/", app=console_app(console))]


def console_app(console: Console) -> Starlette:
    """The console alone."""

    async def missing(request: Request, _: Exception) -> Response:
        return failed(console, request, 404, f"there is no page {request.url.path[:200]}")

    routes: list[BaseRoute] = [
        Mount("/static", app=_Static(directory=STATIC)),
        Mount("/api", app=api_app(console)),
        *(route_of(console, page) for page in PAGES),
    ]
    middleware = [Middleware(SecurityHeaders), Middleware(GZipMiddleware, minimum_size=800, compresslevel=5)]
    return Starlette(routes=routes, middleware=middleware, exception_handlers={404: missing})
