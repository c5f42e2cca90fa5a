"""Batches of OpenAI and Anthropic: the answers are in one file, in any order, and what was asked in another.

Both are joined by `custom_id` where they are in one folder. Only the place of each request is remembered, not its text.
"""

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from store.errors import InputError
from store.sources.contract import BadRecord
from store.sources.fields import as_id
from store.sources.files import Line, open_bytes, read_head, read_lines
from store.sources.payload import Object, object_of
from store.sources.sanitise import parse_json

_HEAD = 64 * 1024
_SUFFIXES = (".jsonl", ".json", ".ndjson", ".gz", ".txt")


class _Place(NamedTuple):
    path: Path
    offset: int
    digest: int


def is_openai_request(value: Object) -> bool:
    """Whether it is a line of an input file of OpenAI."""
    return "custom_id" in value and isinstance(value.get("body"), dict) and "url" in value


def is_openai_answer(value: Object) -> bool:
    """Whether it is a line of an output or error file of OpenAI; an expired request has no response."""
    return "custom_id" in value and "response" in value and "error" in value


def is_anthropic_request(value: Object) -> bool:
    """Whether it is one request of a batch of Anthropic."""
    return "custom_id" in value and isinstance(value.get("params"), dict)


def is_anthropic_answer(value: Object) -> bool:
    """Whether it is a line of the results of a batch of Anthropic."""
    return "custom_id" in value and "type" in object_of(value.get("result"))


def _is_request(value: Object) -> bool:
    return is_openai_request(value) or is_anthropic_request(value)


def _is_answer(value: Object) -> bool:
    return is_openai_answer(value) or is_anthropic_answer(value)


class Requests:
    """The requests and answers of the batch files beside one file."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._requests: dict[str, _Place | None] | None = None
        """None as a value: two files hold different requests of that id."""
        self._answered: set[str] | None = None

    def of(self, answer: Object) -> tuple[Object, Object]:
        """The request of an answer, empty where it is not known, and attributes that say why."""
        if self._requests is None:
            self._requests = {}
            self._look(self._requests)
        custom_id = as_id(answer.get("custom_id")) or ""
        place = self._requests.get(custom_id)
        if place is not None:
            return _request_at(place), {}
        ambiguous = custom_id in self._requests
        return {}, {"request": "different requests of this custom_id are in the folder" if ambiguous else None}

    def check_answered(self, request: Object) -> None:
        """Raises BadRecord for a request whose answer is in no file beside it: alone it says nothing of production."""
        if self._answered is None:
            self._answered = set()
            self._look_for_answers(self._answered)
        if as_id(request.get("custom_id")) not in self._answered:
            raise BadRecord("a request of a batch without its answer; put the batch's output file into the same folder")

    def _look(self, found: dict[str, _Place | None]) -> None:
        for file in self._siblings(_is_request):
            offset = 0
            for line in read_lines(file):
                if not isinstance(line, Line):
                    continue
                value = _object(line.data)
                if _is_request(value):
                    custom_id = as_id(value["custom_id"]) or ""
                    place = _Place(file, offset, hash(line.data.strip()))
                    known = found.get(custom_id, place)
                    found[custom_id] = place if known is not None and known.digest == place.digest else None
                offset += len(line.data)

    def _look_for_answers(self, found: set[str]) -> None:
        for file in self._siblings(_is_answer):
            for line in read_lines(file):
                value = _object(line.data) if isinstance(line, Line) else {}
                if _is_answer(value):
                    found.add(as_id(value["custom_id"]) or "")

    def _siblings(self, wanted: Callable[[Object], bool]) -> list[Path]:
        """The files of the folder whose first line is what is `wanted`."""
        files = [file for file in sorted(self._path.parent.iterdir()) if file.suffix.lower() in _SUFFIXES]
        found = []
        for file in files:
            if file == self._path or not file.is_file():
                continue
            try:
                first = _object(read_head(file, _HEAD).split(b"\n", 1)[0])
            except InputError:
                continue
            if wanted(first):
                found.append(file)
        return found


def _request_at(place: _Place) -> Object:
    with open_bytes(place.path) as stream:
        stream.seek(place.offset)
        value = _object(stream.readline())
    return object_of(value.get("body")) or object_of(value.get("params"))


def _object(data: bytes) -> Object:
    try:
        value = parse_json(data)
    except BadRecord:
        return {}
    return value if isinstance(value, dict) else {}
