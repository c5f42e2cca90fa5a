"""Before and after every page: who is asking, whether they may, whether the form is ours, and what the browser may do."""

from collections.abc import Callable
from dataclasses import dataclass
from urllib.parse import quote

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from filmroom.console.ask import FORM_BYTES, Ask, read_form
from filmroom.console.console import Console
from filmroom.console.identity import Person, person_of
from filmroom.web.body import BadBody, read_body
from store.errors import FilmroomError, NotFound, StoreError
from store.users import Role

Handler = Callable[[Ask], Response]

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), microphone=(), geolocation=()",
}


@dataclass(frozen=True)
class Page:
    """One address of the console."""

    path: str
    handler: Handler
    role: Role | None = "viewer"
    """Who may; None: anybody, also without a login."""
    method: str = "GET"


def route_of(console: Console, page: Page) -> Route:
    """The page behind its checks."""

    async def endpoint(request: Request) -> Response:
        try:
            body = await read_body(request, FORM_BYTES) if page.method == "POST" else b""
        except BadBody as error:
            return PlainTextResponse(error.reason, error.status)
        return await run_in_threadpool(_answer, console, page, request, body)

    return Route(page.path, endpoint, methods=[page.method], name=f"{page.method} {page.path}")


def _answer(console: Console, page: Page, request: Request, body: bytes) -> Response:
    try:
        person = person_of(console, request)
        chosen = read_form(body)
        ask = Ask(console, request, person, {name: values[-1] for name, values in chosen.items()}, chosen)
        return _refusal(page, ask) or page.handler(ask)
    except NotFound as error:
        return failed(console, request, 404, str(error))
    except StoreError as error:
        return failed(console, request, 503, str(error))
    except FilmroomError as error:
        return failed(console, request, 409, str(error))
    except (ValueError, OverflowError):
        return failed(console, request, 400, "this address or form holds something that cannot be read")


def _refusal(page: Page, ask: Ask) -> Response | None:
    if page.role is not None and ask.person is None:
        back = ask.request.url.path + (f"?{ask.request.url.query}" if ask.request.url.query else "")
        return RedirectResponse(f"/login?next={quote(back if page.method == 'GET' else '/', safe='')}", 303)
    if page.role is not None and ask.person is not None and not ask.person.may(page.role):
        return ask.page("message.html", status=403, title="Not yours to do",
                        text=f"This takes the role {page.role}; yours is {ask.person.role}. An admin can change that.")  # fmt: skip
    if page.method == "POST" and not _is_ours(page, ask):
        return PlainTextResponse("this form is not from this console, or too old: go back and load the page again", 403)
    return None


def _is_ours(page: Page, ask: Ask) -> bool:
    """Whether a form was made by a page of ours for this session; before the login, whether its origin is ours."""
    site = ask.request.headers.get("sec-fetch-site", "same-origin")
    if site not in ("same-origin", "none"):
        return False
    if page.role is None or ask.person is None:
        return True
    return is_own_form(ask.console, ask.person, ask.form.get("csrf", ""))


def is_own_form(console: Console, person: Person, token: str) -> bool:
    """Whether the token was given to this session; a program with a token of its own has no need of one."""
    return not person.session or console.signer.is_csrf_token(person.session, token)


def failed(console: Console, request: Request, status: int, text: str) -> Response:
    titles = {404: "Not found", 409: "That cannot be done", 503: "The store does not answer", 400: "Not understood"}
    try:
        ask = Ask(console, request, person_of(console, request))
        return ask.page("message.html", status=status, title=titles[status], text=text)
    except StoreError:
        return PlainTextResponse(text, 503)


class SecurityHeaders:
    """Adds the headers that keep a browser from doing more than showing the page."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                given = {name.lower() for name, _ in message["headers"]}
                more = {**HEADERS, "cache-control": "no-store"}
                message["headers"] = [
                    *message["headers"],
                    *((k.encode(), v.encode()) for k, v in more.items() if k.encode() not in given),
                ]
            await send(message)

        await self._app(scope, receive, guarded if scope["type"] == "http" else send)
