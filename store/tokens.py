"""Tokens of programs: named, scoped, stored as digests, revocable."""

import secrets
from typing import Any

from sqlalchemy import Connection, insert, select, update

from store.console_tables import tokens
from store.errors import NotAllowed, NotFound
from store.records import derived_id
from store.users import digest_of

SCOPES: dict[str, str] = {
    "ingest": "send traces to /v1/traces",
    "feedback": "send feedback to /v1/feedback",
    "release": "take the release, memory and predictions from /v1",
    "read": "read all of /api, as a viewer",
    "review": "read and give verdicts, as a reviewer",
    "admin": "everything, as an admin",
}
PREFIX = "fr_"
_USED_EVERY_US = 60_000_000


def make_token(
    connection: Connection,
    project: str,
    name: str,
    scopes: list[str],
    *,
    by: str,
    now_us: int,
    until_us: int | None = None,
) -> tuple[str, str]:
    """A new token: its id, and the secret that is shown once. Raises NotAllowed without a name or a known scope."""
    if not name.strip():
        raise NotAllowed("a token needs a name: what will use it?")
    unknown = [each for each in scopes if each not in SCOPES]
    if unknown or not scopes:
        raise NotAllowed(f"a token needs one scope or more of {', '.join(SCOPES)}")
    secret = PREFIX + secrets.token_urlsafe(32)
    row = {"id": derived_id("tok", project, digest_of(secret)), "project": project, "name": name.strip()[:100],
           "digest": digest_of(secret), "scope": " ".join(sorted(set(scopes))), "created_us": now_us, "created_by": by,
           "until_us": until_us, "used_us": None, "revoked_us": None}  # fmt: skip
    connection.execute(insert(tokens), [row])
    return row["id"], secret  # type: ignore[return-value]


def tokens_of(connection: Connection, project: str) -> list[dict[str, Any]]:
    """The tokens that were made, newest first, without their digests."""
    statement = select(tokens).where(tokens.c.project == project).order_by(tokens.c.created_us.desc(), tokens.c.id)
    return [
        {name: value for name, value in row._mapping.items() if name not in ("digest", "project")}
        for row in connection.execute(statement)
    ]


def token_for(connection: Connection, project: str, secret: str, *, now_us: int) -> dict[str, Any] | None:
    """The token with this secret that may be used now: `id, name, scopes, used_us`; None: there is none."""
    if not secret.startswith(PREFIX):
        return None
    statement = select(tokens).where(tokens.c.project == project, tokens.c.digest == digest_of(secret))
    row = connection.execute(statement).first()
    if row is None or row.revoked_us is not None or (row.until_us is not None and row.until_us < now_us):
        return None
    return {"id": row.id, "name": row.name, "scopes": frozenset(row.scope.split()), "used_us": row.used_us}


def mark_used(connection: Connection, token_id: str, now_us: int) -> None:
    connection.execute(update(tokens).where(tokens.c.id == token_id).values(used_us=now_us))


def is_stale(used_us: int | None, now_us: int) -> bool:
    """Whether it is worth a write to say that a token was used again."""
    return used_us is None or now_us - used_us > _USED_EVERY_US


def revoke_token(connection: Connection, project: str, token_id: str, *, now_us: int) -> None:
    """Refuse the token from now on. Raises NotFound."""
    done = connection.execute(
        update(tokens).where(tokens.c.project == project, tokens.c.id == token_id).values(revoked_us=now_us)
    ).rowcount
    if not done:
        raise NotFound(f"no token {token_id}")
