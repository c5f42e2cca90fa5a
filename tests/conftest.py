"""What every test may ask for: a store of either kind, and the folder of real data.

The environment is set before anything imports Prefect, which reads it once: no server of the user's is reached, nothing
is written to their home, nothing is reported. Their `FILMROOM_*` settings do not reach the tests either.

`FILMROOM_TEST_PEERS` is read by `tests.peers`.
`FILMROOM_TEST_POSTGRES`: `0` leaves the tests on PostgreSQL out, `1` makes a missing server a failure and not a skip.
"""

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.postgres import Server, find_programs, running

if TYPE_CHECKING:
    from tests.commands import Run

SHARED = Path(__file__).resolve().parent.parent.parent / "shared"
PREFECT_HOME = Path(tempfile.mkdtemp(prefix="filmroom-prefect-"))
POSTGRES = os.environ.get("FILMROOM_TEST_POSTGRES", "")

for name in [name for name in os.environ if name.startswith(("FILMROOM_", "PREFECT_"))]:
    if not name.startswith("FILMROOM_TEST_"):
        del os.environ[name]
os.environ |= {
    "PREFECT_HOME": str(PREFECT_HOME),
    "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
    "PREFECT_SERVER_UI_SHOW_PROMOTIONAL_CONTENT": "false",
    "DO_NOT_TRACK": "1",
}

LONG = ("schedule", "console_browser", "season", "pull", "console_schedule", "merging", "live", "ingest_killed",
        "command_line", "poisoned", "console", "retrain", "engine", "acceptance")  # fmt: skip
"""Files that take longest, first: begun last, each would keep one worker busy while the others have nothing left."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    places = {f"test_{name}": place for place, name in enumerate(LONG)}
    items.sort(key=lambda item: places.get(item.path.stem, len(LONG)))


def pytest_unconfigure() -> None:
    shutil.rmtree(PREFECT_HOME, ignore_errors=True)


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder `shared` beside the repository, with real data; the test is skipped where there is none."""
    if not SHARED.is_dir():
        pytest.skip(f"no real data: {SHARED} is not there")
    return SHARED


@pytest.fixture(scope="session")
def postgres() -> Iterator[Server]:
    """A PostgreSQL server for the whole session."""
    if POSTGRES == "0":
        pytest.skip("PostgreSQL is left out by FILMROOM_TEST_POSTGRES=0")
    programs = find_programs()
    if programs is None:
        unavailable = pytest.fail if POSTGRES == "1" else pytest.skip
        unavailable("no PostgreSQL: initdb is neither on PATH nor in /usr/lib/postgresql; install postgresql")
    with running(programs) as server:
        yield server


@pytest.fixture
def sqlite_url(tmp_path: Path) -> str:
    """The URL of a SQLite file that does not exist yet."""
    return f"sqlite:///{tmp_path / 'filmroom.db'}"


@pytest.fixture
def postgresql_url(postgres: Server) -> Iterator[str]:
    """The URL of an empty PostgreSQL database of this test's own."""
    with postgres.database() as url:
        yield url


@pytest.fixture(params=["sqlite", "postgresql"])
def store_url(request: pytest.FixtureRequest) -> str:
    """The URL of an empty store, once of each kind."""
    url: str = request.getfixturevalue(f"{request.param}_url")
    return url


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> "Run":
    """One command in the test's own folder."""
    from tests.commands import runner

    monkeypatch.chdir(tmp_path)
    return runner(capfd)
