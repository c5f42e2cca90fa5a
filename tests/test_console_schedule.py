"""A running schedule from the console in a browser: run, pause, resume, another cron, through Prefect's API."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from flows.schedule import list_schedules, runs_logged
from flows.workspace import Workspace, open_workspace
from tests.console_browser import Watched
from tests.console_home import console, person
from tests.schedule_home import TURN_S, Home, wait_until
from tests.test_console_browser import browser

__all__ = ["browser"]

pytestmark = [pytest.mark.slow, pytest.mark.prefect]


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Home]:
    home = Home(tmp_path / "home")
    try:
        home.start()
        yield home
    finally:
        home.end()


@pytest.fixture
def workspace(running: Home) -> Iterator[Workspace]:
    with open_workspace(running.settings, actor="staff:ann", create=True) as opened:
        yield opened


def test_a_schedule_is_run_paused_resumed_and_given_another_rhythm(
    running: Home, workspace: Workspace, browser: Browser
) -> None:
    with console(workspace) as url:
        seen = Watched(browser, url, person(workspace, "root", "admin"))
        page = seen.page
        page.goto("/schedules")
        page.get_by_text("every 1 h").first.wait_for()
        page.get_by_role("button", name="Pause").click()
        page.get_by_text("is paused").wait_for(timeout=60_000)
        paused = list_schedules(running.settings)[0].state
        page.get_by_role("button", name="Resume").click()
        page.get_by_text("turns again").wait_for(timeout=60_000)
        page.get_by_role("button", name="Run now").click()
        page.get_by_text("A turn is asked for").wait_for(timeout=60_000)
        wait_until(lambda: running.turns, TURN_S)
        wait_until(lambda: any(each.lines for each in runs_logged(running.settings)), TURN_S)
        page.get_by_label("Cron").fill("0 3 * * 1-5")
        page.get_by_role("button", name="Show the next five times").click()
        page.get_by_role("button", name="Turn at these times").click()
        page.get_by_text("It turns at 0 3 * * 1-5").wait_for(timeout=60_000)
        now = list_schedules(running.settings)[0]
        page.goto("/schedules")
        runs = page.get_by_role("link", name="on Prefect's page").count()
        logged = page.locator("details.run[open] .log").inner_text()
        page.goto(f"/schedules/runs/{runs_logged(running.settings)[0].run.id}")
        whole = page.locator(".log").inner_text()
        foreign = [each for each in seen.wrong if not each.startswith("console: Failed to load")]
        seen.close()
    assert ("info" in logged, logged in whole) == (True, True)
    assert (paused, now.state, now.cron, runs > 0, foreign) == ("paused", "active", "0 3 * * 1-5", True, [])
