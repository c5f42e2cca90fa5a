"""A real browser for the console's tests: the system's Chromium, driven by Playwright.

`FILMROOM_TEST_BROWSER`: `0` leaves these tests out, `1` makes a missing browser a failure and not a skip.
"""

import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import (
    Browser,
    BrowserContext,
    ConsoleMessage,
    Dialog,
    Page,
    Request,
    ViewportSize,
    sync_playwright,
)

from filmroom.console.cookies import SESSION

DESKTOP: ViewportSize = {"width": 1280, "height": 900}
PATIENCE_S = 20.0
PHONE: ViewportSize = {"width": 390, "height": 844}


def found_chromium() -> str | None:
    """The path of the system's Chromium; None: there is none."""
    if Path("/usr/bin/chromium").exists():
        return "/usr/bin/chromium"
    return shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


@contextmanager
def chromium() -> Iterator[Browser | None]:
    """A running browser; None: there is none on this machine."""
    path = found_chromium()
    if path is None:
        yield None
        return
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        try:
            yield browser
        finally:
            browser.close()


class Watched:
    """A page of someone who is logged in, and everything that must not happen on it."""

    def __init__(self, browser: Browser, base: str, cookie: str | None, *, size: ViewportSize = DESKTOP,
                 dark: bool = False, script: bool = True) -> None:  # fmt: skip
        self.base = base
        self.wrong: list[str] = []
        """Errors on the console, errors of scripts, dialogs, and requests to other hosts."""
        self.context: BrowserContext = browser.new_context(
            viewport=size, color_scheme="dark" if dark else "light", base_url=base, java_script_enabled=script,
            has_touch=size == PHONE,
        )  # fmt: skip
        if cookie is not None:
            self.context.add_cookies([{"name": SESSION, "value": cookie, "url": base}])
        self.page: Page = self.context.new_page()
        self.page.on("console", self._said)
        self.page.on("pageerror", lambda error: self.wrong.append(f"script: {error}"))
        self.page.on("request", self._sent)
        self.page.on("dialog", self._asked)

    def _said(self, message: ConsoleMessage) -> None:
        if message.type == "error":
            self.wrong.append(f"console: {message.text}")

    def _sent(self, request: Request) -> None:
        if not request.url.startswith(self.base):
            self.wrong.append(f"foreign: {request.url}")

    def _asked(self, dialog: Dialog) -> None:
        self.wrong.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    def press(self, key: str, *, until: str | None = None) -> None:
        """Press a key, and wait until the page says `until`, or has another address."""
        before = self.page.url
        self.page.keyboard.press(key)
        if until is not None:
            self.page.get_by_text(until).first.wait_for()
        else:
            self.wait(lambda: self.page.url != before, f"{key} leads elsewhere")
        self.settled()

    def settled(self) -> None:
        """Wait until nothing is being fetched or swapped in."""
        self.page.wait_for_load_state("networkidle")
        busy = "document.querySelector('.htmx-request, .htmx-swapping, .htmx-settling') !== null"
        self.wait(lambda: not self.page.evaluate(busy), "the page is still")

    def wait(self, is_so: Callable[[], bool], what: str) -> None:
        """Wait until it is so; the browser's own way to wait is an `eval`, which the page's policy forbids."""
        until = time.monotonic() + PATIENCE_S
        while not is_so():
            if time.monotonic() > until:
                raise TimeoutError(f"{what}: not within {PATIENCE_S:g} s on {self.page.url}")
            self.page.wait_for_timeout(20)

    def close(self) -> None:
        self.context.close()
