"""Debian's Chromium, driven by Playwright, for pages that open on a double click."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from playwright.sync_api import Browser

NAMES = ("chromium", "chromium-browser", "google-chrome")
MISSING = "no Chromium on this machine; make deps-system installs it"
SWITCHES = (
    "--no-sandbox",  # of a browser that opens nothing but our own pages, as root in CI
    "--disable-gpu",
    "--in-process-gpu",
    "--renderer-process-limit=1",  # all pages are ours: they need no process of their own each
    "--process-per-site",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
Scheme = Literal["light", "dark"]
SCHEMES: tuple[Scheme, Scheme] = ("light", "dark")


PHONE = {"width": 360, "height": 740}
DESKTOP = {"width": 1280, "height": 720}


def executable() -> str | None:
    """Where the browser is."""
    return next(filter(None, map(shutil.which, NAMES)), None)


@contextmanager
def started() -> Iterator[Browser]:
    """A browser, for as long as it is needed."""
    from playwright.sync_api import sync_playwright

    path = executable()
    if path is None:
        raise RuntimeError(MISSING)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=list(SWITCHES))
        try:
            yield browser
        finally:
            browser.close()


class Tab:
    """One tab for page after page, as a new one costs more than most tests."""

    def __init__(self, browser: Browser) -> None:
        self._page: Any = browser.new_page()
        self._page.on("request", lambda request: self._page.asked.append(request.url))
        self._page.on("console", lambda message: self._page.said.append(message.text))
        self._page.on("pageerror", lambda error: self._page.said.append(str(error)))

    def open(self, address: str, scheme: Scheme = "light", viewport: Any = DESKTOP) -> Any:
        """Open a page; its `asked` are the addresses that it requests, its `said` its messages."""
        page = self._page
        page.asked, page.said = [], []
        page.goto("about:blank")  # else an address that differs in its fragment loads nothing
        page.set_viewport_size(viewport)
        page.emulate_media(color_scheme=scheme, media="screen")
        page.asked, page.said = [], []
        page.goto(address)
        return page


def accessibility(page: Any, scheme: Scheme) -> tuple[int, str]:
    """Return how many rules of accessibility a page breaks, and which.

    Of all rules, colours decide those on contrast alone: in the dark, the others would say again
    what they have said in the light.
    """
    from axe_playwright_python.sync_playwright import Axe

    page.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
    only = {"runOnly": ["color-contrast"]} if scheme == "dark" else {}
    found = Axe().run(page, options={"resultTypes": ["violations"], **only})
    return found.violations_count, found.generate_report()
