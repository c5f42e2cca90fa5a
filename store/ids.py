"""Ids as people copy them: shortened where they were printed so, or of one entry of what is served."""

import re
from typing import Any

from sqlalchemy import Connection, select

from store.bodies import bodies_of, in_parts
from store.errors import NotFound
from store.tables import (
    changes,
    clusters,
    corrections,
    failures,
    holds,
    releases,
    retrains,
    reviews,
    routes,
    traces,
    versions,
)

SHORTEST = 8
"""Characters after the underscore from which a shortened id is looked for."""
SHOWN = 5
_WHOLE = 20
_KINDS: dict[str, Any] = {
    "trc": traces, "fail": failures, "clu": clusters, "cor": corrections, "rte": routes, "rev": reviews, "chg": changes,
    "ver": versions, "rel": releases, "ret": retrains, "hld": holds,
}  # fmt: skip
ENTRIES = {"rule": "rule", "ex": "example", "note": "note", "fact": "fact", "tkt": "ticket"}
"""Prefix of an entry of what is served to what it is."""
_SHORT = re.compile(r"([a-z]+)_([0-9a-f]{8,})")


def whole_id(connection: Connection, project: str, text: str) -> str:
    """The one id that `text` begins, from eight characters after the underscore on; else the text as it is.

    Raises NotFound where several begin so.
    """
    found = _SHORT.fullmatch(text)
    if found is None or len(found[2]) >= _WHOLE:
        return text
    begun = _begun(connection, project, found[1], text)
    if len(begun) > 1:
        more = f" and {len(begun) - SHOWN} more" if len(begun) > SHOWN else ""
        raise NotFound(f"{text} begins several ids: {', '.join(begun[:SHOWN])}{more}: give more of it")
    return begun[0] if begun else text


def changes_of_entry(connection: Connection, project: str, key: str) -> list[str]:
    """The changes that made or changed a rule, example, note, fact, ticket or a tool's policy, oldest first."""
    if key.split("_", 1)[0] in _KINDS:
        return []
    return [id_ for id_, keys in _entries(connection, project) if key in keys]


def _begun(connection: Connection, project: str, prefix: str, text: str) -> list[str]:
    if prefix in ENTRIES:
        return sorted({key for _, keys in _entries(connection, project) for key in keys if key.startswith(text)})
    table = _KINDS.get(prefix)
    if table is None:
        return []
    statement = select(table.c.id).where(table.c.project == project, table.c.id.startswith(text, autoescape=True))
    return list(connection.execute(statement.order_by(table.c.id).limit(10 * SHOWN)).scalars())


def _entries(connection: Connection, project: str) -> list[tuple[str, set[str]]]:
    """Changes of context, memory and tooling, oldest first, and the keys of what each is about."""
    statement = select(changes.c.id).where(changes.c.project == project, changes.c.target != "weights")
    ids = list(connection.execute(statement.order_by(changes.c.applied_us, changes.c.id)).scalars())
    values: dict[str, Any] = {}
    for part in in_parts(ids, 500):
        values.update(bodies_of(connection, part))
    return [(id_, {each["key"] for each in values[id_]}) for id_ in ids if id_ in values]
