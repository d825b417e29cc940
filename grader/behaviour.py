"""What a solution did in a suite, and whether two solutions can be told apart by it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from grader.records import Report
from grader.sandbox import wire


@dataclass(frozen=True)
class Behaviour:
    """What a faulty solution did in every test: its outcome, and the answers it gave."""

    outcomes: tuple[tuple[str, str, str], ...]
    answers: Mapping[tuple[str, str], Sequence[Any]]

    @classmethod
    def of(cls, report: Report, records: Mapping[tuple[str, str], Sequence[Any]]) -> Behaviour:
        """The behaviour that a report and the record of its calls show."""
        tests = (test for exercise in report.exercises for test in exercise.tests)
        return cls(
            tuple((test.name, test.outcome, test.message) for test in tests),
            {key: [entry.answer for entry in record] for key, record in records.items()},
        )

    def same(self, other: Behaviour) -> bool:
        """Whether nothing that was seen tells the two apart."""
        if [o[:2] for o in self.outcomes] != [o[:2] for o in other.outcomes]:
            return False
        return self.answers.keys() == other.answers.keys() and all(
            _same_answers(answers, other.answers[key]) for key, answers in self.answers.items()
        )


def alike(behaviours: Mapping[str, Behaviour]) -> list[tuple[str, str]]:
    """The pairs of names whose behaviours cannot be told apart."""
    names = list(behaviours)
    return [
        (first, second)
        for place, first in enumerate(names)
        for second in names[place + 1 :]
        if behaviours[first].same(behaviours[second])
    ]


def _same_answers(first: Sequence[Any], second: Sequence[Any]) -> bool:
    return len(first) == len(second) and all(map(_same_answer, first, second))


def _same_answer(first: Any, second: Any) -> bool:
    if type(first) is not type(second):
        return False
    if isinstance(first, wire.Failure):
        return bool(first.kind == second.kind and first.message == second.message)
    if isinstance(first, wire.Reply):
        return (
            _same_value(first.value, second.value)
            and len(first.grads) == len(second.grads)
            and all(map(_same_value, first.grads, second.grads))
            and [e.name for e in first.entries] == [e.name for e in second.entries]
            and all(
                _same_value(a.tensor, b.tensor) and _same_value(a.grad, b.grad)
                for a, b in zip(first.entries, second.entries)
            )
            and len(first.changed) == len(second.changed)
            and first.operations == second.operations
        )
    return bool(first == second)


def _same_value(first: Any, second: Any) -> bool:
    """Equal as far as rounding goes: two ways to compute one thing are one behaviour."""
    if isinstance(first, wire.WireTensor) and isinstance(second, wire.WireTensor):
        if (first.dtype, first.shape, first.requires_grad) != (
            second.dtype,
            second.shape,
            second.requires_grad,
        ):
            return False
        return torch.allclose(
            wire.unpack_tensor(first).double(),
            wire.unpack_tensor(second).double(),
            rtol=1e-6,
            atol=1e-9,
            equal_nan=True,
        )
    if isinstance(first, wire.WireList | wire.WireTuple) and type(first) is type(second):
        return len(first.items) == len(second.items) and all(
            map(_same_value, first.items, second.items)
        )
    return bool(first == second)
