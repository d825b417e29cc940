"""Programs that compute nothing: which there are, and that a suite which pays one is told so."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from commandline import Cli, Grade

from grader.commands.blanks import blanks
from grader.course.course import Course

WEAK = """from grader.authors import Check

test_shape = Check("The result has the shape of x.", points=8)


@test_shape.case(hidden=True)
def rows(student, rng):
    \"\"\"Three rows.\"\"\"
    student.Scale(3)
    return list(student.scale(rng.randn(3, 7), 2.0).shape)
"""


def test_every_exercise_has_blanks_of_many_kinds(course: Course) -> None:
    for exercise in course.exercises:
        found = list(blanks(exercise))
        assert len({says for says, _ in found}) == len(found) > 20
        for _, text in found:
            ast.parse(text)


def test_layers_and_first_steps_make_blanks_of_their_own(course: Course) -> None:
    found = {says for says, _ in blanks(course["kv_cache"])}
    assert "W_value of the tokens so far, then out_proj" in found
    assert "the stage keys as the result" in found
    assert "the stage context as the result" not in found  # which leaves out one step alone


@pytest.mark.parametrize("says", ["the mean of the tokens so far", "the stub with the input"])
def test_a_blank_runs_and_earns_next_to_nothing(
    says: str, grade: Grade, course: Course, solutions: dict[str, str]
) -> None:
    text = dict(blanks(course["layer_norm"]))[says]
    (result,) = grade(course, {"layer_norm": text}, "layer_norm").exercises
    assert result.points <= 1
    assert not any("NotImplementedError" in test.message for test in result.tests)


@pytest.mark.slow
def test_a_suite_that_pays_a_blank_is_told_which(cli: Cli, tiny_copy: Path) -> None:
    (tiny_copy / "reference" / "scale" / "test_hidden.py").write_text(WEAK)
    said = cli("validate", "--course", tiny_copy, "scale")
    assert said.code == 1
    assert "a blank, zeros, earns 8 of 8 points, and may earn 1" in said.out
