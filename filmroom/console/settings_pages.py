"""One's own account, users, tokens, the audit log, what can be taken out, and the settings in force."""

from typing import Any

from starlette.responses import Response

from filmroom.console.ask import Ask
from filmroom.console.export import EXPORTS, exported
from filmroom.console.guard import Page
from filmroom.console.passwords import hash_password, is_password
from store.audit import audit_page
from store.errors import FilmroomError, NotAllowed, NotFound
from store.settings import Settings
from store.tokens import SCOPES, make_token, revoke_token, tokens_of
from store.users import ROLES, Role, add_user, begin_login, change_user, make_link, user, users_of


def settings(ask: Ask) -> Response:
    """The page; what only admins may see is left out for others."""
    admin = ask.who.may("admin")
    with ask.console.store.read() as connection:
        people = users_of(connection, ask.console.project) if admin else []
        tokens = tokens_of(connection, ask.console.project) if admin else []
    return ask.page("settings.html", users=people, tokens=tokens, roles=ROLES, scopes=SCOPES, exports=EXPORTS,
                    secret="", link="", in_force=in_force(ask.console.settings), policy=ask.console.workspace.policy,
                    profile=ask.console.workspace.profile_reason)  # fmt: skip


def change_password(ask: Ask) -> Response:
    """One's own, with the old one; other sessions end."""
    if ask.who.user_id is None:
        raise NotAllowed("a token has no password")
    try:
        with ask.console.store.read() as connection:
            found = user(connection, ask.console.project, ask.who.user_id)
        if not is_password(ask.form.get("old", ""), found.password):
            raise NotAllowed("that is not your password")
        if ask.form.get("password", "") != ask.form.get("again", ""):
            raise NotAllowed("the two passwords differ")
        hashed = hash_password(ask.form.get("password", ""))
    except NotAllowed as error:
        return ask.see("/settings", note=str(error), wrong=True)
    with ask.console.store.write() as connection:
        change_user(connection, found, password=hashed)
        secret = begin_login(connection, ask.console.project, found.id, now_us=ask.console.now_us())
    ask.audit("password changed", found.name)
    response = ask.see("/settings", note="Your password is changed; other sessions have ended.")
    from filmroom.console.cookies import SESSION

    response.set_cookie(SESSION, ask.console.signer.sign("session", secret), path="/", httponly=True, samesite="lax",
                        secure=ask.request.url.scheme == "https")  # fmt: skip
    return response


def make_user(ask: Ask) -> Response:
    """A new user and the link that lets them in, shown once."""
    try:
        with ask.console.store.write() as connection:
            found = add_user(connection, ask.console.project, ask.form.get("name", ""), read_role(ask.form.get("role", "")),
                             now_us=ask.console.now_us())  # fmt: skip
            code = make_link(connection, ask.console.project, now_us=ask.console.now_us(), user_id=found.id)
    except NotAllowed as error:
        return ask.see("/settings", note=str(error), wrong=True)
    ask.audit("user made", found.name, role=found.role)
    return _with_secret(ask, link=_link(ask, code), note_=f"{found.name} is made.")


def edit_user(ask: Ask) -> Response:
    """Role, whether they may log in, or a new link."""
    verb = ask.form.get("do", "")
    with ask.console.store.read() as connection:
        found = user(connection, ask.console.project, ask.part("id"))
    try:
        return _edited(ask, found, verb)
    except NotFound:
        raise
    except FilmroomError as error:
        return ask.see("/settings", note=str(error), wrong=True)


def make_api_token(ask: Ask) -> Response:
    """A token, shown once."""
    try:
        with ask.console.store.write() as connection:
            id_, secret = make_token(connection, ask.console.project, ask.form.get("name", ""),
                                     ask.chosen.get("scope", []), by=ask.who.actor, now_us=ask.console.now_us(),
                                     until_us=_until(ask))  # fmt: skip
    except NotAllowed as error:
        return ask.see("/settings", note=str(error), wrong=True)
    ask.audit("token made", id_, scopes=ask.chosen.get("scope", []))
    return _with_secret(ask, secret=secret, note_="The token is made.")


def revoke(ask: Ask) -> Response:
    """Refuse a token from now on."""
    with ask.console.store.write() as connection:
        revoke_token(connection, ask.console.project, ask.part("id"), now_us=ask.console.now_us())
    ask.audit("token revoked", ask.part("id"))
    return ask.see("/settings", note="The token is refused from now on.")


def audit(ask: Ask) -> Response:
    """Who was let in, and what was done to access."""
    text = ask.query("before")
    before = int(text) if text.isdecimal() and len(text) < 18 else None
    with ask.console.store.read() as connection:
        lines = audit_page(connection, ask.console.project, before=before)
    return ask.page("audit.html", lines=lines)


def export(ask: Ask) -> Response:
    """A file of everything of one kind."""
    name = ask.part("name")
    response = exported(ask.console, name)
    ask.audit("export", name)
    return response


def in_force(found: Settings) -> dict[str, Any]:
    """The settings without secrets: where the store is, and tokens, are not shown."""
    value = found.model_dump(mode="json", exclude={"home", "store"})
    value["console"].pop("token", None)
    return value


def read_role(text: str) -> Role:
    """The role of this name. Raises NotAllowed."""
    for role in ROLES:
        if role == text:
            return role
    raise NotAllowed(f"{text[:40]!r} is no role: {', '.join(ROLES)}")


def _edited(ask: Ask, found: Any, verb: str) -> Response:
    with ask.console.store.write() as connection:
        if verb == "role":
            change_user(connection, found, role=read_role(ask.form.get("role", "")))
        elif verb in ("disable", "enable"):
            change_user(connection, found, enabled=verb == "enable")
        elif verb == "link":
            code = make_link(connection, ask.console.project, now_us=ask.console.now_us(), user_id=found.id)
        else:
            raise NotFound(f"a user cannot be {verb[:40]}")
    ask.audit(f"user {verb}", found.name, role=ask.form.get("role", ""))
    if verb == "link":
        return _with_secret(ask, link=_link(ask, code), note_=f"A link for {found.name}.")
    return ask.see("/settings", note=f"{found.name} is changed, and logged out.")


def _with_secret(ask: Ask, *, secret: str = "", link: str = "", note_: str) -> Response:
    with ask.console.store.read() as connection:
        people, tokens = users_of(connection, ask.console.project), tokens_of(connection, ask.console.project)
    return ask.page("settings.html", users=people, tokens=tokens, roles=ROLES, scopes=SCOPES, exports=EXPORTS,
                    secret=secret, link=link, in_force=in_force(ask.console.settings),
                    policy=ask.console.workspace.policy, profile=ask.console.workspace.profile_reason,
                    note={"text": note_, "undo": "", "wrong": False})  # fmt: skip


def _link(ask: Ask, code: str) -> str:
    return f"{ask.request.url.scheme}://{ask.request.url.netloc}/login/once/{code}"


def _until(ask: Ask) -> int | None:
    text = ask.form.get("days", "").strip()
    if not text:
        return None
    if not text.isdecimal() or not 1 <= int(text[:6]) <= 3650:
        raise NotAllowed("a token lasts 1 to 3650 days, or for ever")
    return ask.console.now_us() + int(text) * 86_400_000_000


PAGES = [
    Page("/settings", settings),
    Page("/settings/password", change_password, method="POST"),
    Page("/settings/users", make_user, role="admin", method="POST"),
    Page("/settings/users/{id}", edit_user, role="admin", method="POST"),
    Page("/settings/tokens", make_api_token, role="admin", method="POST"),
    Page("/settings/tokens/{id}/revoke", revoke, role="admin", method="POST"),
    Page("/settings/audit", audit, role="admin"),
    Page("/settings/export/{name}", export, role="admin", method="POST"),
]
