"""What a page is handed, and how it answers."""

from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, quote, urlencode

from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from filmroom.console.console import Console
from filmroom.console.cookies import NOTE
from filmroom.console.frame import frame
from filmroom.console.identity import Person
from filmroom.console.page import render
from flows.workspace import Workspace
from store.audit import record_access

FORM_BYTES = 256 << 10
"""Largest form."""


@dataclass(frozen=True)
class Ask:
    """One request for a page."""

    console: Console
    request: Request
    person: Person | None
    form: dict[str, str] = field(default_factory=dict)
    """What was sent; a field that was sent twice counts once, with its last value."""
    chosen: dict[str, list[str]] = field(default_factory=dict)
    """The same, with every value."""

    @property
    def who(self) -> Person:
        """Whoever is logged in; every page but the login's has someone."""
        if self.person is None:
            raise RuntimeError("a page that needs nobody asked who it is")
        return self.person

    @property
    def workspace(self) -> Workspace:
        """The project, acted on by whoever asks."""
        return self.console.workspace.acting(actor=self.who.actor)

    @property
    def address(self) -> str:
        return self.request.client.host if self.request.client else ""

    def query(self, name: str) -> str:
        """A query parameter without blanks around it; empty where there is none."""
        return self.request.query_params.get(name, "").replace("\0", "").strip()

    def part(self, name: str) -> str:
        """A part of the path."""
        return str(self.request.path_params[name]).replace("\0", "")

    def page(self, template: str, *, status: int = 200, **values: Any) -> Response:
        """The page, with what every page shows; a note from the page before is shown once."""
        note = self.console.signer.read_json("note", self.request.cookies.get(NOTE, "")) or None
        html = render(template, {"note": note, **frame(self.console, self.person, self.request.url.path), **values})
        response = HTMLResponse(html, status)
        if note is not None:
            response.delete_cookie(NOTE, path="/", httponly=True, samesite="lax")
        return response

    def see(self, address: str, *, note: str = "", undo: str = "", wrong: bool = False) -> Response:
        """Go on to another page, where the note is shown. Only to pages of ours."""
        target = address if address.startswith("/") and not address.startswith(("//", "/\\")) else "/"
        response = RedirectResponse(quote(target, safe="/?&=%:+,;@!$'()*~#"), 303)
        if note:
            value = self.console.signer.sign_json("note", {"text": note[:600], "undo": undo, "wrong": wrong})
            response.set_cookie(
                NOTE, value, max_age=60, httponly=True, samesite="lax", secure=self.request.url.scheme == "https"
            )
        return response

    def audit(self, action: str, subject: str = "", *, actor: str | None = None, **detail: Any) -> None:
        """A line in the audit log."""
        with self.console.store.write() as connection:
            record_access(connection, self.console.project, at_us=self.console.now_us(),
                          actor=actor or self.who.actor, action=action, subject=subject, address=self.address,
                          detail=detail)  # fmt: skip


def read_form(body: bytes) -> dict[str, list[str]]:
    """The fields of a form that was sent url-encoded.

    >>> read_form(b"a=1&a=2&b=")
    {'a': ['1', '2'], 'b': ['']}
    """
    text = body.decode("utf-8", "replace")
    found = parse_qs(text, keep_blank_values=True, max_num_fields=5_000)
    return {name: [each.replace("\0", "").replace("\r\n", "\n") for each in values] for name, values in found.items()}


def address_with(path: str, **values: Any) -> str:
    """A path with those parameters that say something.

    >>> address_with("/traces", user="ann b", failed="")
    '/traces?user=ann+b'
    """
    given = {name: value for name, value in values.items() if value not in ("", None, False, 0)}
    return f"{path}?{urlencode(given)}" if given else path
