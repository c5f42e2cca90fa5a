"""One engine per store, transactions that mean it on both databases, and foreign errors translated once."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Engine, Table, create_engine, event
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, NoSuchModuleError, OperationalError

from store.console_tables import metadata
from store.errors import SettingsError, StoreInUse, StoreMissing, StoreUnreachable
from store.migrations import check_revision, migrate
from store.tables import bodies

Clock = Callable[[], int]
"""Microseconds since 1970 UTC. Tests and the benchmark profile hand in their own."""

BUSY_TIMEOUT_MS = 30_000
JOURNAL_PAGES = 16_384
"""64 MiB of SQLite's journal before its pages go to the database's file: a page of an index changes in most transactions,
and is written there once for all of them."""


def wall_clock() -> int:
    """Now, in microseconds since 1970 UTC."""
    return time.time_ns() // 1000


class Store:
    """The open store of one project."""

    def __init__(self, engine: Engine, project: str) -> None:
        self.engine = engine
        self.project = project

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """A connection that sees one consistent state and changes nothing."""
        with _translated(self.engine.url), self.engine.connect() as connection:
            yield connection
            connection.rollback()

    @contextmanager
    def write(self) -> Iterator[Connection]:
        """One transaction: all of it or nothing. On SQLite it takes the write lock at once, so that it cannot deadlock."""
        with _translated(self.engine.url), self.engine.connect() as connection:
            writing = connection.execution_options(immediate=True)
            with writing.begin():
                yield writing

    def scrub(self) -> str | None:
        """Make what was deleted unreadable in the database's files, also what earlier changes left behind.

        None: done. Else why some of it may still be there.
        """
        with _translated(self.engine.url), self.engine.connect() as connection:
            plain = connection.execution_options(isolation_level="AUTOCOMMIT")
            if self.engine.dialect.name == "postgresql":
                for table in metadata.sorted_tables:
                    plain.exec_driver_sql(f"VACUUM (FULL) {table.name}")
                return "PostgreSQL's write-ahead log and your backups keep it until they are recycled"
            return _scrub_sqlite(plain)

    def close(self) -> None:
        self.engine.dispose()


def open_store(url: str, project: str = "default", *, create: bool = False) -> Store:
    """The store at `url`, at the newest schema.

    With `create` it is made and migrated where needed; without, reading never creates a database.
    Raises StoreMissing, StoreUnreachable, StoreTooNew or StoreOutdated.
    """
    engine = _engine(url)
    path = _sqlite_path(engine.url)
    if path is not None and not create and not path.exists():
        raise StoreMissing(f"no store at {path}: run `filmroom init` there first")
    if path is not None and not path.parent.is_dir():
        raise StoreUnreachable(f"{path.parent} is not a folder: make it, or change `[store] url`")
    try:
        with _translated(engine.url):
            if create:
                migrate(engine)
            check_revision(engine)
    except BaseException:
        engine.dispose()
        raise
    return Store(engine, project)


def insert_or_ignore(connection: Connection, table: Table, rows: list[dict[str, Any]]) -> int:
    """Insert the rows whose key is not there yet; returns how many were."""
    if not rows:
        return 0
    insert = postgresql.insert if connection.dialect.name == "postgresql" else sqlite.insert
    keys = list(table.primary_key.columns)
    # what comes back is counted: psycopg says -1 for the row count of such an insert
    statement = insert(table).on_conflict_do_nothing().returning(*keys)
    return len(connection.execute(statement, rows).all())


def upsert(connection: Connection, table: Table, row: dict[str, Any]) -> None:
    """Insert the row, or replace the one with the same primary key."""
    insert = postgresql.insert if connection.dialect.name == "postgresql" else sqlite.insert
    keys = [column.name for column in table.primary_key.columns]
    statement = insert(table).values(row)
    changed = {name: statement.excluded[name] for name in row if name not in keys}
    connection.execute(statement.on_conflict_do_update(index_elements=keys, set_=changed))


def _engine(url: str) -> Engine:
    try:
        parsed = make_url(url)
        if parsed.get_backend_name() == "sqlite":
            engine = create_engine(parsed, connect_args={"timeout": BUSY_TIMEOUT_MS / 1000})
            _mend_sqlite(engine)
            return engine
        return create_engine(parsed, pool_pre_ping=True)
    except (ArgumentError, NoSuchModuleError, ModuleNotFoundError) as error:
        raise SettingsError(f"[store] url {url!r} is not a database URL filmroom can use: {error}") from error


def _mend_sqlite(engine: Engine) -> None:
    """Let SQLAlchemy begin transactions, so that DDL rolls back with the rest; WAL, durable commits, foreign keys."""

    @event.listens_for(engine, "connect")
    def connected(connection: Any, _record: Any) -> None:
        connection.isolation_level = None
        cursor = connection.cursor()
        cursor.execute(f"PRAGMA busy_timeout={BUSY_TIMEOUT_MS}")
        if _is_ours(cursor):
            cursor.execute("PRAGMA journal_mode=WAL")
        cursor.execute("PRAGMA synchronous=FULL")
        cursor.execute("PRAGMA cache_size=-65536")
        cursor.execute(f"PRAGMA wal_autocheckpoint={JOURNAL_PAGES}")
        cursor.execute(f"PRAGMA journal_size_limit={JOURNAL_PAGES * 4096}")
        cursor.close()

    @event.listens_for(engine, "begin")
    def began(connection: Connection) -> None:
        immediate = connection.get_execution_options().get("immediate", False)
        connection.exec_driver_sql("BEGIN IMMEDIATE" if immediate else "BEGIN")


def _is_ours(cursor: Any) -> bool:
    """Whether the file is a store or empty: its journal's mode is kept in it, and another program's is not changed."""
    names = {name for (name,) in cursor.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    return not names or bodies.name in names


def _sqlite_path(url: URL) -> Path | None:
    if url.get_backend_name() != "sqlite" or not url.database or url.database == ":memory:":
        return None
    return Path(url.database)


def _scrub_sqlite(connection: Connection) -> str | None:
    """Rewrite the file without its free pages, and empty the journal."""
    driver: Any = connection.connection.driver_connection
    driver.execute("PRAGMA secure_delete=ON")
    driver.execute("VACUUM")
    busy = driver.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]
    return (
        "another process has the store open, so that its journal still holds it: end it, and run this again"
        if busy
        else None
    )


@contextmanager
def _translated(url: URL) -> Iterator[None]:
    try:
        yield
    except OperationalError as error:
        shown = url.render_as_string(hide_password=True)
        cause = str(error.orig).strip().splitlines()[0] if str(error.orig).strip() else type(error.orig).__name__
        if "locked" in cause or "lock timeout" in cause:
            raise StoreInUse(f"another process is writing to {shown}: wait for it to end ({cause})") from error
        raise StoreUnreachable(f"the store at {shown} does not answer: {cause}; check `[store] url`") from error
    except DBAPIError as error:
        if "file is not a database" not in str(error.orig):
            raise
        shown = url.render_as_string(hide_password=True)
        raise StoreUnreachable(f"{shown} is not a SQLite database; check `[store] url`") from error
