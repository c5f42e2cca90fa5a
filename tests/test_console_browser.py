"""A day at the console in a real browser: by keyboard, on a desktop and on a phone, with nothing on it that should not be."""

import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, ViewportSize

from flows.workspace import Workspace
from store.corrections import correction
from store.releases import live_release, releases_of
from store.retrains import retrains_of
from tests.console_browser import DESKTOP, PHONE, Watched, chromium
from tests.console_home import console, correction_in, person, reviewing
from tests.live_server import two_models
from tests.shop_log import said, take_in, trace

WANTED = os.environ.get("FILMROOM_TEST_BROWSER", "")
AXE = (Path(__file__).parent / "vendor" / "axe.min.js").read_text(encoding="utf-8")

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    if WANTED == "0":
        pytest.skip("the browser is left out by FILMROOM_TEST_BROWSER=0")
    with chromium() as found:
        if found is None:
            unavailable = pytest.fail if WANTED == "1" else pytest.skip
            unavailable("no Chromium on this machine: install chromium")
        yield found


@pytest.fixture
def home(tmp_path: Path) -> Iterator[tuple[Workspace, str]]:
    """A queue of 28 corrections, each for one reviewer."""
    with reviewing(tmp_path, tools=24) as workspace, console(workspace) as url:
        yield workspace, url


def state_of(workspace: Workspace, id_: str) -> str:
    with workspace.store.read() as connection:
        return correction(connection, workspace.project, id_).state


def id_in(url: str) -> str:
    found = re.search(r"/review/(cor_[0-9a-f]+)", url)
    assert found, url
    return found[1]


@pytest.mark.parametrize("size", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_a_day_of_reviews_by_keyboard(home: tuple[Workspace, str], browser: Browser, size: ViewportSize) -> None:
    """Log in, twenty verdicts by key, undo, all of a filter, the change live, roll back."""
    workspace, url = home
    person(workspace, "root", "admin")
    seen = Watched(browser, url, None, size=size)
    page = seen.page
    page.goto("/review")
    page.keyboard.type("root")
    page.keyboard.press("Tab")
    page.keyboard.type("a long password")
    page.keyboard.press("Enter")
    page.wait_for_url("**/review")
    seen.press("n")
    given = []
    for number in range(20):
        given.append(id_in(page.url))
        needs = page.locator("textarea[data-needed]").count() > 0
        seen.press("r" if needs or number % 3 == 1 else "d" if number % 7 == 5 else "a")
    states = {state_of(workspace, id_) for id_ in given}
    last = state_of(workspace, given[-1])
    page.keyboard.press("u")
    page.get_by_text("Taken back").wait_for()
    seen.settled()
    undone = state_of(workspace, given[-1])
    with workspace.store.read() as connection:
        live = live_release(connection, workspace.project)
    assert (len(set(given)), states, last != undone) == (20, {"applied", "rejected", "deferred"}, True)
    assert live.number > 5
    _bulk(seen, workspace)
    _look_back(seen, workspace)
    assert seen.wrong == []
    seen.close()


def _bulk(seen: Watched, workspace: Workspace) -> None:
    """Approve all of a filter after its preview, then take all of it back."""
    page = seen.page
    page.goto("/review?show=queued&target=tooling")
    page.get_by_role("link", name=re.compile("Decide all")).click()
    page.get_by_role("heading", name=re.compile("Decide [0-9]+ corrections at once")).wait_for()
    page.get_by_role("button", name=re.compile("Do it for")).click()
    heading = page.get_by_role("heading", name=re.compile("done, 0 left as they were"))
    heading.wait_for()
    seen.settled()
    first = page.locator("ul.ids a").first.get_attribute("title") or ""
    before = state_of(workspace, first)
    page.keyboard.press("u")
    page.get_by_text("taken back").wait_for()
    seen.settled()
    assert (before, state_of(workspace, first)) == ("applied", "reverted")


def _look_back(seen: Watched, workspace: Workspace) -> None:
    """See a change live and why, go through the retrains, compare two models, roll a release back."""
    page = seen.page
    page.goto("/changes?state=live")
    page.locator("a[data-row]").first.click()
    page.get_by_role("heading", name="Does it hold?").wait_for()
    page.get_by_role("link", name="why", exact=True).first.click()
    page.locator("svg.chain").wait_for()
    first, second = two_models(workspace)
    page.goto("/retrains")
    with workspace.store.read() as connection:
        weighed = retrains_of(connection, workspace.project)
        earlier = releases_of(connection, workspace.project)[3]
    assert page.locator("ol.history > li").count() == len(weighed) > 0
    page.goto(f"/compare?a={first}&b={second}")
    page.get_by_text("newly wrong").first.wait_for()
    page.goto(f"/releases/{earlier.id}")
    page.get_by_label("Why").fill("it went wrong")
    page.get_by_role("button", name=re.compile("Roll back")).click()
    page.get_by_text("Rolled back").wait_for()
    with workspace.store.read() as connection:
        now = live_release(connection, workspace.project)
    assert (now.context, now.tooling, now.reason) == (earlier.context, earlier.tooling, "it went wrong")


def test_two_blind_reviewers_disagree_and_a_third_settles_it(tmp_path: Path, browser: Browser) -> None:
    with reviewing(tmp_path, reviewers=2) as workspace, console(workspace) as url:
        id_ = correction_in(workspace, "tooling")
        ann, bob, eva = (Watched(browser, url, person(workspace, name)) for name in ("ann", "bob", "eva"))
        ann.page.goto(f"/review/{id_}")
        ann.press("a")
        bob.page.goto(f"/review/{id_}")
        hidden = bob.page.content()
        bob.press("r")
        eva.page.goto("/review?show=adjudicate")
        eva.page.locator("a[data-row]").first.click()
        eva.page.get_by_text("your verdict settles it").wait_for()
        shown = eva.page.content()
        between = state_of(workspace, id_)
        eva.press("a")
        eva.page.goto("/review/agreement")
        eva.page.get_by_text("staff:ann and staff:bob").wait_for()
        assert ("staff:ann: <strong>approve" in hidden, "Blind" in hidden) == (False, True)
        assert ("staff:ann: <strong>approve" in shown, "staff:bob: <strong>reject" in shown) == (True, True)
        assert (between, state_of(workspace, id_)) == ("proposed", "applied")
        assert ann.wrong + bob.wrong + eva.wrong == []
        for each in (ann, bob, eva):
            each.close()


def test_a_rule_is_written_by_keyboard_beside_what_people_said(home: tuple[Workspace, str], browser: Browser) -> None:
    workspace, url = home
    id_ = correction_in(workspace, "context")
    seen = Watched(browser, url, person(workspace, "ann"))
    seen.page.goto(f"/review/{id_}")
    beside = seen.page.locator(".corrected").inner_text()
    seen.page.keyboard.press("a")
    empty = seen.page.locator("#answer").input_value()
    seen.page.keyboard.type("Always offer a voucher before you cancel.")
    seen.page.keyboard.press("Escape")
    seen.press("a")
    with workspace.store.read() as connection:
        found = correction(connection, workspace.project, id_)
    assert found.proposal is not None
    assert ("offer a voucher" in beside, empty, found.state) == (True, "", "applied")
    assert found.proposal.operations[0].value["argument"] == "Always offer a voucher before you cancel."
    assert found.proposal.operations[0].value["author"] == "staff:ann"
    assert seen.wrong == []
    seen.close()


def addresses(workspace: Workspace) -> list[str]:
    """Every kind of page, with something real on it."""
    with workspace.store.read() as connection:
        live = live_release(connection, workspace.project)
        (weighed, *_) = retrains_of(connection, workspace.project)
        found = correction(connection, workspace.project, correction_in(workspace, "tooling"))
        failing = str(found.cluster_id)
    tool, rule = found.id, correction_in(workspace, "context")
    return ["/", "/review", "/review?show=done", f"/review/{tool}", f"/review/{rule}", "/review/bulk?target=tooling",
            "/review/agreement", "/changes", "/releases", f"/releases/{live.id}", f"/why/{tool}", f"/clusters/{failing}",
            "/retrains", f"/retrains/{weighed.id}", f"/versions/{live.context}", "/compare", "/traces",
            "/traces?failed=yes&text=order", "/schedules?cron=0+3+*+*+*", "/settings", "/settings/audit", "/help",
            "/no-such-page"]  # fmt: skip


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("size", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_axe_finds_nothing_serious_on_any_page(
    home: tuple[Workspace, str], browser: Browser, size: ViewportSize, dark: bool
) -> None:
    workspace, url = home
    seen = Watched(browser, url, person(workspace, "root", "admin"), size=size, dark=dark)
    found = {}
    for address in [*addresses(workspace), "/login"]:
        seen.page.goto(address)
        seen.page.evaluate(AXE)
        result = seen.page.evaluate("axe.run(document, {resultTypes: ['violations']})")
        serious = [
            f"{each['id']}: {each['nodes'][0]['html'][:160]} {each['nodes'][0]['failureSummary'][:200]}"
            for each in result["violations"]
            if each["impact"] in ("serious", "critical")
        ]
        wide = seen.page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
        if serious or wide > 0:
            found[address] = [*serious, *([f"{wide} pixels wider than the screen"] if wide > 0 else [])]
    assert found == {}
    assert [each for each in seen.wrong if "404" not in each] == []
    seen.close()


SCRIPTS = (
    "<script>alert(1)</script>", "\"><img src=x onerror=alert(1)>", "'><svg onload=alert(1)>", "javascript:alert(1)",
    "{{7*7}}${7*7}<%= 7 %>", "</textarea><script>alert(1)</script>", "<a href=\"javascript:alert(1)\">x</a>",
    "x' data-chart='ticks", "<div hx-get=/api/me hx-trigger=load>",
)  # fmt: skip


def poisoned(number: int, script: str) -> list[dict[str, object]]:
    """A failing trace that carries the script in every field that it can."""
    span = {"id": script, "kind": "tool", "name": script, "input": {script: script}, "output": [script],
            "status": "error", "error": script, "error_type": script, "documents": [{"text": script}],
            "memories": [script], "attributes": {script: script}}  # fmt: skip
    return [
        trace(number, input=[{"role": script, "content": script}], output=script, error=script, name=script,
              session=script, user=script, tenant=script, channel=script, model=script, app_version=script, spans=[span],
              attributes={script: script}),
        said(number, by=script, name="thumb", score=0, comment=script, label=script, corrected_output={script: script}),
    ]  # fmt: skip


def test_no_script_runs_that_a_trace_feedback_or_correction_carries(tmp_path: Path, browser: Browser) -> None:
    from flows.turn import turn

    with reviewing(tmp_path) as workspace, console(workspace) as url:
        for k, script in enumerate(SCRIPTS):
            take_in(workspace, *(poisoned(2000 + 10 * k + n, script) for n in range(2)))
        turn(workspace)
        seen = Watched(browser, url, person(workspace, "root", "admin"))
        seen.page.goto("/review?show=waiting")
        rows = [each.get_attribute("href") or "" for each in seen.page.locator("a[data-row]").all()]
        for row in rows:
            seen.page.goto(row)
            for link in ("the cluster", "all its traces", "why")[: 3 if row in rows[:6] else 0]:
                seen.page.goto(row)
                seen.page.get_by_role("link", name=link, exact=True).click()
                seen.settled()
            seen.page.goto(row)
            answer = seen.page.locator("#answer")
            if answer.count() and seen.page.locator("textarea[data-needed]").count():
                answer.fill(SCRIPTS[0])
            seen.page.locator("#reason").fill(SCRIPTS[1])
            seen.page.keyboard.press("Escape")
            seen.page.locator("body").press("a")
            seen.settled()
        for script in SCRIPTS:
            for address in ("/traces?text=", "/traces?user=", "/search?q=", "/review?text=", "/compare?a=ver_0&b=",
                            "/schedules?cron=", "/login?next=", "/why/", "/retrains?model="):  # fmt: skip
                seen.page.goto(address + script.replace("%", "%25").replace("#", "%23").replace("?", "%3F"))
        for address in ("/", "/review?show=all", "/changes", "/releases", "/traces", "/settings", "/settings/audit"):
            seen.page.goto(address)
            for href in [each.get_attribute("href") for each in seen.page.locator("a[data-row]").all()][:8]:
                seen.page.goto(href or "/")
        injected = seen.page.evaluate("document.querySelectorAll('main script, main [onload], main [onerror]').length")
        ran = [each for each in seen.wrong if not re.search("status of 4(04|09|00)", each)]
        assert (len(rows) > 4, ran, injected) == (True, [], 0)
        seen.close()


def test_the_pages_are_read_without_scripts(home: tuple[Workspace, str], browser: Browser) -> None:
    workspace, url = home
    id_ = correction_in(workspace, "tooling")
    seen = Watched(browser, url, person(workspace, "ann"), script=False)
    seen.page.goto("/")
    home_text = seen.page.inner_text("main")
    seen.page.goto(f"/review/{id_}")
    seen.page.get_by_role("button", name=re.compile("Approve")).click()
    seen.page.get_by_text("hold test watches").wait_for()
    assert ("Needs you" in home_text, state_of(workspace, id_)) == (True, "applied")
    seen.close()


def test_the_theme_is_switched_by_key_and_stays(home: tuple[Workspace, str], browser: Browser) -> None:
    workspace, url = home
    seen = Watched(browser, url, person(workspace, "ann"))
    seen.page.goto("/")
    colour = "getComputedStyle(document.documentElement).backgroundColor"
    light = seen.page.evaluate(colour)
    seen.page.keyboard.press("t")
    dark = seen.page.evaluate(colour)
    seen.page.goto("/review")
    assert (light, dark, seen.page.evaluate(colour)) == ("rgb(255, 255, 255)", "rgb(20, 23, 28)", "rgb(20, 23, 28)")
    seen.close()
