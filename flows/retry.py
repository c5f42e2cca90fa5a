"""Retry: what is in quarantine is read again once its cause is mended; what is stored leaves the quarantine.

A file that is still there is read again as a whole, since a row needs its header and a message its conversation; what was
stored before is not stored twice. A piece whose file is gone, or that came over HTTP, is read by itself.
"""

import tempfile
from collections.abc import Callable
from itertools import groupby
from pathlib import Path

from flows.pull import section_of
from store.database import Clock, Store, wall_clock
from store.errors import InputError, SettingsError
from store.ingest import Tally, ingest
from store.quarantine import Quarantined, piece_id, pieces_of, release, texts_of
from store.records import Record, Rejected
from store.redaction import Redactor, redactor_for
from store.settings import Settings
from store.sources import read
from store.sources.contract import SourceOptions
from store.sources.files import Line, read_lines

_LINE_BYTES = 1 << 20
"""So much of a line is compared with what was kept of it."""


class Retried(Record):
    """What became of the quarantine."""

    tried: int
    """Pieces that were in quarantine."""
    left: int
    """Pieces that were read, and are in quarantine no more."""
    stays: tuple[str, ...]
    """Ids of those that cannot be read yet."""


def retry(
    store: Store,
    settings: Settings,
    *,
    format: str = "auto",
    source: str | None = None,
    clock: Clock = wall_clock,
    stored: Callable[[Tally], None] = lambda _tally: None,
) -> tuple[Tally, Retried]:
    """Read everything in quarantine again, with the settings as they are now; `format` and `source` outrank how it was read."""
    with store.read() as connection:
        pieces = pieces_of(connection, store.project)
    total, done = Tally(), list[str]()
    redactor = redactor_for(store, settings.policy)
    for path, group in groupby(pieces, key=lambda piece: piece.path):
        waiting = list(group)
        with store.read() as connection:
            texts = texts_of(connection, [piece.id for piece in waiting])
        options = [_options(settings, piece, source) for piece in waiting]
        formats = [piece.format or "auto" if format == "auto" else format for piece in waiting]
        readable = _in_file(store, Path(path), waiting, texts, formats[0], options[0], total, clock, redactor)
        for piece, name, option in zip(waiting, formats, options, strict=True):
            text = texts.get(piece.id, "")
            if piece.id in readable or (text and _alone(store, piece, text, name, option, total, clock, redactor)):
                done.append(piece.id)
        with store.write() as connection:
            release(connection, store.project, [id_ for id_ in done if id_ in texts])
        stored(total)
    stays = tuple(piece.id for piece in pieces if piece.id not in set(done))
    return total, Retried(tried=len(pieces), left=len(done), stays=stays)


def _options(settings: Settings, piece: Quarantined, source: str | None) -> SourceOptions:
    name = source or (piece.section if piece.section in settings.sources else None)
    found, section = section_of(settings, name)
    options = SourceOptions.of(section, project=settings.project, name=found)
    if piece.source is not None and found is None:
        options = options.model_copy(update={"source": piece.source})
    return options


def _in_file(
    store: Store,
    path: Path,
    waiting: list[Quarantined],
    texts: dict[str, str],
    format: str,
    options: SourceOptions,
    total: Tally,
    clock: Clock,
    redactor: Redactor,
) -> set[str]:
    """Ids of those pieces of a file that were read when it was read again as a whole."""
    if not path.is_file():
        return set()
    again = set[str]()
    try:
        items = read(path, format=format, options=options)
        done = ingest(
            store, items, clock=clock, redactor=redactor, rejected=lambda item: again.add(piece_id(store.project, item))
        )
    except InputError:
        return set()
    total.add(done)
    return {
        piece.id
        for piece in waiting
        if piece.id not in again and (piece.line is None or _stands(path, piece.line, texts.get(piece.id, "")))
    }


def _alone(
    store: Store,
    piece: Quarantined,
    text: str,
    format: str,
    options: SourceOptions,
    total: Tally,
    clock: Clock,
    redactor: Redactor,
) -> bool:
    """Read one piece by itself; whether all of it could be."""
    with tempfile.TemporaryDirectory(prefix="filmroom-retry-") as folder:
        file = Path(folder) / (Path(piece.path).name.removesuffix(".gz") or "piece")
        file.write_text(text, encoding="utf-8")
        try:
            items = list(read(file, format=format, options=options))
        except (InputError, SettingsError):
            return False
    if not items or any(isinstance(item, Rejected) for item in items):
        return False
    total.add(ingest(store, items, clock=clock, redactor=redactor))
    return True


def _stands(path: Path, line: int, text: str) -> bool:
    """Whether the line of a file is still, or was mended from, the piece that was kept: they begin and end alike."""
    first = text.split("\n", 1)[0].strip()
    there = _line(path, line).strip()
    shorter = min(len(first), len(there))
    if not shorter:
        return False
    alike = _common(first, there)
    alike += _common(first[alike:][::-1], there[alike:][::-1])
    return alike * 2 >= shorter


def _common(one: str, other: str) -> int:
    """How many characters two texts have in common at their beginning.

    >>> _common("abcd", "abxd")
    2
    """
    return next((at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))


def _line(path: Path, number: int) -> str:
    found = next((piece for piece in read_lines(path) if isinstance(piece, Line) and piece.number == number), None)
    return "" if found is None else found.data[:_LINE_BYTES].decode("utf-8", "replace")
