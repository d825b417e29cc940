"""What a diagnosis needs to know of an exercise's mistakes, wherever it comes from.

The teaching team's copy works the answers out (`computed`), a students' copy has them from a
recording (`recorded`).
"""

from __future__ import annotations

import functools
import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Generic, Protocol, TypeVar

from grader.course.course import Exercise
from grader.course.faults import Fault
from grader.grading.diagnosis.answers import Answer
from grader.grading.diagnosis.probes import Probe
from grader.report import WrongStep

MIN_NUMBERS = 10  # finite numbers of one answer that differ: errors or nan alone name nothing
MAX_LITERALS = 12  # numbers of a student's file that are tried where a mistake leaves one open
MAX_TEXT = 200_000  # characters of the file that are searched for them
LITERAL = re.compile(r"(?<![\w.])(?:\d{1,18}\.\d{0,18}|\.\d{1,18}|\d{1,18})(?:[eE][+-]?\d{1,3})?")


class Known(Protocol):
    """What a known mistake answers to a probe: values, an error, or a sketch of either."""

    def same(self, other: Answer, *, exact: bool = False) -> bool:
        """Return whether an answer is the same."""


class Reference(Protocol):
    """The reference solution, as far as a diagnosis asks for it."""

    def answer(self, probe: Probe) -> Answer:
        """Return the answer to a probe."""

    def repeat(self, probe: Probe) -> str:
        """Return the calls of a probe as a program that a student can run."""


class Candidate(ABC):
    """One mistake, or two at once, and what a program with it answers."""

    faults: tuple[Fault, ...]
    number: str  # that the program has where a mistake leaves one open
    form: int  # its place among the forms of the mistake; of two mistakes, the sum of theirs

    @property
    def text(self) -> str:
        """The program, or nothing where only its answers are known."""
        return ""

    @property
    @abstractmethod
    def touched(self) -> int:
        """The probes to which the program's answer is wrong, as bits."""

    @property
    def pattern(self) -> int:
        """Of the probes that are `recorded`, those to which it was wrong at the public seed."""
        return self.touched

    @property
    @abstractmethod
    def asked(self) -> tuple[int, int]:
        """The probes whose answers were compared with the reference's, and the wrong ones."""

    @abstractmethod
    def is_wrong(self, probe: Probe) -> bool:
        """Return whether the program's answer to a probe is not the reference's."""

    @abstractmethod
    def answer(self, probe: Probe) -> Known:
        """Return the program's answer to a probe."""

    @abstractmethod
    def first_wrong_step(self, probe: Probe) -> WrongStep | None:
        """Return the first stage that differs from the reference's while a probe is answered."""


C = TypeVar("C", bound=Candidate)


class Catalogue(ABC, Generic[C]):
    """The probes of an exercise, the reference, and every known mistake."""

    reference: Reference

    def __init__(
        self, exercise: Exercise, seed: int, probes: tuple[Probe, ...], axes: tuple[str, ...]
    ) -> None:
        self.exercise, self.seed, self.axes = exercise, seed, axes
        self.probes = tuple(probe for probe in probes if probe.tells)
        self.deciding_only = tuple(probe for probe in probes if not probe.tells)
        self._bit = {probe.name: 1 << place for place, probe in enumerate(self.probes)}
        self._every = (1 << len(self.probes)) - 1

    @property
    def recorded(self) -> int:
        """The probes of which it is known without asking which mistakes are wrong there."""
        return self._every

    @abstractmethod
    def singles(self, text: str = "") -> Iterator[C]:
        """Yield every known mistake in every form, and with the numbers in a student's `text`."""

    @abstractmethod
    def pair(self, first: C, second: C) -> C | None:
        """Return the candidate with two mistakes; None if they cannot be in one program."""

    @abstractmethod
    def adds_to_halves(self, pair: C, first: C, second: C, bits: int) -> bool:
        """Return whether, at some of the probes `bits`, a pair differs clearly from each half."""

    def is_right(self, answer: Answer, probe: Probe) -> bool:
        """Return whether an answer is the reference's."""
        return self.reference.answer(probe).same(answer)

    def is_nearly_right(self, answer: Answer, probe: Probe) -> bool:
        """Return whether an answer differs from the reference's by little more than it may."""
        return self.reference.answer(probe).is_near(answer)

    def wrong(self, answers: Mapping[str, Answer]) -> list[Probe]:
        """Return the probes whose answers are not the reference's.

        Those that just exceed the tolerance are left out if others are clearly wrong.
        """
        return self.compared(answers)[1]

    def compared(self, answers: Mapping[str, Answer]) -> tuple[int, list[Probe]]:
        """Return the probes whose answers are the reference's, as bits, and the `wrong` ones."""
        answered, wrong = self._answered(answers), self._wrong(answers)
        return self.bits(answered) & ~self.bits(wrong), self._clear(answers, wrong) or wrong

    def disproving(self, answers: Mapping[str, Answer]) -> list[Probe]:
        """Return the probes with no answer, or with one that no right code gives."""
        missing = [probe for probe in self.probes if probe.name not in answers]
        wrong = self._clear(answers, self._wrong(answers))
        return [probe for probe in (*wrong, *missing) if probe.decides]

    def _wrong(self, answers: Mapping[str, Answer]) -> list[Probe]:
        known = self._answered(answers)
        return [probe for probe in known if not self.is_right(answers[probe.name], probe)]

    def _answered(self, answers: Mapping[str, Answer]) -> list[Probe]:
        return [probe for probe in self.probes if probe.name in answers]

    def _clear(self, answers: Mapping[str, Answer], wrong: Iterable[Probe]) -> list[Probe]:
        return [p for p in wrong if not self.is_nearly_right(answers[p.name], p)]

    # --- sets of probes, as bits ------------------------------------------------------------------

    def bits(self, probes: Iterable[Probe]) -> int:
        """Return a set of probes."""
        return sum(self._bit[probe.name] for probe in probes)

    def probes_in(self, bits: int) -> list[Probe]:
        """Return the probes of a set, in their order."""
        found = []
        bits &= self._every
        while bits:
            lowest = bits & -bits
            found.append(self.probes[lowest.bit_length() - 1])
            bits ^= lowest
        return found

    def aspects(self, bits: int) -> tuple[str, ...]:
        """Return the aspects of a set of probes, the most telling first."""
        return tuple(dict.fromkeys(probe.aspect for probe in self.probes_in(bits)))

    def phrases(self, bits: int) -> list[str]:
        """Return what is said of the aspects of a set of probes."""
        return list(dict.fromkeys(probe.about.says for probe in self.probes_in(bits)))

    @functools.cached_property
    def principal(self) -> int:
        """The probes that are about no edge."""
        return self.bits(probe for probe in self.probes if not probe.about.is_edge)

    def of_aspects(self, aspects: Iterable[str]) -> int:
        """Return the probes of some aspects."""
        chosen = set(aspects)
        return self.bits(probe for probe in self.probes if probe.aspect in chosen)

    def whole_aspects(self, bits: int) -> int:
        """Return all probes of the aspects that a set of probes is about."""
        return self.of_aspects(self.aspects(bits))


AnyCatalogue = Catalogue[Any]


def numbers_in(text: str) -> list[str]:
    """Return the first numbers in a student's file, each once."""
    return list(dict.fromkeys(LITERAL.findall(text[:MAX_TEXT])))[:MAX_LITERALS]
