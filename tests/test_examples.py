"""The sample class earns exactly the points that its table says."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from grader.course.course import Course
from grader.course.stubs import make_stub
from grader.grading.session import with_grader
from grader.report import Report
from grader.sandbox.host.zygote import Zygote
from grader.submissions.layouts import Attempt, collect, find_attempts
from grader.submissions.submission import discover

if TYPE_CHECKING:
    from grader.grading.grader import Grader

pytestmark = pytest.mark.in_turn

CLASS = Path(__file__).parent.parent / "examples" / "class"


def table() -> list[list[str]]:
    """The cells of the table in the class's README, row by row."""
    text = (CLASS / "README.md").read_text("utf-8")
    lines = [line.strip("|").split("|") for line in text.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line] for line in lines]


header, _, *rows = table()


@pytest.fixture(scope="module")
def handed_in(core: Course) -> dict[str, Attempt]:
    """The sample class as `grader batch` takes it."""
    return {attempt.student: attempt for attempt in find_attempts(CLASS, core).attempts}


def test_the_columns_are_the_exercises_in_course_order(core: Course) -> None:
    assert header == ["student", "what is in it", *core.names, "total"]


def test_every_submission_has_a_row_and_every_row_a_submission(
    handed_in: dict[str, Attempt],
) -> None:
    assert [row[0] for row in rows] == list(handed_in)


def test_the_untouched_stubs_are_todays_stubs(core: Course) -> None:
    untouched = discover([CLASS / "s003"], core).files
    assert untouched == {exercise.name: make_stub(exercise) for exercise in core.exercises}
    begun = discover([CLASS / "s018"], core).files
    assert begun["layer_norm"] == make_stub(core["layer_norm"])


@pytest.fixture(scope="module")
def reports(
    request: pytest.FixtureRequest, core: Course, zygote: Zygote, handed_in: dict[str, Attempt]
) -> dict[str, Report]:
    """The report on each student whose turn it is."""
    tests = [item for item in request.session.items if isinstance(item, pytest.Function)]
    names = [item.callspec.params["row"][0] for item in tests if item.function is earns]
    submissions = {name: collect(handed_in[name], core) for name in names}

    def body(grader: Grader) -> dict[str, Report]:
        return {s: grader.grade(each, core.names, 7).report for s, each in submissions.items()}

    return with_grader(core, core.names, zygote, body)


@pytest.mark.slow
@pytest.mark.parametrize("row", rows, ids=lambda row: row[0])
def test_a_student_earns_what_the_table_says(
    row: list[str], core: Course, reports: dict[str, Report]
) -> None:
    student, _, *points, total = row
    report = reports[student]
    earned = {exercise.name: exercise.points for exercise in report.exercises}
    assert earned == dict(zip(core.names, map(int, points), strict=True))
    assert report.points == int(total)


earns = test_a_student_earns_what_the_table_says
