"""An answer that is a variable becomes a function without arguments, and kernels are named."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from classroom import hand_in
from commandline import Cli
from marked_notebooks import (
    EXAMPLES,
    MAKERS,
    answer,
    checks,
    code,
    one_nbgrader,
    one_otter,
    review,
    validated,
)

from grader.course.course import Course
from grader.course.stubs import make_stub

pytestmark = pytest.mark.in_turn


@pytest.mark.parametrize("format_", MAKERS)
def test_an_answer_that_is_a_variable_becomes_a_function_without_arguments(
    format_: str, imported: Callable[..., Course]
) -> None:
    solution = "base = 3\nnine = base**2 # SOLUTION"
    made = {
        "nbgrader": one_nbgrader(
            "assert nine == 9",
            solution="base = 3\n### BEGIN SOLUTION\nnine = base**2\n### END SOLUTION",
        ),
        "otter": one_otter(code("nine", "9"), solution=solution),
    }
    exercise = imported(format_, *made[format_])["squares"]
    assert exercise.implements == ("nine",)
    assert "expect(student.nine() == 9, " in exercise.read("test_hidden.py")
    stub = make_stub(exercise)
    assert "def nine():\n" in stub
    assert "    base = 3\n    raise NotImplementedError" in stub
    assert stub.endswith("    return nine\n")
    found: dict[str, Any] = {}
    exec(exercise.read("solution.py"), found)
    assert found["nine"]() == 9


@pytest.mark.parametrize(
    ("check", "has_case"),
    [
        ("assert nine == 81", True),
        ("assert 81 == nine", True),
        ("assert abs(nine - 81) < 0.5", True),
        ("import torch\nassert torch.allclose(nine, torch.tensor(81))", True),
        ("assert len(nine) == 3", False),
        ("assert nine == 'eighty-one'", False),
    ],
)
def test_a_variable_that_is_compared_with_numbers_is_a_case(
    check: str, has_case: bool, imported: Callable[..., Course]
) -> None:
    course = imported("nbgrader", answer("import torch\nnine = 81", "nine"), checks(check, "a", 1))
    hidden, public = (course["nine"].read(f"test_{kind}.py") for kind in ("hidden", "public"))
    assert (
        'test_nine_value.case("The value of `nine`.", output("nine"), hidden=True)' in hidden
    ) == (has_case)
    assert "output(" not in public
    assert "student.torch" not in hidden


@pytest.mark.slow
def test_a_wrong_value_is_stated_beside_the_right_one(
    cli: Cli, tmp_path: Path, imported: Callable[..., Course]
) -> None:
    course = imported(
        "nbgrader", answer("nine = 3**4", "nine"), checks("assert nine == 81", "a", 1)
    )
    review(course.root)
    problems = validated(cli, course.root, "nine")
    assert not [each for each in problems if "test_hidden.py" in each]
    file = tmp_path / "nine.py"
    file.write_text("def nine():\n    return 27\n")
    said = " ".join(cli("check", file, "--course", course.root).out.split())
    assert "The value of `nine`: the output is 27.0000, where 81.0000 is expected." in said


@pytest.mark.slow
def test_little_is_left_to_write_of_what_the_notebook_says(cli: Cli, tmp_path: Path) -> None:
    course = tmp_path / "course"
    assert cli("import", "nbgrader", EXAMPLES / "nbgrader.ipynb", "--course", course).code == 0
    review(course)
    says = cli("validate", "stable_softmax", "attention", "--course", course).out
    rows = {line.split()[0]: int(line.split()[-1]) for line in says.splitlines()[1:4]}
    assert rows == {"stable_softmax": 2, "attention": 5, "total": 7}  # 8 and 14 before
    solution = (course / "reference" / "attention" / "solution.py").read_text()
    assert solution.startswith('"""Reference solution: Part B: attention."""\n')
    settings = (course / "reference" / "attention" / "exercise.toml").read_text()
    assert 'idea = "Return the values, weighted by how well their keys fit each query."' in settings


def test_a_later_question_may_use_the_variable_of_an_earlier_one(
    imported: Callable[..., Course],
) -> None:
    cells = [
        *(answer("nine = 9", "first"), checks("assert nine == 9", "a", 1)),
        *(answer("def double():\n    return 2 * nine", "second"), checks("double()", "b", 1)),
    ]
    second = imported("nbgrader", *cells)["second"]
    assert second.requires == ("first",)
    assert "from first import nine\n\n\nnine = nine()\n" in second.read("solution.py")


def test_a_test_of_a_variable_grades_what_students_write(
    cli: Cli, imported: Callable[..., Course], tmp_path: Path
) -> None:
    course = imported("nbgrader", answer("nine = 9", "nine"), checks("assert nine == 9", "a", 1))
    hand_in(tmp_path, {"work/nine.py": "def nine():\n    nine = 3**2\n    return nine\n"})
    said = cli("check", tmp_path / "work", "--course", course.root)
    assert said.code == 0, said.out + said.err
