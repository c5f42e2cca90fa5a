"""What the other tests stand on: an empty store each, a server that leaves nothing behind, an environment of their own."""

import os
import tempfile
from pathlib import Path

import psycopg
import pytest
import sqlalchemy as sa

from tests.postgres import Server, find_programs, running


def tables(url: str) -> list[str]:
    engine = sa.create_engine(url)
    try:
        return sa.inspect(engine).get_table_names()
    finally:
        engine.dispose()


@pytest.mark.parametrize("turn", [1, 2])
def test_each_test_finds_its_store_empty(store_url: str, turn: int) -> None:
    assert tables(store_url) == []
    engine = sa.create_engine(store_url)
    with engine.begin() as connection:
        connection.execute(sa.text(f"CREATE TABLE turn_{turn} (id INTEGER)"))
    engine.dispose()
    assert tables(store_url) == [f"turn_{turn}"]


def test_a_database_is_dropped_under_whoever_is_connected(postgres: Server) -> None:
    with postgres.database() as url:
        connection = psycopg.connect(url.replace("+psycopg", ""))
    with pytest.raises(psycopg.OperationalError):
        connection.execute("SELECT 1")
    connection.close()


def folders() -> set[Path]:
    return set(Path(tempfile.gettempdir()).glob("filmroom-postgres-*"))


def test_a_server_that_ends_leaves_nothing(postgres: Server) -> None:
    programs = find_programs()
    assert programs is not None
    before = folders()
    with running(programs) as server:
        (folder,) = folders() - before
        assert server.port != postgres.port
    assert not folder.exists()
    with pytest.raises(psycopg.OperationalError):
        server.connect()


def test_no_setting_of_the_user_reaches_the_tests() -> None:
    theirs = [name for name in os.environ if name.startswith("FILMROOM_") and not name.startswith("FILMROOM_TEST_")]
    assert theirs == []
    assert "PREFECT_API_URL" not in os.environ
    assert Path(os.environ["PREFECT_HOME"]).parent == Path(tempfile.gettempdir())
