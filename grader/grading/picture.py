"""The picture of a module's attention weights, the student's beside the reference's.

An exercise's `picture.py`, if any, defines `TOKENS`, a sentence of a few words, and
`weights(module)`, that module's attention weights for it, (num_heads, n_tokens, n_tokens).
"""

from __future__ import annotations

from typing import Any

from torch import Tensor

from grader.course.course import Exercise
from grader.errors import CheckFailure
from grader.report import HeadView, Matrix, printable
from grader.sandbox.program import Program
from grader.sandbox.wire import Source

DRAWING_ERRORS = (ArithmeticError, AttributeError, LookupError, RuntimeError, TypeError, ValueError)


def head_view(exercise: Exercise, student: Any, reference: Any) -> HeadView | None:
    """Return both modules' weights; None without `picture.py` or if they cannot be drawn."""
    path = exercise.folder / "picture.py"
    if not path.is_file():
        return None
    picture = Program({"picture": Source(str(path), exercise.read(path.name))}).load("picture")
    expected = picture.weights(reference)
    try:
        actual = picture.weights(student)
    except (CheckFailure, *DRAWING_ERRORS):
        return None  # no error here: the tests tell the student
    if isinstance(actual, Tensor) and actual.shape == expected.shape and actual.isfinite().all():
        return HeadView(tuple(picture.TOKENS), matrices_of(expected), matrices_of(actual))
    return None


def matrices_of(weights: Tensor) -> tuple[Matrix, ...]:
    """Return the weights of each head rounded to three decimals: a drawn line shows no more."""
    rounded = printable(weights.detach().double().tolist(), ".3f")
    return tuple(tuple(tuple(row) for row in head) for head in rounded)
