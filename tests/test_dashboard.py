"""The class page in a real browser: thousands of students, hostile names, no request."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import browser as chromium
import pytest
from browser import PHONE, Scheme, Tab
from made_class import EXERCISES, HOSTILE, class_of, report

from grader.classroom.statistics import ClassTally
from grader.report import Person, Report
from grader.reports import dashboard
from grader.reports.summary import Summary

OpenPage = Callable[..., Any]
PAGE = 100
WIDE = {"width": 1440, "height": 900}

pytestmark = [pytest.mark.slow, pytest.mark.in_turn("file")]


@pytest.fixture(scope="module")
def summary() -> Summary:
    return class_of(2000)


@pytest.fixture(scope="module")
def text(summary: Summary) -> str:
    return dashboard.render(summary)


@pytest.fixture(scope="module")
def index(text: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("class") / "index.html"
    path.write_text(text, "utf-8")
    (path.parent / "reports").mkdir()
    for at in range(PAGE):
        (path.parent / "reports" / f"s{at:04}.html").write_text("<!doctype html>", "utf-8")
    return path


@pytest.fixture
def open_page(tab: Tab, index: Path) -> OpenPage:
    """Open the class page."""

    def opening(
        scheme: Scheme = "light", fragment: str = "", path: Path = index, **options: Any
    ) -> Any:
        return tab.open(path.as_uri() + fragment, scheme, **options)

    return opening


def column(page: Any, title: str) -> list[str]:
    """The cells of a column in the rows that are shown."""
    titles = page.locator("#head th").all_inner_texts()
    at = [re.sub(r" [▲▼]$", "", each).strip() for each in titles].index(title)
    return page.locator("#rows tr").evaluate_all(
        "(rows, at) => rows.map(row => row.cells[at].textContent)", at
    )


def showing(page: Any) -> str:
    return page.locator("#showing").inner_text()


def sort(page: Any, title: str) -> str:
    """Click on the title of a column, and return how it is sorted then."""
    button = page.locator("#head").get_by_role("button", name=title)
    button.click()
    return button.locator("xpath=..").get_attribute("aria-sort")


def test_it_opens_on_a_double_click_and_requests_nothing_else(
    open_page: OpenPage, index: Path
) -> None:
    page = open_page()
    assert page.asked == [index.as_uri()]
    assert page.said == []  # no policy was broken, nothing raised
    assert page.title() == "Attention, autumn: 2,000 students"


def test_a_hundred_rows_are_shown_of_two_thousand(open_page: OpenPage) -> None:
    page = open_page()
    assert showing(page) == "Showing 1–100 of 2,000"
    assert page.locator("#rows tr").count() == PAGE
    page.get_by_role("button", name="Next").click()
    assert showing(page) == "Showing 101–200 of 2,000"
    assert column(page, "Student")[0] == "s0100"
    page.get_by_role("button", name="Previous").click()
    assert page.get_by_role("button", name="Previous").is_disabled()


def test_every_column_sorts_both_ways(open_page: OpenPage, summary: Summary) -> None:
    page = open_page()
    points = sorted(round(student.points, 2) for student in summary.students)
    assert sort(page, "Points") == "ascending"
    assert [float(cell.split(" / ")[0]) for cell in column(page, "Points")] == points[:PAGE]
    assert sort(page, "Points") == "descending"
    shown = [float(cell.split(" / ")[0]) for cell in column(page, "Points")]
    assert shown == points[::-1][:PAGE]
    clicked = """buttons => buttons.map(button => { button.click();
        return [button.parentElement.ariaSort, document.querySelectorAll("#rows tr").length]; })"""
    each = page.locator("#head button").evaluate_all(clicked)
    assert each == [["ascending", PAGE]] * page.locator("#head th").count()
    assert page.locator("#head [aria-sort=none]").count() == page.locator("#head th").count() - 1


def test_sorting_and_searching_render_a_page_of_rows_and_no_more(open_page: OpenPage) -> None:
    page = open_page()
    page.evaluate(
        """() => { window.made = 0; const make = document.createElement.bind(document);
        document.createElement = tag => { made += tag === "tr"; return make(tag); }; }"""
    )
    sort(page, "Layer norm")
    assert page.evaluate("made") <= PAGE
    page.evaluate("made = 0")
    page.locator("#q").press_sequentially("s01")
    page.locator("#rows tr").nth(PAGE - 1).wait_for()  # what does not fit a window comes in a pause
    assert page.evaluate("made") <= 3 * PAGE  # a page for each key
    assert page.locator("#rows tr").count() == PAGE


def test_filters_narrow_and_add_up(open_page: OpenPage, summary: Summary) -> None:
    page = open_page()
    page.get_by_label("Section", exact=True).select_option("=B")
    page.get_by_label("Exercise", exact=True).select_option("exercise_2")
    left = [s for s in summary.students if s.section == "B" and s.states[2] != "passed"]
    assert showing(page) == f"Showing 1–100 of {len(left)} (2,000 in the class)"
    page.get_by_label("State", exact=True).select_option("not started")
    left = [s.id for s in left if s.state == "not started"]
    assert column(page, "Student") == left != []
    page.get_by_label("Flags", exact=True).select_option("any")
    assert showing(page) == "No students match (2,000 in the class)"
    page.get_by_role("button", name="Clear").click()
    assert showing(page) == "Showing 1–100 of 2,000"


def test_a_search_finds_names_without_their_accents(open_page: OpenPage) -> None:
    page = open_page()
    page.locator("#q").fill("angstrom ZOE")
    assert column(page, "Name") == ["Zoë Ångström"]
    page.locator("#q").fill("nobody is called so")
    assert showing(page) == "No students match (2,000 in the class)"
    page.keyboard.press("Escape")
    assert showing(page) == "Showing 1–100 of 2,000"


def test_the_keyboard_searches_moves_and_opens_a_report(open_page: OpenPage, index: Path) -> None:
    page = open_page()
    page.keyboard.press("/")
    page.keyboard.type("s000")
    assert page.locator("#q").input_value() == "s000"
    for key in ("ArrowDown", "ArrowDown", "ArrowDown", "ArrowUp"):
        page.keyboard.press(key)
    page.keyboard.press("Enter")
    page.wait_for_url("**/reports/s0001.html")
    page.go_back()
    assert page.locator("#q").input_value() == "s000"  # where one was


def test_the_arrows_turn_the_page(open_page: OpenPage) -> None:
    page = open_page()
    page.locator("#rows th a").last.focus()
    page.keyboard.press("ArrowDown")
    assert showing(page) == "Showing 101–200 of 2,000"
    page.keyboard.press("ArrowUp")
    assert page.evaluate("document.activeElement.textContent") == "s0099"


def test_the_address_keeps_what_is_shown(open_page: OpenPage) -> None:
    page = open_page()
    page.get_by_label("Section", exact=True).select_option("=C")
    sort(page, "Points")
    rows = column(page, "Student")
    again = open_page(fragment="#" + page.url.partition("#")[2])
    assert column(again, "Student") == rows
    assert column(open_page(fragment="#table&section=none&sort=99&mistake=x"), "Student")


def test_the_first_screen_says_what_to_teach_again(open_page: OpenPage, summary: Summary) -> None:
    page = open_page(viewport=WIDE)
    rows, students = page.locator("#by-points > li"), page.locator("#by-students > li")
    rates = page.locator("table.rates tbody tr")

    def counts(items: Any) -> list[int]:
        texts = items.locator(".count").all_inner_texts()
        return [int(text.split()[0].replace(",", "")) for text in texts]

    assert counts(rows) == [mistake.points for mistake in summary.mistakes[:5]]
    made = sorted((len(mistake.who) for mistake in summary.mistakes), reverse=True)
    assert counts(students) == made[:5]
    assert rates.count() == len(EXERCISES)
    for last in (rows.last, students.last, rates.last):
        box = last.bounding_box()
        assert box["y"] + box["height"] <= WIDE["height"]
    rows.nth(1).get_by_role("link").click()
    assert f"of {len(summary.mistakes[1].who)} (2,000" in showing(page)
    students.nth(0).get_by_role("link").click()
    assert f"of {made[0]} (2,000" in showing(page)
    rates.nth(2).get_by_role("link").click()
    left = [student for student in summary.students if student.states[2] != "passed"]
    assert f"of {len(left):,} (2,000" in showing(page)


def test_the_table_fits_a_wide_window_with_flags_and_lateness(open_page: OpenPage) -> None:
    page = open_page(viewport=WIDE)
    table = page.get_by_role("region", name="Table of students")
    wide, seen = table.evaluate("box => [box.scrollWidth, box.clientWidth]")
    assert seen < wide + 1 <= WIDE["width"]
    assert {"Flags", "Days late"} <= set(page.locator("#head th").all_inner_texts())


@pytest.mark.parametrize("words", ["login-77", "S0077@school", "s0077"])
def test_a_search_finds_login_e_mail_and_id(open_page: OpenPage, words: str) -> None:
    page = open_page()
    page.locator("#q").fill(words)
    assert "s0077" in column(page, "Student")


def test_names_are_sorted_by_surname(open_page: OpenPage, tmp_path: Path) -> None:
    names = ("Zoe Adams", "Berg, Anna", "Ann Marie Cole")
    rng = random.Random(3)
    people = [replace(report(at, rng), person=Person(name=name)) for at, name in enumerate(names)]
    path = tmp_path / "index.html"
    path.write_text(dashboard.render(_summary_of(*reversed(people))), "utf-8")
    page = open_page(path=path)
    sort(page, "Name")
    assert column(page, "Name") == list(names)


def test_sections_stand_side_by_side(open_page: OpenPage, summary: Summary) -> None:
    page = open_page()
    rows = page.locator("table.sections tbody tr")
    assert rows.locator("th").all_inner_texts() == ["A", "B", "C"]
    own = [student for student in summary.students if student.section == "B"]
    passed = sum(student.states[0] == "passed" for student in own)
    cells = rows.nth(1).locator("td").all_inner_texts()
    assert cells[0] == str(len(own))
    assert cells[2] == dashboard.percent(passed, len(own))
    rows.nth(1).get_by_role("link").click()
    assert f"of {len(own)} (2,000" in showing(page)


def test_who_needs_review_is_grouped_by_reason(open_page: OpenPage) -> None:
    page = open_page()
    reasons = page.locator("ul.reasons > li")
    assert reasons.count() == 1
    reasons.first.get_by_role("link", name="with this reason").click()
    assert showing(page).startswith("Showing 1–40 of 40 (2,000")


def test_a_mistake_unfolds_to_who_made_it(open_page: OpenPage, summary: Summary) -> None:
    page = open_page()
    mistake = summary.mistakes[0]
    first = page.locator(".mistakes > li").first
    first.locator("summary").focus()
    page.keyboard.press("Enter")
    first.locator("li").first.wait_for()
    names = first.locator("li a").all_inner_texts()
    assert names == [summary.students[at].id for at in mistake.who][:PAGE]
    assert first.locator("li").last.inner_text() == f"and {len(mistake.who) - PAGE} more"
    first.get_by_role("button", name="Show them in the table").click()
    assert f"of {len(mistake.who)} (2,000" in showing(page)


def test_mistakes_are_sorted_by_points_or_students(open_page: OpenPage, summary: Summary) -> None:
    page = open_page()
    titles = page.locator(".mistakes > li")

    def shown() -> list[tuple[str, str]]:
        found = titles.evaluate_all("all => all.map(li => [li.id, li.dataset.students])")
        return [tuple(each) for each in found]

    by_points = [(f"mistake-{at}", str(len(m.who))) for at, m in enumerate(summary.mistakes)]
    assert shown() == by_points
    assert summary.mistakes[0].points >= summary.mistakes[1].points > 0
    page.get_by_role("button", name="students", exact=True).click()
    assert shown() == sorted(by_points, key=lambda each: -int(each[1]))
    page.get_by_role("button", name="points lost").click()
    assert shown() == by_points


def test_each_exercise_unfolds_to_its_checks(open_page: OpenPage, summary: Summary) -> None:
    page = open_page()
    exercise, numbers = page.locator("details.exercise").nth(2), summary.exercises[2]
    exercise.locator("summary").click()
    rows = exercise.locator("tbody tr")
    assert rows.count() == len(numbers.tests)
    passed, failed = numbers.tests[1].passed, numbers.tests[1].failed
    cells = rows.nth(1).locator("td.number").all_inner_texts()
    assert cells[:2] == [f"{round(100 * passed / (passed + failed))} %", str(failed)]


def test_the_other_sections_are_there(open_page: OpenPage) -> None:
    page = open_page()
    said = page.locator("main").inner_text()
    assert "2,000 of 2,003" in said.replace("\n", " ")
    assert "Similarity is no evidence of copying by itself" in said
    assert "Students were graded under different conditions: seed." in said
    flagged = page.locator("section:has(#flagged) li").first
    assert flagged.inner_text().startswith("took all of its time: 40 students")
    assert "s0001, s0051, " in flagged.inner_text()
    bars = page.locator("svg.histogram")
    assert "90 to 100 percent, " in bars.get_attribute("aria-label")


def test_similar_submissions_are_one_row_a_group(open_page: OpenPage) -> None:
    rows = open_page().locator("section:has(#similar) tbody tr")
    assert rows.count() == 1
    said = rows.first.inner_text()
    assert said.startswith("40 students: s0000")
    assert "s0003 </script><script>document.title='owned'</script>" in said
    assert "and 28 more" in said
    assert "83–90 %" in said
    link = rows.first.get_by_role("link", name="s0001 and s0002")
    assert link.get_attribute("href") == "./similar/001-1.html"


def test_hostile_names_stay_text(open_page: OpenPage) -> None:
    page = open_page()
    assert dict(zip(column(page, "Student"), column(page, "Name")))["s0003"] == HOSTILE["s0003"]
    shown = set(column(page, "Name"))
    assert set(HOSTILE.values()) <= shown
    assert page.title() == "Attention, autumn: 2,000 students"
    assert page.locator("#rows img, #rows script").count() == 0


@pytest.mark.parametrize("scheme", chromium.SCHEMES)
def test_axe_finds_nothing(open_page: OpenPage, tmp_path: Path, scheme: Scheme) -> None:
    small = tmp_path / "index.html"  # axe looks at every element, and these have all kinds
    small.write_text(dashboard.render(class_of(12)), "utf-8")
    page = open_page(scheme, path=small)
    page.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
    page.locator("ul.who li").first.wait_for()
    broken, which = chromium.accessibility(page, scheme)
    assert broken == 0, which


def test_it_fits_a_phone(open_page: OpenPage) -> None:
    page = open_page(viewport=PHONE)
    page.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]


def test_it_prints_in_light_without_controls(open_page: OpenPage) -> None:
    page = open_page("dark")
    page.emulate_media(media="print")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert not page.locator(".filters").is_visible()


def test_a_class_of_two_thousand_is_a_small_file(text: str) -> None:
    assert len(text.encode()) < 1024 * 1024


# --- without a browser ----------------------------------------------------------------------------


def test_the_data_cannot_leave_its_element(summary: Summary) -> None:
    written = dashboard.data(summary)
    assert not set("<>&\u2028\u2029") & set(written)
    students = json.loads(written)["students"]
    assert dict(zip(students["id"], students["name"]))["s0003"] == HOSTILE["s0003"]


def test_only_its_own_style_and_script_may_run(text: str) -> None:
    style, script = (re.findall(rf"<{tag}>([\s\S]*?)</{tag}>", text) for tag in ("style", "script"))
    assert len(style) == len(script) == 1
    content = text.partition('http-equiv="Content-Security-Policy" content="')[2].partition('"')[0]
    policy = dashboard.content_policy(style[0], script[0])
    assert content.replace("&#39;", "'") == policy
    assert "unsafe" not in policy
    assert policy.startswith("default-src 'none'; ")
    assert not re.search(r"<[^>]* on\w+=|<[^>]* style=|innerHTML *=|javascript:", text)


@pytest.mark.parametrize(
    "path", ["reports/a b#c?d%e.html", "javascript:alert(1)", "//evil.example", 'a"b\ud800<']
)
def test_a_link_stays_in_the_folder_of_the_page(path: str) -> None:
    assert re.fullmatch(r"\./[\w./%~-]+", dashboard.link(path))


def _summary_of(*reports: Report, **others: Any) -> Summary:
    tally = ClassTally()
    for each in reports:
        tally.add(each, f"reports/{each.submission}.html")
    return tally.summary("A class", **others)


def test_an_empty_class_has_a_page() -> None:
    text = dashboard.render(_summary_of(missing={"s001": Person()}))
    assert "Nothing was submitted." in text
    assert "s001" in text


def test_half_a_character_in_a_name_does_not_stop_the_page() -> None:
    one = report(1, random.Random(1))
    broken = replace(one, person=Person(name="\ud800"), submission="s\udcff")
    dashboard.render(_summary_of(broken)).encode()


@pytest.mark.parametrize(
    ("part", "of", "said"),
    [
        (0, 0, "–"),
        (0, 300, "0 %"),
        (1, 300, "< 1 %"),
        (3, 300, "1 %"),
        (299, 300, "> 99 %"),
        (300, 300, "100 %"),
    ],
)
def test_only_everything_is_a_hundred_percent(part: int, of: int, said: str) -> None:
    assert dashboard.percent(part, of) == said
