"""`grader status`: how far a student is, from files and remembered results, without grading."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from grader.course.course import Course
from grader.commands.memory import Progress
from grader.course.stubs import make_stub
from grader.submissions.submission import Submission


@dataclass(frozen=True)
class Row:
    """One exercise: its state in a word or two, and the points of its last check."""

    name: str
    state: str
    points: int
    worth: int


def survey(course: Course, work: Submission, progress: Progress) -> list[Row]:
    """The state of every exercise of the student's own work."""
    rows = []
    for exercise in course.exercises:
        name, points = exercise.name, 0
        last = None
        if name in work.files:
            last = progress.checked(Path(work.paths[name]), work.files[name])
        if name in work.problems:
            state = "cannot be read"
        elif name not in work.files:
            state = "no file"
        elif work.files[name] == make_stub(exercise):
            state = "not started"
        elif last is None:
            state = "changed since it was last checked"
        else:
            points = last.points
            state = "passed" if last.points == last.max_points else "checked, not passed"
        rows.append(Row(name, state, points, exercise.points))
    return rows
