"""The report in a real browser: it opens, unfolds, fits, prints, and requests nothing."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import browser as chromium
import pytest
from browser import PHONE, Scheme, Tab
from conftest import ROOT

from grader.course.course import Course
from grader.grading.session import with_grader
from grader.reports import render
from grader.sandbox.host.zygote import Zygote
from grader.submissions.submission import Submission, discover

if TYPE_CHECKING:
    from grader.grading.grader import Grader

CLASS = ROOT / "examples" / "class"
LIMIT = 300 * 1024  # bytes of a page on seven failing exercises

pytestmark = [pytest.mark.slow, pytest.mark.in_turn("file")]
OpenPage = Callable[..., Any]


@pytest.fixture(scope="module")
def pages(
    tmp_path_factory: pytest.TempPathFactory, core: Course, zygote: Zygote
) -> dict[str, Path]:
    """Reports of some students of the sample class, and of one with all seven exercises wrong."""
    folder = tmp_path_factory.mktemp("pages")
    wrong = {name: core[name].read("solution.py") for name in core.names}
    corpus = ROOT / "tests" / "corpus"
    for name, file in WRONG.items():
        (path,) = corpus.glob(f"*/{name}/{file}.py")
        wrong[name] = path.read_text("utf-8")
    submissions = {name: discover([CLASS / name], core) for name in ("s001", "s002", "s018")}
    submissions["wrong"] = Submission("wrong", wrong, {name: f"{name}.py" for name in wrong})

    def body(grader: Grader) -> dict[str, Path]:
        found = {}
        for name, submission in submissions.items():
            report = grader.grade(submission, core.names, 7).report
            found[name] = folder / f"{name}.html"
            found[name].write_text(render(report, "html"), "utf-8")
        return found

    return with_grader(core, core.names, zygote, body, trainings="of this seed")


WRONG = {
    "dictionary_lookup": "divides_twice",
    "masked_softmax": "softmax_on_axis_1",
    "causal_attention": "ahead_and_unscaled",
    "multi_head_attention": "unscaled_and_always_masked",
    "layer_norm": "sample_std_plus_eps",
    "feed_forward": "skip_connection",
    "transformer_block": "half_residual",
}


@pytest.fixture
def open_page(tab: Tab, pages: dict[str, Path]) -> OpenPage:
    """Open a student's report."""
    return lambda name, *how, **options: tab.open(pages[name].as_uri(), *how, **options)


def test_it_opens_on_a_double_click_and_requests_nothing_else(
    open_page: OpenPage, pages: dict[str, Path]
) -> None:
    page = open_page("wrong")
    assert page.asked == [pages["wrong"].as_uri()]
    assert page.said == []  # no policy was broken, nothing was missing
    assert page.title().startswith("wrong: ")


def test_headings_lead_through_the_exercises(open_page: OpenPage, core: Course) -> None:
    page = open_page("wrong")
    assert page.locator("h1").count() == 1
    titles = page.locator("h2").all_inner_texts()
    assert [re.sub(r" \d+ / \d+$", "", title) for title in titles] == [
        exercise.title for exercise in core.exercises
    ]
    page.get_by_role("link", name=core.exercises[-1].title).click()
    assert page.url.endswith(f"#{core.exercises[-1].name}")


def test_a_hint_unfolds_with_the_keyboard(open_page: OpenPage) -> None:
    page = open_page("s002")
    hint = page.locator("details.hint").first
    text = hint.locator("p")
    assert not text.is_visible()
    hint.locator("summary").focus()
    page.keyboard.press("Enter")
    assert text.is_visible()
    assert "next to each other" in text.inner_text()  # the hint on this very mistake


def test_the_task_is_one_link_away(open_page: OpenPage) -> None:
    page = open_page("s002")
    task = page.locator("#task-multi_head_attention")
    assert not task.is_visible()
    page.get_by_role("link", name="Read the task again").click()
    task.wait_for(state="visible")
    assert "out_proj" in task.inner_text()


def test_the_first_wrong_step_is_a_picture_with_numbers_to_hover(open_page: OpenPage) -> None:
    page = open_page("s002")
    maps = page.locator("svg.map")
    labels = [maps.nth(n).get_attribute("aria-label") for n in range(3)]
    assert [label.partition(":")[0] for label in labels] == [
        "context, expected",
        "context, with the mistake",
        "context, with the mistake − expected",
    ]
    cell = maps.first.locator("g").first
    assert cell.locator("title").text_content().startswith("[0, 0, ")
    assert labels[0].endswith("a matrix of 4 rows and 6 columns")  # the 4 tokens of the case
    assert maps.first.locator("rect").count() == 4 * 6


def test_every_head_stands_beside_the_references(open_page: OpenPage) -> None:
    page = open_page("s002")
    captions = page.locator("svg.heads + figcaption").all_inner_texts()
    assert captions == [f"head {n}, {whose}" for n in range(3) for whose in ("expected", "yours")]
    assert "→" in page.locator("svg.heads line title").first.text_content()


def test_the_line_that_failed_is_marked_in_the_students_code(open_page: OpenPage) -> None:
    page = open_page("s018")
    marked = page.locator("pre.code .hll").first
    assert "hidden @ self.linear2.weight" in marked.inner_text()
    colours = {
        scheme: open_page("s018", scheme)
        .locator("pre.code .k, pre.code .kn")
        .first.evaluate("node => getComputedStyle(node).color")
        for scheme in chromium.SCHEMES
    }
    assert colours["light"] != colours["dark"]


@pytest.mark.parametrize("scheme", chromium.SCHEMES)
@pytest.mark.parametrize("name", ["s001", "s018", "wrong"])
def test_axe_finds_nothing(open_page: OpenPage, name: str, scheme: Scheme) -> None:
    broken, which = chromium.accessibility(open_page(name, scheme), scheme)
    assert broken == 0, which


@pytest.mark.parametrize("name", ["s001", "s018", "wrong"])
def test_it_fits_a_phone(open_page: OpenPage, name: str) -> None:
    page = open_page(name, viewport=PHONE)
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]


def test_it_prints_in_light_without_a_scroll_bar(open_page: OpenPage) -> None:
    page = open_page("s002", "dark")
    page.emulate_media(media="print")
    paper = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert paper == "rgb(255, 255, 255)"


def test_a_page_on_seven_failing_exercises_is_small(pages: dict[str, Path]) -> None:
    text = pages["wrong"].read_text("utf-8")
    assert text.count('class="first"') == 7
    assert len(text.encode()) < LIMIT
