"""Answers as plain values, which can be written to a file and read again."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from grader.grading.diagnosis.answers import Answer, Form, Raised, Values
from grader.grading.diagnosis.record import PlainAnswer, PlainForm

GRID = 2**33  # numbers are multiples of 1 / GRID: a hundredth of the least tolerance, 1e-8
GRID_OF_SUMS = 2**26  # a tenth of the least tolerance for sums, 1e-7


def plain_form(answer: Answer) -> PlainForm:
    """Return the form of an answer."""
    if isinstance(answer, Raised):
        return PlainForm(raised=(answer.kind, answer.subject))
    parts = (
        tuple(str(each) if isinstance(each, torch.dtype) else each for each in part)
        for part in answer.form
    )
    return PlainForm(tuple(parts))


def plain_answer(answer: Answer) -> PlainAnswer:
    """Return an answer as plain values."""
    numbers = rounded(answer.numbers).numpy().tobytes() if isinstance(answer, Values) else b""
    return PlainAnswer(plain_form(answer), numbers)


def rounded(numbers: Tensor, grid: int = GRID) -> Tensor:
    """Return float64 numbers without the bits that no comparison sees: those do not compress."""
    has_such_bits = numbers.abs() < 2**52 / grid
    return torch.where(has_such_bits, (numbers * grid).round() / grid, numbers)


def form_of(plain: PlainForm) -> Form:
    """Return the form of values."""
    return tuple(map(_part, plain.parts))


def answer_of(plain: PlainAnswer) -> Answer:
    """Return an answer from its plain values."""
    if plain.form.raised is not None:
        return Raised(*plain.form.raised)
    empty = torch.empty(0, dtype=torch.float64)
    data = bytearray(plain.numbers)
    numbers = torch.frombuffer(data, dtype=torch.float64) if data else empty
    return Values(form_of(plain.form), numbers)


def _part(plain: tuple[Any, ...]) -> tuple[Any, ...]:
    place, kind, *shape = plain
    if shape:
        return tuple(place), getattr(torch, kind.removeprefix("torch.")), tuple(shape[0])
    return tuple(place), kind
