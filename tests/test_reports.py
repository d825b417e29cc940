"""Every view of a report shows the same: points, failures, the diagnosis and pictures."""

from __future__ import annotations

import ast
import html
import re
import textwrap
import time
from dataclasses import replace
from typing import Any

import click
import pytest
from made_reports import DIAGNOSIS, EXCERPT, FAILED, NOW, STEP, diagnosed, outcome, report, shown

from grader.course.policy import Policy
from grader.course.visibility import for_student
from grader.report import HINT_BREAK, Diagnosis, Excerpt, Frame, Outcome
from grader.reports import FORMATS, charts, text
from grader.reports.pages import coloured, coloured_lines

# --- points and failures --------------------------------------------------------------------------

LISTS = ("junit", "gradescope", "prairielearn")  # of checks, and no more
VIEWS = [form for form in FORMATS if form not in LISTS]


@pytest.mark.parametrize("form", VIEWS)
def test_every_view_says_points_sentence_difference_and_seed(form: str) -> None:
    page = shown(form, FAILED)
    for part in ("Rows sum to one.", "the output is 3", "scale.py", "1.0000  2.0000"):
        assert part in page.replace("\\", "")
    assert re.search(r"\b2\b.*\b4\b", page, re.DOTALL)
    assert re.search(r"[sS]eed\W+7", page)


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


@pytest.mark.parametrize(
    ("tests", "changes", "state"),
    [
        ((), {}, "not graded"),
        ((outcome("passed"), outcome(points=0)), {}, "passed"),
        ((outcome(), outcome()), {"unfinished": True}, "not started"),
        ((outcome(), outcome("passed"), outcome("error")), {}, "2 of 3 checks fail"),
        ((outcome(), outcome("skipped"), outcome("skipped")), {}, "1 of 3 checks fails, 2 skipped"),
        (
            (outcome("passed"), outcome(points=0, required=True)),
            {},
            "not done: 1 of 2 checks fails",
        ),
        (
            (outcome("passed"), outcome(points=0), outcome(points=0, required=True)),
            {},
            "not done: 2 of 3 checks fail",
        ),
    ],
)
def test_a_state_is_described_in_a_few_words(tests: Any, changes: Any, state: str) -> None:
    result = replace(report(*tests).exercises[0], **changes)
    assert text.describe_state(result) == state


def test_no_line_of_code_or_numbers_is_wider_than_the_report() -> None:
    wide = Excerpt("  ".join(["1.0000"] * 30), (1, 30), "float64", (0, 0), [[1.0] * 30])
    source = f"    return {' + '.join(['x'] * 60)}"
    test = outcome(
        expected=wide, actual=wide, where=Frame("scale.py", 3, source, 5), printed="y" * 99
    )
    lines = click.unstyle(text.render(report(test), None)).splitlines()
    assert max(map(len, lines)) == text.WIDTH
    cut = [line for line in lines if line.endswith("…")]
    assert [line.strip()[:6] for line in cut] == ["1.0000", "1.0000", "return", "yyyyyy"]
    short = replace(
        test, where=Frame("scale.py", 3, "    return x", 5), expected=EXCERPT, actual=EXCERPT
    )
    assert "      return x\n" in text.render(report(replace(short, printed="")), None)


def test_a_call_to_repeat_is_continued_on_further_lines_and_stays_a_program() -> None:
    numbers = ", ".join(["0.1234"] * 40)
    program = (
        "import torch\nmodule = dict(a=1)\nwith torch.no_grad():\n"
        f"    module['b'] = torch.tensor([{numbers}], dtype=torch.float64)\n"
        f"print(len([{numbers}]))"
    )
    diagnosis = replace(DIAGNOSIS, repeat=program)
    page = click.unstyle(text.render(diagnosed(outcome(), diagnosis=diagnosis), None))
    assert max(map(len, page.splitlines())) <= text.WIDTH
    start = page.index("  import torch\n")
    shown_program = textwrap.dedent(page[start : page.index("    grader hint")])
    assert ast.dump(ast.parse(shown_program)) == ast.dump(ast.parse(program))


@pytest.mark.parametrize("form", ["html", "markdown"])
def test_the_hints_on_two_mistakes_stay_apart(form: str) -> None:
    diagnosis = replace(DIAGNOSIS, hint=HINT_BREAK.join(["Which axis?", "Which scale?"]))
    found = diagnosed(outcome(), diagnosis=diagnosis)
    found = replace(found, exercises=(replace(found.exercises[0], hints=("Draw it.",)),))
    page = shown(form, found)
    assert "Which axis? Which scale?" not in page
    assert "Which axis?\n\nWhich scale?\n" in page or (
        "Hint 1 of 3, on this mistake</summary><p>Which axis?</p>" in page
        and "Hint 2 of 3, on this mistake</summary><p>Which scale?</p>" in page
        and "Hint 3 of 3</summary><p>Draw it.</p>" in page
    )


# --- the diagnosis --------------------------------------------------------------------------------


@pytest.mark.parametrize("form", FORMATS)
def test_every_view_names_the_mistake_its_ties_and_the_first_wrong_step(form: str) -> None:
    page = html.unescape(shown(form, diagnosed(outcome())).replace("\\", ""))
    page = re.sub(r"</?code>", "`", page)
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


def test_what_is_wrong_is_to_be_fixed_before_what_is_not_written() -> None:
    (wrong,) = report(outcome()).exercises
    stub = replace(wrong, name="a", title="A", unfinished=True)
    missing = replace(wrong, name="b", title="B", tests=(), advice="b.py is missing")
    advice = {
        exercises: replace(report(outcome()), exercises=exercises).advice.partition(" ")[0]
        for exercises in ((stub, missing, wrong), (missing, stub), (stub, missing))
    }
    assert list(advice.values()) == ["Fix", "B", "Next"]


# --- one screen -----------------------------------------------------------------------------------


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
    assert "6 more to look at: the same command with --all" in "\n".join(screen)
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


def comparing(expected: Excerpt, actual: Excerpt) -> Outcome:
    return replace(outcome(), expected=expected, actual=actual)


def test_a_heatmap_compares_on_one_scale_and_names_every_number() -> None:
    expected = Excerpt("", (1, 2, 2), "float64", (0, 0, 3), [[0.0, 1.0], [0.5, 0.5]])
    actual = replace(expected, values=[[1.0, 0.0], [0.5, "nan"]])
    maps = charts.heatmaps(comparing(expected, actual))
    assert [one.title for one in maps] == ["expected", "yours", "yours − expected"]
    assert maps[0].cells[1].fill == maps[1].cells[0].fill  # a 1 is a 1 in both
    assert [one.title for one in maps[0].cells][:2] == ["[0, 0, 3]: 0", "[0, 0, 4]: 1"]
    assert [label for label, _ in maps[0].columns] == [3, 4]
    assert maps[1].cells[3].text == "nan"


def test_colours_differ_in_lightness_and_numbers_are_readable_on_them() -> None:
    row = [[n / 10 for n in range(-10, 11)]]
    excerpt = Excerpt("", (1, 21), "float64", (0, 0), row)
    cells = charts.heatmaps(comparing(excerpt, excerpt))[0].cells

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
    longer = Excerpt("", (3,), "float64", (0,), [1.0, 2.0, 3.0])
    assert charts.heatmaps(comparing(EXCERPT, Excerpt("a tuple of 2"))) == []
    assert charts.heatmaps(comparing(longer, other)) == []
    assert len(charts.heatmaps(comparing(other, other))) == 3
    larger = Excerpt("", (9, 9), "float64", (0, 0), [[1.0, 2.0]])
    assert charts.heatmaps(comparing(EXCERPT, larger)) == []


def test_code_around_an_error_is_numbered_and_the_line_marked() -> None:
    where = Frame("scale.py", 12, "return x", around="def f(x):\n    return x\n", start=11)
    lines = str(coloured(where)).split("\n")
    assert [re.sub(r"<[^>]*>", "", line) for line in lines] == ["11 def f(x):", "12     return x"]
    assert [line.startswith('<span class="hll">') for line in lines] == [False, True]


@pytest.mark.parametrize(
    "text",
    [
        '_ = "%' + "0" * 30_000 + '"',
        " \n" * 30_000,
        "match " + " " * 59_000,
        "def\t" * 15_000,
        '"' + "\\" * 59_999,
        "from . import " * 4_000,
    ],
    ids=["format", "blank", "match", "def", "backslashes", "import"],
)
def test_no_text_takes_long_to_be_coloured(text: str) -> None:
    start = time.process_time()
    lines = str(coloured_lines(text, 1, ())).split("\n")
    assert time.process_time() - start < 5  # it takes less than one
    shown = "\n".join(re.sub(r'<span class="lineno">[^<]*</span>|<[^>]*>', "", li) for li in lines)
    assert html.unescape(shown) == text.rstrip("\n")


def test_code_is_coloured_by_what_python_reads_it_as() -> None:
    text = "def mean(x):  # a\n    return x.sum() / len(x) + 0.5 if x is None else f'{x}'\n"
    page = str(coloured_lines(text, 1, ()))
    found = {text: kind for kind, text in re.findall(r'<span class="(\w+)">([^<]*)</span>', page)}
    assert (found["def"], found["mean"], found["# a"]) == ("k", "nf", "c1")
    assert (found["len"], found["0.5"], found["None"], found["is"]) == ("nb", "m", "kc", "ow")
    assert (found["sum"], found["f'{x}'"]) == ("n", "s2")
