"""The points of exercises follow the minutes of work that their authors expect."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from commandline import Cli

from grader.commands.validate import uneven_rates
from grader.course.course import Course, load_course

SETTINGS = "reference/{}/exercise.toml"


def test_the_points_of_all_lists_follow_the_minutes(course: Course) -> None:
    for listed in map(course.choose, course.lists):
        minutes = {exercise.name: exercise.minutes or 0 for exercise in listed.exercises}
        assert min(minutes.values()) > 0
        rate = listed.points / sum(minutes.values())
        for exercise in listed.exercises:
            fair = rate * minutes[exercise.name]
            assert abs(exercise.points - fair) <= 1, f"{listed.chosen}: {exercise.name}"
    assert sum(exercise.points for exercise in course.choose("core").exercises) == 100
    assert uneven_rates(course, course.names) == []


def take(course: Path, minutes: dict[str, int | None]) -> Path:
    """Give exercises of a course these minutes; return the course."""
    for name, spent in minutes.items():
        settings = course / SETTINGS.format(name)
        text = re.sub(r"(?m)^minutes = .*\n", "", settings.read_text())
        settings.write_text(text if spent is None else f"minutes = {spent}\n{text}")
    return course


@pytest.mark.slow
def test_points_far_from_the_rate_are_a_remark_and_no_problem(cli: Cli, pair: Path) -> None:
    take(pair, {"scale": 20, "shift": 20})
    said = cli("validate", "scale", "--course", pair)
    remark = "! scale: 8 points for 20 minutes; at the rate of the course, it is 5\n"
    assert (said.code, remark in said.out, "shift: 2 points" in said.out) == (0, True, False)


@pytest.mark.parametrize(
    ("scale", "shift", "count"),
    [(40, 10, 0), (34, 10, 0), (20, 20, 2), (40, None, 0), (None, None, 0)],
)
def test_minutes_count_if_all_exercises_have_them(
    pair: Path, scale: int | None, shift: int | None, count: int
) -> None:
    course = load_course(take(pair, {"scale": scale, "shift": shift}))
    assert len(uneven_rates(course, course.names)) == count
    assert uneven_rates(course, []) == []


def test_students_see_the_minutes_if_there_are_any(cli: Cli, tiny_copy: Path) -> None:
    page, data = (tiny_copy / "exercises" / name for name in ("README.md", "course.json"))
    assert cli("build", "--course", tiny_copy).code == 0
    assert ("minutes" in page.read_text(), "minutes" in data.read_text()) == (False, False)
    assert cli("build", "--course", take(tiny_copy, {"scale": 20})).code == 0
    text = page.read_text()
    assert "| points | minutes |\n|---|---|---|---|---|---|\n" in text
    assert ("| 8 | 20 |\n" in text, "| **8** | 20 |\n" in text) == (True, True)
    (tiny_copy / "reference").rename(tiny_copy / "kept")
    assert load_course(tiny_copy)["scale"].minutes == 20
