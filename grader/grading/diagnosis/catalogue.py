"""The knowledge that a diagnosis needs of an exercise's mistakes, from any source.

The teaching team's copy computes the answers (`computed`), a students' copy reads them from a
record (`recorded`).
"""

from __future__ import annotations

import functools
import re
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, Generic, Protocol, TypeVar

from grader.course.course import Exercise
from grader.course.known_mistakes import Mistake
from grader.grading.cases import Case
from grader.grading.diagnosis.answers import Answer, nan_in
from grader.report import WrongStep

MIN_NUMBERS = 10  # differing finite numbers of one answer: errors or nan alone name nothing
MAX_LITERALS = 12  # numbers of a student's file that are tried if a mistake leaves a number open
MAX_TEXT = 200_000  # characters of the file that are searched for numbers
LITERAL = re.compile(r"(?<![\w.])(?:\d{1,18}\.\d{0,18}|\.\d{1,18}|\d{1,18})(?:[eE][+-]?\d{1,3})?")


class Known(Protocol):
    """The answer of a known mistake to a case: values, an error, or a sketch of values."""

    def same(self, other: Answer, *, exact: bool = False) -> bool:
        """Return whether an answer is the same."""


class Reference(Protocol):
    """The reference solution, as far as a diagnosis needs it."""

    def answer(self, case: Case) -> Answer:
        """Return the answer to a case."""

    def repeat(self, case: Case) -> str:
        """Return the calls of a case as a program that a student can run."""


class Candidate(ABC):
    """One mistake, or two at once, and the answers of a program with it."""

    faults: tuple[Mistake, ...]
    number: str  # the program's number, if the mistake leaves one open
    form: int  # its place among the forms of the mistake; for two mistakes, the sum of their places

    @property
    def text(self) -> str:
        """The program; empty if only its answers are known."""
        return ""

    @property
    @abstractmethod
    def touched(self) -> int:
        """The cases to which the program's answer is wrong, as bits."""

    @property
    def pattern(self) -> int:
        """Of the `recorded` cases, those with a wrong answer at the public seed."""
        return self.touched

    @property
    @abstractmethod
    def asked(self) -> tuple[int, int]:
        """The cases whose answers were compared with the reference's, and the wrong ones."""

    @abstractmethod
    def is_wrong(self, case: Case) -> bool:
        """Return whether the program's answer to a case is not the reference's."""

    @abstractmethod
    def answer(self, case: Case) -> Known:
        """Return the program's answer to a case."""

    @abstractmethod
    def first_wrong_step(self, case: Case) -> WrongStep | None:
        """Return the first stage that differs from the reference's in a case."""


C = TypeVar("C", bound=Candidate)


class Catalogue(ABC, Generic[C]):
    """The cases of an exercise, the reference, and every known mistake."""

    reference: Reference

    def __init__(
        self, exercise: Exercise, seed: int, cases: tuple[Case, ...], axes: tuple[str, ...]
    ) -> None:
        self.exercise, self.seed, self.axes = exercise, seed, axes
        self.cases = tuple(case for case in cases if case.tells)
        self.deciding_only = tuple(case for case in cases if not case.tells)
        self._bit = {case.name: 1 << place for place, case in enumerate(self.cases)}
        self._every = (1 << len(self.cases)) - 1

    @property
    def recorded(self) -> int:
        """The cases for which a record says which mistakes answer them wrongly."""
        return self._every

    @abstractmethod
    def singles(self, text: str = "") -> Iterator[C]:
        """Yield every known mistake in every form, and with the numbers in a student's `text`."""

    @abstractmethod
    def pair(self, first: C, second: C) -> C | None:
        """Return the candidate with two mistakes; None if one program cannot have both."""

    @abstractmethod
    def adds_to_halves(self, pair: C, first: C, second: C, bits: int) -> bool:
        """Return whether a pair differs clearly from each half, at some of the cases `bits`."""

    def is_right(self, answer: Answer, case: Case) -> bool:
        """Return whether an answer is the reference's."""
        return self.reference.answer(case).same(answer, within=case.within)

    def is_nearly_right(self, answer: Answer, case: Case) -> bool:
        """Return whether an answer differs from the reference's by little more than it may."""
        return self.reference.answer(case).is_near(answer, case.within)

    def wrong(self, answers: Mapping[str, Answer]) -> list[Case]:
        """Return the cases whose answers are not the reference's.

        Cases that just exceed the tolerance are left out if others are clearly wrong.
        """
        return self.compared(answers)[1]

    def compared(self, answers: Mapping[str, Answer]) -> tuple[int, list[Case]]:
        """Return the cases whose answers are the reference's, as bits, and the `wrong` ones."""
        answered, wrong = self._answered(answers), self._wrong(answers)
        return self.bits(answered) & ~self.bits(wrong), self._clear(answers, wrong) or wrong

    def disproving(self, answers: Mapping[str, Answer]) -> list[Case]:
        """Return the cases with no answer, or with one that no right code gives."""
        missing = [case for case in self.cases if case.name not in answers]
        wrong = self._clear(answers, self._wrong(answers))
        return [case for case in (*wrong, *missing) if case.decides]

    def with_nan(self, answers: Mapping[str, Answer], besides: Collection[str]) -> Case | None:
        """Return the first wrong case whose answer holds nan, except some; None if none does.

        Nan in an output comes before nan in a gradient alone.
        """
        wrong = [case for case in self.wrong(answers) if case.name not in besides]
        for is_gradient in (False, True):
            for case in wrong:
                if nan_in(answers[case.name], gradients=is_gradient):
                    return case
        return None

    def _wrong(self, answers: Mapping[str, Answer]) -> list[Case]:
        known = self._answered(answers)
        return [case for case in known if not self.is_right(answers[case.name], case)]

    def _answered(self, answers: Mapping[str, Answer]) -> list[Case]:
        return [case for case in self.cases if case.name in answers]

    def _clear(self, answers: Mapping[str, Answer], wrong: Iterable[Case]) -> list[Case]:
        return [p for p in wrong if not self.is_nearly_right(answers[p.name], p)]

    # --- sets of cases, as bits ------------------------------------------------------------------

    def bits(self, cases: Iterable[Case]) -> int:
        """Return a set of cases."""
        return sum(self._bit[case.name] for case in cases)

    def cases_in(self, bits: int) -> list[Case]:
        """Return the cases of a set, in their order."""
        found = []
        bits &= self._every
        while bits:
            lowest = bits & -bits
            found.append(self.cases[lowest.bit_length() - 1])
            bits ^= lowest
        return found

    def aspects(self, bits: int) -> tuple[str, ...]:
        """Return the aspects of a set of cases, the most telling first."""
        return tuple(dict.fromkeys(case.aspect for case in self.cases_in(bits)))

    def phrases(self, bits: int) -> list[str]:
        """Return the words for the aspects of a set of cases."""
        return list(dict.fromkeys(case.about.says for case in self.cases_in(bits)))

    @functools.cached_property
    def principal(self) -> int:
        """The cases that are not about an edge."""
        return self.bits(case for case in self.cases if not case.about.is_edge)

    def of_aspects(self, aspects: Iterable[str]) -> int:
        """Return the cases of some aspects."""
        chosen = set(aspects)
        return self.bits(case for case in self.cases if case.aspect in chosen)

    def whole_aspects(self, bits: int) -> int:
        """Return all cases of the aspects in a set of cases."""
        return self.of_aspects(self.aspects(bits))


AnyCatalogue = Catalogue[Any]


def numbers_in(text: str) -> list[str]:
    """Return the first numbers in a student's file, each once."""
    return list(dict.fromkeys(LITERAL.findall(text[:MAX_TEXT])))[:MAX_LITERALS]
