"""Who may call what: a role an endpoint, checked before its body is read, and written into the schema."""

from collections.abc import Callable
from typing import Annotated, Any

from fastapi import Depends, HTTPException, Request
from pydantic import AfterValidator, BaseModel, ConfigDict

from filmroom.console.console import Console
from filmroom.console.guard import is_own_form
from filmroom.console.identity import Person, person_of
from flows.workspace import Workspace
from store.users import Role

SAFE = ("GET", "HEAD", "OPTIONS")


def storable(text: str) -> str:
    """The text, where either database can keep it. Raises ValueError.

    >>> storable("plain")
    'plain'
    """
    if "\0" in text:
        raise ValueError("holds a null character")
    text.encode("utf-8")
    return text


Text = Annotated[str, AfterValidator(storable)]


class Body(BaseModel):
    """What is sent: unknown fields are an error, so that a misspelt one is not silently ignored."""

    model_config = ConfigDict(extra="forbid")


class Caller:
    """Whoever calls, with the console they call."""

    def __init__(self, console: Console, person: Person, address: str) -> None:
        self.console = console
        self.person = person
        self.address = address

    @property
    def workspace(self) -> Workspace:
        """The project, acted on by whoever calls."""
        return self.console.workspace.acting(actor=self.person.actor)

    def audit(self, action: str, subject: str = "", **detail: Any) -> None:
        """A line in the audit log."""
        from store.audit import record_access

        with self.console.store.write() as connection:
            record_access(connection, self.console.project, at_us=self.console.now_us(), actor=self.person.actor,
                          action=action, subject=subject, address=self.address, detail=detail)  # fmt: skip


def needs(role: Role) -> Callable[[Request], Caller]:
    """A dependency that lets in whoever has this role: 401 without a login or token, 403 without the role.

    Whoever comes with a session sends its token in `X-CSRF-Token` with every change; `GET /api/me` gives it.
    """

    def caller(request: Request) -> Caller:
        console: Console = request.app.state.console
        person = person_of(console, request)
        if person is None:
            raise HTTPException(
                401, "log in, or send `Authorization: Bearer TOKEN` of a token with scope read, review or admin"
            )
        if not person.may(role):
            raise HTTPException(403, f"this takes the role {role}; yours is {person.role}")
        if request.method not in SAFE and not is_own_form(console, person, request.headers.get("x-csrf-token", "")):
            raise HTTPException(403, "send the session's token in X-CSRF-Token (GET /api/me gives it)")
        return Caller(console, person, request.client.host if request.client else "")

    return caller


Viewer = Annotated[Caller, Depends(needs("viewer"))]
Reviewer = Annotated[Caller, Depends(needs("reviewer"))]
Admin = Annotated[Caller, Depends(needs("admin"))]
