"""Pictures of what a student's module does, drawn from its own answers.

An exercise may hold a `picture.py` with `TOKENS`, a sentence of a few words, and `weights(module)`,
which has the exercise's module attend to that sentence and returns the attention weights,
(num_heads, n_tokens, n_tokens). The same function is given the student's module, across the
boundary, and the reference's.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from grader.course.course import Exercise
from grader.errors import CheckFailure
from grader.report import HeadView
from grader.sandbox.program import Program
from grader.sandbox.wire import Source

FILE = "picture.py"
NO_PICTURE = (ArithmeticError, AttributeError, LookupError, RuntimeError, TypeError, ValueError)
Matrices = tuple[tuple[tuple[float, ...], ...], ...]


def head_view(exercise: Exercise, student: Any, reference: Any) -> HeadView | None:
    """Both modules' attention weights on the exercise's sentence; None where there are none."""
    path = exercise.folder / FILE
    if not path.is_file():
        return None
    picture = Program({"picture": Source(str(path), exercise.read(FILE))}).load("picture")
    expected = picture.weights(reference)
    try:
        actual = picture.weights(student)
    except (CheckFailure, *NO_PICTURE):
        return None  # what the student's code returns cannot be drawn; the tests say why
    if not isinstance(actual, Tensor) or actual.shape != expected.shape:
        return None
    if not actual.isfinite().all():
        return None
    return HeadView(tuple(picture.TOKENS), _matrices(expected), _matrices(actual))


def _matrices(weights: Tensor) -> Matrices:
    """Weights as numbers of three decimals: more than a line's width can show."""
    rounded = torch.round(weights.detach().double(), decimals=3)
    return tuple(tuple(tuple(row) for row in head) for head in rounded.tolist())
