"""People who log in, their sessions, and the links that let someone in once. Secrets are stored as digests alone."""

import hashlib
import secrets
from typing import Any, Literal

from sqlalchemy import Connection, Row, delete, func, insert, select, update
from sqlalchemy.exc import IntegrityError

from store.console_tables import login_links, logins, users
from store.errors import NotAllowed, NotFound
from store.records import Record, derived_id

Role = Literal["viewer", "reviewer", "admin"]
ROLES: tuple[Role, ...] = ("viewer", "reviewer", "admin")
"""Each may do all that those before it may."""

LOGIN_S = 12 * 3600
LINK_S = 24 * 3600
LONGEST_NAME = 60


class User(Record):
    """Someone who may log in."""

    id: str
    name: str
    role: Role
    password: str | None
    """Its hash (`filmroom.console.passwords`); None: only a link lets them in."""
    enabled: bool
    created_us: int

    @property
    def actor(self) -> str:
        """How history names them."""
        return f"staff:{self.name}"


def digest_of(secret: str) -> str:
    """What is stored of a session, a link or a token: they are random, so that a plain SHA-256 cannot be reversed."""
    return hashlib.sha256(secret.encode("utf-8", "replace")).hexdigest()


def add_user(
    connection: Connection, project: str, name: str, role: Role, *, now_us: int, password: str | None = None
) -> User:
    """A new user. Raises NotAllowed for a name that is taken, or that history could not tell from another."""
    name = name.strip()
    if not name or len(name) > LONGEST_NAME or not name.isprintable() or any(each in name for each in ":/ "):
        raise NotAllowed(
            f"{name!r} is no user name: up to {LONGEST_NAME} characters without blanks, colons and slashes"
        )
    if role not in ROLES:
        raise NotAllowed(f"{role!r} is no role: {', '.join(ROLES)}")
    values = {"id": derived_id("usr", project, name), "name": name, "role": role, "password": password,
              "enabled": True, "created_us": now_us}  # fmt: skip
    if connection.execute(select(users.c.id).where(users.c.project == project, users.c.name == name)).first():
        raise NotAllowed(f"there is a user {name} already")
    try:
        connection.execute(insert(users), [{**values, "project": project}])
    except IntegrityError as error:
        raise NotAllowed(f"there is a user {name} already") from error
    return User(**values)


def users_of(connection: Connection, project: str) -> list[User]:
    """The project's users, by name."""
    return [
        _user(row) for row in connection.execute(select(users).where(users.c.project == project).order_by(users.c.name))
    ]


def user_named(connection: Connection, project: str, name: str) -> User | None:
    row = connection.execute(select(users).where(users.c.project == project, users.c.name == name)).first()
    return None if row is None else _user(row)


def user(connection: Connection, project: str, user_id: str) -> User:
    """The user with this id. Raises NotFound."""
    row = connection.execute(select(users).where(users.c.project == project, users.c.id == user_id)).first()
    if row is None:
        raise NotFound(f"no user {user_id}")
    return _user(row)


def change_user(connection: Connection, found: User, **values: Any) -> None:
    """Change role, password or enabled; whoever was logged in is logged out. The last enabled admin stays one."""
    after = found.model_copy(update=values)
    if found.role == "admin" and found.enabled and (after.role != "admin" or not after.enabled):
        project = connection.execute(select(users.c.project).where(users.c.id == found.id)).scalar_one()
        if count_admins(connection, project) <= 1:
            raise NotAllowed(f"{found.name} is the only admin: make another one first")
    connection.execute(update(users).where(users.c.id == found.id).values(values))
    connection.execute(delete(logins).where(logins.c.user_id == found.id))


def count_admins(connection: Connection, project: str) -> int:
    statement = select(func.count()).where(
        users.c.project == project, users.c.role == "admin", users.c.enabled.is_(True)
    )
    return connection.execute(statement).scalar_one()


def count_users(connection: Connection, project: str) -> int:
    return connection.execute(select(func.count()).where(users.c.project == project)).scalar_one()


def begin_login(connection: Connection, project: str, user_id: str, *, now_us: int) -> str:
    """A new session; returns its secret, which is stored nowhere. Sessions that are over are removed."""
    secret = secrets.token_urlsafe(32)
    connection.execute(delete(logins).where(logins.c.until_us < now_us))
    row = {"digest": digest_of(secret), "project": project, "user_id": user_id, "created_us": now_us,
           "until_us": now_us + LOGIN_S * 1_000_000}  # fmt: skip
    connection.execute(insert(logins), [row])
    return secret


def logged_in(connection: Connection, project: str, secret: str, *, now_us: int) -> User | None:
    """Whose session this is; None: nobody's, or it is over, or the user was disabled."""
    statement = (
        select(users)
        .join(logins, logins.c.user_id == users.c.id)
        .where(
            logins.c.digest == digest_of(secret),
            logins.c.project == project,
            logins.c.until_us >= now_us,
            users.c.enabled.is_(True),
        )
    )
    row = connection.execute(statement).first()
    return None if row is None else _user(row)


def end_login(connection: Connection, secret: str) -> None:
    connection.execute(delete(logins).where(logins.c.digest == digest_of(secret)))


def make_link(connection: Connection, project: str, *, now_us: int, user_id: str | None = None) -> str:
    """A code that lets someone in once within a day; None: it makes the first admin. An earlier one stops working."""
    code = secrets.token_urlsafe(24)
    same = login_links.c.user_id.is_(None) if user_id is None else login_links.c.user_id == user_id
    connection.execute(delete(login_links).where(login_links.c.project == project, same))
    row = {"digest": digest_of(code), "project": project, "user_id": user_id, "until_us": now_us + LINK_S * 1_000_000}
    connection.execute(insert(login_links), [row])
    return code


def link_is_good(connection: Connection, project: str, code: str, *, now_us: int) -> bool:
    return _link(connection, project, code, now_us) is not None


def spend_link(connection: Connection, project: str, code: str, *, now_us: int) -> str | None:
    """The id of the user whom the link lets in; None: it is for the first admin. Raises NotAllowed for a spent one."""
    row = _link(connection, project, code, now_us)
    spent = connection.execute(delete(login_links).where(login_links.c.digest == digest_of(code))).rowcount
    if row is None or spent != 1:
        raise NotAllowed("this link was used or is too old: `filmroom user link NAME` prints a new one")
    if row.user_id is None and count_users(connection, project):
        raise NotAllowed("there are users already: log in, or `filmroom user link NAME` prints a link for one of them")
    return None if row.user_id is None else str(row.user_id)


def _link(connection: Connection, project: str, code: str, now_us: int) -> Row[Any] | None:
    statement = select(login_links).where(
        login_links.c.digest == digest_of(code), login_links.c.project == project, login_links.c.until_us >= now_us
    )
    return connection.execute(statement).first()


def _user(row: Row[Any]) -> User:
    return User(**{name: value for name, value in row._mapping.items() if name != "project"})
