"""The catalogue of an exercise in a students' copy: known mistakes by their recorded answers."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from grader.course.course import Exercise
from grader.course.known_mistakes import Mistake
from grader.course.records import Saying
from grader.course.suite_text import SUITE
from grader.errors import CourseError
from grader.grading.cases import Case
from grader.grading.diagnosis.answers import Answer, Form, Raised, Sketched
from grader.grading.diagnosis.asked import cases_in
from grader.grading.diagnosis.catalogue import Candidate, Catalogue, Known, numbers_in
from grader.grading.diagnosis.encoding import answer_of, form_of
from grader.grading.diagnosis.record import PlainForm, Recorded, Sketch
from grader.report import WrongStep
from grader.sandbox.wire import Source


@dataclass(frozen=True)
class _Reference:
    """The recorded answers and calls of the reference."""

    answers: Mapping[str, Answer]  # the answers by case
    repeats: Mapping[str, str]

    def answer(self, case: Case) -> Answer:
        return self.answers[case.name]

    def repeat(self, case: Case) -> str:
        return self.repeats.get(case.name, "")


class _Unrecorded:
    """The answer of two mistakes at once where both are wrong: an unknown wrong answer."""

    def same(self, other: Answer, *, exact: bool = False) -> bool:
        """Return True: any answer may be this one."""
        return True


@dataclass(frozen=True, eq=False)
class RecordedMistakes(Candidate):
    """One mistake, or two at once, by the recorded answers; all other answers are right."""

    faults: tuple[Mistake, ...]
    number: str
    form: int
    bits: int
    answers: Mapping[str, Known]  # the wrong ones, by case
    steps: Mapping[str, WrongStep]
    _reference: _Reference
    beyond: tuple[int, int] = (0, 0)  # the cases where two mistakes differ clearly from each half

    @property
    def touched(self) -> int:
        """The cases to which the answer is wrong, as bits."""
        return self.bits

    @property
    def asked(self) -> tuple[int, int]:
        """All cases, and those to which the answer is wrong."""
        return -1, self.bits

    def is_wrong(self, case: Case) -> bool:
        """Return whether the answer to a case is not the reference's."""
        return case.name in self.answers

    def answer(self, case: Case) -> Known:
        """Return the answer to a case."""
        return self.answers.get(case.name) or self._reference.answer(case)

    def first_wrong_step(self, case: Case) -> WrongStep | None:
        """Return the first stage that differs in a case, if it was recorded."""
        return self.steps.get(case.name)


class RecordedCatalogue(Catalogue[RecordedMistakes]):
    """The catalogue of an exercise, from a record."""

    reference: _Reference

    def __init__(
        self, exercise: Exercise, recorded: Recorded, sayings: Mapping[str, Saying]
    ) -> None:
        record = recorded.record
        found = cases_in(Source(f"{exercise.name}/{SUITE}", recorded.cases))
        super().__init__(exercise, record.seed, *found)
        names = [case.name for case in self.cases]
        self.reference = _Reference(
            {name: answer_of(each) for name, each in zip(names, record.reference, strict=True)},
            {names[place]: calls for place, calls in record.repeats.items()},
        )
        self._record, self._forms = record, tuple(map(_form, record.forms))
        self._faults = tuple(_mistake(name, sayings.get(name)) for name in record.mistakes)

    def singles(self, text: str = "") -> Iterator[RecordedMistakes]:
        """Yield every known mistake in every recorded form, with numbers in a student's `text`."""
        numbers = {float(number) for number in numbers_in(text)}
        for candidate in self._singles:
            usual = candidate.number == candidate.faults[0].number
            if usual or float(candidate.number) in numbers:
                yield candidate

    @functools.cached_property
    def _singles(self) -> list[RecordedMistakes]:
        return [
            self._candidate(
                (self._faults[each.mistake],),
                each.number,
                each.form,
                {self.cases[place].name: self._known(s) for place, s in each.answers.items()},
                {self.cases[place].name: step for place, step in each.steps.items()},
            )
            for each in self._record.singles
        ]

    def _candidate(
        self,
        faults: tuple[Mistake, ...],
        number: str,
        form: int,
        answers: Mapping[str, Known],
        steps: Mapping[str, WrongStep],
        beyond: tuple[int, int] = (0, 0),
    ) -> RecordedMistakes:
        bits = sum(self._bit[name] for name in answers)
        return RecordedMistakes(faults, number, form, bits, answers, steps, self.reference, beyond)

    def _known(self, sketch: Sketch) -> Known:
        form = self._forms[sketch.form]
        return form if isinstance(form, Raised) else Sketched(form, sketch.total)

    @functools.cached_property
    def _pairs(self) -> dict[tuple[int, int], RecordedMistakes]:
        """The pairs, by the identities of their halves."""
        pairs, totals = {}, iter(self._record.totals)
        for each in self._record.pairs:
            first, second = self._singles[each.first], self._singles[each.second]
            answers = {**first.answers, **second.answers}
            answers |= dict.fromkeys(first.answers.keys() & second.answers.keys(), _Unrecorded())
            for place, form in each.forms.items():
                name = self.cases[place].name
                if form is None:
                    answers.pop(name, None)
                else:
                    answers[name] = self._known(Sketch(form, next(totals)))
            steps = self._earlier_steps(first, second)
            both = first.faults + second.faults
            number = first.number or second.number
            beyond = int(each.beyond[0], 16), int(each.beyond[1], 16)
            form = first.form + second.form
            pairs[id(first), id(second)] = self._candidate(
                both, number, form, answers, steps, beyond
            )
        return pairs

    def pair(self, first: RecordedMistakes, second: RecordedMistakes) -> RecordedMistakes | None:
        """Return the candidate with two mistakes, if it was recorded."""
        return self._pairs.get((id(first), id(second)))

    def _earlier_steps(
        self, first: RecordedMistakes, second: RecordedMistakes
    ) -> dict[str, WrongStep]:
        """Return the first wrong steps of two mistakes at once: in each case, the earlier one.

        Before that step, the other mistake changes nothing. If both begin at one stage, the values
        of that stage are unknown.
        """
        order = self.exercise.stages.index
        steps = {}
        for case in self.cases:
            found = [s for each in (first, second) if (s := each.first_wrong_step(case))]
            wrong = first.is_wrong(case) + second.is_wrong(case)
            found.sort(key=lambda step: order(step.stage))
            if len(found) == wrong and len({step.stage for step in found}) == len(found) > 0:
                steps[case.name] = found[0]
        return steps

    def adds_to_halves(
        self, pair: RecordedMistakes, first: RecordedMistakes, second: RecordedMistakes, bits: int
    ) -> bool:
        """Return whether a pair differs clearly from each half, at some of the cases `bits`."""
        return all(bits & each for each in pair.beyond)


def _form(plain: PlainForm) -> Form | Raised:
    return Raised(*plain.raised) if plain.raised is not None else form_of(plain)


def _mistake(name: str, saying: Saying | None) -> Mistake:
    if saying is None:
        raise CourseError(f"nothing here says what {name} is", "download the course again")
    return Mistake(name=name, says=saying.says, hint=saying.hint, number=saying.number)
