"""Every view is made from the JSON, and what a student wrote stays text in it."""

from __future__ import annotations

import base64
import csv
import hashlib
import html
import io
import re
from datetime import UTC, datetime, timedelta
from html.parser import HTMLParser
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grader.records import Excerpt, ExerciseResult, Frame, Outcome, Report
from grader.reports import FORMATS
from grader.reports.grades import cell, to_csv
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


BREAKOUTS = (
    NASTY,
    "</pre></div></section><script>alert(1)</script>",
    "\"><img src=x onerror=alert(1)>",
    "' onmouseover='alert(1)",
    "</style><style>*{display:none}</style>",
    "</title><base href=//evil.example><meta http-equiv=refresh content=0>",
    "<!--", "--><script>", "<![CDATA[", "<svg/onload=alert(1)>", "<iframe srcdoc='<script>'>",
    "{{ 7 * 7 }}{% include 'x' %}",
    "javascript:alert(1)", "&lt;script&gt;alert(1)", "\u2028<script>\u2029", "\x00<scr\x00ipt>",
    "\ud800<b>", "<b>\u202e</b>", "<math><mtext></form><form action=//evil.example>",
)  # fmt: skip


def full_of(text: str) -> Report:
    """A report in which everything that a student can write is `text`."""
    where = Frame(text, 1, text, 0, text, around=f"x = 1\n{text}", start=3)
    test = outcome(
        message=text,
        kind=text,
        printed=text,
        called=text,
        where=where,
        expected=Excerpt(text),
        actual=Excerpt(text, values=[[text]]),
    )
    return report(test, advice=text, submission=text, notes=(text,))


class Shape(HTMLParser):
    """What a page is made of, without its text: tags, attributes, comments, declarations.

    The spans that colour code depend on what the code is.
    """

    def __init__(self, page: str) -> None:
        super().__init__()
        self.parts: list[Any] = []
        self.text = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag != "span":
            self.parts.append((tag, [name for name, _ in attrs]))

    def handle_endtag(self, tag: str) -> None:
        if tag != "span":
            self.parts.append(f"/{tag}")

    def handle_data(self, data: str) -> None:
        self.text += data

    def handle_comment(self, data: str) -> None:
        self.parts.append(f"!{data}")

    handle_decl = handle_pi = unknown_decl = handle_comment


@pytest.mark.parametrize("text", BREAKOUTS, ids=range(len(BREAKOUTS)))
def test_no_text_breaks_out_of_a_page(text: str) -> None:
    harmless, page = shown("html", full_of("harmless")), shown("html", full_of(text))
    assert Shape(page).parts == Shape(harmless).parts
    assert [tag for tag, _ in filter(lambda p: isinstance(p, tuple), Shape(page).parts)].count(
        "script"
    ) == 0
    assert Page(page).links == ["#scale"]
    if "\x00" not in text:
        assert text in Shape(page).text  # and all of it can be read


@settings(derandomize=True, max_examples=60, deadline=None, database=None)
@given(st.text(alphabet=st.sampled_from("<>\"'&`/!-[]=; \n\tabcsriptonx{}%\\"), max_size=80))
def test_no_made_up_text_breaks_out_either(text: str) -> None:
    page, harmless = shown("html", full_of(text)), shown("html", full_of("harmless"))
    optional = {"p", "pre", "br", "h3", "h4"}  # what is left out where there is no text

    def kept(parts: list[Any]) -> list[Any]:
        names = [part if isinstance(part, str) else part[0] for part in parts]
        return [name for name in names if name.lstrip("/") not in optional]

    assert kept(Shape(page).parts) == kept(Shape(harmless).parts)


def test_a_page_may_run_and_load_nothing() -> None:
    page = shown("html", FAILED)
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', page)
    style = re.search(r"<style>(.*?)</style>", page, re.DOTALL)
    assert policy
    assert style
    digest = base64.b64encode(hashlib.sha256(style[1].encode()).digest()).decode()
    assert html.unescape(policy[1]).split("; ") == [
        "default-src 'none'",
        f"style-src 'sha256-{digest}'",
        "base-uri 'none'",
        "form-action 'none'",
    ]
    assert " style=" not in page
    assert "http" not in re.sub(r"http-equiv", "", page)


@pytest.mark.parametrize("text", BREAKOUTS, ids=range(len(BREAKOUTS)))
def test_no_text_becomes_markup_in_markdown(text: str) -> None:
    from markdown_it import MarkdownIt

    made = MarkdownIt("gfm-like", {"html": True, "linkify": False})
    page, harmless = shown("markdown", full_of(text)), shown("markdown", full_of("harmless"))
    assert Shape(made.render(page)).parts == Shape(made.render(harmless)).parts


FORMULAS = ("=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", " =1", "\u200b=1", "＝1", "'=1", "\n=1")


@pytest.mark.parametrize("name", FORMULAS)
def test_no_cell_of_the_marks_is_a_formula(name: str) -> None:
    made = to_csv([{**FAILED.to_json(), "submission": name}])
    header, row = csv.reader(io.StringIO(made, newline=""))
    assert header == ["submission", "points", "max_points", "scale"]
    assert row[1:] == ["2", "4", "2"]
    assert row[0].endswith(name)
    assert row[0][0] == "'"


def test_a_plain_name_is_left_alone() -> None:
    assert cell("s001") == "s001"
    assert cell('O\'Neil, "x"') == 'O\'Neil, "x"'


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
