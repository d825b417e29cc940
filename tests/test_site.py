"""`make site`: every page and statement, links that lead somewhere, and no request to anybody."""

from __future__ import annotations

import functools
import importlib.util
import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from html.parser import HTMLParser
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import browser
import pytest

from grader.course.course import Course

ROOT = Path(__file__).parent.parent
HAS_MKDOCS = importlib.util.find_spec("mkdocs") is not None
LOADED = {"script": "src", "img": "src", "iframe": "src", "link": "href", "source": "src"}
pytestmark = [
    pytest.mark.in_turn("file"),
    pytest.mark.slow,
    pytest.mark.skipif(not HAS_MKDOCS, reason="no mkdocs here; make site installs it"),
]


class Links(HTMLParser):
    """The links of a page, what it loads, and the places in it that a link can lead to."""

    def __init__(self, page: Path) -> None:
        super().__init__()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.places: set[str] = {""}
        self.text = ""
        self.feed(page.read_text("utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        known = dict(attrs)
        self.places.add(known.get("id") or "")
        if tag == "a" and known.get("href"):
            self.links.append(str(known["href"]))
        if tag in LOADED and known.get(LOADED[tag]):
            self.loaded.append(str(known[LOADED[tag]]))

    def handle_data(self, data: str) -> None:
        self.text += data


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("built") / "site"
    done = subprocess.run(
        [sys.executable, "docs/website.py", str(folder)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


@pytest.fixture(scope="module")
def pages(site: Path) -> dict[Path, Links]:
    return {page.resolve(): Links(page) for page in sorted(site.rglob("*.html"))}


def test_every_page_and_every_statement_is_on_the_site(
    site: Path, pages: dict[Path, Links], course: Course
) -> None:
    for path in (ROOT / "docs").glob("*.md"):
        title = path.read_text("utf-8").partition("\n")[0].removeprefix("# ")
        assert title.replace("`", "") in pages[site / f"{path.stem}.html"].text
    assert "A course on attention and Transformers" in pages[site / "index.html"].text
    for exercise in course.exercises:
        shown = pages[site / "exercises" / f"{exercise.name}.html"].text.replace("`", "")
        statement = exercise.read("statement.md").replace("`", "")
        formulas = re.findall(r"^ {4}(\S.*)$", statement, re.MULTILINE)
        assert formulas
        assert [line for line in formulas if line.strip() not in shown] == []


def test_the_class_and_its_reports_are_there_and_nothing_else_about_it(site: Path) -> None:
    sample = site / "sample"
    assert "merged" in (sample / "reports" / "s002.html").read_text("utf-8")
    students = [path.name for path in (ROOT / "examples" / "class").glob("s[0-9]*")]
    assert len(list((sample / "reports").glob("s[0-9][0-9][0-9].html"))) == len(students)
    assert (sample / "index.html").is_file()
    assert not list(site.rglob("ledger*.sqlite*"))  # with its secret


def test_a_finished_course_shows_what_its_models_write_and_attend_to(
    pages: dict[Path, Links], site: Path, course: Course
) -> None:
    page = site / "sample" / "finished.html"
    points = course.choose("full").points
    assert f"{points} of {points} points" in pages[page].text
    assert {"What the model writes", "What its heads attend to"} <= set(
        re.findall(r"What (?:the model writes|its heads attend to)", pages[page].text)
    )
    assert page.read_text("utf-8").count('<circle class="passed"') == len(
        course.choose("full").names
    )


def test_every_link_within_the_site_leads_somewhere(site: Path, pages: dict[Path, Links]) -> None:
    broken = []
    for page, found in pages.items():
        for link in [*found.links, *found.loaded]:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc or page.name == "404.html":
                continue  # 404.html is shown at any address
            target = (page.parent / unquote(parts.path)).resolve() if parts.path else page
            target = target / "index.html" if target.is_dir() else target
            is_there = target.is_file() and target.is_relative_to(site.resolve())
            places = pages[target].places if target in pages else {""}
            if not is_there or (target.name != "index.html" and parts.fragment not in places):
                broken.append(f"{page.name}: {link}")
    assert broken == []


def test_no_page_loads_anything_from_elsewhere(pages: dict[Path, Links]) -> None:
    assert {
        address for found in pages.values() for address in found.loaded if urlsplit(address).netloc
    } == set()


def test_a_link_that_leads_nowhere_ends_the_build(tmp_path: Path) -> None:
    settings = (ROOT / "docs" / "site.yml").read_text("utf-8")
    config = tmp_path / "mkdocs.yml"
    config.write_text(re.sub(r"nav:[\s\S]*", "docs_dir: pages\n", settings))
    (tmp_path / "pages").mkdir()
    build = [sys.executable, "-m", "mkdocs", "build", "--strict", "-f", str(config)]
    codes = []
    for text in ("# A\n[b](#a)\n", "# A\n[b](#b)\n", "# A\n[b](b.md)\n"):
        (tmp_path / "pages" / "index.md").write_text(text)
        done = subprocess.run(build, check=False, capture_output=True, env=os.environ)
        codes.append(done.returncode)
    assert codes == [0, 1, 1]


class Quiet(SimpleHTTPRequestHandler):
    """Serves files without a word."""

    def log_message(self, format: str, *arguments: Any) -> None:
        """Say nothing."""


@pytest.fixture
def address(site: Path) -> Iterator[str]:
    handler = functools.partial(Quiet, directory=str(site))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


@pytest.mark.skipif(
    browser.executable() is None and not os.environ.get("CI"), reason=browser.MISSING
)
def test_it_is_searched_and_read_on_a_phone_and_in_the_dark(address: str) -> None:
    brightness = {}
    with browser.started() as chromium:
        for scheme in browser.SCHEMES:
            for width in (390, 1280):
                tab = browser.Tab(chromium)
                page = tab.open(f"{address}index.html", scheme, {"width": width, "height": 900})
                assert page.evaluate("document.documentElement.scrollWidth") <= width
                colour = page.evaluate("getComputedStyle(document.body).backgroundColor")
                brightness[scheme] = int(re.findall(r"\d+", colour)[0])
                # Keys, because the page's search looks when one is released.
                page.type("input[name=query]", "padding")
                page.wait_for_selector(".md-search-result__item", state="attached")
                assert [one for one in page.asked if not one.startswith(address)] == []
                page.close()
    assert brightness["dark"] < 60
    assert brightness["light"] > 200
