"""A ticket for a tool's owner: what fails as markdown, and a test that fails until it is mended.

What the log said (names, arguments, errors) stands in them as data: quoted, fenced, never as markup or as code.
"""

import json
import re

from store.records import Ticket

TEST = '''\
"""Ticket @ID@: fails until the tool is mended.

    FILMROOM_TOOL=your_module:your_function pytest @FILE@

The function is called with the arguments by name. It is mended when it neither raises nor returns an error.
"""

import importlib
import json
import os

import pytest

TOOL = json.loads(@TOOL@)
ARGUMENTS = json.loads(@ARGUMENTS@)
ERROR = json.loads(@ERROR@)


def test_@NAME@_takes_the_call_that_failed():
    place = os.environ.get("FILMROOM_TOOL", "")
    if not place:
        pytest.skip("set FILMROOM_TOOL=module:function to the function behind " + repr(TOOL))
    module, _, name = place.partition(":")
    output = getattr(importlib.import_module(module), name)(**ARGUMENTS)
    assert not is_error(output), "still answers " + repr(output)[:500] + "; production saw " + repr(ERROR)


def is_error(output):
    if isinstance(output, dict):
        return bool(output.get("error") or output.get("is_error") or output.get("isError"))
    return isinstance(output, str) and output.strip().lower().startswith(("error", "exception", "traceback"))
'''


def ticket_test(ticket: Ticket) -> str:
    """The text of a pytest file that makes the failing call again."""
    name = re.sub(r"[^a-z0-9]+", "_", ticket.tool.lower()).strip("_") or "tool"
    filled = {
        "@ID@": ticket.id,
        "@FILE@": test_file_name(ticket),
        "@NAME@": name[:60],
        "@TOOL@": literal(ticket.tool),
        "@ARGUMENTS@": literal(ticket.call),
        "@ERROR@": literal(ticket.error),
    }
    return re.sub("|".join(filled), lambda found: filled[found[0]], TEST)


def test_file_name(ticket: Ticket) -> str:
    """The name of the pytest file."""
    return f"test_{ticket.id}.py"


test_file_name.__test__ = False  # type: ignore[attr-defined]  # pytest takes its name for that of a test


def ticket_markdown(ticket: Ticket) -> str:
    """What fails, for whoever owns the tool."""
    state = "resolved" if ticket.resolved else "open"
    call = json.dumps(ticket.call, indent=2, ensure_ascii=True)
    traces = "\n".join(f"* `{each}`" for each in ticket.trace_ids) or "* none recorded"
    return f"""\
# {inline(ticket.title)}

Tool {inline(ticket.tool)}, ticket `{ticket.id}`, {state}.

## The call that fails

{fenced(call, "json")}

## What it answers

{fenced(ticket.error or "nothing was recorded", "text")}

## Seen in

{traces}

## When it is mended

`{test_file_name(ticket)}` passes: `FILMROOM_TOOL=your_module:your_function pytest {test_file_name(ticket)}`
"""


def literal(value: object) -> str:
    """A Python string that holds the value as JSON: ASCII, quoted, nothing in it can end it."""
    return repr(json.dumps(value, ensure_ascii=True))


def inline(text: str) -> str:
    """One line of code in markdown, whatever the text holds."""
    words = " ".join("".join(each if each.isprintable() else " " for each in text[:200]).split())
    return f"`{words.replace('`', chr(39))}`" if words else "`?`"


def fenced(text: str, language: str) -> str:
    longest = max((len(run) for run in re.findall("`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    shown = "".join(each if each.isprintable() or each == "\n" else "?" for each in text)
    return f"{fence}{language}\n{shown}\n{fence}"
