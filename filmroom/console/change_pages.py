"""Changes, releases, clusters, and why."""

from starlette.responses import Response

from filmroom.console.ask import Ask, address_with
from filmroom.console.change_view import change_view, changes_view, release_view, releases_view, why_view
from filmroom.console.guard import Page
from flows.rollback import rollback
from store.change_page import cluster_corrections, recurrence
from store.cluster_page import story
from store.errors import FilmroomError, NotFound
from store.failures import cluster
from store.records import TARGETS
from store.trace_page import TraceFilter, trace_page


def changes(ask: Ask) -> Response:
    """Every applied correction, newest first."""
    target = ask.query("target") if ask.query("target") in TARGETS else ""
    state = ask.query("state") if ask.query("state") in ("live", "reverted", "holding", "held", "failed") else ""
    page = int(ask.query("page")) if ask.query("page").isdecimal() and len(ask.query("page")) < 7 else 1
    view = changes_view(ask.console, target=target, state=state, page=max(1, page))
    return ask.page("changes.html", view=view, target=target, state=state,
                    address=address_with("/changes", target=target, state=state))  # fmt: skip


def change(ask: Ask) -> Response:
    """One change."""
    return ask.page("change.html", view=change_view(ask.console, ask.part("id")))


def releases(ask: Ask) -> Response:
    """What was live when."""
    return ask.page("releases.html", view=releases_view(ask.console))


def release(ask: Ask) -> Response:
    """One release."""
    return ask.page("release.html", view=release_view(ask.console, ask.part("id")))


def roll_back(ask: Ask) -> Response:
    """Serve the state of an earlier release again."""
    release_id, reason = ask.part("id"), ask.form.get("reason", "").strip()
    if not reason:
        return ask.see(f"/releases/{release_id}", note="A rollback needs a reason: history keeps it.", wrong=True)
    try:
        done = rollback(ask.workspace, release_id, reason=reason)
    except NotFound:
        raise
    except FilmroomError as error:
        return ask.see(f"/releases/{release_id}", note=str(error), wrong=True)
    return ask.see(
        f"/releases/{done.release}", note=f"Rolled back: {done.release} is live and says what {release_id} said."
    )


def why(ask: Ask) -> Response:
    """The chain of causes."""
    return ask.page("why.html", view=why_view(ask.console, ask.part("id")))


def cluster_page(ask: Ask) -> Response:
    """One cluster: its failures over time, and the attempts to correct it."""
    cluster_id = ask.part("id")
    with ask.console.store.read() as connection:
        found = cluster(connection, cluster_id)
        if found is None or found.project != ask.console.project:
            raise NotFound(f"no cluster {cluster_id}")
        told = story(connection, ask.console.project, cluster_id)
        attempts = cluster_corrections(connection, ask.console.project, cluster_id)
        failed_at = recurrence(connection, ask.console.project, cluster_id)
        newest = trace_page(connection, ask.console.project, TraceFilter(cluster=cluster_id), limit=10)
    return ask.page("cluster.html", cluster=found, story=told, attempts=attempts, failures_at=failed_at, newest=newest)


PAGES = [
    Page("/changes", changes),
    Page("/changes/{id}", change),
    Page("/releases", releases),
    Page("/releases/{id}", release),
    Page("/releases/{id}/rollback", roll_back, role="reviewer", method="POST"),
    Page("/why/{id}", why),
    Page("/clusters/{id}", cluster_page),
]
