"""What a pull request shows beside its change: the evidence as markdown, and a test that fails without the change.

What the log said stands in them as data: quoted, fenced, never as markup or as code.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from filmroom.ticket_files import fenced, inline, literal

TEST = '''\
"""@ID@: @SUMMARY@

The first test reads what filmroom wrote. The second asks your agent again, if you name it:

    FILMROOM_AGENT=your_module:your_function pytest @FILE@

The function gets an input and returns the answer; it must then do what @CHANGE@ says.
"""

import importlib
import json
import os
from pathlib import Path

import pytest

STATE = Path(__file__).resolve().parents[2] / "filmroom" / "@TARGET@.json"
ENTRIES = json.loads(@ENTRIES@)
CASES = json.loads(@CASES@)


def test_the_change_is_there():
    found = [entry for entries in json.loads(STATE.read_text()).values() for entry in entries]
    for entry in ENTRIES:
        assert any(entry.items() <= other.items() for other in found), entry


@pytest.mark.parametrize("case", CASES, ids=[case["trace"] for case in CASES])
def test_the_failure_does_not_come_back(case):
    place = os.environ.get("FILMROOM_AGENT", "")
    if not place:
        pytest.skip("set FILMROOM_AGENT=module:function to your agent")
    module, _, name = place.partition(":")
    answer = str(getattr(importlib.import_module(module), name)(case["input"]))
    assert case["right"].casefold() in answer.casefold()
'''


def pull_request_files(item: Mapping[str, Any], cases: Sequence[Mapping[str, str]]) -> dict[str, str]:
    """Path to text: evidence and test of a correction.

    `item`: as `store.review_queue.review_item` gives it, completed. `cases`: `{"trace", "input", "right"}`, what the test
    asks the agent; they are users' words, and empty where those must not go into the repository.
    """
    id_ = item["correction"]
    return {
        f"filmroom/changes/{id_}.md": evidence(item),
        f"tests/filmroom/test_{id_}.py": regression_test(item, cases),
    }


def evidence(item: Mapping[str, Any]) -> str:
    """Why the change is proposed."""
    measured = {name: value for name, value in item["evidence"].items() if value is not None}
    numbers = "\n".join(f"| `{name}` | {value:.3g} |" for name, value in sorted(measured.items())) or "| none | |"
    traces = "\n".join(f"* `{each['trace']}`" for each in item["examples"]) or "* none"
    replay = (
        item["replay"]["sentence"]
        if item.get("replay")
        else "not replayed: it goes on probation, and its hold judges it"
    )
    return f"""\
# {inline(item["summary"])}

{inline(item["name"])}: {item["failures"]} failures, correction `{id_of(item)}`.

## Why here

{fenced(item["reason"], "text")}

## Replay

{fenced(replay, "text")}

## Evidence

| measured | value |
|---|---|
{numbers}

## Seen in

{traces}

`filmroom why {id_of(item)}` has the whole chain. Merging this applies it; `filmroom undo {id_of(item)}` takes it back.
"""


def regression_test(item: Mapping[str, Any], cases: Sequence[Mapping[str, str]]) -> str:
    """A pytest file on the standard library."""
    entries = [dict(each["value"]) for each in item["proposal"]["operations"] if each["verb"] != "retire"]
    filled = {
        "@ID@": id_of(item),
        "@SUMMARY@": inline(item["summary"]).replace("\\", " ").replace('"', "'"),
        "@FILE@": f"tests/filmroom/test_{id_of(item)}.py",
        "@CHANGE@": f"filmroom/changes/{id_of(item)}.md",
        "@TARGET@": str(item["proposal"]["target"]),
        "@ENTRIES@": literal(entries),
        "@CASES@": literal([dict(each) for each in cases]),
    }
    return re.sub("|".join(filled), lambda found: filled[found[0]], TEST)


def id_of(item: Mapping[str, Any]) -> str:
    """The correction's id."""
    return str(item["correction"])
