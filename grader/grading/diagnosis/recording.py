"""Making the records of a students' copy from the solutions and the known mistakes."""

from __future__ import annotations

import gc
import itertools
import warnings
from collections.abc import Iterator, Sequence

import torch

from grader.course.course import Course, Exercise
from grader.course.suite_text import shipped_cases
from grader.grading.cases import Case
from grader.grading.diagnosis.answers import Answer, Values
from grader.grading.diagnosis.computed import ComputedCatalogue, FaultyProgram
from grader.grading.diagnosis.encoding import GRID_OF_SUMS, plain_answer, plain_form, rounded
from grader.grading.diagnosis.record import (
    FORMAT,
    MistakePair,
    PlainForm,
    Record,
    Recorded,
    SingleMistake,
    Sketch,
    hash_of_sources,
)
from grader.grading.seeds import PUBLIC_SEED
from grader.report import WrongStep

# Numbers that students write where a mistake leaves one open: tolerances, rates, low scores.
NUMBERS = (
    *("0", "1e-12", "1e-10", "1e-9", "1e-8", "1e-7", "1e-6", "1e-5", "1e-4", "1e-3", "0.01"),
    *("0.05", "0.1", "0.2", "0.25", "0.3", "0.5", "0.75", "0.9", "1", "2", "5", "10", "20", "25"),
    *("50", "100", "1000", "1e4", "1e5", "1e6", "1e7", "1e8", "1e9", "1e10", "1e12", "1e15"),
    *("1e20", "1e30"),
)
DRAWN = "training"  # the aspect of cases with many draws
MAX_SHARED = 3  # cases at which a pair is recorded, of those that both mistakes change


def record_exercise(course: Course, exercise: Exercise) -> Recorded:
    """Return the record of an exercise."""
    catalogue = ComputedCatalogue(course, exercise, PUBLIC_SEED, shipped=True)
    torch.set_num_threads(1)  # on small tensors, several would only wait for each other
    gc.freeze()  # so garbage collection, and a move to another device, skip torch's objects
    try:
        with warnings.catch_warnings(action="ignore"):  # of torch, about our faulty programs
            record = _Recorder(catalogue, hash_of_sources(course, exercise.name)).record()
    finally:
        gc.unfreeze()
    return Recorded(shipped_cases(exercise), record)


class _Recorder:
    """Collects the answers of one catalogue."""

    def __init__(self, catalogue: ComputedCatalogue, of: str) -> None:
        self._catalogue, self._of = catalogue, of
        self._place = {case.name: place for place, case in enumerate(catalogue.cases)}
        self._forms: dict[PlainForm, int] = {}
        self._totals: list[float] = []  # sums of the wrong answers of pairs
        self._principal = catalogue.principal

    def record(self) -> Record:
        catalogue, reference = self._catalogue, self._catalogue.reference
        usual = [each for each in catalogue.singles() if each.touched]
        faults = list(dict.fromkeys(each.faults[0] for each in usual))
        others = [c for number in NUMBERS for c in catalogue.with_number(number) if c.touched]
        singles = [self._single(each, faults.index(each.faults[0])) for each in (*usual, *others)]
        pairs: list[MistakePair] = []
        # If a model is trained, the answers of one program take as long as those of a hundred
        # others.
        together = () if catalogue.exercise.training else _pairs(usual)
        for first, second in together:
            pairs += self._pair(first, second, (usual.index(first), usual.index(second)))
        repeats = ((place, reference.repeat(case)) for place, case in enumerate(catalogue.cases))
        return Record(
            FORMAT,
            self._of,
            catalogue.seed,
            tuple(self._forms),
            tuple(plain_answer(reference.answer(case)) for case in catalogue.cases),
            {place: calls for place, calls in repeats if calls},
            tuple(fault.name for fault in faults),
            tuple(singles),
            tuple(pairs),
            tuple(self._totals),
        )

    def _single(self, candidate: FaultyProgram, mistake: int) -> SingleMistake:
        cases = self._catalogue.cases_in(candidate.touched)
        answers = {self._place[p.name]: self._sketch(candidate.answer(p)) for p in cases}
        is_usual = candidate.number == candidate.faults[0].number
        steps = dict(self._steps(candidate)) if is_usual else {}
        return SingleMistake(mistake, candidate.form, candidate.number, answers, steps)

    def _steps(self, candidate: FaultyProgram) -> Iterator[tuple[int, WrongStep]]:
        """Yield the first wrong steps that a diagnosis can ask for."""
        found: list[Case] = []
        for within in (candidate.touched, candidate.touched & self._principal):
            found += self._catalogue.cases_in(within)[:1]
        for case in dict.fromkeys(found):
            if step := candidate.first_wrong_step(case):
                yield self._place[case.name], step

    def _pair(
        self, first: FaultyProgram, second: FaultyProgram, halves: tuple[int, int]
    ) -> Iterator[MistakePair]:
        """Yield the pair of two mistakes, if one program can have both and each shows in it."""
        catalogue = self._catalogue
        pair = catalogue.pair(first, second)
        if pair is None:
            return
        answers: dict[int, Sketch | None] = {}
        for case in _shared(catalogue, first, second):
            wrong = pair.is_wrong(case)
            answers[self._place[case.name]] = self._sketch(pair.answer(case)) if wrong else None
        forms = {place: each.form if each else None for place, each in answers.items()}
        clear = [self._beyond(pair, *order) for order in ((first, second), (second, first))]
        if all(clear):
            self._totals += [sketch.total for sketch in answers.values() if sketch]
            yield MistakePair(*halves, forms, (f"{clear[0]:x}", f"{clear[1]:x}"))

    def _beyond(self, pair: FaultyProgram, half: FaultyProgram, other: FaultyProgram) -> int:
        """Return the cases at which a pair differs clearly from one half, as bits.

        If that half changes nothing, the pair answers like the other half.
        """
        catalogue = self._catalogue
        shared = _shared(catalogue, half, other)
        found = catalogue.bits(p for p in shared if catalogue.differ_clearly(pair, half, p))
        alone = catalogue.cases_in(other.touched & ~half.touched)
        right = catalogue.reference
        return found | catalogue.bits(p for p in alone if catalogue.differ_clearly(other, right, p))

    def _sketch(self, answer: Answer) -> Sketch:
        form = self._forms.setdefault(plain_form(answer), len(self._forms))
        total = answer.sketch[0] if isinstance(answer, Values) else 0.0
        total = float(rounded(torch.tensor(total, dtype=torch.float64), GRID_OF_SUMS))
        return Sketch(form, total)


def _shared(
    catalogue: ComputedCatalogue, first: FaultyProgram, second: FaultyProgram
) -> list[Case]:
    """Return the first cases that both mistakes change; a few are enough to recognise the pair.

    Cases with draws are left out: they take ten times as long, and of two mistakes in draws,
    either may hide the other.
    """
    found = catalogue.cases_in(first.touched & second.touched)
    return [case for case in found if case.aspect != DRAWN][:MAX_SHARED]


def _pairs(candidates: Sequence[FaultyProgram]) -> Iterator[tuple[FaultyProgram, FaultyProgram]]:
    """Yield the pairs of mistakes, in their usual forms, that change the same case."""
    forms = itertools.groupby(candidates, key=lambda each: each.faults[0])
    usual = [next(group) for _, group in forms]
    for first, second in itertools.combinations(usual, 2):
        if first.touched & second.touched:
            yield first, second
