"""A student's text stays text in every view of a report, and no cell is a formula."""

from __future__ import annotations

import base64
import csv
import hashlib
import html
import io
import re
from collections.abc import Callable
from dataclasses import replace
from html.parser import HTMLParser
from typing import Any

import pytest
from cmarkgfm import github_flavored_markdown_to_html
from cmarkgfm.cmark import Options
from hypothesis import given, settings
from hypothesis import strategies as st
from made_reports import FAILED, outcome, report, shown
from markdown_it import MarkdownIt

from grader.report import Excerpt, Frame, Person, Report
from grader.reports.platforms.grades import cell, write_csv

pytestmark = pytest.mark.in_turn

# --- pages ----------------------------------------------------------------------------------------

NASTY = "<script>alert(1)</script> & `x` *y* [z](javascript:1) | ~~~ ``` \" '"
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


class Shape(HTMLParser):
    """The structure of a page without its text: tags, attributes, comments, declarations.

    Spans are left out, because those that colour code depend on the code. Code within a sentence is
    the text in backticks that it was made of.
    """

    def __init__(self, page: str) -> None:
        super().__init__()
        self.parts: list[Any] = []
        self.text = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "code" and not attrs:
            self.text += "`"
        elif tag != "span":
            self.parts.append((tag, [name for name, _ in attrs]))

    def handle_endtag(self, tag: str) -> None:
        if tag == "code":
            self.text += "`"
        elif tag != "span":
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


@pytest.mark.slow
@settings(derandomize=True, max_examples=60, deadline=None, database=None)
@given(st.text(alphabet=st.sampled_from("<>\"'&`/!-[]=; \n\tabcsriptonx{}%\\"), max_size=80))
def test_no_made_up_text_breaks_out_either(text: str) -> None:
    page, harmless = shown("html", full_of(text)), shown("html", full_of("harmless"))
    optional = {"p", "pre", "br", "h3", "h4"}  # left out where there is no text

    def kept(parts: list[Any]) -> list[Any]:
        names = [part if isinstance(part, str) else part[0] for part in parts]
        return [name for name in names if name.lstrip("/") not in optional]

    assert kept(Shape(page).parts) == kept(Shape(harmless).parts)


@pytest.mark.parametrize("text", LINKS, ids=range(len(LINKS)))
def test_a_students_text_is_no_link_in_html(text: str) -> None:
    assert Page(shown("html", full_of(text))).links == ["#scale"]


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


# --- Markdown -------------------------------------------------------------------------------------


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


PIECES = (
    *("http", "https", "ftp", "mailto", "xmpp", "javascript", "www", "com", "de", "evil", "s002"),
    *("://", "//", ":", "/", ".", "@", "#", "-", "_", "1", "7", "abcdef1", "GH-", "\\", "`", "``"),
    *("|", " ", "\n", "[", "](", ")", "![", "[^1]", "<", ">", "&#64;", "&amp;", "*", "~", "$", "ä"),
    *("\u3002", "\u200b", "\t", "localhost", "=", "+", "<!--", "^", "'", '"'),
)
LINKISH = st.lists(st.sampled_from(PIECES), min_size=1, max_size=14).map("".join)


@pytest.mark.slow
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


def test_a_call_in_a_sentence_is_a_whole_span_of_code_in_markdown() -> None:
    said = "The outputs, after torch.manual_seed(123). Or (as in torch.nn)."
    page = shown("markdown", report(outcome(message=said)))
    assert "after `torch.manual_seed(123)`." in page
    assert "`torch.nn`\\)." in page


def test_markdown_keeps_a_students_text_from_becoming_markup() -> None:
    fence = "```\n<b>out</b>\n````"
    page = shown("markdown", report(outcome(message=NASTY, printed=fence, sentence=NASTY)))
    outside = re.sub(r"(?s)(`{3,})text\n.*?\n\1\n", "", page)
    assert "<script>" not in outside
    assert "\\<script\\>" in outside
    assert "<b>" not in outside
    assert "`````text\n" in page


# --- formulas -------------------------------------------------------------------------------------

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


@pytest.mark.slow
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
