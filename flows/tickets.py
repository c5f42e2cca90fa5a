"""Tickets: open again when their failure comes back, and posted to the address in the settings, if there is one."""

import hashlib
import hmac
import json
import os
import time
from typing import Any
from urllib.parse import urlsplit

import httpx
from sqlalchemy import Connection

from flows.apply import apply_operations
from flows.watch import outcomes
from flows.workspace import Workspace
from store.errors import SettingsError
from store.exposures import judged
from store.failures import cluster
from store.ledger import events_of, record_event
from store.records import Operation, Record, Ticket
from store.releases import live_release, version
from store.settings import Settings

TRIES = 3
"""Posts of one ticket in one go; the next turn tries again."""
PAUSE_S = 0.5
TIMEOUT_S = 10.0
SIGNATURE = "X-Filmroom-Signature"
TIMESTAMP = "X-Filmroom-Timestamp"
DELIVERY = "X-Filmroom-Delivery"
EXPOSURES = 5000


class Posted(Record):
    """What was sent."""

    posted: tuple[str, ...] = ()
    """Tickets that arrived."""
    waiting: tuple[str, ...] = ()
    """Tickets that did not; they are sent again in the next turn."""
    error: str = ""


def live_tickets(connection: Connection, project: str) -> list[Ticket]:
    """The tickets of the live release, resolved ones with them."""
    content: Any = version(connection, live_release(connection, project).tooling).content
    return [Ticket(**each) for each in content["tickets"]]


def reopen_tickets(workspace: Workspace) -> list[str]:
    """Open every resolved ticket again whose failure came back after it was resolved; a line each."""
    with workspace.store.read() as connection:
        resolved = [each for each in live_tickets(connection, workspace.project) if each.resolved and each.resolved_us]
    return [line for each in resolved if (line := _reopened(workspace, each))]


def post_tickets(workspace: Workspace) -> Posted:
    """Send each open ticket that was not sent since it was opened. A receiver that is away is asked again in the next turn."""
    url = workspace.settings.agent.webhook
    if url is None:
        return Posted()
    if urlsplit(url).scheme not in ("http", "https"):
        raise SettingsError(f"[agent] webhook: {url!r} is no http address")
    with workspace.store.read() as connection:
        open_ = [each for each in live_tickets(connection, workspace.project) if not each.resolved]
        due = [each for each in open_ if _is_due(connection, workspace, each.id)]
    if not due:
        return Posted()
    key = webhook_key(workspace.settings)
    posted: list[str] = []
    waiting: list[str] = []
    error = ""
    for each in due:
        body = json.dumps({"event": "ticket", "project": workspace.project, **each.model_dump(mode="json")}).encode()
        problem = _post(url, body, key, each.id)
        (waiting if problem else posted).append(each.id)
        error = problem or error
        if not problem:
            with workspace.write() as connection:
                record_event(connection, workspace.project, at_us=workspace.clock(), actor=workspace.actor,
                             event="posted", subject=each.id, reason=urlsplit(url).netloc)  # fmt: skip
    return Posted(posted=tuple(posted), waiting=tuple(waiting), error=error)


def signature(key: str, timestamp: str, body: bytes) -> str:
    """HMAC-SHA256 over `TIMESTAMP.BODY`, so that an old post cannot be sent again as a new one.

    >>> signature("key", "0", b"{}")[:14]
    'sha256=7314351'
    """
    return "sha256=" + hmac.new(key.encode(), timestamp.encode() + b"." + body, hashlib.sha256).hexdigest()


def webhook_key(settings: Settings) -> str:
    """What signs the posts. Raises SettingsError where the variable that should hold it is empty."""
    name = settings.agent.webhook_secret_env
    if name is not None:
        value = os.environ.get(name, "")
        if not value:
            raise SettingsError(f"[agent] webhook_secret_env: {name} is not set")
        return value
    path = settings.home / ".filmroom" / "release.key"
    if not path.is_file():
        raise SettingsError(
            "[agent] webhook: there is no key to sign with: set `webhook_secret_env`, or `filmroom export release`"
        )
    return path.read_text(encoding="ascii").strip()


def _reopened(workspace: Workspace, ticket: Ticket) -> str:
    with workspace.write() as connection:
        found = cluster(connection, ticket.cluster_id) if ticket.cluster_id else None
        if found is None or ticket.resolved_us is None:
            return ""
        seen = judged(connection, workspace.project, after_us=ticket.resolved_us, limit=EXPOSURES)
        again = sum(outcomes(found, seen, users=None, since_us=ticket.resolved_us))
        if not again:
            return ""
        reason = f"it failed {again} times after it was called resolved"
        operation = Operation(target="tooling", verb="ticket_open", key=ticket.id,
                              value=ticket.model_dump(mode="json", exclude={"id"}))  # fmt: skip
        change = apply_operations(
            connection, workspace, (operation,), correction_id="", reason=reason, causes=[found.id]
        )
        record_event(connection, workspace.project, at_us=workspace.clock(), actor=workspace.actor, event="reopened",
                     subject=ticket.id, reason=reason, causes=[found.id, change.id])  # fmt: skip
    return f"{found.name}: ticket {ticket.id} is open again: {reason}"


def _is_due(connection: Connection, workspace: Workspace, ticket_id: str) -> bool:
    """Whether it was not posted since it was opened, or opened again, last."""
    told = [each["event"] for each in events_of(connection, workspace.project, ticket_id)]
    return "posted" not in told or ("reopened" in told and _last(told, "reopened") > _last(told, "posted"))


def _last(told: list[str], event: str) -> int:
    return len(told) - 1 - told[::-1].index(event)


def _post(url: str, body: bytes, key: str, delivery: str) -> str:
    """Why it did not arrive; empty: it did. No redirects and no proxies: it goes to the address in the settings alone."""
    problem = ""
    with httpx.Client(timeout=TIMEOUT_S, trust_env=False, follow_redirects=False) as client:
        for attempt in range(TRIES):
            if attempt:
                time.sleep(PAUSE_S * 2 ** (attempt - 1))
            stamp = str(int(time.time()))
            headers = {"Content-Type": "application/json", TIMESTAMP: stamp, SIGNATURE: signature(key, stamp, body),
                       DELIVERY: delivery}  # fmt: skip
            try:
                status = client.post(url, content=body, headers=headers).status_code
            except httpx.HTTPError as error:
                problem = f"{urlsplit(url).netloc}: {type(error).__name__}"
                continue
            if 200 <= status < 300:
                return ""
            problem = f"{urlsplit(url).netloc} answers {status}"
            if status < 500 and status not in (408, 425, 429):
                break
    return problem
