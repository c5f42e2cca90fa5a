"""Markdown of ours as HTML that can hold no more than words, lists, tables and code.

markdown-it-py (rich brings it along): HTML in the text comes out escaped, and links, images and references, whose address
could be anything, are not read at all. What is left has no attribute that the text chose, so it passes the policy of the pages.
"""

from functools import cache

from markdown_it import MarkdownIt
from markdown_it.token import Token
from markupsafe import Markup

from filmroom.console.format import printable

UNREAD = ["link", "image", "autolink", "reference", "html_block", "html_inline"]


def rendered(text: str) -> Markup:
    """The text as HTML, its headings a level lower, below the page's own.

    >>> rendered("# A *card*\\n\\n<b>[x](javascript:alert)</b>")
    Markup('<h2>A <em>card</em></h2>\\n<p>&lt;b&gt;[x](javascript:alert)&lt;/b&gt;</p>\\n')
    """
    reader = _reader()
    tokens = reader.parse(printable(text))
    for token in tokens:
        _fit(token)
    return Markup(reader.renderer.render(tokens, reader.options, {}))  # noqa: S704 -- escaped by the reader, see above


def _fit(token: Token) -> None:
    if token.type in ("heading_open", "heading_close"):
        token.tag = f"h{min(6, int(token.tag[1]) + 1)}"
    token.attrs.pop("style", None)


@cache
def _reader() -> MarkdownIt:
    reader = MarkdownIt("commonmark", {"html": False}).enable("table").disable(UNREAD)
    reader.add_render_rule("table_open", _table_open)
    reader.add_render_rule("table_close", _table_close)
    return reader


def _table_open(*_: object) -> str:
    return '<div class="scroll" tabindex="0" role="region" aria-label="Table"><table class="list">\n'


def _table_close(*_: object) -> str:
    return "</table></div>\n"
