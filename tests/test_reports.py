"""Every view is made from the JSON, and what a student wrote stays text in it."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from html.parser import HTMLParser
from typing import Any

import pytest

from grader.records import Excerpt, ExerciseResult, Frame, Outcome, Report
from grader.reports import FORMATS
from grader.visibility import HIDDEN_SENTENCE, LATER, for_student

NASTY = "<script>alert(1)</script> & `x` *y* [z](javascript:1) | ~~~ ``` \" '"


def outcome(verdict: Any = "failed", points: int = 2, **changes: Any) -> Outcome:
    values: dict[str, Any] = {
        "name": "test_x",
        "sentence": "Rows sum to one.",
        "outcome": verdict,
        "points": points if verdict == "passed" else 0,
        "max_points": points,
        "message": "" if verdict == "passed" else "the output is 3, where 1 is expected",
        "kind": "" if verdict == "passed" else "value",
    }
    return Outcome(**{**values, **changes})


def report(*tests: Outcome, advice: str = "", **changes: Any) -> Report:
    exercise = ExerciseResult(
        name="scale",
        title="Scale",
        points=sum(test.points for test in tests),
        max_points=sum(test.max_points for test in tests),
        advice=advice,
        tests=tests,
    )
    values: dict[str, Any] = {
        "submission": "s001",
        "seed": 7,
        "suites": "hidden",
        "confinement": ("separate process",),
        "exercises": (exercise,),
    }
    return Report(**{**values, **changes})


EXCERPT = Excerpt("1.0000  2.0000", (1, 2), "float64", (0, 0), [[1.0, 2.0]])
FAILED = report(
    outcome("passed"),
    outcome(expected=EXCERPT, actual=EXCERPT, where=Frame("scale.py", 3, "return x", 5)),
)


def shown(form: str, what: Report) -> str:
    return FORMATS[form](what.to_json())


@pytest.mark.parametrize("form", FORMATS)
def test_every_view_says_points_sentence_difference_and_seed(form: str) -> None:
    page = shown(form, FAILED)
    for part in ("Rows sum to one.", "the output is 3", "scale.py", "1.0000  2.0000"):
        assert part in page.replace("\\", "")
    assert re.search(r"\b2\b.*\b4\b", page, re.DOTALL)
    assert re.search(r"[sS]eed\W+7", page)


class Page(HTMLParser):
    """Tags and headings of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.links: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.links += [value or "" for key, value in attrs if key in ("href", "src")]


def test_html_shows_a_students_text_as_text_and_loads_nothing() -> None:
    where = Frame(NASTY, 1, NASTY)
    page = shown(
        "html",
        report(
            outcome(message=NASTY, printed=NASTY, where=where, actual=Excerpt(NASTY)),
            advice=NASTY,
            submission=NASTY,
            notes=(NASTY,),
        ),
    )
    parsed = Page(page)
    assert "script" not in parsed.tags
    assert parsed.links == ["#scale"]
    assert "default-src 'none'" in page
    assert page.count("&lt;script&gt;") >= 6


def test_markdown_keeps_a_students_text_from_becoming_markup() -> None:
    fence = "```\n<b>out</b>\n````"
    page = shown("markdown", report(outcome(message=NASTY, printed=fence, sentence=NASTY)))
    outside = re.sub(r"(?s)(`{3,})text\n.*?\n\1\n", "", page)
    assert "<script>" not in outside
    assert "\\<script\\>" in outside
    assert "<b>" not in outside
    assert "`````text\n" in page


def test_text_fits_80_columns_whatever_it_says() -> None:
    wide = Excerpt("1.0000  " * 40, (40,), "float64", (0,), [1.0] * 40)
    long = "word " * 60 + "x" * 200
    page = shown(
        "text",
        report(
            outcome(message=long, sentence=long, expected=wide, actual=wide, printed=long),
            notes=(long,),
        ),
    )
    plain = re.sub(r"\x1b\[[0-9;]*m", "", page)
    assert max(map(len, plain.splitlines())) < 80


def test_a_check_without_points_informs_and_does_not_fail_an_exercise() -> None:
    what = report(outcome("passed"), outcome(points=0))
    assert what.passed
    page = shown("text", what)
    assert "passed" in page
    assert "Rows sum to one." in page


def test_what_costs_points_comes_first() -> None:
    informs = outcome(points=0, sentence="It informs.")
    page = shown("text", report(informs, outcome(sentence="It costs.")))
    assert "scale: It costs." in page
    assert "It informs." not in page


# --- what a course hides -------------------------------------------------------------------------

NOW = datetime(2030, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize("form", FORMATS)
def test_a_test_that_is_never_visible_is_in_no_view(form: str) -> None:
    secret = outcome(
        visible="never",
        sentence="SECRET-1",
        message="SECRET-2",
        name="SECRET-3",
        printed="SECRET-4",
    )
    page = shown(form, for_student(report(secret), None, NOW))
    assert "SECRET" not in page
    assert HIDDEN_SENTENCE in page.replace("\\", "")


def test_what_waits_for_a_hidden_test_does_not_tell_its_sentence() -> None:
    secret = outcome(visible="never", sentence="SECRET", name="test_secret")
    waits = outcome("skipped", message="waits for: test_secret", name="test_other")
    open_ = outcome("skipped", message="waits for: test_other", name="test_third")
    told = for_student(report(secret, waits, open_), None, NOW).exercises[0].tests
    assert told[1].message == f"waits for: {HIDDEN_SENTENCE}"
    assert told[2].message == "waits for: Rows sum to one."


def test_details_after_the_due_date_wait_for_it() -> None:
    what = report(outcome(visible="after_due", expected=EXCERPT))
    before = for_student(what, NOW + timedelta(days=1), NOW).exercises[0].tests[0]
    assert (before.sentence, before.message, before.expected) == ("Rows sum to one.", LATER, None)
    after = for_student(what, NOW - timedelta(days=1), NOW).exercises[0].tests[0]
    assert after == what.exercises[0].tests[0]


def test_hiding_changes_no_points() -> None:
    what = report(outcome("passed", visible="never"), outcome(visible="after_due"))
    assert for_student(what, NOW, NOW).points == what.points == 2
