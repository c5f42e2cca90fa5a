"""Oneself, users, tokens, the audit log, exports, settings."""

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query, Response
from pydantic import Field

from filmroom.console.api.access import Admin, Body, Text, Viewer
from filmroom.console.api.review_routes import Id
from filmroom.console.export import exported
from filmroom.console.passwords import hash_password, is_password
from filmroom.console.settings_pages import in_force
from store.audit import audit_page
from store.errors import NotAllowed
from store.tokens import make_token, revoke_token, tokens_of
from store.users import Role, User, add_user, change_user, make_link, user, users_of

router = APIRouter(tags=["access"])


class NewUser(Body):
    """Who may log in."""

    name: Text = Field(min_length=1, max_length=60)
    role: Role


class ChangedUser(Body):
    """What changes; what is left out stays."""

    role: Role | None = None
    enabled: bool | None = None


class NewToken(Body):
    """What a program may do."""

    name: Text = Field(min_length=1, max_length=100)
    scopes: list[Literal["ingest", "feedback", "release", "read", "review", "admin"]] = Field(
        min_length=1, max_length=6
    )
    days: int | None = Field(default=None, ge=1, le=3650)


class NewPassword(Body):
    """The old one and the new one."""

    old: Text = Field(max_length=1024)
    new: Text = Field(max_length=1024)


@router.get("/me")
def me(caller: Viewer) -> dict[str, str]:
    """Who calls; with a session, the token that its changes carry in `X-CSRF-Token`."""
    csrf = caller.console.signer.csrf_token(caller.person.session) if caller.person.session else ""
    return {"name": caller.person.name, "role": caller.person.role, "actor": caller.person.actor, "csrf": csrf}


@router.post("/me/password", status_code=204)
def password(caller: Viewer, body: NewPassword) -> None:
    """Change one's own password; all sessions end."""
    if caller.person.user_id is None:
        raise NotAllowed("a token has no password")
    with caller.console.store.read() as connection:
        found = user(connection, caller.console.project, caller.person.user_id)
    if not is_password(body.old, found.password):
        raise NotAllowed("that is not your password")
    hashed = hash_password(body.new)
    with caller.console.store.write() as connection:
        change_user(connection, found, password=hashed)
    caller.audit("password changed", found.name)


@router.get("/users")
def users(caller: Admin) -> list[dict[str, Any]]:
    """Who may log in."""
    with caller.console.store.read() as connection:
        return [_shown(each) for each in users_of(connection, caller.console.project)]


@router.post("/users", status_code=201)
def make_user(caller: Admin, body: NewUser) -> dict[str, Any]:
    """A new user; `link` lets them in once, and is told this once."""
    console = caller.console
    with console.store.write() as connection:
        found = add_user(connection, console.project, body.name, body.role, now_us=console.now_us())
        code = make_link(connection, console.project, now_us=console.now_us(), user_id=found.id)
    caller.audit("user made", found.name, role=found.role)
    return {**_shown(found), "link": f"/login/once/{code}"}


@router.patch("/users/{id}")
def edit_user(caller: Admin, id: Id, body: ChangedUser) -> dict[str, Any]:
    """Change role, or whether they may log in; they are logged out."""
    values = body.model_dump(exclude_none=True)
    with caller.console.store.write() as connection:
        found = user(connection, caller.console.project, id)
        if values:
            change_user(connection, found, **values)
    caller.audit("user changed", found.name, **values)
    return _shown(found.model_copy(update=values))


@router.post("/users/{id}/link")
def link(caller: Admin, id: Id) -> dict[str, str]:
    """A link that lets them in once."""
    with caller.console.store.write() as connection:
        found = user(connection, caller.console.project, id)
        code = make_link(connection, caller.console.project, now_us=caller.console.now_us(), user_id=found.id)
    caller.audit("user link", found.name)
    return {"link": f"/login/once/{code}"}


@router.get("/tokens")
def tokens(caller: Admin) -> list[dict[str, Any]]:
    """The tokens of programs, without their secrets."""
    with caller.console.store.read() as connection:
        return tokens_of(connection, caller.console.project)


@router.post("/tokens", status_code=201)
def make_api_token(caller: Admin, body: NewToken) -> dict[str, str]:
    """A new token; its `secret` is told this once."""
    now_us = caller.console.now_us()
    until_us = None if body.days is None else now_us + body.days * 86_400_000_000
    with caller.console.store.write() as connection:
        id_, secret = make_token(connection, caller.console.project, body.name, list(body.scopes),
                                 by=caller.person.actor, now_us=now_us, until_us=until_us)  # fmt: skip
    caller.audit("token made", id_, scopes=list(body.scopes))
    return {"token": id_, "secret": secret}


@router.delete("/tokens/{id}", status_code=204)
def revoke(caller: Admin, id: Id) -> None:
    """Refuse the token from now on."""
    with caller.console.store.write() as connection:
        revoke_token(connection, caller.console.project, id, now_us=caller.console.now_us())
    caller.audit("token revoked", id)


@router.get("/audit")
def audit(caller: Admin, before: Annotated[int | None, Query(ge=0, le=2**62)] = None) -> list[dict[str, Any]]:
    """Fifty lines of the audit log before the line numbered `before`, newest first."""
    with caller.console.store.read() as connection:
        return audit_page(connection, caller.console.project, before=before)


@router.get("/export/{name}", response_class=Response)
def export(caller: Admin, name: Id) -> Response:
    """Everything of one kind, one JSON object a line: reviews, corrections, changes, retrains, audit."""
    response = exported(caller.console, name)
    caller.audit("export", name)
    return response


@router.get("/settings")
def settings(caller: Viewer) -> dict[str, Any]:
    """The settings in force, without secrets, and the thresholds with the reason for their profile."""
    workspace = caller.console.workspace
    return {"settings": in_force(workspace.settings), "policy": workspace.policy.model_dump(mode="json"),
            "profile": workspace.profile_reason}  # fmt: skip


def _shown(found: User) -> dict[str, Any]:
    return {
        "user": found.id,
        **found.model_dump(exclude={"id", "password"}),
        "has_password": found.password is not None,
    }
