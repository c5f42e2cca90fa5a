"""Many rows in few statements, past SQLAlchemy's work for every single value; the same on both databases.

A statement with many rows runs as one step of the database, outside Python's lock: with a statement a row, a thread that
writes would wait for that lock once a row while others compute.
"""

from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import chain
from typing import Any

import orjson
from sqlalchemy import ARRAY, Connection, Dialect, Select, String, Table, bindparam, column, func, literal, select

ROWS = 100
"""Rows a statement; with the widest table 2,300 values, where SQLite allows 32,766."""


def insert_rows(
    connection: Connection, table: Table, columns: tuple[str, ...], rows: Sequence[tuple[Any, ...]]
) -> None:
    """Insert rows that are not there yet, each a tuple in the order of `columns`. No column's type may need conversion."""
    for start in range(0, len(rows), ROWS):
        part = rows[start : start + ROWS]
        statement = _insert(connection.dialect, table, columns, len(part))
        connection.exec_driver_sql(statement, tuple(chain.from_iterable(part)))


def digests_of(connection: Connection, table: Table, ids: Iterable[str]) -> dict[str, str]:
    """Id to digest, for those of the ids that the table has."""
    wanted = list(ids)
    if not wanted:
        return {}
    if connection.dialect.name == "sqlite":
        listed = func.json_each(bindparam("ids")).table_valued(column("value", String))
        statement = select(table.c.id, table.c.digest).where(table.c.id.in_(select(listed.c.value)))
        found = connection.execute(statement, {"ids": orjson.dumps(wanted).decode()})
    else:
        statement = select(table.c.id, table.c.digest).where(table.c.id == func.any(literal(wanted, ARRAY(String))))
        found = connection.execute(statement)
    return {row[0]: row[1] for row in found}


def listed(connection: Connection, values: Iterable[str]) -> Select[tuple[str]]:
    """The values as a subquery for `in_`: one parameter, however many there are."""
    if connection.dialect.name == "sqlite":
        each = func.json_each(orjson.dumps(list(values)).decode()).table_valued(column("value", String))
        return select(each.c.value)
    return select(func.unnest(literal(list(values), ARRAY(String))))


@lru_cache(maxsize=1024)
def _insert(dialect: Dialect, table: Table, columns: tuple[str, ...], rows: int) -> str:
    names = ", ".join(dialect.identifier_preparer.quote(name) for name in columns)
    mark = "?" if dialect.paramstyle == "qmark" else "%s"
    row = f"({', '.join([mark] * len(columns))})"
    # names of our own tables and marks, never a value
    return f"INSERT INTO {dialect.identifier_preparer.format_table(table)} ({names}) VALUES {', '.join([row] * rows)}"  # noqa: S608
