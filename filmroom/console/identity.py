"""Who is asking: a user by their session, or a program by its token."""

from dataclasses import dataclass

from starlette.requests import HTTPConnection

from filmroom.console.console import Console
from filmroom.console.cookies import SESSION
from store.tokens import is_stale, mark_used, token_for
from store.users import ROLES, Role, logged_in

_ROLE_OF_SCOPE: dict[str, Role] = {"admin": "admin", "review": "reviewer", "read": "viewer"}


@dataclass(frozen=True)
class Person:
    """Whoever asks, and what they may do."""

    name: str
    role: Role
    actor: str
    """How history names them."""
    user_id: str | None = None
    """None: a program with a token."""
    session: str = ""
    """The secret of the session; empty with a token."""

    def may(self, role: Role) -> bool:
        """Whether they may do what this role may.

        >>> Person("ann", "reviewer", "staff:ann").may("viewer"), Person("ann", "reviewer", "staff:ann").may("admin")
        (True, False)
        """
        return ROLES.index(self.role) >= ROLES.index(role)


def person_of(console: Console, request: HTTPConnection) -> Person | None:
    """Who sent the request; None: nobody known. A token that is sent counts before a session."""
    scheme, _, given = request.headers.get("authorization", "").partition(" ")
    if scheme.lower() == "bearer":
        return _by_token(console, given.strip())
    return _by_session(console, request.cookies.get(SESSION, ""))


def _by_session(console: Console, cookie: str) -> Person | None:
    secret = console.signer.read("session", cookie)
    if secret is None:
        return None
    with console.store.read() as connection:
        found = logged_in(connection, console.project, secret, now_us=console.now_us())
    if found is None:
        return None
    return Person(found.name, found.role, found.actor, user_id=found.id, session=secret)


def _by_token(console: Console, secret: str) -> Person | None:
    now_us = console.now_us()
    with console.store.read() as connection:
        found = token_for(connection, console.project, secret, now_us=now_us)
    role = next((role for scope, role in _ROLE_OF_SCOPE.items() if found and scope in found["scopes"]), None)
    if found is None or role is None:
        return None
    if is_stale(found["used_us"], now_us):
        with console.store.write() as connection:
            mark_used(connection, found["id"], now_us)
    return Person(found["name"], role, f"token:{found['name']}")
