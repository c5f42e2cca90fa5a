"""Every format that is read, and which of them a file has. A new system is one file beside this one and one line here."""

from collections.abc import Iterator
from pathlib import Path

from store.errors import InputError, SourceEmpty, SourceMissing, UnknownFormat
from store.revisions import numbered
from store.sources import (
    anthropic,
    atif,
    chat_runs,
    langfuse,
    langsmith,
    mlflow,
    native,
    openai,
    opik,
    otlp,
    phoenix,
    tabular,
    tensorzero,
    weave,
)
from store.sources.contract import BadRecord, Item, Reader, Sample, SourceOptions, with_origin
from store.sources.files import GZIP_MAGIC, files_of, is_binary, read_head, reject
from store.sources.json_records import HEAD_BYTES, take_sample
from store.sources.meter import Meter
from store.sources.rows import header_of
from store.sources.sanitise import decode_utf8

READERS: tuple[Reader, ...] = (
    native,
    otlp,
    phoenix,
    langfuse,
    mlflow,
    langsmith,
    openai,
    anthropic,
    opik,
    weave,
    tensorzero,
    atif,
    chat_runs,
    tabular,
)

FORMATS: tuple[str, ...] = tuple(reader.name for reader in READERS)

_BINARY = "it is binary, and no log that is read: export it as JSONL or CSV"
_PARQUET = "a Parquet file of no system that is known; export it as JSONL or CSV"
_OTHER = {
    b"PK\x03\x04": "a ZIP archive (or a spreadsheet); unpack it, or export it as CSV",
    b"SQLite format 3": "an SQLite database; export the table as JSONL or CSV",
    b"\xff\xfe": "UTF-16 text; convert it, for example with `iconv -f utf-16 -t utf-8`",
    b"\xfe\xff": "UTF-16 text; convert it, for example with `iconv -f utf-16 -t utf-8`",
    GZIP_MAGIC: "gzip inside gzip; unpack it once",
    b"(\xb5/\xfd": "a Zstandard file; unpack it",
    b"BZh": "a bzip2 file; unpack it",
}


def recognise(path: Path) -> Reader:
    """The reader of a file, or of the first readable file of a folder.

    Raises SourceMissing, SourceEmpty, UnknownFormat where no reader or more than one recognises it, and InputError for a
    folder that holds nothing readable.
    """
    if not path.is_dir():
        return _recognise_file(path)
    first: str | None = None
    for file in files_of(path):
        try:
            return _recognise_file(file)
        except (UnknownFormat, SourceEmpty) as error:
            first = first or str(error)
    raise InputError(f"{path}: nothing readable in this folder" + (f"; {first}" if first else ", it holds no files"))


def read(
    path: Path, *, format: str = "auto", options: SourceOptions | None = None, meter: Meter | None = None
) -> Iterator[Item]:
    """The records of a file, or of every file of a folder in name order; what cannot be read comes as `Rejected`.

    `meter` follows how far it is.

    Raises what `recognise` raises, and MappingError where the columns do not fit, at the first record; inside a folder
    such a file is rejected as a whole and the others are read.
    """
    options = options or SourceOptions()
    meter = meter or Meter(path)
    named = None if format == "auto" else reader_named(format)
    if path.is_dir():
        yield from _read_folder(path, named, options, meter)
        return
    _check_content(path)
    reader = named or _for_file(path, options)
    if reader is tabular and is_binary(read_head(path, HEAD_BYTES)):
        raise UnknownFormat(f"{path}: {_BINARY}")
    meter.begin(path)
    yield from with_origin(numbered(reader.read(path, options)), reader.name, options)
    meter.end()


def _read_folder(folder: Path, named: Reader | None, options: SourceOptions, meter: Meter) -> Iterator[Item]:
    if named is None and not options.columns:
        recognise(folder)
    for file in files_of(folder):
        meter.begin(file)
        try:
            _check_content(file)
            reader = named or _for_file(file, options)
            yield from with_origin(numbered(reader.read(file, options)), reader.name, options)
        except SourceEmpty:
            continue
        except InputError as error:
            yield reject(file, None, str(error))
    meter.end()


def reader_named(format: str) -> Reader:
    """The reader of this name. Raises UnknownFormat."""
    for reader in READERS:
        if reader.name == format:
            return reader
    raise UnknownFormat(f"there is no format {format!r}; the formats are auto, {', '.join(FORMATS)}")


def _for_file(path: Path, options: SourceOptions) -> Reader:
    """The recognised reader; where columns are mapped, only a table can be meant."""
    return tabular if options.columns else _recognise_file(path)


def _recognise_file(path: Path) -> Reader:
    _check_content(path)
    sample = take_sample(path)
    found = [(reader, phrase) for reader in READERS if (phrase := reader.recognise(sample))]
    if len(found) > 1:  # a table is any object with usual column names: a format that says more is meant
        found = [(reader, phrase) for reader, phrase in found if reader is not tabular]
    if len(found) == 1:
        return found[0][0]
    if not found and is_binary(sample.head):
        raise UnknownFormat(f"{path}: {_BINARY}")
    if found:
        meant = "; ".join(f"{reader.name} ({phrase})" for reader, phrase in found)
        raise UnknownFormat(f"{path}: it could be {meant}; name one with --format")
    _check_utf8(path, sample.head)
    raise UnknownFormat(
        f"{path}: not recognised, {_seen(sample)}; the formats are {', '.join(FORMATS)}, named with --format"
    )


def _check_utf8(path: Path, head: bytes) -> None:
    """Raise UnknownFormat where the beginning of a file is text in another encoding; its end may be cut within a letter."""
    whole = head[: max(head.rfind(b"\n"), 0)] or head[: len(head) - 3]
    try:
        decode_utf8(whole)
    except BadRecord as error:
        raise UnknownFormat(f"{path}: {error}") from error


def _check_content(path: Path) -> None:
    if not path.exists():
        raise SourceMissing(f"{path}: no such file")
    head = read_head(path, HEAD_BYTES)
    other = next((what for magic, what in _OTHER.items() if head.startswith(magic)), None)
    if other is not None:
        raise UnknownFormat(f"{path}: it is {other}")
    if head.strip():
        return
    damaged = path.stat().st_size and "it holds nothing that can be read, or its gzip stream is damaged"
    raise SourceEmpty(f"{path}: {damaged or 'the file is empty'}")


def _seen(sample: Sample) -> str:
    """What a file that no reader recognises looks like."""
    if sample.head.startswith(b"PAR1"):
        return f"it is {_PARQUET}"
    if sample.objects:
        return f"its JSON objects have the fields {', '.join(list(sample.objects[0])[:12]) or 'none'}"
    if sample.values:
        return "its JSON values are not objects"
    header = header_of(sample)
    if len(header) > 1:
        return f"a table with the columns {', '.join(header[:12])}: map them with `columns` under [sources.NAME]"
    return f"it begins with {sample.head[:40]!r}"
