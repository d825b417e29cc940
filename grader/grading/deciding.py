"""Deciding a check: each of its cases answered by the student's code, and compared."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable
from dataclasses import dataclass, field

import torch
from torch import Tensor

from grader.course.course import Course, Exercise
from grader.errors import GraderError, Mismatch
from grader.grading.cases import Case, Check
from grader.grading.compare import OUTPUT, TOLERANCE, assert_close
from grader.grading.diagnosis.answers import NUMBERS, Answer, Leaf, Raised, Values
from grader.grading.diagnosis.asked import FATAL, Asked, asked
from grader.grading.diagnosis.computed import catalogue_of
from grader.report import UNWRITTEN, WrongCase
from grader.sandbox.host.proxies import Student

ACCEPTED_ONE = "nothing is raised, where ValueError is expected"


@dataclass
class Given:
    """What a student's code answered to the cases of one exercise, each asked once."""

    exercise: str
    seed: int
    expected: Callable[[Case], Answer]  # the reference's answer
    answers: dict[str, Answer] = field(default_factory=dict)  # by the name of the case
    wrong: dict[str, str] = field(default_factory=dict)  # the cases that came out wrong: sentences

    def decide(self, check: Check, student: Student) -> None:
        """Ask all deciding cases of a check; raise for a wrong one, the first, with all of them.

        What is not written, and what ends the worker, ends the check.
        """
        found: list[tuple[Case, Exception]] = []
        for case in check.cases:
            if not case.decides:
                continue
            ask = functools.partial(case.ask, student, self.seed, self.exercise)
            answered = asked(ask, misuse=case.is_misuse)
            kind = getattr(answered.answer, "kind", "")
            if answered.error and (isinstance(answered.error, GraderError) or kind in UNWRITTEN):
                raise answered.error
            if kind not in FATAL:
                self.answers[case.name] = answered.answer
            if error := problem(case, answered, self.expected(case)):
                self.wrong[case.name] = case.sentence
                found.append((case, error))
            if kind in FATAL:
                break
        if found:
            # An error in the student's own files shows a line.
            first = next((each for _, each in found if getattr(each, "frames", ())), found[0][1])
            first.cases = tuple(  # type: ignore[attr-defined]
                WrongCase(case.name, case.sentence) for case, _ in found
            )
            raise first


def given_for(course: Course, exercise: Exercise, seed: int) -> Given:
    """Return what keeps the answers of a student's code to the cases of an exercise at a seed."""
    reference = catalogue_of(course, exercise, seed).reference
    return Given(exercise.name, seed, reference.answer)


def problem(case: Case, answered: Asked, expected: Answer) -> Exception | None:
    """Return why the answer to a case is wrong, as an error; None if it is right."""
    answer = answered.answer
    if isinstance(answer, Raised):
        return None if answer == expected else answered.error
    if isinstance(expected, Raised):
        return Mismatch(f"{_phrase(case)}: {ACCEPTED_ONE}")
    try:
        _assert_answer(case, answer, expected)
    except Mismatch as mismatch:
        mismatch.message = f"{_phrase(case)}: {mismatch.message}"
        return mismatch
    return None


def _phrase(case: Case) -> str:
    return case.sentence.rstrip(".")


def _assert_answer(case: Case, answer: Values, expected: Values) -> None:
    """Raise `Mismatch` unless an answer equals the expected one within the tolerance of a check.

    Floating-point dtypes count in cases about dtypes alone, and Python's numbers are numbers.
    """
    for ours, theirs in itertools.zip_longest(expected.leaves(), answer.leaves()):
        if ours is None or theirs is None or ours.place != theirs.place:
            lacks = ours.place if ours is not None else theirs.place
            raise Mismatch(f"{lacks or OUTPUT} is not of the expected form")
        what = f"the {ours.place}" if ours.place else OUTPUT
        if ours.value is None or theirs.value is None:
            if ours != theirs:
                raise Mismatch(f"{what} is {_described(theirs)}, not {_described(ours)}")
            continue
        if case.aspect == "dtype" and theirs.dtype != ours.dtype:
            raise Mismatch(f"{what} is of {theirs.dtype}, where {ours.dtype} is expected")
        _assert_numbers(case, theirs, ours, what)


def _described(leaf: Leaf) -> str:
    return leaf.text or f"{leaf.dtype}".removeprefix("torch.")


def _assert_numbers(case: Case, theirs: Leaf, ours: Leaf, what: str) -> None:
    actual, expected = theirs.value, ours.value
    assert isinstance(actual, Tensor), "only numbers are compared"
    assert isinstance(expected, Tensor), "only numbers are compared"
    relative, absolute = case.within or max(_tolerance(theirs.dtype), _tolerance(ours.dtype))
    if actual.shape == expected.shape:
        both = actual.isnan() & expected.isnan()
        actual, expected = actual.masked_fill(both, 0.0), expected.masked_fill(both, 0.0)
    if ours.dtype == torch.bool:
        actual, expected = actual.bool(), expected.bool()
    assert_close(actual, expected, what, rtol=relative, atol=absolute)


def _tolerance(dtype: object) -> tuple[float, float]:
    if dtype in NUMBERS:
        return TOLERANCE[torch.float64]
    return TOLERANCE.get(dtype, (0.0, 0.0))  # type: ignore[call-overload, no-any-return]
