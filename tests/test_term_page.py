"""The page of a term in a real browser: three hundred students, light, dark and on a phone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import browser as chromium
import pytest
from browser import Scheme, Tab
from made_class import HOSTILE, term_of

from grader.reports import dashboard

PHONE = {"width": 390, "height": 844}
STUDENTS = 300

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("term") / "overview.html"
    path.write_text(dashboard.render_term(term_of(STUDENTS), 0.2), "utf-8")
    return path


def showing(page: Any) -> str:
    return page.locator("#showing").inner_text()


def test_it_requests_nothing_and_shows_three_hundred_students(tab: Tab, index: Path) -> None:
    page = tab.open(index.as_uri())
    assert (page.asked, page.said) == ([index.as_uri()], [])
    assert showing(page) == "Showing 1–100 of 300"
    titles = set(page.locator("#head th").all_inner_texts())
    assert {"Days late", "Free days left", "Falling behind", "hw1", "hw5"} <= titles


def test_a_remark_stands_below_the_title_on_any_screen(tab: Tab, index: Path) -> None:
    for width in (PHONE["width"], 1440):
        page = tab.open(index.as_uri(), viewport={"width": width, "height": 900})
        title, remark = page.locator("h1"), page.get_by_text("hw2 is not finished")
        assert remark.bounding_box()["x"] == title.bounding_box()["x"]


def test_who_falls_behind_and_who_repeats_a_mistake_are_filters(tab: Tab, index: Path) -> None:
    page = tab.open(index.as_uri())
    behind = len(range(5, STUDENTS, 7))
    page.locator("#flag").select_option("any")
    assert showing(page) == f"Showing 1–{behind} of {behind} (300 in the class)"
    page.get_by_role("button", name="Clear").click()
    first = page.locator("#mistake-0")
    first.locator("summary").click()
    first.get_by_role("button", name="Show them in the table").click()
    assert showing(page) == "Showing 1–60 of 60 (300 in the class)"


def test_hostile_names_and_texts_stay_text(tab: Tab, index: Path) -> None:
    page = tab.open(index.as_uri())
    assert page.title() == "The term: 300 students, 5 assignments"
    assert set(HOSTILE.values()) <= set(page.locator("#rows td bdi").all_inner_texts())
    assert "</script><b>." in page.locator("#mistake-0").inner_text()


def test_it_fits_a_phone(tab: Tab, index: Path) -> None:
    page = tab.open(index.as_uri(), viewport=PHONE)
    page.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]


@pytest.mark.parametrize("scheme", chromium.SCHEMES)
def test_axe_finds_nothing(tab: Tab, tmp_path: Path, scheme: Scheme) -> None:
    small = tmp_path / "overview.html"
    small.write_text(dashboard.render_term(term_of(12), 0.2), "utf-8")
    broken, which = chromium.accessibility(tab.open(small.as_uri(), scheme), scheme)
    assert broken == 0, which
