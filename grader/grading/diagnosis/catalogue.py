"""The known mistakes of one exercise, and what each answers to the probes of one seed.

Everything is worked out when it is first needed and kept for a whole class.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from grader.course.course import Course, Exercise
from grader.course.faults import Edit, Fault, edited, load_faults
from grader.errors import Mismatch
from grader.grading.compare import assert_close
from grader.grading.diagnosis.answers import Answer
from grader.grading.diagnosis.kept import key_of, load_answers, save_answers
from grader.grading.diagnosis.probes import Probe, load_axes, load_probes
from grader.grading.diagnosis.respondent import Respondent
from grader.report import WrongStep
from grader.sandbox.source import Unsearchable, forbidden_calls

MAX_CATALOGUES = 64  # that one process keeps
MANY_MORE = 1.1  # times the answers that are kept, so that they are not written again for a few
MAX_LITERALS = 12  # numbers of a student's file that are tried where a mistake leaves one open
MAX_TEXT = 200_000  # characters of the file that are searched for them
LITERAL = re.compile(r"(?<![\w.])(?:\d{1,18}\.\d{0,18}|\.\d{1,18}|\d{1,18})(?:[eE][+-]?\d{1,3})?")


_CATALOGUES: dict[tuple[Path, str, int, bool], Catalogue] = {}


@dataclass(frozen=True, eq=False)
class Candidate:
    """One mistake, or two: the edits that make it, and the program that has them."""

    faults: tuple[Fault, ...]
    edits: tuple[Edit, ...]
    program: Respondent
    number: str
    _catalogue: Catalogue = field(repr=False)
    _is_wrong: dict[str, bool] = field(default_factory=dict, repr=False)  # by probe
    _steps: dict[str, WrongStep | None] = field(default_factory=dict, repr=False)

    def answer(self, probe: Probe) -> Answer:
        """Return the program's answer to a probe."""
        return self.program.answer(probe)

    def is_wrong(self, probe: Probe) -> bool:
        """Return whether the program's answer to a probe is not the reference's."""
        if probe.name not in self._is_wrong:
            self._is_wrong[probe.name] = not self._catalogue.is_right(self.answer(probe), probe)
        return self._is_wrong[probe.name]

    @functools.cached_property
    def touched(self) -> int:
        """The probes to which the program's answer is wrong, as bits."""
        return self._catalogue.bits(filter(self.is_wrong, self._catalogue.probes))

    def first_wrong_step(self, probe: Probe) -> WrongStep | None:
        """Return the first stage that differs from the reference's while a probe is answered."""
        if probe.name not in self._steps:
            self._steps[probe.name] = self._catalogue.compare_stages(self.program, probe)
        return self._steps[probe.name]


def catalogue_of(course: Course, exercise: Exercise, seed: int, *, keep: bool = False) -> Catalogue:
    """Return the catalogue of an exercise, with what it has worked out in this process."""
    key = exercise.folder, course.hashes[exercise.name], seed, keep
    if key not in _CATALOGUES:
        while len(_CATALOGUES) >= MAX_CATALOGUES:
            _CATALOGUES.pop(next(iter(_CATALOGUES)))
        _CATALOGUES[key] = Catalogue(course, exercise, seed, keep=keep)
    return _CATALOGUES[key]


class Catalogue:
    """The probes of an exercise, the reference, and every known mistake."""

    def __init__(
        self, course: Course, exercise: Exercise, seed: int, *, keep: bool = False
    ) -> None:
        self.exercise, self.seed = exercise, seed
        self._keeps = keep
        self._answers = load_answers(course, exercise.name) if keep else {}
        self._count = sum(map(len, self._answers.values()))  # of the answers that are kept
        self.probes = load_probes(exercise)
        self.axes = load_axes(exercise)
        self._course, self._solution = course, exercise.read("solution.py")
        self.reference = self.respondent(self._solution)
        self._bit = {probe.name: 1 << place for place, probe in enumerate(self.probes)}
        self._pairs: dict[tuple[Candidate, Candidate], Candidate | None] = {}
        self._with_number: dict[tuple[str, str], list[Candidate]] = {}

    def respondent(self, text: str) -> Respondent:
        """Return a text of the exercise's solution as a program that answers the probes."""
        answers = self._answers.setdefault(key_of(text), {})
        return Respondent(self._course, self.exercise, text, self.seed, answers)

    def keep(self) -> None:
        """Keep the answers for the next check, if they are kept and there are many new ones."""
        count = sum(map(len, self._answers.values()))
        if self._keeps and count > MANY_MORE * self._count:
            self._count = count
            save_answers(self._course, self.exercise.name, self._answers)

    def is_right(self, answer: Answer, probe: Probe) -> bool:
        """Return whether an answer is the reference's."""
        return self.reference.answer(probe).same(answer)

    def is_nearly_right(self, answer: Answer, probe: Probe) -> bool:
        """Return whether an answer differs from the reference's by little more than it may."""
        return self.reference.answer(probe).is_near(answer)

    def compare_stages(self, program: Respondent, probe: Probe) -> WrongStep | None:
        """Return the first stage in which a program differs from the reference."""
        names = self.exercise.stages
        actual, expected = (each.stages(probe, names) for each in (program, self.reference))
        for name in [name for name in names if name in actual and name in expected]:
            try:
                assert_close(actual[name], expected[name], f"`{name}`")
            except Mismatch as mismatch:
                if d := mismatch.difference:
                    return WrongStep(probe.sentence, name, d.summary, d.expected, d.actual)
        return None

    # --- mistakes ---------------------------------------------------------------------------------

    def singles(self, text: str = "") -> Iterator[Candidate]:
        """Yield every known mistake in every form, and with the numbers in a student's `text`."""
        yield from self._singles
        numbers = list(dict.fromkeys(LITERAL.findall(text[:MAX_TEXT])))[:MAX_LITERALS]
        for fault in self._faults:
            for number in numbers if fault.number else ():
                if (key := (fault.name, number)) not in self._with_number:
                    self._with_number[key] = list(self._forms(fault, number))
                yield from self._with_number[key]

    @functools.cached_property
    def _faults(self) -> tuple[Fault, ...]:
        """The mistakes, without forbidden calls: a test reports those already."""
        return tuple(each for each in load_faults(self.exercise) if not self._is_forbidden(each))

    def _is_forbidden(self, fault: Fault) -> bool:
        try:
            text = fault.apply(self._solution)
            return bool(forbidden_calls(text, "", self.exercise.forbidden))
        except Unsearchable:  # the same test reports a file that cannot be searched
            return True

    @functools.cached_property
    def _singles(self) -> list[Candidate]:
        return [each for fault in self._faults for each in self._forms(fault, fault.number)]

    def _forms(self, fault: Fault, number: str) -> Iterator[Candidate]:
        for edits in fault.forms(number):
            if candidate := self._candidate((fault,), edits, number):
                yield candidate

    def _candidate(
        self, faults: tuple[Fault, ...], edits: tuple[Edit, ...], number: str
    ) -> Candidate | None:
        text = edited(self._solution, edits)
        return (
            None if text is None else Candidate(faults, edits, self.respondent(text), number, self)
        )

    def pair(self, first: Candidate, second: Candidate) -> Candidate | None:
        """Return the candidate with two mistakes; None if one edit removes the other's place."""
        if first.faults == second.faults:
            return None
        if (first, second) not in self._pairs:
            number = first.number or second.number
            orders = ((first, second), (second, first))
            made = (
                self._candidate(a.faults + b.faults, a.edits + b.edits, number) for a, b in orders
            )
            self._pairs[first, second] = next(filter(None, made), None)
        return self._pairs[first, second]

    def warm(self) -> None:
        """Have every single mistake answer every probe."""
        for candidate in self._singles:
            _ = candidate.touched

    # --- sets of probes, as bits ------------------------------------------------------------------

    def bits(self, probes: Iterable[Probe]) -> int:
        """Return a set of probes."""
        return sum(self._bit[probe.name] for probe in probes)

    def probes_in(self, bits: int) -> list[Probe]:
        """Return the probes of a set, in their order."""
        return [probe for probe in self.probes if self._bit[probe.name] & bits]

    def aspects(self, bits: int) -> tuple[str, ...]:
        """Return the aspects of a set of probes, the most telling first."""
        return tuple(dict.fromkeys(probe.aspect for probe in self.probes_in(bits)))

    def of_aspects(self, aspects: Iterable[str]) -> int:
        """Return the probes of some aspects."""
        chosen = set(aspects)
        return self.bits(probe for probe in self.probes if probe.aspect in chosen)

    def whole_aspects(self, bits: int) -> int:
        """Return all probes of the aspects that a set of probes is about."""
        return self.of_aspects(self.aspects(bits))
