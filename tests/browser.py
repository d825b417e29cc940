"""Debian's Chromium, driven by Playwright, for pages that open on a double click."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Literal, Protocol

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


class OpenPage(Protocol):
    """Opens a page; its `asked` are the addresses that it requests, its `said` its messages."""

    def __call__(self, *which: str, **options: Any) -> Any: ...


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
