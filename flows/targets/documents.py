"""Context and tooling are documents: a list of keyed entries a section, changed by deltas, never rewritten whole."""

from collections.abc import Callable, Sequence
from typing import Any, Literal

from sqlalchemy import Connection

from flows.targets.contract import Served
from store.errors import Refused
from store.records import Change, Operation, Release, Version
from store.releases import put_version, version

Document = dict[str, list[dict[str, Any]]]
Section = tuple[str, str]
"""Name of the section, and of the field that is the key of its entries."""
Sections = Callable[[Operation], Section]
"""From a delta to the section of its entry."""


def changed(document: Document, operations: Sequence[Operation], sections: Sections) -> Document:
    """The document with the deltas applied; entries that no delta names are kept word for word.

    Raises Refused for adding a key that is there, or changing one that is not.
    """
    result = {name: list(entries) for name, entries in document.items()}
    for operation in operations:
        section, key = sections(operation)
        entries = result.setdefault(section, [])
        at = next((i for i, entry in enumerate(entries) if entry[key] == operation.key), None)
        if operation.verb in ("add", "ticket_open") and at is not None:
            raise Refused(f"{operation.target} already has {operation.key}: edit it instead of adding it again")
        if operation.verb in ("add", "ticket_open"):
            entries.append({**operation.value, key: operation.key})
            continue
        if at is None:
            raise Refused(f"{operation.target} has no {operation.key}: it was retired meanwhile")
        if operation.verb == "retire":
            entries.pop(at)
            continue
        entries[at] = {**operation.value, key: operation.key}
    return result


def inverse(before: Document, after: Document, operations: Sequence[Operation], sections: Sections) -> list[Operation]:
    """The deltas that take `operations` back, last first.

    `before` and `after`: the document around the change, from which removed and edited entries are restored.
    """
    back: list[Operation] = []
    for operation in reversed(operations):
        section, key = sections(operation)
        old = _entry(before, section, key, operation.key)
        if old is None:
            back.append(operation.model_copy(update={"verb": "retire", "value": {}}))
            continue
        gone = _entry(after, section, key, operation.key) is None
        back.append(operation.model_copy(update={"verb": "add" if gone else "edit", "value": old}))
    return back


def serve(
    connection: Connection,
    current: Release,
    target: Literal["context", "tooling"],
    document: Document,
    *,
    now_us: int,
) -> Served:
    """A release like the current one with this document in the target's place."""
    before = current.context if target == "context" else current.tooling
    new = Version(project=current.project, target=target, content=document, parent=before, created_us=now_us)
    after = put_version(connection, new)
    return Served(before, after, following(current, now_us, **{target: after}))


def following(current: Release, now_us: int, **changed: Any) -> Release:
    """The release after `current`; actor and reason are filled in by whoever makes it live."""
    update = {"parent": current.id, "number": current.number + 1, "created_us": now_us, **changed}
    return current.model_copy(update=update)


def content(connection: Connection, version_id: str) -> Document:
    """The document of a version."""
    value: Any = version(connection, version_id).content
    return value  # type: ignore[no-any-return]


def taken_back(connection: Connection, live_version: str, change: Change, sections: Sections) -> Document:
    """The live document without this change. Raises Refused where a later change edited the same entry."""
    before, after = content(connection, change.before), content(connection, change.after)
    now = content(connection, live_version)
    for operation in change.operations:
        section, key = sections(operation)
        if _entry(now, section, key, operation.key) != _entry(after, section, key, operation.key):
            raise Refused(f"{operation.key} was changed again since: undo the later change first")
    return changed(now, inverse(before, after, change.operations, sections), sections)


def entries_of(document: Document, key: str) -> list[dict[str, Any]]:
    """The entries that go by this key, in every section."""
    return [entry for entries in document.values() for entry in entries if key in (entry.get("id"), entry.get("tool"))]


def _entry(document: Document, section: str, key: str, value: str) -> dict[str, Any] | None:
    return next((entry for entry in document.get(section, []) if entry[key] == value), None)
