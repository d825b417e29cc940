"""The statistics of a class, against small classes that were counted by hand."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from grader.classroom.mistakes import MistakeTally
from grader.classroom.statistics import ClassTally, spread
from grader.report import (
    Adjustment,
    Charge,
    Diagnosis,
    ExerciseResult,
    Mark,
    Outcome,
    Person,
    Report,
)
from grader.reports.summary import MistakeRow, Summary

WORDS: dict[str, Any] = {"+": "passed", "-": "failed", "s": "skipped", "e": "error"}


def exercise(verdicts: str, worth: int = 2, name: str = "one", **changes: Any) -> ExerciseResult:
    """An exercise with the results of its tests, each one of `+-se`."""
    tests = tuple(
        Outcome(f"test_{at}", f"Promise {at}.", WORDS[sign], worth * (sign == "+"), worth)
        for at, sign in enumerate(verdicts)
    )
    values: dict[str, Any] = {
        "name": name,
        "title": name.title(),
        "points": sum(test.points for test in tests),
        "max_points": worth * len(verdicts),
        "advice": "",
        "tests": tests,
    }
    return ExerciseResult(**{**values, **changes})


def report(student: str, *exercises: ExerciseResult, **changes: Any) -> Report:
    values: dict[str, Any] = {
        "submission": student,
        "seed": 7,
        "suites": "hidden",
        "confinement": ("landlock",),
        "exercises": exercises,
    }
    return Report(**{**values, **changes})


def counted(*reports: Report, **others: Any) -> Summary:
    tally = ClassTally()
    for each in reports:
        tally.add(each, f"reports/{each.submission}.html")
    return tally.summary("A class", **others)


def class_of(*verdicts: str, **changes: Any) -> Summary:
    """A class with one exercise, and the results of its tests for each student."""
    return counted(
        *(report(f"s{at:03}", exercise(each), **changes) for at, each in enumerate(verdicts, 1))
    )


def correlation(x: Sequence[float], y: Sequence[float]) -> float:
    """Pearson's correlation by its definition."""
    mean_x, mean_y = sum(x) / len(x), sum(y) / len(y)
    together = sum((a - mean_x) * (b - mean_y) for a, b in zip(x, y))
    return together / math.sqrt(
        sum((a - mean_x) ** 2 for a in x) * sum((b - mean_y) ** 2 for b in y)
    )


def test_a_row_holds_what_the_table_shows() -> None:
    one = report(
        "s001",
        exercise("++"),
        exercise("+-", name="two", adjustment=Adjustment(1.5, "a right idea")),
        person=Person(name="", section="B"),
        attempt=2,
        submitted="2026-11-02T10:00:00Z",
        flags=("took all of its time",),
        mark=Mark(6.75, 8, 7.5, late_days=0.5),
    )
    (student,) = counted(one).students
    assert (student.id, student.section, student.page) == ("s001", "B", "reports/s001.html")
    assert (student.points, student.max_points, student.late_days) == (6.75, 8, 0.5)
    assert student.points_of == (4, 3.5)
    assert student.states == ("passed", "to fix")
    assert student.state == "to fix"
    assert (student.attempt, student.submitted) == (2, "2026-11-02T10:00:00Z")
    assert student.flags == ("took all of its time",)


def test_without_a_mark_the_points_are_the_tests() -> None:
    (student,) = class_of("+-+").students
    assert (student.points, student.max_points) == (4, 6)


@pytest.mark.parametrize(
    ("exercises", "state"),
    [
        ([exercise("++"), exercise("+", name="two")], "passed"),
        ([exercise("++"), exercise("-", name="two")], "to fix"),
        ([exercise("--")], "to fix"),
        ([exercise("--", unfinished=True), exercise("", name="two")], "not started"),
        ([exercise("", max_points=4)], "not graded"),
        ([exercise("++"), exercise("+e", name="two")], "error"),
        ([exercise("e")], "error"),
    ],
)
def test_a_student_has_one_state(exercises, state: str) -> None:
    assert counted(report("s001", *exercises)).students[0].state == state


def test_an_exercise_that_only_some_were_graded_on_leaves_a_gap() -> None:
    first, second = counted(
        report("s001", exercise("+")), report("s002", exercise("+", name="two"))
    ).students
    assert (first.points_of, second.points_of) == ((2, None), (None, 2))
    assert second.states == ("not graded", "passed")


def test_the_histogram_counts_tenths_and_all_is_in_the_last() -> None:
    marks = [(0, 10), (0.99, 10), (1, 10), (9.9, 10), (10, 10), (11, 10), (-1, 10), (0, 0)]
    reports = [report("s001", exercise("+"), mark=Mark(got, of, got)) for got, of in marks]
    assert counted(*reports).histogram == (4, 1, 0, 0, 0, 0, 0, 0, 0, 3)


def test_mean_and_quartiles() -> None:
    found = spread([1, 2, 3, 4, 10])
    assert found is not None
    assert (found.mean, found.lowest, found.lower, found.median) == (4, 1, 2, 3)
    assert (found.upper, found.highest) == (4, 10)
    alone = spread([5])
    assert alone is not None
    assert (alone.lower, alone.median, alone.upper) == (5, 5, 5)
    assert spread([]) is None


def test_a_rate_is_among_those_for_whom_the_test_ran() -> None:
    (one,) = class_of("++s", "+-s", "+se", "+-+").exercises
    first, second, third = one.tests
    assert (first.passed, first.failed, first.ran, first.verdict) == (4, 0, 4, "everyone")
    assert (second.passed, second.failed, second.skipped, second.ran) == (1, 2, 1, 3)
    assert (third.passed, third.skipped, third.errors, third.ran) == (1, 2, 1, 1)
    assert second.sentence == "Promise 1."


def test_a_test_that_nobody_passes_is_named_and_one_that_never_ran_is_not() -> None:
    (one,) = class_of("-s", "-e").exercises
    assert [test.verdict for test in one.tests] == ["nobody", ""]


def test_an_exercise_counts_states_and_points() -> None:
    unknown = Diagnosis((), "no known mistake", "")
    (one,) = counted(
        report("s001", exercise("++")),
        report("s002", exercise("+-", diagnosis=unknown)),
        report("s003", exercise("--", unfinished=True)),
    ).exercises
    assert one.states == {"passed": 1, "to fix": 1, "not started": 1}
    assert (one.students, one.mean, one.max_points, one.unknown) == (3, 2, 4, 1)


def test_discrimination_is_the_correlation_with_all_other_points() -> None:
    verdicts = ["++++", "+++-", "++--", "+-+-", "-+--", "----"]
    (one,) = class_of(*verdicts).exercises
    for at, test in enumerate(one.tests):
        passed = [int(each[at] == "+") for each in verdicts]
        others = [2 * each.count("+") - 2 * p for each, p in zip(verdicts, passed)]
        assert test.discrimination == pytest.approx(correlation(passed, others))


def test_discrimination_of_an_exercise_leaves_its_own_points_out() -> None:
    first, second = ["++", "++", "+-", "--", "+-"], ["++", "+-", "+-", "--", "++"]
    found = counted(
        *(report("s001", exercise(a), exercise(b, 3, "two")) for a, b in zip(first, second))
    ).exercises
    points = [[each.count("+") for each in side] for side in (first, second)]
    for one in found:
        assert one.discrimination == pytest.approx(correlation(*points))


def test_discrimination_is_among_those_for_whom_the_test_ran() -> None:
    (one,) = class_of("++", "+-", "-+", "+-", "--", "s+", "e+").exercises
    expected = correlation([1, 1, 0, 1, 0], [1, 0, 1, 0, 0])
    assert one.tests[0].discrimination == pytest.approx(expected)


def test_a_test_that_the_weak_pass_discriminates_below_zero() -> None:
    (one,) = class_of("-++", "-++", "-+-", "+--", "+--").exercises
    assert (one.tests[0].discrimination or 0) < -0.5


@pytest.mark.parametrize(
    "verdicts", [["++", "+-", "-+", "--"], ["+-"] * 9, ["+-", "++"] * 3, [], ["ss"] * 9]
)
def test_without_variance_or_students_there_is_no_discrimination(verdicts: list[str]) -> None:
    for one in class_of(*verdicts).exercises:
        assert one.tests[0].discrimination is None


def wrong(**prices: int) -> Diagnosis:
    """A diagnosis of mistakes with these prices, each shown by the first test."""
    shown = (("test_0",),) * len(prices)
    return Diagnosis(
        tuple(prices),
        "",
        "",
        shown,
        tuple(f"It is {name}." for name in prices),
        (*prices.values(),),
    )


def charged(**prices: int) -> ExerciseResult:
    """An exercise of 8 points in which each of these mistakes was charged once."""
    charges = tuple(Charge(name, "", points) for name, points in prices.items())
    points = 8 - sum(prices.values())
    return exercise("--", 4, points=points, diagnosis=wrong(**prices), charges=charges)


def named(found: Summary) -> list[MistakeRow]:
    return [mistake for mistake in found.mistakes if mistake.kind == "named"]


def test_mistakes_are_ranked_by_the_points_that_they_cost() -> None:
    found = counted(
        report("s001", charged(no_scale=1)),
        report("s002", exercise("+")),
        report("s003", charged(no_scale=1, wrong_axis=5)),
        report("s004", exercise("-", diagnosis=wrong())),
    )
    assert [(m.exercise, m.fault, m.who, m.points) for m in named(found)] == [
        ("one", "wrong_axis", (2,), 5),
        ("one", "no_scale", (0, 2), 2),
    ]
    assert named(found)[0].says == "It is wrong_axis."


def test_a_report_that_breaks_on_the_way_leaves_its_mistakes_to_nobody(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    real, tally = MistakeTally.add, ClassTally()

    def breaks(self: MistakeTally, result: ExerciseResult, student: int) -> None:
        real(self, result, student)
        if "s001" in broken:
            raise ValueError("broken")

    monkeypatch.setattr(MistakeTally, "add", breaks)
    broken = ["s001"]
    with pytest.raises(ValueError, match="broken"):
        tally.add(report("s001", charged(no_scale=1)), "")
    broken.clear()
    tally.add(report("s002", charged(no_scale=1)), "")
    found = tally.summary("")
    assert [[found.students[n].id for n in m.who] for m in named(found)] == [["s001", "s002"]]


def test_mistakes_that_cost_the_same_are_ranked_by_students() -> None:
    found = counted(
        report("s001", charged(late=4)),
        report("s002", charged(early=2)),
        report("s003", charged(early=2)),
    )
    assert [(m.fault, len(m.who)) for m in named(found)] == [("early", 2), ("late", 1)]


def test_a_mistake_that_is_not_charged_once_costs_what_its_checks_take() -> None:
    found = counted(
        report("s001", exercise("--", 4, diagnosis=wrong(no_scale=1))),
        report("s002", charged(no_scale=1)),
    )
    assert [(m.fault, m.points) for m in named(found)] == [("no_scale", 4 + 1)]


def test_a_tie_counts_for_its_first_explanation() -> None:
    dearer = wrong(other=6)
    tied = replace(wrong(no_scale=1), tie=(dearer,))
    result = replace(charged(other=6), diagnosis=tied)
    (found,) = named(counted(report("s001", result)))
    assert (found.fault, found.points) == ("no_scale", 1)


def failed(*kinds: str, **changes: Any) -> ExerciseResult:
    """An exercise whose tests, worth 2 points each, failed in these ways."""
    result = exercise("-" * len(kinds), **changes)
    tests = tuple(replace(test, kind=kind) for test, kind in zip(result.tests, kinds))
    return replace(result, tests=tests)


def costs(*reports: Report) -> list[tuple[str, str, tuple[int, ...], int]]:
    return [(m.kind, m.fault, m.who, m.points) for m in counted(*reports).mistakes]


def test_failures_that_say_themselves_what_is_wrong_are_groups() -> None:
    assert costs(
        report("s001", failed("IndentationError", "IndentationError")),
        report("s002", failed("SyntaxError", "Timeout")),
        report("s003", failed("Forbidden")),
        report("s004", failed("RuntimeError", "its own <name>", "Its_Own")),
    ) == [
        ("failure", "SyntaxError", (0, 1), 6),
        ("failure", "Timeout", (1,), 2),
        ("failure", "Forbidden", (2,), 2),
        ("failure", "RuntimeError", (3,), 2),
        ("failure", "other", (3,), 2),
        ("failure", "Exception", (3,), 2),
    ]


def test_what_is_not_written_yet_comes_behind_what_is_wrong() -> None:
    assert costs(
        report("s001", failed("NotImplementedError", "NotImplementedError")),
        report("s002", failed("Timeout")),
    ) == [
        ("failure", "Timeout", (1,), 2),
        ("failure", "NotImplementedError", (0,), 4),
    ]


def test_every_point_counts_once_for_the_mistake_that_shows_in_it() -> None:
    """One check shows the named mistake, one is skipped because of it, one fails by itself."""
    tests = (
        Outcome("test_0", "", "failed", 0, 4, kind="value"),
        Outcome("test_1", "", "skipped", 0, 2, message='skipped until "test_0" passes'),
        Outcome("test_2", "", "failed", 0, 1, kind="Forbidden"),
    )
    one = exercise("---", tests=tests, diagnosis=wrong(no_scale=1))
    assert costs(report("s001", one)) == [
        ("named", "no_scale", (0,), 4),
        ("failure", "Forbidden", (0,), 1),
    ]


def test_what_could_not_be_read_needs_review_and_is_no_mistake() -> None:
    flags = ("one could not be read: not valid UTF-8",)
    assert costs(report("s001", exercise("", max_points=7), flags=flags)) == []


def test_what_nobody_has_started_is_no_mistake() -> None:
    assert costs(report("s001", failed("NotImplementedError", unfinished=True))) == []


def test_how_many_wrong_solutions_have_a_name() -> None:
    unknown = Diagnosis((), "no known mistake", "")
    found = counted(
        report("s001", exercise("-", diagnosis=wrong(no_scale=1)), exercise("-", name="two")),
        report("s002", exercise("-", diagnosis=unknown), exercise("+", name="two")),
    ).wrong
    assert (found.named, found.failure, found.unnamed, found.total) == (1, 1, 1, 3)


def test_sections_are_compared_where_there_are_several() -> None:
    people = [Person(section=name) for name in ("B", "A", "B")]
    found = counted(
        *(
            report(f"s00{at}", exercise(verdicts), person=person)
            for at, (verdicts, person) in enumerate(zip(("++", "+-", "--"), people))
        )
    ).sections
    assert [(s.name, s.students, s.mean, s.passed) for s in found] == [
        ("A", 1, 0.5, (0.0,)),
        ("B", 2, 0.5, (0.5,)),
    ]
    assert class_of("+", "-").sections == ()


def test_circumstances_show_where_students_differ() -> None:
    def under(seed: int, torch: str, submission: str) -> Report:
        hashes = {"course": "4f1c", "submission": submission}
        return report("s001", exercise("+"), seed=seed, versions={"torch": torch}, hashes=hashes)

    found = counted(under(7, "2.12", "a"), under(7, "2.13", "b"), under(7, "2.13", "c"))
    assert found.circumstances == {
        "seed": (("7", 3),),
        "tests": (("hidden", 3),),
        "confinement": (("landlock", 3),),
        "torch": (("2.13", 2), ("2.12", 1)),
        "hash of the course": (("4f1c", 3),),
    }


def test_a_class_of_nobody_is_still_a_class() -> None:
    found = counted(missing={"s001": Person(section="A")})
    assert (found.students, found.exercises, found.spread, found.max_points) == ((), (), None, 0)
    assert found.missing["s001"].section == "A"
