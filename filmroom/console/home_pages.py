"""Home, the search box, and the page of keys and words."""

from starlette.responses import Response

from filmroom.console.ask import Ask, address_with
from filmroom.console.format import href
from filmroom.console.guard import Page
from filmroom.console.home_view import home_view
from filmroom.console.schedule_view import schedules_view
from store.change_page import id_home
from store.ids import whole_id
from store.source_names import source_names
from store.traces import trace_named


def home(ask: Ask) -> Response:
    """What needs me now, and how it goes."""
    return ask.page("home.html", view=home_view(ask.console), schedule=schedules_view(ask.console, quick=True))


def search(ask: Ask) -> Response:
    """An id leads to its page, also a shortened one and a trace's own; anything else is looked for in the traces."""
    text = ask.query("q").strip()
    with ask.console.store.read() as connection:
        to = href(whole_id(connection, ask.console.project, text))
        if to is None and text:
            to = href(trace_named(connection, ask.console.project, text, source_names(ask.console.settings)))
    if to is not None:
        return ask.see(to)
    return ask.see(address_with("/traces", text=text))


def go(ask: Ask) -> Response:
    """The page that shows something which has none of its own: a failure's trace, a review's correction."""
    any_id = ask.part("id")
    with ask.console.store.read() as connection:
        home_id = id_home(connection, ask.console.project, any_id)
    return ask.see(href(home_id) or f"/why/{any_id}")


def words(ask: Ask) -> Response:
    """Keys and glossary."""
    return ask.page("help.html")


PAGES = [Page("/", home), Page("/search", search), Page("/go/{id}", go), Page("/help", words)]
