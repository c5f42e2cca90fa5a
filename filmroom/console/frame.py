"""What stands around every page: where one can go, what waits, and who is logged in."""

from typing import Any
from urllib.parse import quote

from filmroom.console.console import Console
from filmroom.console.identity import Person
from store.queue_page import QueueCounts, queue_counts

PLACES = (
    ("/", "Home"),
    ("/review", "Review"),
    ("/changes", "Changes"),
    ("/retrains", "Retrains"),
    ("/traces", "Traces"),
    ("/schedules", "Schedules"),
    ("/settings", "Settings"),
)


def frame(console: Console, person: Person | None, path: str) -> dict[str, Any]:
    """The values of `layout.html`, for a page at `path`."""
    csrf = "" if person is None or not person.session else console.signer.csrf_token(person.session)
    return {
        "person": person,
        "project": console.project,
        "places": [(address, name, _is_at(path, address)) for address, name in PLACES],
        "waiting": counts(console) if person is not None else None,
        "csrf": csrf,
        "here": path,
        "now_us": console.now_us(),
        "next": quote(path, safe="/"),
    }


def counts(console: Console) -> QueueCounts:
    """How many corrections are where."""

    def count() -> QueueCounts:
        with console.store.read() as connection:
            return queue_counts(connection, console.project, cap=console.workspace.policy.queue_cap,
                                reviewers=console.settings.console.reviewers)  # fmt: skip

    found: QueueCounts = console.kept.get(console, "counts", count)
    return found


def _is_at(path: str, address: str) -> bool:
    if address == "/changes":
        return path.startswith(("/changes", "/releases", "/why", "/clusters"))
    if address == "/retrains":
        return path.startswith(("/retrains", "/compare", "/versions"))
    return path == address if address == "/" else path.startswith(address)
