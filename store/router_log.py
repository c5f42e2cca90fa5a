"""What happened to the router: the versions it learned, was refused, and lost."""

from collections.abc import Iterable

from sqlalchemy import Connection, or_, select

from store.ledger import link, record_event
from store.records import RouterEvent
from store.tables import ledger, links

ROUTER = "router"
"""Subject of the events that say which router decides; every version and candidate leads to it."""


def router_events(connection: Connection, project: str) -> list[RouterEvent]:
    """Everything that happened to the router and to each of its versions and candidates, oldest first."""
    versions = select(links.c.cause).where(links.c.project == project, links.c.effect.between(ROUTER, ROUTER))
    statement = (
        select(ledger.c.at_us, ledger.c.actor, ledger.c.event, ledger.c.subject, ledger.c.reason, ledger.c.detail)
        .where(ledger.c.project == project, or_(ledger.c.subject == ROUTER, ledger.c.subject.in_(versions)))
        .order_by(ledger.c.seq)
    )
    return [RouterEvent(**row._mapping) for row in connection.execute(statement)]


def put_router_event(connection: Connection, project: str, event: RouterEvent, *, causes: Iterable[str] = ()) -> None:
    """Append one event; a version that it is about leads to the router, and `causes` to that version."""
    record_event(
        connection, project, at_us=event.at_us, actor=event.actor, event=event.event, subject=event.subject,
        reason=event.reason, causes=causes, detail=event.detail,
    )  # fmt: skip
    link(connection, project, ROUTER, [event.subject])
