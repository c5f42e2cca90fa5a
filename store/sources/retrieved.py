"""What a retriever or a memory gave back, as a list of records."""

from pydantic import JsonValue

_LISTS = ("documents", "docs", "results", "records", "memories", "matches", "hits", "output", "nodes")
_TEXTS = ("page_content", "content", "text", "document", "body", "memory")
_MARKS = ("score", "metadata", "id", "distance")


def records_in(value: JsonValue) -> tuple[JsonValue, ...]:
    """The records of an output: the list it is, or the one under a usual name; none else.

    >>> records_in({"documents": [{"id": "d1"}]}), records_in("none found")
    (({'id': 'd1'},), ())
    """
    if isinstance(value, list):
        return tuple(value)
    if isinstance(value, dict):
        found = next((item for key in _LISTS if isinstance(item := value.get(key), list)), None)
        return tuple(found) if found is not None else ()
    return ()


def look_like_documents(records: tuple[JsonValue, ...]) -> bool:
    """Whether every record has a text and a score, an id or metadata.

    >>> look_like_documents(({"id": "d1", "text": "30 days", "score": 0.8},)), look_like_documents(({"id": 1},))
    (True, False)
    """
    return bool(records) and all(
        isinstance(item, dict) and any(key in item for key in _TEXTS) and any(key in item for key in _MARKS)
        for item in records
    )
