"""History: who did what, when and why, and what caused what. Rows are only ever added."""

from collections.abc import Iterable, Sequence
from typing import Any

from sqlalchemy import Connection, insert, select

from store.database import insert_or_ignore
from store.tables import changes, ledger, links, reviews


def record_event(
    connection: Connection,
    project: str,
    *,
    at_us: int,
    actor: str,
    event: str,
    subject: str,
    reason: str = "",
    causes: Iterable[str] = (),
    detail: dict[str, Any] | None = None,
) -> None:
    """Append one event and link its subject to what caused it."""
    row = {
        "project": project,
        "at_us": at_us,
        "actor": actor,
        "event": event,
        "subject": subject,
        "reason": reason,
        "detail": detail or {},
    }
    connection.execute(insert(ledger), [row])
    link(connection, project, subject, causes)


def record_events(connection: Connection, rows: Sequence[dict[str, Any]], causes: dict[str, Iterable[str]]) -> None:
    """Append many events at once, given as rows of the table, and link each effect to its causes."""
    if rows:
        connection.execute(insert(ledger), rows)
    pairs = [
        {"project": rows[0]["project"], "cause": cause, "effect": effect}
        for effect, found in causes.items()
        for cause in dict.fromkeys(found)
        if cause != effect
    ]
    insert_or_ignore(connection, links, pairs)


def link(connection: Connection, project: str, effect: str, causes: Iterable[str]) -> None:
    """Say that each of `causes` led to `effect`; saying it again changes nothing."""
    rows = [
        {"project": project, "cause": cause, "effect": effect} for cause in dict.fromkeys(causes) if cause != effect
    ]
    insert_or_ignore(connection, links, rows)


def causes_of(connection: Connection, project: str, subject: str) -> list[str]:
    """The ids that led to `subject`, in order."""
    # Neither `==` nor ORDER BY: SQLite then takes the primary key, which has all it needs, and walks the whole project.
    led = links.c.effect.between(subject, subject)
    return sorted(connection.execute(select(links.c.cause).where(links.c.project == project, led)).scalars())


def effects_of(connection: Connection, project: str, subject: str) -> list[str]:
    """The ids that `subject` led to, in order."""
    statement = (
        select(links.c.effect).where(links.c.project == project, links.c.cause == subject).order_by(links.c.effect)
    )
    return list(connection.execute(statement).scalars())


_VERDICTS = {"approve": "approved", "reroute": "rerouted", "reject": "rejected", "defer": "deferred"}


def story_of(connection: Connection, project: str, subject: str) -> list[dict[str, Any]]:
    """What happened to a change or a correction, oldest first, the verdicts on it and its undoing included; of anything
    else its events. Verdicts are told by their names, and what was reverted as undone."""
    subjects = [subject, *_decided(connection, project, subject)]
    statement = (
        select(ledger.c.at_us, ledger.c.actor, ledger.c.event, ledger.c.reason, ledger.c.detail, ledger.c.subject)
        .where(ledger.c.project == project, ledger.c.subject.in_(subjects))
        .order_by(ledger.c.seq)
    )
    return [{**row._mapping, "event": _told(row.event, row.detail)} for row in connection.execute(statement)]


def _decided(connection: Connection, project: str, subject: str) -> list[str]:
    """Of a correction its verdicts and changes, of a change the verdicts on its correction."""
    if subject.startswith("chg_"):
        said = select(reviews.c.id).join(changes, changes.c.correction_id == reviews.c.correction_id)
        return list(connection.execute(said.where(changes.c.project == project, changes.c.id == subject)).scalars())
    if not subject.startswith("cor_"):
        return []
    each = [
        select(table.c.id).where(table.c.project == project, table.c.correction_id == subject)
        for table in (reviews, changes)
    ]
    return [id_ for statement in each for id_ in connection.execute(statement).scalars()]


def _told(event: str, detail: dict[str, Any]) -> str:
    if event == "reviewed":
        verdict = _VERDICTS.get(detail.get("verdict", ""), event)
        return f"{verdict} to {detail['target']}" if verdict == "rerouted" and detail.get("target") else verdict
    return "undone" if event == "reverted" else event


def events_of(connection: Connection, project: str, subject: str) -> list[dict[str, Any]]:
    """What happened to `subject`, oldest first."""
    statement = (
        select(ledger.c.at_us, ledger.c.actor, ledger.c.event, ledger.c.reason, ledger.c.detail)
        .where(ledger.c.project == project, ledger.c.subject == subject)
        .order_by(ledger.c.seq)
    )
    return [dict(row._mapping) for row in connection.execute(statement)]
