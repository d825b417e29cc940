"""Pictures of what the student's code computes, made by two files that an exercise may have.

`picture.py` shows a module's attention weights, the student's beside the reference's. It defines
`TOKENS`, a sentence of a few words, and `weights(module)`, that module's attention weights for it,
(num_heads, n_tokens, n_tokens).

`drawing.py` shows what the student's code computes on a sequence. It defines
`draw(module, trained)`, which yields a dict for each picture: its `title`, what it `says`, and
either `weights`, (rows, columns) or (heads, rows, columns), with the labels of `rows` and
`columns`, or a `text`. `trained(name, make)` returns a module with the parameters of the training
`name`, or None if there was none. Or it defines `tour(stage)`, which leads a sequence through
several exercises: `stage` is that of `Tour`.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from types import ModuleType
from typing import Any

import torch
from torch import Tensor

from grader.course.course import DRAWING, Exercise
from grader.errors import CheckFailure, StudentFailure
from grader.grading.training import restored
from grader.report import UNWRITTEN, Drawing, HeadView, Matrix, clean, printable
from grader.sandbox.host.proxies import Student
from grader.sandbox.program import Program
from grader.sandbox.wire import Source

MAX_PICTURES, MAX_STAGES = 4, 12  # of an exercise, and of a tour
MAX_HEADS, MAX_SIDE = 8, 32  # rows or columns of a side
MAX_LABEL = 12  # characters
TOLERANCE = 1e-3  # of values that are drawn: a drawn line shows no more
# Whose values a stage of a tour shows.
OWN = "Made by your `{}`."
NOT_RIGHT = "Made by your `{}`, and not right yet: PyTorch's part goes on."
NOT_WRITTEN = "PyTorch's part, as there is no `{}` yet."
STOPS = "PyTorch's part: your `{}` stops with an error."
NO_PICTURE = "PyTorch's part: your `{}` gives no such tensor."
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


Part = Callable[[str], Student | None]  # a student's code of an exercise, if it is written


def pictures_of(exercise: Exercise, student: Student) -> tuple[Drawing, ...]:
    """Return the pictures of a student's code; those that it cannot compute are left out."""
    found: list[Drawing] = []
    with contextlib.suppress(CheckFailure, *DRAWING_ERRORS):  # the tests tell the student
        for drawn in _drawing(exercise).draw(student, functools.partial(restored, student)):
            found += _picture(**drawn)
    return tuple(found[:MAX_PICTURES])


def stages_of(exercise: Exercise, part: Part) -> tuple[Drawing, ...]:
    """Return the stages of the tour that an exercise leads.

    `part` returns the module of an exercise; None if it is not written, and raises `LookupError`
    if the course does not have it.
    """
    tour = Tour(part, [])
    with contextlib.suppress(CheckFailure, *DRAWING_ERRORS):
        _drawing(exercise).tour(tour.stage)
    return tuple(tour.pictures[:MAX_STAGES])


def _drawing(exercise: Exercise) -> ModuleType:
    source = Source(str(exercise.folder / DRAWING), exercise.drawing)
    return Program({"drawing": source}).load("drawing")


@dataclass(frozen=True)
class Tour:
    """The stages of a sequence on its way through a student's exercises, as pictures."""

    part: Part
    pictures: list[Drawing]

    def stage(
        self,
        title: str,
        says: str,
        right: Tensor,
        name: str = "",
        own: Callable[[Any], Any] | None = None,
        rows: Any = (),
        columns: Any = (),
    ) -> Tensor:
        """Draw a stage, and return its values for the next one.

        They are those of the student's exercise `name`, computed by `own` from its module. If these
        are not the `right` values, they are drawn all the same, and the right ones go on.
        """
        found, whose = self._found(name, own) if own is not None else (None, "")
        values = right
        if found is not None and (found.shape != right.shape or not found.isfinite().all()):
            whose = NO_PICTURE
        elif found is not None:
            values = found.detach().to(right.dtype)
            if torch.allclose(values, right, rtol=TOLERANCE, atol=TOLERANCE):
                right = values
            else:
                whose = NOT_RIGHT
        squeezed = values.squeeze(0) if values.dim() > 2 else values
        drawn = _picture(title, says, squeezed, rows, columns)
        self.pictures.extend(replace(each, whose=whose.format(name)) for each in drawn)
        return right

    def _found(self, name: str, own: Callable[[Any], Any]) -> tuple[Tensor | None, str]:
        """Return what a student's exercise computes, if it can, and whose part is to be shown."""
        try:
            student = self.part(name)
        except LookupError:  # this course is without it
            return None, ""
        if student is None:
            return None, NOT_WRITTEN
        try:
            found = own(student)
        except StudentFailure as failure:
            return None, NOT_WRITTEN if failure.kind in UNWRITTEN else STOPS
        except (CheckFailure, *DRAWING_ERRORS):
            return None, STOPS
        return (found, OWN) if isinstance(found, Tensor) else (None, NO_PICTURE)


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
