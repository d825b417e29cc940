"""The known mistakes of one exercise as programs, and their answers to the cases of one seed.

Everything is computed when it is first needed, and kept for a whole class.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import torch
from torch import Tensor

from grader.course.course import Course, Exercise
from grader.course.known_mistakes import Edit, Mistake, edited, load_mistakes
from grader.course.suite_text import SUITE
from grader.errors import CourseError, Mismatch
from grader.grading.cases import Case
from grader.grading.compare import assert_close
from grader.grading.diagnosis.answers import Answer, finite_differences
from grader.grading.diagnosis.asked import Answers, cases_in, load_cases
from grader.grading.diagnosis.catalogue import MIN_NUMBERS, Candidate, Catalogue, numbers_in
from grader.grading.diagnosis.record import hash_of_sources, load_record
from grader.grading.diagnosis.respondent import Respondent, Stages
from grader.report import WrongStep
from grader.sandbox.source import forbidden_calls
from grader.sandbox.syntax import Unsearchable
from grader.sandbox.wire import Source

UNWRITTEN_MEMORY = re.compile(r"\b(torch\.|new_)empty(_like)?\(")
MASKED = -1e4  # any number below may mask a score, as -inf does
MAX_CATALOGUES = 96  # catalogues that one process keeps
MAX_PAIRS = 4_000  # mistakes whose programs a catalogue keeps


def recorded_patterns(
    course: Course, name: str, bit: Mapping[str, int]
) -> dict[tuple[str, int, str], int] | None:
    """Return the patterns in the record of an exercise, by mistake, form and number.

    None if there is no record, or one of other files; then the mistakes have to be run.
    """
    recorded = None
    with contextlib.suppress(CourseError):  # a damaged record, or one of another version
        recorded = load_record(course, name)
    if recorded is None or recorded.record.of != hash_of_sources(course, name):
        return None
    record, cases = recorded.record, cases_in(Source(f"{name}/{SUITE}", recorded.cases))[0]
    if not all(case.name in bit for case in cases):
        return None
    return {
        (record.mistakes[single.mistake], single.form, single.number): sum(
            bit[cases[place].name] for place in single.answers
        )
        for single in record.singles
    }


_CATALOGUES: dict[tuple[Path, str, int], ComputedCatalogue] = {}


@dataclass(frozen=True, eq=False)
class FaultyProgram(Candidate):
    """One mistake, or two: the edits that make it, and the program that has them."""

    faults: tuple[Mistake, ...]
    edits: tuple[Edit, ...]
    program: Respondent
    number: str
    form: int
    _catalogue: ComputedCatalogue = field(repr=False)
    _asked: list[int] = field(default_factory=lambda: [0, 0], repr=False)  # as bits: all, wrong
    _steps: dict[str, WrongStep | None] = field(default_factory=dict, repr=False)

    @property
    def text(self) -> str:
        """The program: the solution with the edits."""
        return self.program.text

    def answer(self, case: Case) -> Answer:
        """Return the program's answer to a case."""
        return self.program.answer(case)

    def is_wrong(self, case: Case) -> bool:
        """Return whether the program's answer to a case is not the reference's."""
        bit = self._catalogue.bits((case,))
        if not self._asked[0] & bit:
            is_wrong = not self._catalogue.is_right(self.answer(case), case)
            self._asked[0] |= bit
            self._asked[1] |= bit * is_wrong
        return bool(self._asked[1] & bit)

    @property
    def asked(self) -> tuple[int, int]:
        """The cases whose answers were compared with the reference's, and the wrong ones."""
        return self._asked[0], self._asked[1]

    @functools.cached_property
    def touched(self) -> int:
        """The cases to which the program's answer is wrong, as bits."""
        return self._catalogue.bits(filter(self.is_wrong, self._catalogue.cases))

    @property
    def pattern(self) -> int:
        """Of the recorded cases, those with a wrong answer at the public seed."""
        found = self._catalogue.pattern_of(self)
        return self.touched if found is None else found

    def first_wrong_step(self, case: Case) -> WrongStep | None:
        """Return the first stage that differs from the reference's in a case."""
        if case.name not in self._steps:
            self._steps[case.name] = self._catalogue.compare_stages(self.program, case)
        return self._steps[case.name]


def catalogue_of(course: Course, exercise: Exercise, seed: int) -> ComputedCatalogue:
    """Return the catalogue of an exercise, with everything that it has computed in this process."""
    key = exercise.folder, course.hashes[exercise.name], seed
    if key not in _CATALOGUES:
        while len(_CATALOGUES) >= MAX_CATALOGUES:
            _CATALOGUES.pop(next(iter(_CATALOGUES)))
        _CATALOGUES[key] = ComputedCatalogue(course, exercise, seed)
    return _CATALOGUES[key]


class ComputedCatalogue(Catalogue[FaultyProgram]):
    """The catalogue of an exercise whose solution is at hand."""

    reference: Respondent

    def __init__(
        self, course: Course, exercise: Exercise, seed: int, *, shipped: bool = False
    ) -> None:
        super().__init__(exercise, seed, *load_cases(exercise, shipped=shipped))
        self._course, self._is_recorded_now = course, shipped
        self._solution = exercise.read("solution.py")
        self._answers: dict[str, dict[str, Answer]] = {}  # by program, by case
        self.reference = self.respondent(self._solution)
        self._stages: dict[str, Stages] = {}  # of the reference, by case
        self._pairs: dict[tuple[FaultyProgram, FaultyProgram], FaultyProgram | None] = {}
        self._with_number: dict[str, list[FaultyProgram]] = {}

    def respondent(self, text: str, answers: dict[str, Answer] | None = None) -> Respondent:
        """Return a text of the exercise's solution as a program that answers the cases.

        Memory that a mistake leaves unwritten is 0, as in most students' code: otherwise the
        answers would change from run to run. `answers` are those that are known already.
        """
        text = UNWRITTEN_MEMORY.sub(r"\1zeros\2(", text)
        answers = self._answers.setdefault(text, {}) if answers is None else answers
        return Respondent(self._course, self.exercise, text, self.seed, answers)

    def compare_stages(self, program: Respondent, case: Case) -> WrongStep | None:
        """Return the first stage in which a program differs from the reference."""
        names = self.exercise.stages
        if case.name not in self._stages:
            self._stages[case.name] = self.reference.stages(case, names)
        actual, expected = program.stages(case, names), self._stages[case.name]
        both = sorted(
            (key for key in actual if key in expected), key=lambda key: names.index(key[1])
        )
        for key in both:
            name = key[1]
            try:
                assert_close(*_masked_alike(actual[key], expected[key]), f"`{name}`")
            except Mismatch as mismatch:
                if d := mismatch.difference:
                    return WrongStep(case.sentence, name, d.summary, d.expected, d.actual)
        return None

    # --- mistakes ---------------------------------------------------------------------------------

    def singles(self, text: str = "") -> Iterator[FaultyProgram]:
        """Yield every known mistake in every form, and with the numbers in a student's `text`."""
        yield from self._singles
        for number in numbers_in(text):
            yield from self.with_number(number)

    def with_number(self, number: str) -> list[FaultyProgram]:
        """Return the mistakes that leave a number open, with this number."""
        if number not in self._with_number:
            faults = (fault for fault in self._faults if fault.number)
            self._with_number[number] = [c for f in faults for c in self._forms(f, number)]
        return self._with_number[number]

    @functools.cached_property
    def _faults(self) -> tuple[Mistake, ...]:
        """The mistakes, without forbidden calls: a test reports those already."""
        return tuple(each for each in load_mistakes(self.exercise) if not self._is_forbidden(each))

    def _is_forbidden(self, fault: Mistake) -> bool:
        try:
            text = fault.apply(self._solution)
            return bool(forbidden_calls(text, "", self.exercise.forbidden))
        except Unsearchable:  # the same test also reports a file that cannot be searched
            return True

    @functools.cached_property
    def _singles(self) -> list[FaultyProgram]:
        return [each for fault in self._faults for each in self._forms(fault, fault.number)]

    def _forms(self, fault: Mistake, number: str) -> Iterator[FaultyProgram]:
        for form, edits in enumerate(fault.programs(number)):
            if candidate := self._candidate((fault,), edits, number, form):
                yield candidate

    def _candidate(
        self, faults: tuple[Mistake, ...], edits: tuple[Edit, ...], number: str, form: int
    ) -> FaultyProgram | None:
        text = edited(self._solution, edits)
        if text is None:
            return None
        program = self.respondent(text, {} if len(faults) > 1 else None)
        return FaultyProgram(faults, edits, program, number, form, self)

    # --- patterns of wrong answers ----------------------------------------------------------------

    def pattern_of(self, program: FaultyProgram) -> int | None:
        """Return the recorded pattern of a mistake's form; None if nothing current is recorded."""
        if self._patterns is None or len(program.faults) != 1:
            return None
        (fault,) = program.faults
        places = (
            (fault.name, program.form, program.number),
            (fault.name, program.form, fault.number),
        )
        return next((self._patterns[at] for at in places if at in self._patterns), 0)

    @property
    def recorded(self) -> int:
        """The cases for which the record says which mistakes answer them wrongly."""
        return self._every if self._patterns is None else self._shipped

    @functools.cached_property
    def _shipped(self) -> int:
        return self.bits(case for case in self.cases if not case.hidden)

    @functools.cached_property
    def _patterns(self) -> dict[tuple[str, int, str], int] | None:
        """The cases that each form of a mistake answered wrongly at the public seed, as bits."""
        if self._is_recorded_now:
            return None
        return recorded_patterns(self._course, self.exercise.name, self._bit)

    def pair(self, first: FaultyProgram, second: FaultyProgram) -> FaultyProgram | None:
        """Return the candidate with two mistakes; None if one edit removes the other's place."""
        if first.faults == second.faults:
            return None
        if (first, second) not in self._pairs:
            if len(self._pairs) >= MAX_PAIRS:
                self._pairs.clear()
            number = first.number or second.number
            orders = ((first, second), (second, first))
            made = (
                self._candidate(a.faults + b.faults, a.edits + b.edits, number, a.form + b.form)
                for a, b in orders
            )
            self._pairs[first, second] = next(filter(None, made), None)
        return self._pairs[first, second]

    def adds_to_halves(
        self, pair: FaultyProgram, first: FaultyProgram, second: FaultyProgram, bits: int
    ) -> bool:
        """Return whether a pair differs clearly from each half, at some of the cases `bits`."""
        return all(
            any(self.differ_clearly(pair, half, case) for case in self.cases_in(bits))
            for half in (first, second)
        )

    def differ_clearly(
        self, one: FaultyProgram, other: FaultyProgram | Respondent, case: Case
    ) -> bool:
        """Return whether two programs give clearly different answers to a case."""
        return finite_differences(one.answer(case), other.answer(case)) >= MIN_NUMBERS

    def can_name(self, fault: Mistake, form: Sequence[Edit]) -> bool:
        """Return whether a form of a mistake shows in enough numbers: errors alone are not enough.

        Numbers that hardly differ from the reference's are not enough either.
        """
        same = (each for each in self.singles() if (each.faults, each.edits) == ((fault,), form))
        return any(
            self.differ_clearly(each, self.reference, case)
            for each in itertools.islice(same, 1)
            for case in self.cases_in(each.touched)
            if not self.is_nearly_right(each.answer(case), case)
        )

    def answers_of(self, text: str) -> Answers:
        """Return the answers of a trusted solution, which runs in this process."""
        program = self.respondent(text)
        return {case.name: program.answer(case) for case in self.cases}


def _masked_alike(actual: Tensor, expected: Tensor) -> tuple[Tensor, Tensor]:
    """Return two stages with -inf in both wherever one has -inf and the other a masking number."""
    are_floats = actual.is_floating_point() and expected.is_floating_point()
    if actual.shape != expected.shape or not are_floats:
        return actual, expected
    lower, upper = torch.minimum(actual, expected), torch.maximum(actual, expected)
    masked = (lower == -torch.inf) & (upper < MASKED)
    return actual.masked_fill(masked, -torch.inf), expected.masked_fill(masked, -torch.inf)
