"""Feedback that its file revises without saying when: the order in the file says which is the later.

Across files there is no such order: `store.merging` settles it by this number, and then by what is said.
"""

from collections.abc import Iterable, Iterator
from zlib import crc32

from store.records import Feedback, Rejected, Span, Trace

Item = Trace | Span | Feedback | Rejected

REVISION = "revision"
"""Attribute of feedback: the number of what its log says under one id without a time; absent: 1."""


def numbered(items: Iterable[Item]) -> Iterator[Item]:
    """The items of one file; feedback without a time that revises an earlier one has its number.

    A short hash for each id of such feedback is remembered, which grows with the file.

    >>> said = {"source": "s", "trace_external_id": "1", "external_id": "f"}
    >>> [item.attributes for item in numbered([Feedback(**said, score=0), Feedback(**said, score=1)])]
    [{}, {'revision': 2}]
    """
    seen: dict[bytes, tuple[int, int]] = {}
    for item in items:
        if not isinstance(item, Feedback) or item.given_us is not None or REVISION in item.attributes:
            yield item
            continue
        key = bytes.fromhex(item.id.rpartition("_")[2])
        said = crc32(item.model_dump_json().encode())
        number, before = seen.get(key, (0, -1))
        number += said != before
        seen[key] = number, said
        yield item if number == 1 else item.model_copy(update={"attributes": {**item.attributes, REVISION: number}})


def revision_of(attributes: object) -> int:
    """The number in feedback's attributes; 1 where there is none.

    >>> revision_of({"revision": 2}), revision_of({"revision": "new"}), revision_of(None)
    (2, 1, 1)
    """
    number = attributes.get(REVISION) if isinstance(attributes, dict) else None
    return number if isinstance(number, int) and not isinstance(number, bool) else 1
