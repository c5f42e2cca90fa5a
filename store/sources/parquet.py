"""Parquet: whose table it is by the names of its columns, and its rows, a few hundred at a time. Reading takes `pyarrow`."""

import re
from collections.abc import Iterable, Iterator
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

from pydantic import JsonValue

from store.errors import InputError
from store.sources.contract import Sample
from store.sources.json_records import JsonRecord
from store.sources.payload import packed
from store.sources.sanitise import clean

_MAGIC = b"PAR1"
_FOOTER_BYTES = 1024 * 1024
_ROWS = 200
_NAME = re.compile(rb"[A-Za-z][A-Za-z0-9_.]+")


def names_in(sample: Sample) -> set[str]:
    """The columns of a Parquet file; empty where it is none.

    Without `pyarrow` the words in its footer, among which they are, so that a file is recognised where it cannot be read, and
    what to install is said.
    """
    if not sample.head.startswith(_MAGIC):
        return set()
    try:
        from pyarrow import ArrowException, parquet

        return set(parquet.read_schema(sample.path).names)
    except ImportError:
        pass
    except (ArrowException, OSError, ValueError):
        return _words(sample)
    return _words(sample)


def has_columns(sample: Sample, wanted: Iterable[str]) -> bool:
    """Whether it is a Parquet file with these columns; also where it is damaged, or `pyarrow` is not there."""
    return sample.head.startswith(_MAGIC) and all(name.encode() in _footer(sample) for name in wanted)


def _words(sample: Sample) -> set[str]:
    return {found.decode("ascii") for found in _NAME.findall(_footer(sample))}


def _footer(sample: Sample) -> bytes:
    with sample.path.open("rb") as file:
        file.seek(max(0, file.seek(0, 2) - _FOOTER_BYTES))
        return file.read()


def parquet_rows(path: Path) -> Iterator[JsonRecord]:
    """The rows of a Parquet file, numbered from 1. Raises InputError where `pyarrow` is not there, or the file is damaged."""
    try:
        from pyarrow import ArrowException, parquet
    except ImportError as error:
        raise InputError(
            f"{path}: reading Parquet takes pyarrow: install filmroom[parquet], or export the file as JSONL"
        ) from error
    number = 0
    try:
        for batch in parquet.ParquetFile(path).iter_batches(batch_size=_ROWS):
            for row in batch.to_pylist():
                number += 1
                value: Any = {column: _plain(cell) for column, cell in row.items()}
                yield JsonRecord(number, value, packed(value))
    except (ArrowException, OSError, ValueError, OverflowError) as error:
        raise InputError(f"{path}: the Parquet file is damaged after {number} rows: {error}") from error


def _plain(cell: Any) -> JsonValue:
    """A cell of Arrow as JSON; what a structure lacks in this row is left out, a map is an object."""
    if isinstance(cell, (datetime, date)):
        return cell.isoformat()
    if isinstance(cell, Decimal):
        return float(cell)
    if isinstance(cell, bytes):
        return clean(cell.decode("utf-8", "replace"))
    if isinstance(cell, dict):
        return {str(name): _plain(item) for name, item in cell.items() if item is not None}
    if isinstance(cell, list):
        if cell and all(isinstance(item, tuple) and len(item) == 2 for item in cell):
            return {str(name): _plain(item) for name, item in cell}
        return [_plain(item) for item in cell]
    return clean(cell)
