"""`grader status`: how far a student is, from files and remembered results, without grading."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from grader.catalog import Course
from grader.progress import Progress
from grader.stubs import make_stub


@dataclass(frozen=True)
class Row:
    """One exercise: its state in a word or two, and the points of its last check."""

    name: str
    state: str
    points: int
    worth: int


def survey(course: Course, folder: Path, progress: Progress) -> list[Row]:
    """The state of every exercise in `folder`."""
    rows = []
    for exercise in course.exercises:
        path = folder / f"{exercise.name}.py"
        points = 0
        try:
            text = path.read_bytes().decode("utf-8-sig")
        except FileNotFoundError:
            state = "no file"
        except (OSError, UnicodeDecodeError):
            state = "cannot be read"
        else:
            last = progress.checked(path, text)
            if text == make_stub(exercise):
                state = "not started"
            elif last is None:
                state = "changed since it was last checked"
            else:
                points = last[0]
                state = "passed" if last[0] == last[1] else "checked, not passed"
        rows.append(Row(exercise.name, state, points, exercise.points))
    return rows
