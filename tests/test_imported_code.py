"""Imported code runs confined, or not at all, until somebody has reviewed it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from classroom import hand_in
from commandline import Cli
from marked_notebooks import EXAMPLES, SQUARES, one_nbgrader, text

from grader.course.course import Course, load_course

pytestmark = pytest.mark.in_turn


@pytest.fixture
def hostile(imported: Callable[..., Course], tmp_path: Path) -> tuple[Course, Path]:
    """An imported course whose solution and test write a file, and that file."""
    mark = tmp_path / "was_run"
    spy = f"open({str(mark)!r}, 'a').write('run')"
    solution = SQUARES.replace("(n)", f"(n, _={spy})")  # runs when the file is loaded
    course = imported(
        "nbgrader", *one_nbgrader(f"assert len(squares({spy})) == 3", solution=solution)
    )
    texts = [course["squares"].read(name) for name in ("solution.py", "test_hidden.py")]
    assert all("was_run" in text for text in texts)
    return course, mark


@pytest.mark.parametrize(
    "command",
    [
        ("batch", "work", "--out", "out"),
        ("build",),
        ("handout", "homework"),
        ("bundle", "--out", "a.bundle"),
        ("autograder", "gradescope", "--out", "a.zip"),
    ],
)
def test_no_command_runs_imported_code_before_its_review(
    command: tuple[str, ...],
    cli: Cli,
    hostile: tuple[Course, Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    course, mark = hostile
    hand_in(tmp_path, {"work/s001/squares.py": SQUARES})
    monkeypatch.chdir(tmp_path)
    said = cli(*command, "--course", course.root)
    assert said.code != 0
    assert "runs only after a review" in said.err, said.err
    assert f"grader trust {course.root}" in " ".join(said.err.split())
    assert not mark.exists()


def test_check_grades_with_imported_tests_confined(
    cli: Cli, imported: Callable[..., Course], tmp_path: Path
) -> None:
    course = imported("nbgrader", *one_nbgrader("assert squares(2) == [0, 1]"))
    hand_in(tmp_path, {"work/squares.py": f"{SQUARES}\n"})
    said = cli("check", tmp_path / "work", "--course", course.root)
    assert said.code == 0, said.out + said.err
    assert "They run confined until `grader trust`" in " ".join(said.out.split())


def test_check_runs_hostile_imported_code_confined(
    cli: Cli, hostile: tuple[Course, Path], tmp_path: Path
) -> None:
    course, mark = hostile
    hand_in(tmp_path, {"work/squares.py": f"{SQUARES}\n"})
    said = cli("check", tmp_path / "work", "--course", course.root)
    assert said.code != 0
    assert not mark.exists()


@pytest.mark.parametrize("names", [(), ("squares",)])
def test_validate_runs_imported_code_confined_and_lists_what_is_left(
    names: tuple[str, ...], cli: Cli, hostile: tuple[Course, Path]
) -> None:
    course, mark = hostile
    said = cli("validate", *names, "--again", "--course", course.root)
    assert said.code == 1, said.err
    assert "was imported and runs confined until you review it: grader trust" in said.out
    assert "PermissionError" in said.out  # it was run, and may not write
    assert "reference/squares/mistakes.toml (line 1)" in said.out
    assert not mark.exists()


def test_what_requires_imported_code_is_not_run_either(
    cli: Cli, hostile: tuple[Course, Path], tmp_path: Path
) -> None:
    course, mark = hostile
    assert cli("new", "cubes", "--course", course.root).code == 0
    settings = course.root / "reference/cubes/exercise.toml"
    settings.write_text(settings.read_text().replace("requires = []", 'requires = ["squares"]'))
    said = cli("validate", "cubes", "--course", course.root)
    assert "was imported and runs confined until you review it" in said.out, said.err
    hand_in(tmp_path, {"work/cubes.py": "x = 1\n"})
    checked = cli("check", tmp_path / "work/cubes.py", "--course", course.root)
    assert checked.code in (1, 2), checked.err
    assert not mark.exists()


@pytest.mark.slow
def test_the_other_exercises_of_a_course_are_proven_and_graded_as_before(
    cli: Cli, tiny_copy: Path
) -> None:
    assert cli("import", "nbgrader", EXAMPLES / "nbgrader.ipynb", "--course", tiny_copy).code == 0
    settings = tiny_copy / "reference" / "course.toml"
    assert "add up to 20" in cli("validate", "scale", "--course", tiny_copy).out
    settings.write_text(settings.read_text().replace("points = 8", "points = 20"))
    assert cli("validate", "scale", "--course", tiny_copy).code == 0
    solution = tiny_copy / "reference/scale/solution.py"
    assert cli("check", "scale", solution, "--course", tiny_copy).code == 0


@pytest.mark.slow
def test_reviewed_code_runs_and_import_says_how_to_come_there(
    cli: Cli, hostile: tuple[Course, Path], tmp_path: Path
) -> None:
    course, mark = hostile
    notebook = tmp_path / "notebook.ipynb"
    said = cli("import", "nbgrader", notebook, "--course", tmp_path / "other")
    assert "They run confined until you" in said.out
    shown = cli("trust", course.root, "--yes")
    assert "imported reference/squares/test_hidden.py" in shown.out
    assert load_course(course.root)["squares"].reviewed
    cli("validate", "squares", "--course", course.root)
    assert mark.exists()


def test_a_notebook_cannot_mark_itself_as_reviewed(imported: Callable[..., Course]) -> None:
    title = '# Squares"\nreviewed = true\n[more]\nx = "'
    cells = one_nbgrader("assert squares(1)")
    course = imported("nbgrader", text(title), *cells[1:])
    assert not course["squares"].reviewed
