"""The views of a report: all show the same, and a student's text stays text in them."""

from __future__ import annotations

import base64
import csv
import hashlib
import html
import io
import re
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from html.parser import HTMLParser
from typing import Any

import pytest
from cmarkgfm import github_flavored_markdown_to_html
from cmarkgfm.cmark import Options
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from grader.course.policy import Policy
from grader.course.visibility import HIDDEN_SENTENCE, LATER, SKIPPED_UNTIL, for_student
from grader.report import (
    Diagnosis,
    Excerpt,
    ExerciseResult,
    Explanation,
    Frame,
    HeadView,
    Outcome,
    Person,
    Report,
    WrongStep,
)
from grader.reports import FORMATS, charts, render, text
from grader.reports.pages import coloured
from grader.reports.platforms.grades import cell, write_csv

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
    return render(what, form, text.SCREEN)


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
    """The structure of a page without its text: tags, attributes, comments, declarations.

    Spans are left out, because those that colour code depend on the code.
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
    optional = {"p", "pre", "br", "h3", "h4"}  # left out where there is no text

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


LINKS = (
    "[x](http://evil.example)", "<http://evil.example>", "http://evil.example", "https://a.b/c?d=e",
    "ftp://evil.example", "www.evil.example", "www.", "WWW.EVIL.COM", "//localhost/x", "evil.com",
    "<a@evil.example>", "a@evil.example", "mailto:a@evil.example", "xmpp:a@evil.example/x",
    "[x](javascript:alert(1))", "javascript:alert(1)", "![x](http://evil.example/x.png)",
    "x[^1] [^1]: y", "[x]: http://evil.example [x]", "&#104;ttp://evil.example", "&commat;s002",
    "@s002", "(@teachers/all)", "#123", "see owner/work#7", "GH-12", "a1b2c3d4e5f6", "s002@a1b2c3d",
    "http|://evil.example", "www.`evil.example`", "`http://evil.example`", "``a.b\\`` @s002",
    "\\`www.evil.com\\`", "1. one", "a_b.com_", "**www.a.de**", "<img src=http://a.de>",
)  # fmt: skip


def rendered(page: str) -> tuple[str, str]:
    """Return the HTML of a page by GitHub's renderer, and by another one that adds links."""
    other = MarkdownIt("gfm-like", {"html": True, "linkify": True})
    page = page.encode("utf-8", "replace").decode()
    return github_flavored_markdown_to_html(page, Options.CMARK_OPT_UNSAFE), other.render(page)


def prose(page: str) -> str:
    """Return the text in which GitHub itself looks for names, issues and commits."""
    return html.unescape(re.sub(r"(?s)<(code|pre)\b.*?</\1>|<[^>]*>", " ", page))


MENTION = re.compile(r"@\w|#\d|\b[A-Za-z]+-\d|\b[0-9a-f]{7,40}\b|://")


def assert_only_text_in_markdown(text: str, made_of: Callable[[str], Report] = full_of) -> None:
    page, harmless = shown("markdown", made_of(text)), shown("markdown", made_of("harmless"))
    for made, expected in zip(rendered(page), rendered(harmless), strict=True):
        assert not {"a", "img", "script"} & set(Page(made).tags), (text, made)
        assert shape_without_code(made) == shape_without_code(expected), (text, page)
        assert MENTION.findall(prose(made)) == MENTION.findall(prose(expected)), (text, page)


def shape_without_code(page: str) -> list[Any]:
    """Return the structure of a page; words that look like links are code in it."""
    inline = re.sub(r"<code>([^<]*)</code>", r"\1", page)
    return [part for part in Shape(inline).parts if part[0] not in ("code", "/code")]


@pytest.mark.parametrize("text", [*BREAKOUTS, *LINKS], ids=range(len(BREAKOUTS + LINKS)))
def test_a_students_text_is_no_markup_and_no_link_in_markdown(text: str) -> None:
    assert_only_text_in_markdown(text)


@pytest.mark.parametrize("text", LINKS, ids=range(len(LINKS)))
def test_a_students_text_is_no_link_in_html(text: str) -> None:
    assert Page(shown("html", full_of(text))).links == ["#scale"]


PIECES = (
    *("http", "https", "ftp", "mailto", "xmpp", "javascript", "www", "com", "de", "evil", "s002"),
    *("://", "//", ":", "/", ".", "@", "#", "-", "_", "1", "7", "abcdef1", "GH-", "\\", "`", "``"),
    *("|", " ", "\n", "[", "](", ")", "![", "[^1]", "<", ">", "&#64;", "&amp;", "*", "~", "$", "ä"),
    *("\u3002", "\u200b", "\t", "localhost", "=", "+", "<!--", "^", "'", '"'),
)
LINKISH = st.lists(st.sampled_from(PIECES), min_size=1, max_size=14).map("".join)


@settings(derandomize=True, max_examples=60, deadline=None, database=None)
@given(LINKISH)
def test_no_made_up_text_becomes_a_link_in_markdown(text: str) -> None:
    assert_only_text_in_markdown(f"x{text}")


@pytest.mark.slow
@settings(derandomize=True, max_examples=250, deadline=None, database=None)
@given(st.lists(LINKISH, min_size=20, max_size=20))
def test_no_text_of_thousands_becomes_a_link_in_markdown(texts: list[str]) -> None:
    def noted(text: str) -> Report:
        notes = texts if text != "harmless" else [text] * len(texts)
        return report(outcome("passed"), notes=tuple(f"x{note}" for note in notes))

    assert_only_text_in_markdown("\n".join(texts), noted)


def test_plain_words_stay_plain_in_markdown() -> None:
    said = "the output is 3.5, where 1 is expected: a shape of (2, 4). Next, use torch.nn"
    page = shown("markdown", report(outcome(message=said)))
    assert (
        "the output is 3.5, where 1 is expected\\: a shape of \\(2, 4\\). Next, use `torch.nn`"
        in page
    )


FORMULAS = (
    *("=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", " =1", "\u200b=1", "＝1", "'=1", "\n=1"),
    *("a;=1+1", "a\t=1", "a\n=1", 'a;"=1', 'a;""=1', "a; +1", "a;\u200b@x", "a;;=1", ";", '"\n-'),
)
A_FORMULA = re.compile(r"[=+\-@＝＋－＠](?![0-9.]+$)")  # a negative amount is a number


def assert_no_cell_is_a_formula(text: str) -> None:
    """Write `text` wherever a student can write; read the file as spreadsheets may be set to."""
    made = io.StringIO(newline="")
    person = Person(name=text, section=text)
    stuffed = replace(FAILED, submission=text, submitted=text, person=person, flags=(text, text))
    write_csv(made, ["scale"], [stuffed, FAILED, stuffed])
    for delimiter in ",;\t|":
        for quoting in (csv.QUOTE_MINIMAL, csv.QUOTE_NONE):
            lines = io.StringIO(made.getvalue().replace("\0", ""), newline="")
            for row in csv.reader(lines, delimiter=delimiter, quoting=quoting):
                for each in row:
                    visible = each.lstrip(' \t\r\n\v\f"\u00a0\u200b\u200c\u200d\u2060\ufeff')
                    assert not A_FORMULA.match(visible), (text, delimiter, each)


@pytest.mark.parametrize("text", FORMULAS)
def test_no_cell_of_the_marks_is_a_formula(text: str) -> None:
    assert_no_cell_is_a_formula(text)


CELLS = st.text(st.sampled_from("=+-@＝'\";,\t\r\n\v| \u00a0\u200b\x85\u2028\0ax1"), max_size=12)


@settings(derandomize=True, max_examples=300, deadline=None, database=None)
@given(CELLS)
def test_no_made_up_text_makes_a_cell_a_formula(text: str) -> None:
    assert_no_cell_is_a_formula(text)
    ours = cell(text).split("'")
    assert "".join(ours) == text.replace("'", "")  # nothing of the text is lost


@pytest.mark.slow
@settings(derandomize=True, max_examples=5000, deadline=None, database=None)
@given(CELLS)
def test_no_text_of_many_makes_a_cell_a_formula(text: str) -> None:
    assert_no_cell_is_a_formula(text)


def test_a_cell_of_a_million_separators_costs_no_time_that_grows_with_its_square() -> None:
    assert len(cell("\t" * 1_000_000)) == 1_000_000


def test_a_plain_name_is_left_alone() -> None:
    assert cell("s001") == "s001"
    assert cell('O\'Neil, "x"') == 'O\'Neil, "x"'
    assert cell("late by 2 days; similar to s002, 1-2 lines") == (
        "late by 2 days; similar to s002, 1-2 lines"
    )


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


def test_a_failed_check_without_points_is_shown_and_does_not_fail_an_exercise() -> None:
    what = report(outcome("passed"), outcome(points=0))
    assert what.passed
    page = shown("text", what)
    assert "passed" in page
    assert "Rows sum to one." in page


def test_failures_that_cost_points_come_first() -> None:
    informs = outcome(points=0, sentence="It informs.")
    page = shown("text", report(informs, outcome(sentence="It costs.")))
    assert "scale: It costs." in page
    assert "It informs." not in page


# --- hidden by the course ------------------------------------------------------------------------

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
    page = shown(form, for_student(report(secret), Policy(), NOW))
    assert "SECRET" not in page
    assert HIDDEN_SENTENCE in page.replace("\\", "")


def test_a_test_skipped_for_a_hidden_one_does_not_reveal_its_sentence() -> None:
    secret = outcome(visible="never", sentence="SECRET", name="test_secret")
    other = outcome("skipped", message=SKIPPED_UNTIL.format("test_secret"), name="test_other")
    third = outcome("skipped", message=SKIPPED_UNTIL.format("test_other"), name="test_third")
    tests = for_student(report(secret, other, third), Policy(), NOW).exercises[0].tests
    assert tests[1].message == f'skipped until "{HIDDEN_SENTENCE}" passes'
    assert tests[2].message == 'skipped until "Rows sum to one." passes'


def test_details_are_shown_only_after_the_due_date() -> None:
    what = report(outcome(visible="after_due", expected=EXCERPT))
    before = for_student(what, Policy(due=NOW + timedelta(days=1)), NOW).exercises[0].tests[0]
    assert (before.sentence, before.message, before.expected) == ("Rows sum to one.", LATER, None)
    after = for_student(what, Policy(due=NOW - timedelta(days=1)), NOW).exercises[0].tests[0]
    assert after == what.exercises[0].tests[0]


def test_hiding_changes_no_points() -> None:
    what = report(outcome("passed", visible="never"), outcome(visible="after_due"))
    assert for_student(what, Policy(due=NOW), NOW).points == what.points == 2


# --- the diagnosis in every view ------------------------------------------------------------------

STEP = WrongStep(
    "test_x", "weights", "`weights` is 2 at [0, 1], where 1 is expected", EXCERPT, EXCERPT
)
DIAGNOSIS = Diagnosis(
    ("softmax_over_queries",),
    "The softmax runs over the queries.",
    "Which weights sum to 1?",
    tests=(("test_x",),),
    tie=(Explanation(("other",), "Or something else.", "Look there.", (("test_x",),)),),
    first_wrong_step=STEP,
)


def diagnosed(*tests: Outcome, diagnosis: Diagnosis = DIAGNOSIS) -> Report:
    found = report(*tests)
    return replace(found, exercises=(replace(found.exercises[0], diagnosis=diagnosis),))


@pytest.mark.parametrize("form", FORMATS)
def test_every_view_names_the_mistake_its_ties_and_the_first_wrong_step(form: str) -> None:
    page = html.unescape(shown(form, diagnosed(outcome())).replace("\\", ""))
    for part in (DIAGNOSIS.says, "Or something else.", STEP.says):
        assert part in page


@pytest.mark.parametrize("form", FORMATS)
def test_a_call_that_shows_a_fact_can_be_copied(form: str) -> None:
    unknown = Diagnosis((), "No known mistake.", "", facts=("It is nan.",), repeat="print(f([1]))")
    what = diagnosed(outcome(), diagnosis=unknown)
    assert "print(f([1]))" in html.unescape(shown(form, what))


def test_the_report_begins_with_what_to_fix_first() -> None:
    assert diagnosed(outcome()).advice == "Fix Scale first: The softmax runs over the queries."
    assert report(outcome()).advice == ("Fix Scale first. This does not hold yet: Rows sum to one.")
    assert report(outcome("passed")).advice == "Everything here passes."
    stub = report(outcome(kind="NotImplementedError"))
    stub = replace(stub, exercises=(replace(stub.exercises[0], unfinished=True),))
    assert stub.advice == "Next is Scale: scale is not written yet."
    hidden = for_student(report(outcome(visible="never"), outcome(visible="never")), Policy(), NOW)
    assert "not written" not in hidden.advice
    for form in ("json", "markdown", "html"):
        assert "Fix Scale first" in shown(form, diagnosed(outcome()))


@pytest.mark.parametrize("form", FORMATS)
def test_a_diagnosis_that_rests_on_hidden_tests_is_in_no_view(form: str) -> None:
    hidden = for_student(diagnosed(outcome(visible="never")), Policy(), NOW)
    assert hidden.exercises[0].diagnosis is None
    page = shown(form, hidden)
    assert DIAGNOSIS.says not in page
    assert STEP.says not in page


def test_a_diagnosis_rests_on_the_tests_that_are_shown() -> None:
    seen = replace(DIAGNOSIS, tests=(("test_x", "test_seen"),))
    tests = outcome(visible="after_due"), outcome(name="test_seen")
    before = for_student(
        diagnosed(*tests, diagnosis=seen), Policy(due=NOW + timedelta(days=1)), NOW
    )
    found = before.exercises[0].diagnosis
    assert (found.says, found.tests, found.first_wrong_step) == (
        DIAGNOSIS.says,
        (("test_seen",),),
        STEP,  # it comes from a probe, not from a test
    )
    after = for_student(diagnosed(*tests, diagnosis=seen), Policy(due=NOW - timedelta(days=1)), NOW)
    assert after.exercises[0].diagnosis == seen


def test_a_tie_that_rests_on_hidden_tests_is_not_shown() -> None:
    other = replace(DIAGNOSIS.tie[0], tests=(("test_hidden",),))
    tests = outcome(), outcome(name="test_hidden", visible="never")
    tied = replace(DIAGNOSIS, tie=(other,))
    found = for_student(diagnosed(*tests, diagnosis=tied), Policy(), NOW).exercises[0].diagnosis
    assert (found.says, found.tie) == (DIAGNOSIS.says, ())


def test_heads_are_not_drawn_where_every_failure_is_hidden() -> None:
    view = HeadView(("a",), (((1.0,),),), (((0.5,),),))
    for test, drawn in ((outcome(visible="never"), False), (outcome(), True)):
        what = report(test)
        what = replace(what, exercises=(replace(what.exercises[0], head_view=view),))
        found = for_student(what, Policy(), NOW)
        assert (found.exercises[0].head_view is not None) is drawn
        assert ("head 0, yours" in shown("html", found)) is drawn


def test_each_of_two_mistakes_needs_a_shown_test() -> None:
    two = replace(DIAGNOSIS, faults=("a", "b"), tests=(("test_x",), ("test_seen",)))
    tests = outcome(visible="never"), outcome(name="test_seen")
    found = for_student(diagnosed(*tests, diagnosis=two), Policy(), NOW)
    assert found.exercises[0].diagnosis is None


# --- the state of an exercise ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("tests", "changes", "state"),
    [
        ((), {}, "not graded"),
        ((outcome("passed"), outcome(points=0)), {}, "passed"),
        ((outcome(), outcome()), {"unfinished": True}, "not started"),
        ((outcome(), outcome("passed"), outcome("error")), {}, "2 of 3 checks fail"),
        ((outcome(), outcome("skipped"), outcome("skipped")), {}, "1 of 3 checks fail, 2 skipped"),
    ],
)
def test_a_state_is_described_in_a_few_words(tests: Any, changes: Any, state: str) -> None:
    result = replace(report(*tests).exercises[0], **changes)
    assert text.describe_state(result) == state


# --- one screen -----------------------------------------------------------------------------------


def test_the_terminal_shows_one_screen_and_everything_when_asked() -> None:
    big = Excerpt("\n".join(["1.0  2.0"] * 6), (6, 2), "float64", (0, 0), [[1.0, 2.0]] * 6)
    talkative = outcome(
        message="wrong " * 60, printed="said\n" * 50, called="f(x)", expected=big, actual=big
    )
    one = diagnosed(talkative).exercises[0]
    many = replace(
        report(outcome()), exercises=tuple(replace(one, name=f"exercise_{n}") for n in range(7))
    )
    screen = text.render(many, 24).splitlines()
    assert len(screen) < 24
    assert DIAGNOSIS.says in "\n".join(screen)
    assert "6 more to look at: grader check --all" in "\n".join(screen)
    everything = text.render(many, None)
    assert everything.count(DIAGNOSIS.says) == 7
    assert everything.count(EXCERPT.text) == 7 * 2  # those of the first wrong step


def test_a_long_course_fits_on_a_screen_as_well() -> None:
    one = report(outcome()).exercises[0]
    done = replace(report(outcome("passed")).exercises[0], name="done")
    course = replace(report(outcome()), exercises=(*[done] * 20, *[one] * 5))
    screen = text.render(course, 24)
    assert len(screen.splitlines()) < 24
    assert "20 more: grader status" in screen


# --- pictures -------------------------------------------------------------------------------------


def test_a_heatmap_compares_on_one_scale_and_names_every_number() -> None:
    expected = Excerpt("", (1, 2, 2), "float64", (0, 0, 3), [[0.0, 1.0], [0.5, 0.5]])
    actual = replace(expected, values=[[1.0, 0.0], [0.5, "nan"]])
    maps = charts.heatmaps(expected, actual)
    assert [one.title for one in maps] == ["expected", "yours", "yours − expected"]
    assert maps[0].cells[1].fill == maps[1].cells[0].fill  # a 1 is a 1 in both
    assert [one.title for one in maps[0].cells][:2] == ["[0, 0, 3]: 0", "[0, 0, 4]: 1"]
    assert [label for label, _ in maps[0].columns] == [3, 4]
    assert maps[1].cells[3].text == "nan"


def test_colours_differ_in_lightness_and_numbers_are_readable_on_them() -> None:
    row = [[n / 10 for n in range(-10, 11)]]
    excerpt = Excerpt("", (1, 21), "float64", (0, 0), row)
    cells = charts.heatmaps(excerpt, excerpt)[0].cells

    def luminance(colour: str) -> float:
        if len(colour) == 4:
            colour = "#" + "".join(2 * digit for digit in colour[1:])
        channels = [int(colour[n : n + 2], 16) / 255 for n in (1, 3, 5)]
        linear = [c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    light = [luminance(one.fill) for one in cells]
    assert light[:11] == sorted(light[:11])
    assert light[10:] == sorted(light[10:], reverse=True)
    for one in cells:
        first, second = sorted((luminance(one.fill), luminance(one.ink)))
        assert (second + 0.05) / (first + 0.05) >= 4.5


def test_there_is_no_picture_where_shapes_do_not_agree() -> None:
    other = Excerpt("", (2,), "float64", (0,), [1.0, 2.0])
    assert charts.heatmaps(EXCERPT, Excerpt("a tuple of 2")) == []
    assert charts.heatmaps(Excerpt("", (3,), "float64", (0,), [1.0, 2.0, 3.0]), other) == []
    assert len(charts.heatmaps(other, other)) == 3
    larger = Excerpt("", (9, 9), "float64", (0, 0), [[1.0, 2.0]])
    assert charts.heatmaps(EXCERPT, larger) == []


def test_code_around_an_error_is_numbered_and_the_line_marked() -> None:
    where = Frame("scale.py", 12, "return x", around="def f(x):\n    return x\n", start=11)
    lines = str(coloured(where)).split("\n")
    assert [re.sub(r"<[^>]*>", "", line) for line in lines] == ["11 def f(x):", "12     return x"]
    assert [line.startswith('<span class="hll">') for line in lines] == [False, True]
