"""A course may have several lists of its exercises, each a course of its own."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest
from commandline import Cli, Grade

from grader.course.course import load_course
from grader.errors import CourseError

LISTS = """
title = "Scaling"

[lists.small]
points = 8
exercises = ["scale"]

[lists.all]
title = "All of scaling"
points = 16
"""


@pytest.fixture
def listed(cli: Cli, tiny_copy: Path) -> Path:
    """A course with an exercise in both of its lists, and another in the second alone."""
    reference = tiny_copy / "reference"
    shutil.copytree(reference / "scale", reference / "zoom")
    settings = (reference / "zoom" / "exercise.toml").read_text()
    (reference / "zoom" / "exercise.toml").write_text(re.sub("order = .*", "order = 9", settings))
    (reference / "course.toml").write_text(LISTS)
    assert cli("build", "--course", tiny_copy).code == 0
    return tiny_copy


def test_the_first_list_is_taken_unless_another_is_named(cli: Cli, listed: Path) -> None:
    first = cli("status", "--course", listed).out
    assert ("zoom" in first, "/ 8" in first) == (False, True)
    second = cli("status", "--course", listed, "--course-list", "all").out
    assert ("zoom" in second, "/ 16" in second) == (True, True)


def test_a_variable_names_the_list(cli: Cli, listed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRADER_COURSE_LIST", "all")
    assert "zoom" in cli("status", "--course", listed).out
    monkeypatch.chdir(listed)
    assert "zoom" in cli().out


def test_files_of_another_list_are_one_note(cli: Cli, listed: Path) -> None:
    said = cli("check", listed / "exercises", "--course", listed).out
    assert "zoom.py is of the list `all` and left out: --course-list all" in said
    assert "is not an exercise file" not in said


def test_a_copy_of_the_core_says_how_to_get_the_other_exercises(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert cli("init", tmp_path / "mine").code == 0
    monkeypatch.chdir(tmp_path / "mine")
    for target in ("tiny_gpt", "exercises/tiny_gpt.py"):
        said = cli("check", target)
        assert said.code == 2
        assert "this copy has the list `core`, which is without `tiny_gpt`" in said.err
        (command,) = re.findall("try: grader (.*)", said.err)
    assert cli(*command.split()).code == 0
    assert (tmp_path / "mine" / "exercises" / "tiny_gpt.py").is_file()
    assert "tiny_gpt" in cli("status").out


def test_files_of_other_lists_in_a_copy_of_the_core_are_a_note_for_each_list(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("full", "core"):
        assert cli("init", tmp_path / name, "--course-list", name).code == 0
    monkeypatch.chdir(tmp_path / "core")
    for file in (tmp_path / "full" / "exercises").glob("*.py"):
        shutil.copy(file, "exercises")
    said = " ".join(cli("check", "exercises").out.split())
    assert "18 files are of the list `full` and left out: grader init . --course- list full" in said
    assert "is not an exercise file" not in said
    assert "more" not in said  # of notes that are not shown


def test_an_exercise_of_another_list_is_named_with_its_list(cli: Cli, listed: Path) -> None:
    for command in (("hint", "zoom"), ("check", "zoom"), ("check", listed / "exercises/zoom.py")):
        said = cli(*command, "--course", listed)
        assert said.code == 2
        assert "the list `small` does not contain `zoom`" in said.err
        assert "--course-list all" in said.err


def test_an_exercise_of_no_list_is_named_with_the_file_to_change(cli: Cli, listed: Path) -> None:
    settings = listed / "reference" / "course.toml"
    settings.write_text(LISTS.replace("points = 16", 'points = 8\nexercises = ["scale"]'))
    for target in ("zoom", listed / "exercises/zoom.py"):
        said = cli("check", target, "--course", listed, "--course-list", "all")
        assert said.code == 2
        assert "`zoom` is in no list of reference/course.toml" in said.err
        assert "add it to `exercises` of one" in said.err


def test_a_list_that_the_course_does_not_have_is_refused(
    cli: Cli, listed: Path, tiny_copy: Path
) -> None:
    said = cli("status", "--course", listed, "--course-list", "al")
    assert (said.code, "no list `al`" in said.err) == (2, True)


@pytest.mark.parametrize("name", ["small", "all"])
def test_students_get_the_files_of_one_list(
    name: str, cli: Cli, listed: Path, tmp_path: Path
) -> None:
    folder, more = tmp_path / "mine", ("--course", listed, "--course-list", name, "--notebooks")
    assert cli("init", folder, *more).code == 0
    names = ["scale"] if name == "small" else ["scale", "zoom"]
    assert sorted(path.stem for path in (folder / "exercises").glob("*.py")) == names
    known = json.loads((folder / "exercises" / "course.json").read_text())
    assert [each["name"] for each in known["exercises"]] == names
    assert (known["points"], known["chosen"], "lists" in known) == (8 * len(names), name, False)
    assert known["title"] == ("Scaling" if name == "small" else "All of scaling")
    page = (folder / "exercises" / "README.md").read_text()
    book = (folder / "exercises" / "notebooks" / "course.ipynb").read_text()
    assert ["zoom" in page, "zoom" in book] == [name == "all"] * 2
    assert [path.stem for path in (folder / "exercises" / "tests").iterdir()].count(
        "test_zoom"
    ) == len(names) - 1
    cli("build", "--course", listed)
    again = cli("init", folder, "--course", listed)  # the list that the folder has
    assert "is up to date" in again.out


def test_a_students_copy_of_a_list_is_graded_with_that_list(
    cli: Cli, listed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cli("init", tmp_path / "mine", "--course", listed, "--course-list", "all")
    monkeypatch.chdir(tmp_path / "mine")
    assert "/ 16" in cli("status").out
    assert cli("status", "--course-list", "all").code == 0
    refused = cli("status", "--course-list", "small")
    assert (refused.code, "no list `small`" in refused.err) == (2, True)


def test_marks_of_a_list_are_the_same_beside_another(
    listed: Path, grade: Grade, tiny_solution: str
) -> None:
    course = load_course(listed)
    wrong = tiny_solution.replace("return x * factor", "return x + factor")
    for text in (tiny_solution, wrong):
        whole = grade(course, {"scale": text, "zoom": tiny_solution}, "scale", "zoom")
        part = grade(course.choose("small"), {"scale": text})
        assert [part.exercises[0].points] == [each.points for each in whole.exercises[:1]]
        assert part.max_points == 8
    assert course.hashes["scale"] == course.choose("small").hashes["scale"]


def test_a_class_is_graded_with_the_list_that_was_named(
    cli: Cli, listed: Path, tmp_path: Path, tiny_solution: str
) -> None:
    for name in ("scale", "zoom"):
        (tmp_path / "class" / "s001").mkdir(parents=True, exist_ok=True)
        (tmp_path / "class" / "s001" / f"{name}.py").write_text(tiny_solution)
    batch = ("batch", tmp_path / "class", "--course", listed, "--isolation", "process", "--out")
    cli(*batch, tmp_path / "one")
    cli(*batch, tmp_path / "two", "--course-list", "all")
    for folder, points in (("one", "8"), ("two", "16")):
        row = (tmp_path / folder / "grades.csv").read_text().splitlines()[1]
        assert points in row.split(","), row
    # The folder knows its list; another is refused.
    assert cli(*batch, tmp_path / "two").code == 0
    marks = tmp_path / "marks.csv"
    assert cli("export", "csv", "--in", tmp_path / "two", "-o", marks, "--course", listed).code == 0
    assert "zoom" in marks.read_text()
    for command in (
        (*batch, tmp_path / "two"),
        ("history", "s001", "--in", tmp_path / "two", "--course", listed),
    ):
        refused = cli(*command, "--course-list", "small")
        assert (refused.code, "--course-list all;" in refused.err) == (2, True)


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        (LISTS.replace('["scale"]', '["scal"]'), "there is no exercise `scal`"),
        (LISTS.replace("[lists.small]", "points = 3\n[lists.small]"), "has points of its own"),
        ('title = "T"\n', "missing key `points`"),
        (LISTS.replace("points = 8", ""), "missing key `points`"),
    ],
    ids=["unknown", "points of both", "no points", "a list without"],
)
def test_a_wrong_list_is_named(listed: Path, settings: str, problem: str) -> None:
    (listed / "reference" / "course.toml").write_text(settings)
    with pytest.raises(CourseError, match=re.escape(problem)):
        load_course(listed)


def test_a_list_has_what_its_exercises_require(listed: Path) -> None:
    settings = listed / "reference" / "scale" / "exercise.toml"
    settings.write_text(settings.read_text() + 'requires = ["zoom"]\n')
    with pytest.raises(CourseError, match="`scale` requires `zoom`, which is not in the list"):
        load_course(listed)


def test_points_of_a_list_that_do_not_add_up_are_named(cli: Cli, listed: Path) -> None:
    settings = listed / "reference" / "course.toml"
    settings.write_text(LISTS.replace("points = 16", "points = 17"))
    uneven = "lists.all says 17 points, the exercises add up to 16"
    assert uneven in load_course(listed).uneven_points
    settings.write_text(LISTS.replace("points = 8", "points = 7"))
    assert "lists.small says 7" in load_course(listed).uneven_points


@pytest.mark.slow
def test_the_proof_of_an_exercise_adds_up_the_lists_that_have_it(cli: Cli, listed: Path) -> None:
    settings = listed / "reference" / "course.toml"
    settings.write_text(LISTS.replace("points = 8", "points = 7"))
    uneven = "✗ reference/course.toml: lists.small says 7 points, the exercises add up to 8"
    said = cli("validate", "scale", "--course", listed)
    assert (said.code, uneven in said.out) == (1, True)
    assert "✗" not in cli("validate", "zoom", "--course", listed).out
