"""One run of the command line: its settings, who acts, and how results and progress are shown."""

import getpass
import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from store.settings import FILE_NAME, Settings, read_settings

if TYPE_CHECKING:
    from flows.workspace import Workspace
    from store.database import Store

Json = Annotated[bool, typer.Option("--json", help="One JSON value on stdout, for programs.")]


@dataclass
class Session:
    """What the front door knows."""

    settings_file: Path | None = None
    debug: bool = False

    def settings(self) -> Settings:
        return read_settings(self.settings_file)

    @property
    def is_bare(self) -> bool:
        """Whether there is no settings file, so that the defaults are in force."""
        return self.settings_file is None and not Path(FILE_NAME).exists()

    @property
    def actor(self) -> str:
        """The person at the terminal."""
        try:
            return f"staff:{getpass.getuser()}"
        except (KeyError, OSError):
            return "staff:unknown"

    @contextmanager
    def store(self, *, create: bool = False) -> "Iterator[Store]":
        """The open store, without the machinery of a turn."""
        from store.database import open_store

        settings = self.settings()
        store = open_store(settings.store_url, settings.project, create=create)
        try:
            yield store
        finally:
            store.close()

    @contextmanager
    def workspace(self, *, create: bool = False) -> "Iterator[Workspace]":
        """The open project, ready for a stage or a verdict."""
        from flows.workspace import open_workspace

        with open_workspace(self.settings(), actor=self.actor, create=create) as workspace:
            yield workspace


def say(text: str = "") -> None:
    """A line of the result."""
    typer.echo(printable(text))


def note(text: str) -> None:
    """A line beside the result, on stderr."""
    typer.echo(printable(text), err=True)


def printable(text: str) -> str:
    """The text without what could steer a terminal: names in a log are outside text as well.

    >>> printable("red \\x1b[31m")
    'red \ufffd[31m'
    """
    return "".join(each if each.isprintable() or each == "\n" else "\N{REPLACEMENT CHARACTER}" for each in text)


def say_json(value: Any) -> None:
    """One JSON value on stdout, ASCII, so that no terminal or pipe can break on it."""
    typer.echo(json.dumps(value, indent=2, default=str))


def table(headings: list[str], rows: list[list[str]]) -> None:
    """A table of text; in a pipe it is as wide as its content."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    shown = Table(box=None, pad_edge=False, header_style="bold", show_edge=False)
    for heading in headings:
        shown.add_column(heading, overflow="fold")
    for row in rows:
        shown.add_row(*(Text(printable(" ".join(cell.split()))) for cell in row))
    if sys.stdout.isatty():
        Console().print(shown)
        return
    console = Console(width=200)
    with console.capture() as captured:
        console.print(shown)
    typer.echo("\n".join(line.rstrip() for line in captured.get().splitlines()))


@contextmanager
def progress(label: str, total: int | None) -> "Iterator[Any]":
    """`advance(amount)` of a progress bar on a terminal; silent in a pipe. `total`: None where the end is not known."""
    if not sys.stderr.isatty():
        yield lambda _amount: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(label, total=total)
        yield lambda amount: bar.advance(task, amount)


def time_text(at_us: int | None) -> str:
    """A moment as people read it, UTC; `-` where it is not known."""
    if at_us is None:
        return "-"
    from datetime import UTC, datetime

    return datetime.fromtimestamp(at_us / 1_000_000, tz=UTC).strftime("%Y-%m-%d %H:%M:%S")
