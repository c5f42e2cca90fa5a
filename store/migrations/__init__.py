"""Brings a store to the newest schema. Alembic does the work; each step and its record are one transaction."""

from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, Engine, inspect

from store.console_tables import metadata
from store.errors import StoreForeign, StoreMissing, StoreOutdated, StoreTooNew


def migrate(engine: Engine) -> None:
    """Apply what is pending; a store that is up to date is only read.

    Raises StoreTooNew or StoreForeign, leaving the store as it is, when a newer filmroom or another program wrote it.
    """
    with engine.connect() as connection:
        current = applied(connection)
        connection.rollback()
    if current == newest():
        return
    _refuse_unknown(engine, current)
    with engine.connect().execution_options(immediate=True) as connection, connection.begin():
        config = _config()
        config.attributes["connection"] = connection
        command.upgrade(config, "head")


def check_revision(engine: Engine) -> None:
    """Raises StoreMissing, StoreForeign, StoreOutdated or StoreTooNew unless the store is at the newest schema."""
    with engine.connect() as connection:
        current = applied(connection)
        connection.rollback()
    if current == newest():
        return
    shown = engine.url.render_as_string(hide_password=True)
    _refuse_unknown(engine, current)
    if current is None:
        raise StoreMissing(f"{shown} holds no filmroom store: run `filmroom init`")
    raise StoreOutdated(
        f"{shown} was written by an older filmroom (schema {current}): run `filmroom init` to migrate it"
    )


def applied(connection: Connection) -> str | None:
    """The schema revision of the store; None: there is none."""
    return MigrationContext.configure(connection).get_current_revision()


def newest() -> str:
    """The schema revision of this filmroom."""
    head = ScriptDirectory.from_config(_config()).get_current_head()
    if head is None:
        raise RuntimeError("no migration is packaged")
    return head


def _refuse_unknown(engine: Engine, revision: str | None) -> None:
    """Raises StoreForeign or StoreTooNew for a revision that is none of ours."""
    known = {script.revision for script in ScriptDirectory.from_config(_config()).walk_revisions()}
    if revision in known:
        return
    shown = engine.url.render_as_string(hide_password=True)
    if foreign := _foreign_tables(engine, revision):
        named = ", ".join(foreign[:3]) + (", ..." if len(foreign) > 3 else "")
        raise StoreForeign(f"{shown} holds tables of another program ({named}): name another database as `[store] url`")
    if revision is not None:
        raise StoreTooNew(f"{shown} was written by a newer filmroom (schema {revision}): upgrade filmroom")


def _foreign_tables(engine: Engine, revision: str | None) -> list[str]:
    """Tables in the way: a SQLite file is one program's, a PostgreSQL database may be shared while names differ."""
    names = set(inspect(engine).get_table_names()) - {"alembic_version"}
    ours = names & metadata.tables.keys()
    if revision is not None:
        return [] if ours else sorted(names) or ["alembic_version"]
    return sorted(names if engine.dialect.name == "sqlite" else ours)


def _config() -> Config:
    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent))
    return config
