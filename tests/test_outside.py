"""Correct solutions that someone else wrote, in other styles, earn everything."""

from __future__ import annotations

from pathlib import Path

import pytest
from commandline import Grade

from grader.course.course import Course

STYLES = sorted(path for path in (Path(__file__).parent / "outside").iterdir() if path.is_dir())


@pytest.mark.slow
@pytest.mark.parametrize("style", STYLES, ids=lambda path: path.name)
@pytest.mark.parametrize("seed", [1, 2])
def test_a_correct_solution_in_another_style_earns_everything(
    style: Path, seed: int, course: Course, grade: Grade
) -> None:
    files = {name: (style / f"{name}.py").read_text() for name in course.names}
    report = grade(course, files, seed=seed)
    wrong = {e.name: e.first_failure for e in report.exercises if e.first_failure}
    assert wrong == {}
    assert report.points == report.max_points == course.points
