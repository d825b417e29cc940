"""Checks made of cases: one answer decides, names and prices; each case is asked once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from commandline import Grade

from grader.course.course import Course, load_course
from grader.course.suite_text import shipped
from grader.errors import CourseError
from grader.grading.cases import Case, Check, cases_of
from grader.grading.diagnosis.asked import load_cases
from grader.report import ExerciseResult
from grader.reports import render, text
from grader.sandbox.host.proxies import RemoteCode

SUITE = '''"""The checks of scaling and their cases."""

from grader.authors import Check, built, changed, drawn, expect, output, refused

test_twice = Check("The factor 2 doubles.", points=4)
test_twice.case("Three rows.", output("scale", drawn(3, 7), 2.0))
test_twice.case("One row.", output("scale", drawn(1, 12), 2.0), about="single")
test_twice.case("Five rows.", output("scale", drawn(5, 4), 2.0), hidden=True)

test_thrice = Check("The factor 3 triples.", points=3)
test_thrice.case("The factor 3.", output("scale", drawn(3, 7), 3.0))
test_thrice.case("The factor 3, of five rows.", output("scale", drawn(5, 4), 3.0), hidden=True)

test_negative = Check("A negative factor raises ValueError.", about="refusals")
test_negative.case("The factor -1.", refused("scale", drawn(3), -1.0))
test_negative.case("The factor -2.", refused("scale", drawn(2), -2.0), hidden=True)

test_module = Check("The module multiplies by its weight, and leaves x alone.", points=4)
test_module.case("The module.", output(built("Scale", 7), drawn(3, 7)), about="training")
test_module.case("x after a call.", changed(built("Scale", 7), drawn(3, 7)), about="writes")
test_module.case("Whether it is exact.", output("scale", drawn(9, 3), 1.0), decides=False)


@test_module.case(hidden=True, tells=False)
def small(student, rng):
    """The module of a single number."""
    expect(student.Scale(1)(rng.randn(1).float()).numel() == 1, "there are more numbers than one")
'''
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
TWICE = ("return x * factor", "return 2 * factor * x")
THRICE = ("return x * factor", "return 3 * factor * x")
UNUSED = ("return x * self.weight", "return x + 0")
ACCEPTS = ("if factor < 0:", "if factor < -9:")
RAISES = ("return x * factor", 'raise TypeError("not so")')
Marked = Callable[..., ExerciseResult]


@pytest.fixture
def course_of_cases(tiny_copy: Path) -> Course:
    """A course of one exercise, whose checks are made of cases."""
    folder = tiny_copy / "reference" / "scale"
    (folder / "test_hidden.py").write_text(SUITE)
    (folder / "mistakes.toml").write_text(FAULTS)
    for path in (folder / "exercise.toml", folder.parent / "course.toml"):
        path.write_text(path.read_text().replace("points = 8", "points = 12"))
    return load_course(tiny_copy)


@pytest.fixture
def marked(grade: Grade, course_of_cases: Course, tiny_solution: str) -> Marked:
    """Grade the solution with some edits."""

    def marking(*edits: tuple[str, str]) -> ExerciseResult:
        solution = tiny_solution
        for old, new in edits:
            assert solution.count(old) == 1
            solution = solution.replace(old, new)
        return grade(course_of_cases, {"scale": solution}).exercises[0]

    return marking


def wrong(result: ExerciseResult) -> dict[str, list[tuple[str, bool]]]:
    return {
        test.name: [(case.sentence, case.explained) for case in test.wrong]
        for test in result.tests
        if test.wrong
    }


# --- what decides ---------------------------------------------------------------------------------


@pytest.mark.slow
def test_right_code_passes_every_check(marked: Marked) -> None:
    result = marked()
    assert (result.points, result.passed, wrong(result)) == (12, True, {})
    assert [test.max_points for test in result.tests] == [4, 3, 1, 4]


@pytest.mark.slow
def test_each_case_is_asked_once(marked: Marked, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: Counter[str] = Counter()
    original = Case.ask

    def counting(case: Case, student: Any, *rest: Any) -> Any:
        asked[case.name] += isinstance(student.__code__, RemoteCode)
        return original(case, student, *rest)

    monkeypatch.setattr(Case, "ask", counting)
    result = marked(TWICE)
    assert result.diagnosis is not None
    assert result.diagnosis.faults == ("twice_as_much",)
    assert set(asked.values()) == {1}
    assert len(asked) == 11


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["Exception", "TypeError", 'type("Negative", (Exception,), {})'])
def test_what_code_raises_itself_refuses(marked: Marked, kind: str) -> None:
    assert marked(('raise ValueError("a negative', f'raise {kind}("a negative')).passed


@pytest.mark.slow
def test_an_accident_does_not_refuse(marked: Marked) -> None:
    result = marked(('raise ValueError("a negative factor")', "x = x.no_such_attribute"))
    assert wrong(result) == {
        "test_negative": [("The factor -1.", False), ("The factor -2.", False)]
    }


@pytest.mark.slow
def test_the_message_is_that_of_the_first_wrong_case(marked: Marked) -> None:
    first, *_ = marked(TWICE).tests
    assert first.message.startswith("Three rows: the output is ")
    assert first.expected is not None


@pytest.mark.slow
def test_what_is_not_written_ends_a_check(grade: Grade, course_of_cases: Course) -> None:
    from grader.course.stubs import make_stub

    stub = make_stub(course_of_cases["scale"])
    result = grade(course_of_cases, {"scale": stub}).exercises[0]
    assert result.unfinished
    assert {test.kind for test in result.tests} == {"NotImplementedError"}


# --- what it costs --------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_named_mistake_costs_its_price_and_explains_its_cases(marked: Marked) -> None:
    result = marked(TWICE)
    assert (result.points, [each.points for each in result.charges]) == (12 - 3, [3])
    assert wrong(result) == {
        "test_twice": [("Three rows.", True), ("One row.", True), ("Five rows.", True)],
        "test_thrice": [("The factor 3.", True), ("The factor 3, of five rows.", True)],
    }
    assert all(test.consequence for test in result.tests if test.wrong)


@pytest.mark.slow
def test_two_mistakes_cost_both_prices(marked: Marked) -> None:
    result = marked(TWICE, UNUSED)
    assert result.points == 12 - 3 - 1
    assert {each.fault for each in result.charges} == {"twice_as_much", "weight_unused"}


@pytest.mark.slow
def test_what_no_mistake_explains_costs_its_check_besides(marked: Marked) -> None:
    result = marked(TWICE, ACCEPTS)
    assert result.points == 12 - 3 - 1
    assert wrong(result)["test_negative"] == [("The factor -1.", False), ("The factor -2.", False)]


@pytest.mark.slow
def test_an_unknown_mistake_costs_what_the_nearest_known_one_does(marked: Marked) -> None:
    result = marked(THRICE)
    assert result.diagnosis is None or not result.diagnosis.faults
    assert (result.points, result.charges) == (12 - 3, ())
    assert result.given_back == 4


@pytest.mark.slow
def test_errors_cost_their_checks(marked: Marked) -> None:
    result = marked(RAISES)
    assert (result.points, result.given_back) == (12 - 4 - 3 - 1, 0)


# --- what is shown and shipped --------------------------------------------------------------------


@pytest.mark.slow
def test_a_report_lists_the_wrong_cases(grade: Grade, course_of_cases: Course) -> None:
    solution = course_of_cases["scale"].read("solution.py").replace(*TWICE)
    report = grade(course_of_cases, {"scale": solution})
    lines = text.render(report, None)
    assert "✗ One row. (explained by the mistake)" in lines
    assert "One row. (explained by the mistake)" in render(report, "html")


def test_a_students_copy_gets_no_hidden_case(course_of_cases: Course) -> None:
    exercise = course_of_cases["scale"]
    there = {case.name for case in load_cases(exercise, shipped=True)[0]}
    assert there == {p.name for p in load_cases(exercise)[0] if not p.hidden}
    assert len(there) == 7
    assert "Five rows" not in shipped(SUITE)
    assert "small" not in shipped(SUITE)
    assert "expect" not in shipped(SUITE).partition("import")[2].partition("\n\n")[2]


def test_what_only_hidden_cases_use_is_cut_as_well() -> None:
    suite = '''import pytest
from grader.authors import Check, output

pytestmark = pytest.mark.needs("test_rule")
SECRET, SIZES = 3, (4, 5)
# This is only known to us.
def only_hidden(rng):
    return rng.randn(SECRET)

def test_rule(student):
    """A plain test."""

test_a = Check("A.")
for size in SIZES:
    test_a.case(f"Size {size}.", output("f", size))
    test_a.case(f"Of size {size}.", output("f", only_hidden), hidden=True)
for size in (7, 8):
    test_a.case(f"No size {size}.", output("f", only_hidden), hidden=True)
'''
    left = shipped(suite)
    for gone in ("pytest", "only_hidden", "test_rule", "only known", "Of size", "No size"):
        assert gone not in left
    assert 'test_a.case(f"Size {size}.", output("f", size))' in left


def test_two_cases_of_one_name_are_refused() -> None:
    check = Check("It works.")
    for _ in range(2):
        check.case("The same.", lambda student, rng: None)
    with pytest.raises(CourseError, match="two cases are called the_same"):
        cases_of({"test_it": check}, "test_hidden.py")


def test_a_sentence_beside_a_function_is_that_of_its_case() -> None:
    test_two = Check("Two cases.")

    @test_two.case("Of a sentence.", hidden=True)
    def one(student: Any, rng: Any) -> int:
        return 1

    @test_two.case
    def other(student: Any, rng: Any) -> int:
        """Of a docstring."""
        return 2

    found = cases_of({"test_two": test_two, "last_of_a_loop": test_two}, "test_hidden.py")
    assert [(case.name, case.sentence, case.hidden) for case in found] == [
        ("of_a_sentence", "Of a sentence.", True),
        ("other", "Of a docstring.", False),
    ]
