"""Pictures of what the student's code computes, made by two files that an exercise may have.

`picture.py` shows a module's attention weights, the student's beside the reference's. It defines
`TOKENS`, a sentence of a few words, and `weights(module)`, that module's attention weights for it,
(num_heads, n_tokens, n_tokens).

`drawing.py` shows what the student's code computes on a sequence. It defines
`draw(module, trained)`, which yields a dict for each picture: its `title`, what it `says`, and
either `weights`, (rows, columns) or (heads, rows, columns), with the labels of `rows` and
`columns`, or a `text`. `trained(name, make)` returns a module with the parameters of the training
`name`, or None if there was none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from torch import Tensor

from grader.course.course import DRAWING, Exercise
from grader.errors import CheckFailure
from grader.grading.training import restored
from grader.report import Drawing, HeadView, Matrix, clean, printable
from grader.sandbox.host.proxies import Student
from grader.sandbox.program import Program
from grader.sandbox.wire import Source

MAX_PICTURES, MAX_HEADS, MAX_SIDE = 4, 8, 32  # rows or columns of a side
MAX_LABEL = 12  # characters
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
        return None  # the tests tell the student what is wrong
    if isinstance(actual, Tensor) and actual.shape == expected.shape and actual.isfinite().all():
        return HeadView(tuple(picture.TOKENS), matrices_of(expected), matrices_of(actual))
    return None


def matrices_of(weights: Tensor) -> tuple[Matrix, ...]:
    """Return the weights of each head rounded to three decimals: a drawn line shows no more."""
    rounded = printable(weights.detach().double().tolist(), ".3f")
    return tuple(tuple(tuple(row) for row in head) for head in rounded)


def pictures_of(exercise: Exercise, student: Student) -> tuple[Drawing, ...]:
    """Return the pictures of a student's code; those that it cannot compute are left out."""
    if not exercise.drawing:
        return ()
    program = Program({"drawing": Source(str(exercise.folder / DRAWING), exercise.drawing)})

    def trained(name: str, make: Callable[[], Any]) -> Any:
        return restored(student, name, make)

    found: list[Drawing] = []
    try:
        for drawn in program.load("drawing").draw(student, trained):
            found += _picture(**drawn)
    except (CheckFailure, *DRAWING_ERRORS):
        pass  # no error here: the tests tell the student
    return tuple(found[:MAX_PICTURES])


def _picture(
    title: str,
    says: str,
    weights: Any = None,
    rows: Any = (),
    columns: Any = (),
    text: Any = "",
) -> Iterator[Drawing]:
    """Yield a picture, unless its values cannot be drawn."""
    if isinstance(weights, Tensor) and weights.dim() in (2, 3) and weights.isfinite().all():
        heads = weights.unsqueeze(0) if weights.dim() == 2 else weights
        heads = heads[:MAX_HEADS, :MAX_SIDE, :MAX_SIDE]
        yield Drawing(title, says, matrices_of(heads), _labels(rows), _labels(columns))
    elif isinstance(text, str) and text:
        yield Drawing(title, says, text=clean(text))


def _labels(side: Iterable[Any]) -> tuple[str, ...]:
    return tuple(clean(str(each))[:MAX_LABEL] for each in side)[:MAX_SIDE]
