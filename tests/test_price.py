"""One mistake has one price, whatever it fails: through grading, and in every view."""

from __future__ import annotations

import html
import io
import json
import re
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from commandline import Cli, Grade

from grader.course.course import Course, load_course
from grader.course.policy import Policy
from grader.course.visibility import for_student
from grader.grading.diagnosis.computed import catalogue_of
from grader.grading.rng import Rng
from grader.grading.seeds import PUBLIC_SEED, seed_of_test
from grader.report import Charge, ExerciseResult, Report
from grader.reports import FORMATS, render, text
from grader.reports.charges import CONSEQUENCE, checks_line, sum_line
from grader.reports.platforms.classroom50 import to_result
from grader.reports.platforms.grades import write_csv
from grader.reports.platforms.gradescope import to_results
from grader.reports.platforms.junit import to_junit

SUITE = '''"""The checks of scaling and their cases, worth 12 points."""

import pytest

from grader.authors import (
    Check, assert_close, assert_written_by_hand, built, drawn, output, refused
)

pytestmark = pytest.mark.needs("test_written_by_hand")


@pytest.mark.points(0)
def test_written_by_hand(student, rng):
    """The product is your own."""
    x = rng.randn(2, 3)
    assert_written_by_hand(student, lambda: student.scale(x, 2.0))


test_twice = Check("The factor 2 doubles.", points=4)
test_twice.case("Three rows.", output("scale", drawn(3, 7), 2.0))
test_twice.case("Five rows.", output("scale", drawn(5, 4), 2.0), hidden=True)

test_thrice = Check("The factor 3 triples.", points=3)
test_thrice.case("The factor 3.", output("scale", drawn(3, 7), 3.0))
test_thrice.case("The factor 3, of five rows.", output("scale", drawn(5, 4), 3.0), hidden=True)


@pytest.mark.points(2)
@pytest.mark.needs("test_twice")
def test_transposed(student, reference, rng):
    """A transposed argument is scaled as well."""
    x = rng.randn(2, 3).T
    assert_close(student.scale(x, 2.0), reference.scale(x, 2.0))


test_negative = Check("A negative factor raises ValueError.", about="refusals")
test_negative.case("The factor -1.", refused("scale", drawn(3), -1.0))
test_negative.case("The factor -2.", refused("scale", drawn(2), -2.0), hidden=True)

test_module = Check("The module multiplies by its weight.", points=2, about="training")
test_module.case("The module.", output(built("Scale", 7), drawn(3, 7)))
test_module.case("The module of four.", output(built("Scale", 4), drawn(5, 4)), hidden=True)
'''
NEEDS_TWICE = '@pytest.mark.needs("test_twice")\n'
FAULTS = """
[twice_as_much]
edits = [["return x * factor", "return x * factor * 2"]]
says = "The result is twice as large as it should be."
hint = "Which factor?"
costs = 3

[weight_unused]
edits = [["return x * self.weight", "return x"]]
says = "The weight is not used."
hint = "Where is the weight?"
costs = 1
"""
TIED = """
[doubled_first]
edits = [["return x * factor", "return (x + x) * factor"]]
says = "The argument is doubled."
hint = "Which argument?"
costs = 5
"""
Marked = Callable[..., ExerciseResult]


def changed(solution: str, *edits: tuple[str, str]) -> str:
    for old, new in edits:
        assert solution.count(old) == 1
        solution = solution.replace(old, new)
    return solution


TWICE = ("return x * factor", "return 2 * factor * x")
UNUSED = ("return x * self.weight", "return x + 0")
ACCEPTS = ("if factor < 0:", "if factor < -9:")


@pytest.fixture
def write_course(tiny_copy: Path) -> Callable[..., Course]:
    """Write a course of one exercise with prices; `policy` goes into its `course.toml`."""

    def writing(faults: str = FAULTS, policy: str = "", suite: str = SUITE) -> Course:
        folder = tiny_copy / "reference" / "scale"
        (folder / "test_hidden.py").write_text(suite)
        (folder / "mistakes.toml").write_text(faults)
        for path in (folder / "exercise.toml", folder.parent / "course.toml"):
            path.write_text(path.read_text().replace("points = 8", "points = 12"))
        settings = folder.parent / "course.toml"
        settings.write_text(settings.read_text() + policy)
        return load_course(tiny_copy)

    return writing


@pytest.fixture
def marked(grade: Grade, write_course: Callable[..., Course], tiny_solution: str) -> Marked:
    """Grade the solution with some edits in a course with prices."""

    def marking(*edits: tuple[str, str], **content: str) -> ExerciseResult:
        report = grade(write_course(**content), {"scale": changed(tiny_solution, *edits)})
        return report.exercises[0]

    return marking


def by_checks(result: ExerciseResult) -> int:
    return sum(test.points for test in result.tests)


def consequences(result: ExerciseResult) -> list[str]:
    return [test.name for test in result.tests if test.consequence]


# --- what is charged ------------------------------------------------------------------------------


@pytest.mark.slow
def test_what_fails_because_of_it_stays_failed_and_is_marked(marked: Marked) -> None:
    result = marked(TWICE)
    assert (by_checks(result), result.points, result.given_back) == (3, 12 - 3, 6)
    says = "The result is twice as large as it should be."
    assert result.charges == (Charge("twice_as_much", says, 3),)
    assert consequences(result) == ["test_twice", "test_thrice", "test_transposed"]
    assert [t.outcome for t in result.tests if t.consequence] == ["failed", "failed", "skipped"]


@pytest.mark.slow
def test_a_tie_costs_the_dearer(marked: Marked) -> None:
    result = marked(TWICE, faults=FAULTS + TIED)
    assert result.diagnosis is not None
    assert result.diagnosis.tie
    assert result.points == 12 - 5
    assert [each.fault for each in result.charges] == ["doubled_first"]


@pytest.mark.slow
def test_a_mistake_costs_no_more_than_its_checks(marked: Marked) -> None:
    result = marked(UNUSED, faults=FAULTS.replace("costs = 1", "costs = 6"))
    assert (result.points, result.given_back) == (10, 0)
    assert [each.points for each in result.charges] == [2]


@pytest.mark.slow
def test_the_price_is_a_third_unless_it_is_given(marked: Marked) -> None:
    assert marked(TWICE, faults=FAULTS.replace("costs = 3", "")).points == 12 - 4


def test_a_forbidden_call_is_charged_as_before(marked: Marked) -> None:
    result = marked(("return x * factor", "return torch.multiply(x, 2 * factor)"))
    assert (result.points, result.given_back, result.charges) == (0, 0, ())


def test_a_part_that_is_not_written_is_charged_as_before(marked: Marked) -> None:
    unwritten = ("return x * self.weight", "raise NotImplementedError")
    result = marked(TWICE, unwritten)
    assert [t.kind for t in result.tests if t.name == "test_module"] == ["NotImplementedError"]
    assert "test_module" not in consequences(result)
    assert result.points <= 12 - 3 - 2


@pytest.mark.slow
def test_what_a_mistake_leaves_unexplained_costs_what_the_nearest_known_one_does(
    marked: Marked,
) -> None:
    result = marked(TWICE, ("return x * self.weight", "return x * self.weight.square()"))
    assert result.diagnosis is not None
    assert not result.diagnosis.complete
    assert [each.fault for each in result.charges] == ["twice_as_much"]
    assert "test_module" not in consequences(result)
    assert result.points == 12 - 3 - 1


@pytest.mark.slow
def test_a_mistake_that_only_known_cases_show_excuses_nothing(marked: Marked) -> None:
    """The cases whose sizes students know are answered as the cheapest mistake does."""
    is_known = "if x.shape[-1] == 7:\n            return"
    result = marked(
        ("return x * factor", f"{is_known} x * factor\n    return torch.zeros_like(x)"),
        ("return x * self.weight", f"{is_known} x + 0\n        return x * self.weight"),
    )
    assert result.diagnosis is not None
    assert result.diagnosis.faults == ()
    assert (result.points, result.given_back, result.charges) == (by_checks(result), 0, ())


@pytest.mark.slow
def test_the_answers_to_public_calls_earn_nothing_in_a_check_by_hidden_suites(
    cli: Cli, write_course: Callable[..., Course], tiny_solution: str, tmp_path: Path
) -> None:
    """Such a check may decide a mark, as in CI. The calls that name a mistake are its own."""
    course = write_course()
    seen = " or ".join(f"float(x.sum()) == {total!r}" for total in sums_of_cases(course))
    table = changed(
        tiny_solution,
        ("return x * factor", f"return x * factor * 2 if {seen} else x * 0 - 8"),
    )
    (tmp_path / "scale.py").write_text(table)
    said = cli("check", tmp_path / "scale.py", "--course", course.root, "--format", "json")
    (result,) = json.loads(said.out)["exercises"]
    assert result["given_back"] == 0
    (tmp_path / "scale.py").write_text(changed(tiny_solution, TWICE))
    said = cli("check", tmp_path / "scale.py", "--course", course.root, "--format", "json")
    (result,) = json.loads(said.out)["exercises"]
    assert result["given_back"] == 6


def sums_of_cases(course: Course) -> list[float]:
    """The sums of what the cases of the exercise give to `scale` at the public seed."""
    found: list[float] = []

    class Recording:
        def scale(self, x: Any, factor: float) -> Any:
            found.append(float(x.sum()))
            return x

    for case in catalogue_of(course, course["scale"], PUBLIC_SEED).cases:
        if case.aspect == "values":
            name = f"case {case.name}"
            case.function(Recording(), Rng(seed_of_test(PUBLIC_SEED, "scale", name)))
    return found


OFF = "\n[marking]\ncarry_forward = false\n"


@pytest.mark.slow
def test_a_course_may_charge_every_check(marked: Marked) -> None:
    result = marked(TWICE, policy=OFF)
    assert (result.points, result.given_back, result.charges) == (3, 0, ())
    assert consequences(result) == []
    assert result.diagnosis is not None


def test_turning_it_off_grades_again(write_course: Callable[..., Course]) -> None:
    before = write_course()
    was = before.hash, before.hashes["scale"]
    after = write_course(policy=OFF)
    assert after.hash != was[0]
    assert after.hashes["scale"] != was[1]


def test_another_price_grades_again(write_course: Callable[..., Course]) -> None:
    before = write_course().hashes["scale"]
    assert write_course(FAULTS.replace("costs = 3", "costs = 4")).hashes["scale"] != before


# --- what is shown --------------------------------------------------------------------------------


@pytest.fixture
def report_of(
    grade: Grade, write_course: Callable[..., Course], tiny_solution: str
) -> Callable[..., Report]:
    """Return the report on the solution with some edits."""

    def reporting(*edits: tuple[str, str], suite: str = SUITE, faults: str = FAULTS) -> Report:
        course = write_course(suite=suite, faults=faults)
        return grade(course, {"scale": changed(tiny_solution, *edits)})

    return reporting


def plain(page: str) -> str:
    """The words of a page, whatever its markup and line breaks."""
    page = re.sub(r"\x1b\[[0-9;]*m|<[^>]*>|\\|\*\*", "", html.unescape(page))
    return " ".join(page.split())


@pytest.mark.slow
def test_the_sum_is_one_line(report_of: Callable[..., Report]) -> None:
    (one,) = report_of(TWICE).exercises
    says = "The result is twice as large as it should be."
    assert sum_line(one) == f"12 − 3: {says} All else is as it should be."
    assert checks_line(one) == "3 of 12 points by the checks, + 6 because a mistake is charged once"
    (two,) = report_of(TWICE, UNUSED).exercises
    assert sum_line(two) == (
        f"12 − 3 − 1: {says} (3) The weight is not used. (1) All else is as it should be."
    )
    (other,) = report_of(TWICE, ACCEPTS).exercises
    assert sum_line(other) == f"12 − 3 − 1: {says} (3) Other checks fail, too. (1)"


@pytest.mark.slow
def test_without_a_mistake_there_is_no_sum(report_of: Callable[..., Report]) -> None:
    (result,) = report_of(ACCEPTS).exercises
    assert (sum_line(result), checks_line(result)) == ("", "")


@pytest.mark.slow
@pytest.mark.parametrize("form", ["text", "markdown", "html"])
def test_every_view_shows_the_sum(form: str, report_of: Callable[..., Report]) -> None:
    report = report_of(TWICE, UNUSED)
    page = plain(render(report, form, text.SCREEN))
    assert sum_line(report.exercises[0]) in page
    assert checks_line(report.exercises[0]) in page
    if form != "text":  # which shows one check
        assert page.count(CONSEQUENCE) == 4


@pytest.mark.slow
def test_a_sum_fits_80_columns(report_of: Callable[..., Report]) -> None:
    page = re.sub(r"\x1b\[[0-9;]*m", "", render(report_of(TWICE, UNUSED), "text", None))
    assert max(map(len, page.splitlines())) < 80


def test_the_json_adds_up(report_of: Callable[..., Report]) -> None:
    exercise = json.loads(render(report_of(TWICE), "json", None))["exercises"][0]
    assert exercise["points"] == 9
    assert sum(t["points"] for t in exercise["tests"]) + exercise["given_back"] == 9
    assert exercise["charges"][0]["points"] == 3
    assert exercise["tests"][1]["consequence"] is True


@pytest.mark.slow
def test_every_platform_adds_up_to_the_same_total(report_of: Callable[..., Report]) -> None:
    report = report_of(TWICE)
    assert report.points == 9
    scope = to_results(report)
    assert sum(test["score"] for test in scope["tests"]) == scope["score"] == 9
    assert sum(test["max_score"] for test in scope["tests"]) == 12
    assert len({test["number"] for test in scope["tests"]}) == len(scope["tests"])
    room = to_result(report, {}, "2030-01-01T00:00:00Z")
    assert sum(test["score"] for test in room["tests"]) == room["score"] == 9
    assert sum(test["max-score"] for test in room["tests"]) == room["max-score"] == 12
    assert to_junit([report]).count("<testcase") == len(report.exercises[0].tests)
    stream = io.StringIO(newline="")
    write_csv(stream, ["scale"], [report])
    assert stream.getvalue().splitlines()[1].split(",")[1] == "9"
    assert stream.getvalue().splitlines()[1].split(",")[-1] == "9"


# --- what is hidden -------------------------------------------------------------------------------

NOW = datetime(2030, 1, 1, tzinfo=UTC)


def hide(report: Report, *names: str) -> Report:
    (result,) = report.exercises
    tests = tuple(
        replace(test, visible="never") if not names or test.name in names else test
        for test in result.tests
    )
    return for_student(replace(report, exercises=(replace(result, tests=tests),)), Policy(), NOW)


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMATS)
def test_a_mistake_that_only_hidden_tests_show_is_in_no_line(
    form: str, report_of: Callable[..., Report]
) -> None:
    hidden = hide(report_of(TWICE))
    (result,) = hidden.exercises
    assert (result.points, result.given_back, result.charges) == (9, 6, ())
    assert consequences(result) == []
    page = plain(render(hidden, form, text.SCREEN))
    for secret in ("twice as large", "twice_as_much", CONSEQUENCE, "All else", "− 3"):
        assert secret not in page


@pytest.mark.slow
def test_a_line_does_not_say_what_hidden_tests_found(report_of: Callable[..., Report]) -> None:
    """The mistake shows in a test that students see; a hidden test fails because of it, too."""
    (result,) = hide(report_of(TWICE), "test_twice").exercises
    assert sum_line(result) == "12 − 3: The result is twice as large as it should be."
    assert [test.consequence for test in result.tests if test.visible == "never"] == [False]
    (result,) = hide(report_of(TWICE, ACCEPTS), "test_negative").exercises
    assert "All else" not in sum_line(result)


@pytest.mark.slow
def test_a_dearer_explanation_that_is_hidden_is_not_named(report_of: Callable[..., Report]) -> None:
    tied = TIED.replace("(x + x)", "(x + x if x.is_contiguous() else x)")
    report = report_of(TWICE, suite=SUITE.replace(NEEDS_TWICE, ""), faults=FAULTS + tied)
    seen = {"test_transposed"}
    (result,) = hide(report, *{test.name for test in report.exercises[0].tests} - seen).exercises
    assert result.points == report.points
    assert result.charges == ()
    assert sum_line(result) == ""


@pytest.mark.slow
def test_gradescope_shows_the_line_no_earlier_than_any_test(
    report_of: Callable[..., Report],
) -> None:
    about = 'about="refusals"'
    suite = SUITE.replace(f"{about})\n", f'{about}, visible="after_due")\n')
    report = report_of(TWICE, suite=suite)
    before = for_student(report, Policy(due=datetime(2031, 1, 1, tzinfo=UTC)), NOW)
    line = to_results(before, report)["tests"][-1]
    assert (line["score"], line["visibility"]) == (6, "after_due_date")
