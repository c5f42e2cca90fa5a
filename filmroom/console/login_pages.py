"""Logging in and out, and the link that lets someone in once."""

from starlette.responses import Response

from filmroom.console.ask import Ask
from filmroom.console.cookies import SESSION
from filmroom.console.guard import Page
from filmroom.console.passwords import hash_password, is_password
from store.errors import NotAllowed
from store.users import (
    LOGIN_S,
    User,
    add_user,
    begin_login,
    change_user,
    count_users,
    end_login,
    link_is_good,
    spend_link,
    user,
    user_named,
)

_WRONG = "name or password is wrong"
_TOO_OFTEN = "too many attempts: wait five minutes"


def login(ask: Ask) -> Response:
    """The form."""
    with ask.console.store.read() as connection:
        first = not count_users(connection, ask.console.project)
    return ask.page("login.html", wanted=ask.query("next"), wrong="", name="", first=first)


def log_in(ask: Ask) -> Response:
    """Name and password against the store."""
    name, wanted = ask.form.get("name", "").strip(), ask.form.get("next", "")
    keys = (f"address {ask.address}", f"name {name}")
    if ask.console.limit.is_over(*keys):
        ask.audit("login refused", name[:60], actor="unknown", reason="too many attempts")
        return ask.page("login.html", status=429, wanted=wanted, wrong=_TOO_OFTEN, name=name, first=False)
    with ask.console.store.read() as connection:
        found = user_named(connection, ask.console.project, name)
    right = is_password(ask.form.get("password", ""), found.password if found and found.enabled else None)
    if found is None or not right:
        ask.console.limit.failed(*keys)
        ask.audit("login failed", name[:60], actor="unknown")
        return ask.page("login.html", status=401, wanted=wanted, wrong=_WRONG, name=name, first=False)
    ask.console.limit.succeeded(*keys)
    return _entered(ask, found, wanted or "/")


def link(ask: Ask) -> Response:
    """A one-time link: a page with a form, so that looking at the link does not spend it."""
    code = ask.part("code")
    with ask.console.store.read() as connection:
        if not link_is_good(connection, ask.console.project, code, now_us=ask.console.now_us()):
            raise NotAllowed("this link was used or is too old: `filmroom user link NAME` prints a new one")
        first = not count_users(connection, ask.console.project)
    return ask.page("link.html", code=code, first=first, wrong="", name="")


def use_link(ask: Ask) -> Response:
    """Set a password, and for the first admin a name; then be logged in."""
    code, name = ask.part("code"), ask.form.get("name", "").strip()
    now_us = ask.console.now_us()
    try:
        if ask.form.get("password", "") != ask.form.get("again", ""):
            raise NotAllowed("the two passwords differ")
        hashed = hash_password(ask.form.get("password", ""))
        with ask.console.store.write() as connection:
            user_id = spend_link(connection, ask.console.project, code, now_us=now_us)
            if user_id is None:
                found = add_user(connection, ask.console.project, name, "admin", now_us=now_us, password=hashed)
            else:
                found = user(connection, ask.console.project, user_id)
                _refuse_disabled(found)
                change_user(connection, found, password=hashed)
    except NotAllowed as error:
        with ask.console.store.read() as connection:
            good = link_is_good(connection, ask.console.project, code, now_us=now_us)
            first = not count_users(connection, ask.console.project)
        if not good:
            raise
        return ask.page("link.html", status=409, code=code, first=first, wrong=str(error), name=name)
    return _entered(ask, found, "/")


def _refuse_disabled(found: User) -> None:
    if not found.enabled:
        raise NotAllowed(f"{found.name} is disabled: an admin enables them first")


def log_out(ask: Ask) -> Response:
    """End this session."""
    with ask.console.store.write() as connection:
        end_login(connection, ask.who.session)
    ask.audit("logout")
    response = ask.see("/login")
    response.delete_cookie(SESSION, path="/", httponly=True, samesite="lax")
    return response


def _entered(ask: Ask, found: User, wanted: str) -> Response:
    """A new session, whose cookie no script can read."""
    with ask.console.store.write() as connection:
        secret = begin_login(connection, ask.console.project, found.id, now_us=ask.console.now_us())
    ask.audit("login", found.name, actor=found.actor)
    response = ask.see(wanted)
    response.set_cookie(
        SESSION, ask.console.signer.sign("session", secret), max_age=LOGIN_S, path="/", httponly=True,
        samesite="lax", secure=ask.request.url.scheme == "https",
    )  # fmt: skip
    return response


PAGES = [
    Page("/login", login, role=None),
    Page("/login", log_in, role=None, method="POST"),
    Page("/login/once/{code}", link, role=None),
    Page("/login/once/{code}", use_link, role=None, method="POST"),
    Page("/logout", log_out, method="POST"),
]
