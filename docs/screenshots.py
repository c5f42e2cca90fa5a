"""Takes the pictures in docs/screenshots: a season of the demo in which the colleague stops reviewing after a week.

    python docs/screenshots.py [--home FOLDER]

Needs Chromium on the machine. `--home`: a folder in which such a season was played before; it takes a minute to play one.
"""

import argparse
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "client")]  # a checkout need not be installed

from filmroom.demo.play import play_season  # noqa: E402  # after the path to it
from flows.workspace import Workspace, open_workspace  # noqa: E402
from store.change_page import change_page  # noqa: E402
from store.retrains import retrains_of  # noqa: E402
from store.settings import read_settings  # noqa: E402
from store.turns import turns_of  # noqa: E402
from tests.console_browser import DESKTOP, PHONE, Watched, chromium  # noqa: E402
from tests.console_home import console, correction_in, person  # noqa: E402

FOLDER = ROOT / "docs" / "screenshots"
LAST_REVIEW = 8


@contextmanager
def _quiet(_label: str, _total: int | None) -> Iterator[Callable[[int], None]]:
    yield lambda _amount: None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--home", type=Path, help="folder of a season that was played before")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="filmroom-screenshots-") as folder:
        home = arguments.home or Path(folder) / "season"
        if not (home / "filmroom.db").exists():
            play_season(home, progress=_quiet, last_review=LAST_REVIEW)
        with open_workspace(read_settings(home / "filmroom.toml"), actor="demo", create=True) as workspace:
            taken = take(_on_the_last_evening(workspace))
    print(f"{taken} pictures in {FOLDER}")  # noqa: T201 -- what the command prints


def take(workspace: Workspace) -> int:
    """Take every picture; returns how many."""
    cookie = person(workspace, "marit", "admin")
    shots = addresses(workspace)
    with console(workspace) as url, chromium() as browser:
        if browser is None:
            raise SystemExit("no Chromium on this machine: install chromium")
        desktop = Watched(browser, url, cookie, size=DESKTOP)
        for name, address in shots.items():
            _shoot(desktop, address, name)
        phone = Watched(browser, url, cookie, size=PHONE)
        for name in ("home", "correction", *(each for each in ("version",) if each in shots)):
            _shoot(phone, shots[name], f"{name}-phone")
        dark = Watched(browser, url, cookie, dark=True)
        for name in ("home", "correction"):
            _shoot(dark, shots[name], f"{name}-dark")
        wrong = desktop.wrong + phone.wrong + dark.wrong
        if wrong:
            raise SystemExit("\n".join(wrong))
    return len(shots) + 4 + ("version" in shots)


def addresses(workspace: Workspace) -> dict[str, str]:
    """Name of the picture to what is on it."""
    with workspace.store.read() as connection:
        changes = change_page(connection, workspace.project, target="tooling")
        promoted = [each for each in retrains_of(connection, workspace.project) if each.decision == "promoted"]
    found = {
        "home": "/",
        "review": "/review",
        "correction": f"/review/{correction_in(workspace, 'weights')}",
        "answer": f"/review/{correction_in(workspace, 'context')}",
        "bulk": "/review/bulk?target=weights",
        "changes": "/changes",
        "change": f"/changes/{changes[-1]['change']}",
        "why": f"/why/{changes[-1]['change']}",
        "releases": "/releases",
        "retrains": "/retrains",
        "traces": "/traces",
        "schedules": "/schedules?cron=0+3+*+*+1-5",
        "settings": "/settings",
    }
    if promoted:
        found["retrain"] = f"/retrains/{promoted[-1].id}"
        found["version"] = f"/versions/{promoted[-1].version}"
        found["compare"] = f"/compare?a={promoted[-1].parent}&b={promoted[-1].version}"
    return found


def _on_the_last_evening(workspace: Workspace) -> Workspace:
    """As if it were an hour after the last turn, so that the pictures are the same whenever they are taken."""
    with workspace.store.read() as connection:
        (last,) = turns_of(connection, workspace.project, 1)
    return workspace.acting(clock=lambda: last["started_us"] + 3_600_000_000)


def _shoot(seen: Watched, address: str, name: str) -> None:
    seen.page.goto(address)
    seen.settled()
    seen.page.wait_for_timeout(200)
    seen.page.screenshot(path=FOLDER / f"{name}.png")


if __name__ == "__main__":
    main()
