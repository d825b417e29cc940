"""The content of the pages with code: the files of one student, or of two."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence, Set

from grader.classroom.similarity import shared_lines
from grader.course.course import Course
from grader.report import ExerciseResult, Frame, Report
from grader.reports.code import CodeView, PairView, SharedFile, ShownFile
from grader.sandbox.cells import CELL
from grader.submissions.submission import Submission

_CELL = re.compile(r", cell (\d+)\Z")


def view_of(report: Report, submission: Submission) -> CodeView:
    """Return a student's code with the verdicts on it."""
    results = (result for result in report.exercises if result.name in submission.files)
    return CodeView(report, tuple(_file(result, submission) for result in results))


def _file(result: ExerciseResult, submission: Submission) -> ShownFile:
    text = submission.files[result.name]
    others = submission.files.keys() - {result.name}
    lines = {
        test.name: _line(test.where, text)
        for test in result.tests
        if test.is_wrong and test.where and _is_in(test.where, result.name, others)
    }
    path = submission.paths.get(result.name, f"{result.name}.py")
    return ShownFile(path, text, result, lines)


def _is_in(where: Frame, exercise: str, others: Set[str]) -> bool:
    """Return whether a place is in an exercise's own file, not in one that it imports."""
    path = where.file.partition(",")[0]
    parts = {part.partition(".")[0] for part in path.split("/")}
    return exercise in parts or not parts & others


def _line(where: Frame, text: str) -> int:
    """Return the line of a place in the whole text: a notebook's place counts from its cell."""
    cell = _CELL.search(where.file)
    if cell is None:
        return where.line
    starts = [number for number, line in enumerate(text.split("\n"), 1) if line.startswith(CELL)]
    number = int(cell[1])
    return where.line + (starts[number - 1] if 0 < number <= len(starts) else 0)


def pair_view(
    course: Course,
    exercises: Sequence[str],
    first: Submission,
    second: Submission,
    common: Iterable[str],
) -> PairView:
    """Return two students' code with the lines that they share, apart from `common` code."""
    common = tuple(common)
    files = (
        SharedFile(course[name].title, texts, shared_lines(*texts, common))
        for name in exercises
        for texts in [(first.files[name], second.files[name])]
    )
    return PairView((first.name, second.name), tuple(files))
