"""The search for the known mistake that gives the same answers as a student's code.

The tests' calls are replayed on the reference with one fault in it, then with two. A mistake is
named only if it gives the student's answers to all calls of the failed tests and correct ones
wherever the student's are. Several that explain the same answers are named as a tie.
"""

from __future__ import annotations

import itertools
import textwrap
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from functools import cache, cached_property
from typing import Literal

from grader.course.course import Course, Exercise
from grader.course.faults import Fault, load_faults
from grader.errors import Mismatch
from grader.grading.compare import assert_close
from grader.grading.diagnosis.comparison import (
    differing_mask,
    form_of,
    has_no_finite_number,
    operations_grow,
    same_answer,
)
from grader.grading.diagnosis.replay import PausedCall, Variant
from grader.grading.programs import program
from grader.report import TWO, Diagnosis, Explanation, Outcome, WrongStep, first_failure
from grader.sandbox import wire
from grader.sandbox.host.connection import CallLog
from grader.sandbox.source import Unsearchable, forbidden_calls

UNKNOWN = (
    "This is not one of the mistakes we know. Print the intermediate results of your code for the "
    "example in the task, and check them one by one."
)
MAX_EXPLANATIONS = 3  # if more fit, none is named
CAUSE_UNCLEAR = {"value", "finite", "property"}  # kinds of failure that do not show their cause
# Their message says everything, or there is nothing to replay.
SELF_EXPLAINING = {"Forbidden", "Missing", "NotImplementedError", "Timeout", "Crash", "Protocol"}

Candidate = tuple[tuple[Fault, ...], Variant]
Answers = list[wire.Answer | None]

# How much of a test a mistake explains: all of the student's answers; a part of the first wrong
# one; nothing, because it has no effect on that answer; or it conflicts with that answer, by
# changing what the student got right or changing it to something of another form.
Explains = Literal["all", "part", "no effect", "conflict"]


class Case:
    """One test: its recorded calls, the student's answers and the reference's."""

    def __init__(self, test: Outcome, log: CallLog, reference: Variant) -> None:
        self.name, self.kind, self.failed = test.name, test.kind, test.outcome == "failed"
        self.log, self.answers = log, [entry.answer for entry in log.calls]
        self._reference = reference

    @cached_property
    def correct_answers(self) -> Answers:
        """The reference's answers, one for each call."""
        answers = list(self._reference.replay(self.log))
        return answers + [None] * (len(self.answers) - len(answers))

    @cached_property
    def exact(self) -> bool:
        """Whether to compare up to rounding: the test failed with all answers in tolerance."""
        return self.failed and self._first_wrong(False) is None and not self._growth_differs

    @cached_property
    def first_wrong(self) -> int | None:
        """The index of the first call that the student's code answered wrongly, if any."""
        return self._first_wrong(self.exact)

    def _first_wrong(self, exact: bool) -> int | None:
        pairs = enumerate(zip(self.answers, self.correct_answers))
        return next((n for n, (a, b) in pairs if not same_answer(a, b, b, exact=exact)), None)

    @cached_property
    def _growth_differs(self) -> bool:
        return operations_grow(self.answers) != operations_grow(self.correct_answers)

    @cached_property
    def _paused(self) -> PausedCall | None:
        """The reference just before the first wrong call."""
        index = self.first_wrong
        return None if index is None else self._reference.paused(self.log, index)

    def _resumed(self, variant: Variant) -> wire.Answer | None:
        """Return a variant's answer to the first wrong call, if that needs no whole replay."""
        return variant.resume(self._paused) if self._paused else None

    @property
    def has_no_numbers(self) -> bool:
        """Whether the first wrong answer has no finite number although an answer is expected."""
        index = self.first_wrong
        if index is None or not isinstance(self.correct_answers[index], wire.Reply):
            return False
        return has_no_finite_number(self.answers[index])

    @property
    def is_informative(self) -> bool:
        """Whether the recorded calls show a difference between the student and the reference."""
        return self.first_wrong is not None or self._growth_differs

    def fits(self, variant: Variant, *, exact: bool = False) -> bool:
        """Return whether `variant` answers like the student or, in a passed test, correctly."""
        if not self.failed:
            return self._gives(variant, self.answers) or self._gives(variant, self.correct_answers)
        exact = exact or self.exact
        index, answer = self.first_wrong, self._resumed(variant)
        if index is not None and answer is not None:
            theirs, correct = self.answers[index], self.correct_answers[index]
            if not same_answer(theirs, answer, correct, exact=exact):
                return False
        return self._gives(variant, self.answers, exact=exact)

    def _gives(self, variant: Variant, expected: Answers, *, exact: bool = False) -> bool:
        # Two replays at once would draw from one generator: finish the reference's first.
        correct_answers = self.correct_answers if self.failed else expected
        answers = []
        with closing(variant.replay(self.log)) as replayed:
            for answer, theirs, correct in zip(replayed, expected, correct_answers):
                if not same_answer(theirs, answer, correct, exact=exact):
                    return False
                answers.append(answer)
        same_growth = operations_grow(answers) == operations_grow(expected)
        return len(answers) == len(expected) and same_growth

    def explained_by(self, variant: Variant) -> Explains:
        """Return how much of this test's answers the mistake in `variant` explains."""
        index, correct = self.first_wrong, self.correct_answers
        if index is None:
            return "all" if self.fits(variant) else "conflict"
        answer = self._resumed(variant)
        if answer is None:
            with closing(variant.replay(self.log, index + 1)) as replayed:
                answers = list(replayed)
            before = answers[:index]
            if len(answers) <= index or not all(map(same_answer, correct, before, correct)):
                return "conflict"
            answer = answers[index]
        if same_answer(correct[index], answer, correct[index], exact=self.exact):
            return "no effect"
        if same_answer(self.answers[index], answer, correct[index], exact=self.exact):
            return "all" if self.fits(variant) else "part"
        if _form(answer) != _form(self.answers[index]):
            return "conflict"
        wrong = differing_mask(correct[index], answer)
        only_here = wrong & ~differing_mask(correct[index], self.answers[index])
        return "conflict" if only_here.any() else "part"


class Diagnostician:
    """Diagnoses the failures of one exercise; keeps its variants between submissions."""

    def __init__(self, course: Course, exercise: Exercise) -> None:
        self.course, self.exercise = course, exercise
        self._solutions = {name: course[name].read("solution.py") for name in course.names}
        self._solution = self._solutions[exercise.name]
        self._faults = [fault for fault in load_faults(exercise) if not self._is_forbidden(fault)]
        self._single = cache(lambda fault: self._variant(fault.apply(self._solution)))
        self._reference = self._variant(self._solution)

    def diagnose(
        self, tests: Sequence[Outcome], call_logs: Mapping[str, CallLog]
    ) -> Diagnosis | None:
        """Return the diagnosis of an exercise from its outcomes and the call logs by test name.

        None if nothing failed, or if the failures themselves say what is wrong.
        """
        cases = [
            Case(test, call_logs[test.name], self._reference)
            for test in tests
            if test.name in call_logs
            and test.outcome in ("passed", "failed")
            and test.kind not in SELF_EXPLAINING
        ]
        # The first answer that differs rules a mistake out: short call logs come first.
        cases.sort(key=lambda case: (not case.failed, len(case.answers)))
        with warnings.catch_warnings(action="ignore"):  # torch warns about our faulty variants
            failed = [case for case in cases if case.failed and case.is_informative]
            return self._diagnose(tests, failed, [case for case in cases if not case.failed])

    def _diagnose(
        self, tests: Sequence[Outcome], failed: list[Case], passed: list[Case]
    ) -> Diagnosis | None:
        cases = {case.name: case for case in failed}
        shown = first_failure(test for test in tests if test.name in cases)
        if shown is None:
            return None
        is_unclear = any(case.kind in CAUSE_UNCLEAR for case in failed)
        unknown = Diagnosis((), UNKNOWN, "") if is_unclear else None
        if all(case.has_no_numbers for case in failed):
            return unknown
        found = self._search(failed, passed)
        if not 0 < len(found) <= MAX_EXPLANATIONS:
            return unknown
        first, *others = (_explanation(faults, list(cases)) for faults, _ in found)
        step = self._first_wrong_step(cases[shown.name], found[0][1])
        return Diagnosis(**vars(first), tie=tuple(others), first_wrong_step=step)

    def _search(self, failed: list[Case], passed: list[Case]) -> list[Candidate]:
        """Return all single faults that explain the cases or, if there are none, all pairs."""
        to_fail, to_pass = ({case.name for case in cases} for cases in (failed, passed))
        # The answers decide the outcomes: a mistake that fails a test which the student passed is
        # not the student's. For single faults, that makes a replay of passed tests unnecessary.
        possible = [fault for fault in self._faults if not fault.fails & to_pass]
        singles = (((f,), self._single(f)) for f in possible if f.fails >= to_fail)
        return _fitting(singles, failed) or list(self._pairs(possible, failed, passed))

    def _pairs(
        self, possible: list[Fault], failed: list[Case], passed: list[Case]
    ) -> Iterator[Candidate]:
        """Yield all pairs of faults that explain the cases.

        Only few of hundreds are tried. In the first failed test, either one of the two explains
        all answers and the other has no effect, or each explains a part of the first wrong answer.
        """
        first, names = failed[0], {case.name for case in failed}
        explains = {fault.name: first.explained_by(self._single(fault)) for fault in possible}
        whole, without_effect, partial = (
            [fault for fault in possible if explains[fault.name] == extent]
            for extent in ("all", "no effect", "part")
        )
        tries = [(pair, failed) for pair in itertools.combinations(partial, 2)]
        for fault in whole:
            left = [case for case in failed[1:] if not case.fits(self._single(fault))]
            tries += [
                ((fault, other), left + failed)
                for other in without_effect
                if left and left[0].name in other.fails
            ]
        for pair, cases in tries:
            if not pair[0].fails | pair[1].fails >= names:
                continue
            text = _with_both(pair, self._solution)
            if text is None:
                continue
            variant = self._variant(text)
            if all(case.fits(variant) for case in cases + passed):
                yield pair, variant

    def _first_wrong_step(self, case: Case, variant: Variant) -> WrongStep | None:
        index = case.first_wrong
        if index is None:
            return None
        names = self.exercise.stages
        actual = variant.stages(case.log, index, names)
        expected = self._reference.stages(case.log, index, names)
        for name in [name for name in names if name in actual and name in expected]:
            try:
                assert_close(actual[name], expected[name], f"`{name}`")
            except Mismatch as mismatch:
                if d := mismatch.difference:
                    return WrongStep(case.name, name, d.summary, d.expected, d.actual)
        return None

    def _is_forbidden(self, fault: Fault) -> bool:
        """Return whether a fault is a forbidden call: the test for those reports it already."""
        source = f"import torch\nfrom torch import nn\n{textwrap.dedent(fault.by).strip()}"
        try:
            return bool(forbidden_calls(source, "", self.exercise.forbidden))
        except Unsearchable:  # the same test reports a file that nobody can search
            return True

    def _variant(self, text: str) -> Variant:
        files = {**self._solutions, self.exercise.name: text}
        _, sources = program(self.course, self.exercise, files)
        return Variant(sources, self.exercise.name)


def _fitting(candidates: Iterable[Candidate], cases: list[Case]) -> list[Candidate]:
    """Return the candidates that explain all cases; of several, those that match up to rounding."""
    found = [entry for entry in candidates if all(case.fits(entry[1]) for case in cases)]
    if len(found) < 2:
        return found
    return [entry for entry in found if all(c.fits(entry[1], exact=True) for c in cases)] or found


def _form(answer: wire.Answer | None) -> object:
    """Return the form of an answer: all but its numbers."""
    if isinstance(answer, wire.Failure):
        return answer.kind
    value = getattr(answer, "value", None)
    return form_of(value) if isinstance(value, wire.WireTensor) else type(value)


def _with_both(pair: tuple[Fault, Fault], solution: str) -> str | None:
    """Return the solution with both edits; None if each removes the text that the other edits."""
    for first, second in (pair, pair[::-1]):
        text = first.apply(solution)
        if text.count(second.replace) == 1:
            return second.apply(text)
    return None


def _explanation(faults: tuple[Fault, ...], failed: Sequence[str]) -> Explanation:
    names = tuple(fault.name for fault in faults)
    says = " ".join(fault.says for fault in faults)
    if len(faults) > 1:
        says = TWO + says
    tests = tuple(tuple(name for name in failed if name in fault.fails) for fault in faults)
    return Explanation(names, says, " ".join(fault.hint for fault in faults), tests)
