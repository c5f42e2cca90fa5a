"""How pages are rendered: Jinja2 with everything escaped, and files whose address changes with their content."""

import hashlib
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape

from filmroom.console import format as shown
from filmroom.console.markdown import rendered
from filmroom.console.readable import blocks
from flows.model_card import bound

STATIC = Path(__file__).parent / "static"


@cache
def environment() -> Environment:
    """The templates, parsed once."""
    found = Environment(
        loader=PackageLoader("filmroom.console", "templates"),
        autoescape=select_autoescape(default=True, default_for_string=True),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    found.filters.update(
        moment=shown.moment, moment_s=shown.moment_s, span=shown.span, share=shown.share, number=shown.number, pretty=shown.pretty,
        prose=shown.prose, plain=shown.plain, usd=shown.usd,
        printable=lambda text: shown.printable(str(text)), blocks=blocks, markdown=rendered, bound=bound,
    )  # fmt: skip
    found.globals.update(
        href=shown.href, ago=shown.ago, static=static, LONG_TEXT=shown.LONG_TEXT, LONG_LINE=shown.LONG_LINE
    )
    return found


@cache
def static(name: str) -> str:
    """The address of a static file, with its content in it, so that browsers may keep it for good."""
    digest = hashlib.sha256((STATIC / name).read_bytes()).hexdigest()[:12]
    return f"/static/{name}?v={digest}"


def render(template: str, values: dict[str, Any]) -> str:
    """The page as HTML."""
    return environment().get_template(template).render(values)
