"""A commented `filmroom.toml`, filled with what a first look at a log found out."""

import json
import re
from collections.abc import Sequence

from store.sources.findings import FeedbackFound, Findings

BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")

HEAD = """\
# filmroom's settings. A FILMROOM_SECTION__KEY variable outranks a line here.
project = "default"

[store]
# SQLite beside this file; for teams: "postgresql+psycopg://user:password@host/name"
url = "sqlite:///filmroom.db"
"""

TAIL = """
[policy]
# "auto" chooses between "standard" and "small" from the counts, and says so at every turn.
profile = "auto"
# Principals whose word alone suffices, as they stand in feedback's `principal` (staff, domain experts).
trusted = []

[prices]
failure_usd = 1.0            # what one failure that reaches a user costs
review_usd_per_hour = 60.0

[schedule]
interval_s = 3600            # `filmroom schedule start` turns this often; or: cron = "0 3 * * *"
"""


def settings_text(found: Findings | None, columns: Sequence[str] = ()) -> str:
    """The text of a settings file; without findings, the defaults with their comments. `columns`: those of a table that are to be
    mapped by a person.
    """
    if found is None:
        return HEAD + _unmapped(columns) + _agent(None) + TAIL
    return (
        HEAD + _source(found) + "".join(map(_feedback, found.feedback_names)) + _agent(found) + _weights(found) + TAIL
    )


def _source(found: Findings) -> str:
    name = "log" if found.pull is None else found.format
    lines = [f"\n[sources.{name}]", f"format = {_quoted(found.format)}"]
    if found.pull is not None:
        lines.append(f"pull = {_quoted(found.pull)}   # keys come from the environment: docs/serve.md")
    if found.columns:
        columns = ", ".join(f"{_key(field)} = {_quoted(column)}" for field, column in found.columns.items())
        lines.append(f"columns = {{ {columns} }}   # our field = your column")
    if found.without_offset:
        lines.append('timezone = "UTC"             # times have no offset; was this right?')
    if found.unnamed_model:
        lines.append('model = "model"              # the log does not name the model that predicts')
    return "\n".join(lines) + "\n"


def _unmapped(columns: Sequence[str]) -> str:
    if not columns:
        return ""
    return (
        '\n[sources.log]\nformat = "tabular"\n'
        f"# columns seen: {', '.join(map(_plain, columns))}\n"
        "# Our field = your column; take what there is (docs/format.md has all fields), and remove the #:\n"
        '# columns = { id = "", time = "", user = "", input = "", output = "", label = "" }\n'
    )


def _feedback(found: FeedbackFound) -> str:
    lines = [f"\n[feedback.{_key(found.name)}]", f"kind = {_quoted(found.kind)}"]
    if found.lowest is not None:
        guessed = found.good or "high"
        doubt = "" if found.good else "   # a guess: is a high score good?"
        lines.append(f"good = {_quoted(guessed)}{doubt}")
    if found.threshold is not None:
        lines.append(f"threshold = {found.threshold:g}   # scores seen: {found.lowest:g} to {found.highest:g}")
    if found.labels:
        lines.append(f"# labels seen: {', '.join(_plain(label) for label in list(found.labels)[:8])}")
    return "\n".join(lines) + "\n"


def _agent(found: Findings | None) -> str:
    tools = f"   # tools seen: {', '.join(_plain(tool) for tool in found.tools)}" if found and found.tools else ""
    return (
        "\n[agent]\n"
        f'# tools = "tools.json"        # the tools\' JSON schemas{tools}\n'
        '# replay = "my_agent:replay"  # how to run the agent again; without it a fix goes on probation\n'
    )


def _weights(found: Findings) -> str:
    return "".join(
        f"\n[weights.{_key(name)}]\n"
        '# training = "train.csv"      # what it was trained on; without it nothing is retrained\n'
        f'# out_of_scope = "..."        # the label that means none of the classes; labels seen: '
        f"{', '.join(_plain(label) for label in list(labels)[:8])}\n"
        for name, labels in found.models.items()
    )


def _key(name: str) -> str:
    return name if BARE_KEY.fullmatch(name) else _quoted(name)


def _quoted(text: str) -> str:
    return json.dumps(text)


def _plain(text: str) -> str:
    """One line of a comment, whatever the log holds."""
    return "".join(each if each.isprintable() else "?" for each in text)[:60]
