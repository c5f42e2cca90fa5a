"""The multipart body in which LangSmith's SDK sends runs: a part for each run, and for its inputs, outputs and more."""

import hashlib
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from store.records import Rejected
from store.sources.contract import BadRecord
from store.sources.files import MAX_RECORD_BYTES, read_chunks, reject, too_long
from store.sources.json_records import JsonRecord
from store.sources.payload import Object, object_of, packed
from store.sources.sanitise import parse_json

_NAME = re.compile(rb'content-disposition:[^\r\n]*?\bname="([^"]*)"', re.IGNORECASE)
_LENGTH = re.compile(rb"(?:content-)?length[:=]\s*(\d+)", re.IGNORECASE)
_START = re.compile(
    rb'--[^\r\n]{1,100}\r\ncontent-[^\0]{0,300}?\bname="(?:post|patch|feedback|attachment)\.', re.IGNORECASE
)
_END = b"\r\n\r\n"
_OPERATIONS = ("post", "patch")


class _Part(NamedTuple):
    line: int
    name: str
    data: bytes


def is_multipart(head: bytes) -> bool:
    """Whether a file begins as such a body."""
    return _START.match(head) is not None


def multipart_records(path: Path) -> Iterator[JsonRecord | Rejected]:
    """The runs of a body with all their parts, and its feedback; a part that cannot be read is rejected alone."""
    body = b""
    try:
        for chunk in read_chunks(path):
            body += chunk
            if len(body) > MAX_RECORD_BYTES:
                yield reject(path, 1, too_long("body"), body[:1000])
                return
    except BadRecord as error:
        yield reject(path, None, str(error))
        return
    runs: dict[tuple[str, str], tuple[int, Object]] = {}
    for part in _parts(body):
        try:
            yield from _take(part, runs)
        except BadRecord as error:
            yield reject(path, part.line, f"part {part.name!r}: {error}", part.data)
    if not body.rstrip().endswith(b"--"):
        yield reject(path, body.count(b"\n") + 1, "the body ends before its last part is closed; it may be cut off")
    for line, run in runs.values():
        yield JsonRecord(line, run, packed(run))


def _parts(body: bytes) -> Iterator[_Part]:
    boundary = body.split(b"\r\n", 1)[0]
    at, line = 0, 1
    while (start := body.find(boundary, at)) >= 0:
        line += body.count(b"\n", at, start)
        headers_end = body.find(_END, start)
        if headers_end < 0:
            return
        headers = body[start:headers_end]
        name, length = _NAME.search(headers), _LENGTH.search(headers)
        begin = headers_end + len(_END)
        closing = body.find(b"\r\n" + boundary, begin)
        end = begin + int(length[1]) if length else closing if closing >= 0 else len(body)
        if name:
            yield _Part(line, name[1].decode("latin-1"), body[begin:end])
        line += body.count(b"\n", start, end)
        at = end


def _take(part: _Part, runs: dict[tuple[str, str], tuple[int, Object]]) -> Iterator[JsonRecord]:
    """Add a part to its run; feedback stands for itself."""
    operation, _, rest = part.name.partition(".")
    run_id, _, field = rest.partition(".")
    if operation == "feedback":
        yield JsonRecord(part.line, object_of(parse_json(part.data)), part.data)
    if operation == "attachment":
        digest = f"data:;sha256={hashlib.sha256(part.data).hexdigest()[:16]};bytes={len(part.data)}"
        for kind in _OPERATIONS:
            if (kind, run_id) in runs:
                attachments = object_of(runs[kind, run_id][1].get("attachments"))
                runs[kind, run_id][1]["attachments"] = {**attachments, field: digest}
    if operation not in _OPERATIONS:
        return
    value = parse_json(part.data)
    _, run = runs.setdefault((operation, run_id), (part.line, {"id": run_id}))
    if field:
        run[field] = value
    else:
        run.update(object_of(value))
