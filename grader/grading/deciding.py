"""Decides a check: the student's code answers each case, and the answers are compared."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

import torch
from torch import Tensor

from grader.course.course import Course, Exercise
from grader.errors import CheckFailure, GraderError, Mismatch
from grader.grading.cases import Case, Check
from grader.grading.compare import FORGOTTEN, TOLERANCE, assert_close, being, in_digits
from grader.grading.diagnosis.answers import NUMBERS, Answer, Leaf, Raised, Values
from grader.grading.diagnosis.asked import FATAL, Asked, asked
from grader.grading.diagnosis.computed import ComputedCatalogue, catalogue_of
from grader.grading.told import MANY
from grader.grading.words import ANSWER, Words, is_gradient, list_of, words_of
from grader.report import UNWRITTEN, WrongCase
from grader.sandbox.host.proxies import Student

MAX_LISTED = 60  # characters of numbers in a message
NO_GRADIENT = "no gradient reaches anything from the output"
ACCEPTED_ONE = "nothing is raised, where ValueError is expected"


@dataclass
class Given:
    """The answers of a student's code to the cases of one exercise, each asked once."""

    exercise: str
    seed: int
    expected: Callable[[Case], Answer]  # the reference's answer
    words: Words
    answers: dict[str, Answer] = field(default_factory=dict)  # answers by the name of the case
    wrong: dict[str, str] = field(default_factory=dict)  # the wrong cases, as sentences

    def decide(self, check: Check, student: Student) -> None:
        """Ask all deciding cases of a check; raise the first error, with all wrong cases.

        Code that is not written, or that ends the worker, ends the check.
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
            if error := problem(case, answered, self.expected(case), self.words):
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
    """Return the store for a student's answers to the cases of an exercise at a seed."""
    reference = catalogue_of(course, exercise, seed).reference
    return Given(exercise.name, seed, reference.answer, words_of(exercise))


def decided(
    catalogue: ComputedCatalogue, cases: Iterable[Case], answer: Callable[[Case], Answer]
) -> list[Case]:
    """Return those of some cases that decide a check, and to which a program answers wrongly."""
    expected, words = catalogue.reference.answer, words_of(catalogue.exercise)
    return [
        case
        for case in cases
        if case.decides and problem(case, _as_asked(answer(case)), expected(case), words)
    ]


def _as_asked(answer: Answer) -> Asked:
    return Asked(answer, CheckFailure("raised") if isinstance(answer, Raised) else None)


def problem(case: Case, answered: Asked, expected: Answer, words: Words) -> Exception | None:
    """Return why the answer to a case is wrong, as an error; None if it is right."""
    answer = answered.answer
    if isinstance(answer, Raised):
        return None if answer == expected else answered.error
    if isinstance(expected, Raised):
        return Mismatch(f"{_phrase(case)}: {ACCEPTED_ONE}")
    try:
        _assert_answer(case, answer, expected, lambda place: words.of(place, case.sentence))
    except Mismatch as mismatch:
        mismatch.message = f"{_phrase(case)}: {mismatch.message}"
        return mismatch
    return None


def _phrase(case: Case) -> str:
    return case.sentence.rstrip(".")


def _assert_answer(
    case: Case, answer: Values, expected: Values, called: Callable[[str], str]
) -> None:
    """Raise `Mismatch` unless an answer equals the expected one within the tolerance of a check.

    Floating-point dtypes count only in cases about dtypes, and any Python number is a number.
    """
    theirs = {leaf.place: leaf for leaf in answer.leaves()}
    ours = {leaf.place: leaf for leaf in expected.leaves()}
    for place, leaf in theirs.items():
        if leaf.text == "None" and place in ours and leaf != ours[place]:
            why = "missing" if is_gradient(place) else f"None: {FORGOTTEN}"
            raise Mismatch(f"{being(called(place))} {why}")
    for place, wanted in ours.items():
        got = theirs.get(place)
        is_number = wanted.dtype in NUMBERS
        what = ANSWER if is_number and place.isdigit() else called(place)
        if got is None:
            raise Mismatch(NO_GRADIENT if "gradients" in theirs else f"{being(what)} missing")
        if wanted.value is None or got.value is None:
            if wanted != got:
                raise Mismatch(f"{being(what)} {_described(got)}, not {_described(wanted)}")
        elif case.aspect == "dtype" and got.dtype != wanted.dtype:
            raise Mismatch(f"{being(what)} of {got.dtype}, where {wanted.dtype} is expected")
        elif is_number and got.dtype in NUMBERS:
            if not _is_close(case, got, wanted):
                here, there = _listed(place, theirs), _listed(place, ours)
                if here == there or len(here) > MAX_LISTED:
                    here, there = _number(got), _number(wanted)
                raise Mismatch(f"{being(what)} {here}, where {there} is expected")
        else:
            _assert_numbers(case, got, wanted, what)
    if more := [*(theirs.keys() - ours.keys())]:
        raise Mismatch(f"{called(min(more))} is there, where nothing of that name is expected")


def _described(leaf: Leaf) -> str:
    return leaf.text or f"{leaf.dtype}".removeprefix("torch.")


def _listed(place: str, leaves: Mapping[str, Leaf]) -> str:
    """Return the Python numbers in a list; a list that repeats one value gives it once."""
    inside = [leaf for each, leaf in leaves.items() if list_of(each) == list_of(place)]
    numbers = [_number(leaf) for leaf in inside if leaf.dtype in NUMBERS]
    if len(numbers) % MANY == 0:
        numbers = numbers[: len(numbers) // MANY]
    return numbers[0] if len(numbers) == 1 else f"({', '.join(numbers)})"


def _number(leaf: Leaf) -> str:
    assert leaf.value is not None, "only numbers are shown"
    value = leaf.value.item()
    if leaf.dtype == "bool":
        return "yes" if value else "no"
    return str(int(value)) if leaf.dtype == "int" else in_digits(value)


def _is_close(case: Case, theirs: Leaf, ours: Leaf) -> bool:
    assert theirs.value is not None, "only numbers are compared"
    assert ours.value is not None, "only numbers are compared"
    relative, absolute = case.within or TOLERANCE[torch.float64]
    return torch.allclose(theirs.value, ours.value, rtol=relative, atol=absolute, equal_nan=True)


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
