"""`grader build` makes exercises/ from reference/, and says when it is stale."""

from __future__ import annotations

import pickle
import re
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from commandline import Cli, Said
from warm import run_warm

from grader.commands.build import plan_build
from grader.course.course import Course, load_course
from grader.course.stubs import is_untouched, make_stub
from grader.course.suite_text import shipped_cases
from grader.errors import CourseError
from grader.grading.diagnosis.record import ENGINE, hash_of_sources
from grader.grading.outcomes import points_of
from grader.grading.suite import Suite, collect_suites

ROOT = Path(__file__).parent.parent


def test_the_repositorys_exercises_are_current(course: Course) -> None:
    assert plan_build(course).stale == (), "run `grader build`"


def test_check_names_what_is_stale_and_writes_nothing(cli: Cli, tiny_copy: Path) -> None:
    said = cli("build", "--course", tiny_copy)
    assert (said.code, said.out.splitlines()[-1]) == (0, "exercises/ is current: 1 exercise")
    assert cli("build", "--check", "--course", tiny_copy).code == 0
    solution = tiny_copy / "reference" / "scale" / "statement.md"
    solution.write_text(solution.read_text() + "\nOne more promise.\n")
    (tiny_copy / "exercises" / "tests" / "test_gone.py").write_text("")
    said = cli("build", "--check", "--course", tiny_copy)
    assert said.code == 1
    for file in ("scale.py", "course.json", "test_gone.py"):
        assert f"{file}\n" in said.out
    assert "One more promise" not in (tiny_copy / "exercises" / "scale.py").read_text()
    assert cli("build", "--course", tiny_copy).code == 0
    assert cli("build", "--check", "--course", tiny_copy).code == 0
    assert not (tiny_copy / "exercises" / "tests" / "test_gone.py").exists()


def test_recorded_answers_are_of_all_that_cases_import(course: Course) -> None:
    """Otherwise a change of it would leave answers that no program gives any more."""
    hashed = {path.relative_to(ROOT / "grader").as_posix() for path in ENGINE}
    for name in course.names:
        text = shipped_cases(course[name])
        imported = re.findall(r"^from grader\.(\S+) import", text, re.M)
        assert {f"{module.replace('.', '/')}.py" for module in imported} <= hashed, name


def test_records_hold_for_a_course_that_was_sent_to_another_process(course: Course) -> None:
    """Otherwise each mistake is run on each case there, which takes many times as long."""
    sent = pickle.loads(pickle.dumps(course))
    for name in course.names:
        assert hash_of_sources(sent, name) == hash_of_sources(course, name), name


def test_work_in_exercises_is_kept_before_it_is_overwritten(cli: Cli, tiny_copy: Path) -> None:
    cli("build", "--course", tiny_copy)
    mine = tiny_copy / "exercises" / "scale.py"
    mine.write_text("my own work\n")
    said = cli("build", "--course", tiny_copy)
    assert "an edited exercise is kept as" in said.out
    (kept,) = (tiny_copy / ".grader" / "kept").iterdir()
    assert kept.read_text() == "my own work\n"


def test_a_stub_has_the_statement_and_none_of_the_solution(course: Course) -> None:
    for exercise in course.exercises:
        stub = make_stub(exercise)
        assert exercise.read("statement.md").strip() in stub
        assert "--- solution" not in stub
        solution = exercise.read("solution.py")
        inside = solution.split("# --- solution")[1].split("# --- end")[0]
        assert inside.strip() not in stub
        for name in exercise.implements:
            assert f" {name}(" in stub
        compile(stub, exercise.name, "exec")


def test_no_solution_counts_as_a_stub_and_no_stub_as_a_solution(course: Course) -> None:
    for exercise in course.exercises:
        stub = make_stub(exercise)
        assert not is_untouched(exercise.read("solution.py"), stub), exercise.name
        assert is_untouched(stub, stub), exercise.name


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("# --- end", "", "`# --- solution`"),
        ("# --- solution", "# ---", "`# --- end` is out of place"),
    ],
)
def test_marks_that_do_not_pair_are_named(tiny_copy: Path, old: str, new: str, said: str) -> None:
    path = tiny_copy / "reference" / "scale" / "solution.py"
    path.write_text(path.read_text().replace(old, new))
    with pytest.raises(CourseError, match=r"solution\.py") as caught:
        make_stub(load_course(tiny_copy)["scale"])
    assert said in caught.value.message


BROKEN_CONTENT = [
    ("exercise.toml", 'title = "Scale"', "title = ", "exercise.toml: not valid TOML"),
    ("exercise.toml", 'title = "Scale"', "", "exercise.toml: missing key `title`"),
    ("exercise.toml", "points = 8", "point = 8", "unknown key `point`; did you mean `points`?"),
    (
        "exercise.toml",
        "order = 1",
        'order = 1\nrequires = ["x"]',
        "requires: there is no exercise `x`",
    ),
]


@pytest.mark.parametrize(("file", "old", "new", "said"), BROKEN_CONTENT)
def test_broken_content_is_named_by_file(
    cli: Cli, tiny_copy: Path, file: str, old: str, new: str, said: str
) -> None:
    path = tiny_copy / "reference" / "scale" / file
    path.write_text(path.read_text().replace(old, new))
    result = cli("status", "--course", tiny_copy)
    assert result.code == 2
    assert "exercise.toml" in result.err
    assert said in result.err


# --- the public suites in an editor ---------------------------------------------------------------


def pytest_in(folder: Path, *arguments: str) -> Said:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *arguments]
    return run_warm(command, cwd=folder)


@pytest.mark.slow
def test_the_points_of_a_public_suite_add_up_to_the_exercises(course: Course) -> None:
    def points(suite: Suite) -> dict[str, int]:
        return {name: sum(map(points_of, items)) for name, items in suite.items.items()}

    found = collect_suites(replace(course, suites="public"), course.names, points)
    assert found == {exercise.name: exercise.points for exercise in course.exercises}


@pytest.mark.in_turn
@pytest.mark.slow
def test_public_suites_run_as_plain_pytest(
    course: Course, solutions: dict[str, str], tmp_path: Path
) -> None:
    """On the references they pass; on the stubs they fail, in the student's own file.

    Of the exercises that train, one is tried on its reference.
    """
    on_stubs = pytest_in(course.student_folder, "tests", "--tb=short")
    assert on_stubs.code == 1
    # The stubs use nothing that is forbidden.
    by_hand = f"{sum(bool(each.forbidden) for each in course.exercises)} passed"
    assert re.findall(r"\d+ passed", on_stubs.out) == [by_hand]
    assert "NotImplementedError: fill in" in on_stubs.out
    for name, text in solutions.items():
        (tmp_path / f"{name}.py").write_text(text)
    trains = next(name for name in course.names if course[name].training)
    names = [name for name in course.names if course[name].training is None or name == trains]
    files = [f"tests/test_{name}.py" for name in names]
    solved = pytest_in(course.student_folder, *files, f"--submission={tmp_path}")
    assert solved.code == 0, solved.out


PLAIN = """
from pathlib import Path
from grader.testing import raises


def test_before(student):
    student.draw()


def test_draws(student):
    with Path("drawn").open("a") as file:
        print(student.draw(), file=file)


def test_raises(student):
    with raises(student, "ArithmeticError"):
        student.divide(0)
"""


@pytest.mark.slow
def test_in_plain_pytest_each_test_is_seeded_and_a_broken_file_refuses_nothing(
    tiny_copy: Path,
) -> None:
    suite, code = tiny_copy / "reference/scale/test_hidden.py", tiny_copy / "scale.py"
    suite.write_text(PLAIN)
    code.write_text(
        "import torch\ndef draw(): return torch.rand(3).tolist()\ndef divide(n): return 1 / n\n"
    )
    both = pytest_in(tiny_copy, str(suite), f"--submission={tiny_copy}")
    assert both.code == 0, both.out
    pytest_in(tiny_copy, f"{suite}::test_draws", f"--submission={tiny_copy}")
    first, again = (tiny_copy / "drawn").read_text().splitlines()
    assert first == again
    code.write_text("1 / 0\n")
    broken = pytest_in(tiny_copy, f"{suite}::test_raises", f"--submission={tiny_copy}")
    assert broken.code == 1
    assert "ZeroDivisionError" in broken.out


@pytest.mark.slow
def test_a_failure_in_the_editor_is_told_in_the_words_of_a_report(
    course: Course, solutions: dict[str, str], tmp_path: Path
) -> None:
    name = "masked_softmax"
    wrong = solutions[name].replace("-torch.inf", "0.0")
    (tmp_path / f"{name}.py").write_text(wrong)
    test = f"tests/test_{name}.py::test_worked_example"
    said = pytest_in(course.student_folder, test, f"--submission={tmp_path}").out
    assert "The worked example: scores 1, 2, 3 with valid length 2." in said
    assert "expected:" in said
    assert "Traceback" not in said
