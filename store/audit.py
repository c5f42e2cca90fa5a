"""Who was let in or turned away, and what was done to access, settings and exports. What was done to the agent is in the ledger."""

from typing import Any

from sqlalchemy import Connection, insert, select

from store.console_tables import audit

PAGE = 50


def record_access(
    connection: Connection,
    project: str,
    *,
    at_us: int,
    actor: str,
    action: str,
    subject: str = "",
    address: str = "",
    detail: dict[str, Any] | None = None,
) -> None:
    """Append one line."""
    row = {"project": project, "at_us": at_us, "actor": actor[:200], "action": action, "subject": subject[:200],
           "detail": detail or {}, "address": address}  # fmt: skip
    connection.execute(insert(audit), [row])


def audit_page(
    connection: Connection, project: str, *, before: int | None = None, limit: int = PAGE
) -> list[dict[str, Any]]:
    """Lines before the line numbered `before`, newest first."""
    statement = select(audit).where(audit.c.project == project).order_by(audit.c.seq.desc()).limit(limit)
    if before is not None:
        statement = statement.where(audit.c.seq < before)
    return [{k: v for k, v in row._mapping.items() if k != "project"} for row in connection.execute(statement)]
