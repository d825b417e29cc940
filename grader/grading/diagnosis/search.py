"""Diagnosis: which known mistake gives the very answers that a student's code gave.

The calls that the tests recorded are replayed on the reference solution with one fault in it, then
with two. A mistake is named only if it gives the student's answers to every call of the failed
tests, and is right wherever the student was right; the simplest that does wins, and those that
cannot be told apart by what was asked are named as a tie. Nothing of the student's runs here.
"""

from __future__ import annotations

import itertools
import textwrap
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from functools import cached_property
from typing import Literal

from torch import Tensor

from grader.grading.diagnosis.answers import alike, grows, is_empty_of_numbers, spoilt
from grader.course.course import Course, Exercise
from grader.grading.compare import assert_close
from grader.errors import Mismatch
from grader.course.faults import Fault, load_faults
from grader.grading.programs import program
from grader.report import TWO, Diagnosis, Explanation, Outcome, WrongStep, first_failure
from grader.grading.diagnosis.replay import Paused, Variant
from grader.sandbox import wire
from grader.sandbox.host.connection import Record
from grader.sandbox.source import forbidden_calls

UNKNOWN = (
    "This is not one of the mistakes we know. Print your stages for the example in the task, and "
    "compare them one by one."
)
MAX_FOUND = 3  # more explanations than these are none
COMPARED = {"value", "finite", "property"}  # of these, the message leaves the cause open
# These messages say it all, or leave nothing to replay.
SELF_EXPLAINING = {"Forbidden", "Missing", "NotImplementedError", "Timeout", "Crash", "Protocol"}

Found = tuple[tuple[Fault, ...], Variant]

# How much of a test's answers one mistake gives: all; the first wrong one it changes as well, to
# something of the same kind; it does not show at all; or what it changes, the student got right.
Part = Literal["all", "some", "nothing", "none"]


class Case:
    """One test: what was asked, what the student's code answered, and what the reference does.

    Where the tolerance of a contract tells nothing, answers are compared as closely as rounding
    allows (`exact`).
    """

    def __init__(self, test: Outcome, record: Record, reference: Variant) -> None:
        self.name, self.failed, self.record = test.name, test.outcome == "failed", record
        self.answers = [entry.answer for entry in record.calls]
        self._variant = reference

    @cached_property
    def reference(self) -> list[wire.Answer | None]:
        """What the reference answers."""
        given = list(self._variant.replay(self.record))
        return given + [None] * (len(self.answers) - len(given))

    @cached_property
    def exact(self) -> bool:
        """Whether only rounding's own tolerance tells the student's code from the reference."""
        return self.failed and self._first_wrong(False) is None and not self._grows_otherwise

    @cached_property
    def first_wrong(self) -> int | None:
        """The number of the first call that the student's code answered otherwise."""
        return self._first_wrong(self.exact)

    def _first_wrong(self, exact: bool) -> int | None:
        pairs = enumerate(zip(self.answers, self.reference))
        return next((n for n, (a, b) in pairs if not alike(a, b, b, exact=exact)), None)

    @cached_property
    def _grows_otherwise(self) -> bool:
        return grows(self.answers) != grows(self.reference)

    @cached_property
    def _paused(self) -> Paused | None:
        """The reference before the first wrong call."""
        place = self.first_wrong
        return None if place is None else self._variant.paused(self.record, place)

    def _at_once(self, variant: Variant) -> wire.Answer | None:
        """A variant's answer to the first wrong call, where it can be had without the others."""
        return variant.resume(self._paused) if self._paused else None

    @property
    def says_nothing(self) -> bool:
        """Whether the first wrong answer holds no number at all, where there should be some."""
        place = self.first_wrong
        if place is None or not isinstance(self.reference[place], wire.Reply):
            return False
        return is_empty_of_numbers(self.answers[place])

    @property
    def tells(self) -> bool:
        """Whether anything in this test tells the student's code from the reference."""
        return self.first_wrong is not None or self._grows_otherwise

    def fits(self, variant: Variant, *, exact: bool = False) -> bool:
        """Whether `variant` answers as the student's code did, or as well where that was right."""
        if not self.failed:
            return self._matches(variant, self.answers) or self._matches(variant, self.reference)
        exact = exact or self.exact
        place, given = self.first_wrong, self._at_once(variant)
        if place is not None and given is not None:
            theirs, right = self.answers[place], self.reference[place]
            if not alike(theirs, given, right, exact=exact):
                return False
        return self._matches(variant, self.answers, exact=exact)

    def _matches(
        self, variant: Variant, answers: list[wire.Answer | None], *, exact: bool = False
    ) -> bool:
        """Whether `variant` gives these answers."""
        # Two replays at once would draw from one generator: the reference's is over by now.
        right = self.reference if self.failed else answers
        given = []
        with closing(variant.replay(self.record)) as replayed:
            for ours, theirs, reference in zip(replayed, answers, right):
                if not alike(theirs, ours, reference, exact=exact):
                    return False
                given.append(ours)
        return len(given) == len(answers) and grows(given) == grows(answers)

    def part_of(self, variant: Variant) -> Part:
        """How far a mistake explains this test's answers: see `Part`."""
        place, right = self.first_wrong, self.reference
        if place is None:
            return "all" if self.fits(variant) else "none"
        given = self._at_once(variant)
        if given is None:
            answers = self._answers(variant, place + 1)
            if len(answers) <= place or not all(map(alike, right, answers[:place], right)):
                return "none"
            given = answers[place]
        if alike(right[place], given, right[place], exact=self.exact):
            return "nothing"
        if alike(self.answers[place], given, right[place], exact=self.exact):
            return "all" if self.fits(variant) else "some"
        if _form(given) != _form(self.answers[place]):
            return "none"
        spoils = spoilt(right[place], given) & ~spoilt(right[place], self.answers[place])
        return "none" if spoils.any() else "some"

    def _answers(self, variant: Variant, upto: int) -> list[wire.Answer | None]:
        with closing(variant.replay(self.record, upto)) as replayed:
            return list(replayed)


class Diagnostician:
    """Diagnoses one exercise's failures; keeps its faulty variants between submissions."""

    def __init__(self, course: Course, exercise: Exercise) -> None:
        self.course, self.exercise = course, exercise
        self._solutions = {name: course[name].read("solution.py") for name in course.names}
        self._solution = self._solutions[exercise.name]
        self._faults = [fault for fault in load_faults(exercise) if not self._is_forbidden(fault)]
        self._singles: dict[str, Variant] = {}
        self._reference = self._variant(self._solution)

    def diagnose(self, tests: Sequence[Outcome], records: Mapping[str, Record]) -> Diagnosis | None:
        """What is wrong, from an exercise's outcomes and the records of its tests.

        None where nothing failed, or where what failed says by itself what is wrong.
        """
        with warnings.catch_warnings(action="ignore"):  # of what our own mistakes do to torch
            return self._diagnose(tests, records)

    def _diagnose(
        self, tests: Sequence[Outcome], records: Mapping[str, Record]
    ) -> Diagnosis | None:
        tests = [
            test
            for test in tests
            if test.name in records
            and test.outcome in ("passed", "failed")
            and test.kind not in SELF_EXPLAINING
        ]
        cases = [Case(test, records[test.name], self._reference) for test in tests]
        # A mistake is ruled out by the first answer that differs: short records come first.
        cases.sort(key=lambda case: (not case.failed, len(case.answers)))
        failed = [case for case in cases if case.failed and case.tells]
        if not failed:
            return None
        kinds = {test.name: test.kind for test in tests}
        open_ones = any(kinds[case.name] in COMPARED for case in failed)
        unknown = Diagnosis((), UNKNOWN, "") if open_ones else None
        if all(case.says_nothing for case in failed):
            return unknown
        found = self._search(failed, [case for case in cases if not case.failed])
        if not 0 < len(found) <= MAX_FOUND:
            return unknown
        by_name = {case.name: case for case in failed}
        told = first_failure(test for test in tests if test.name in by_name)
        names = list(by_name)
        explanations = [_explained(faults, names) for faults, _ in found]
        first, (_, variant) = explanations[0], found[0]
        return Diagnosis(
            first.faults,
            first.says,
            first.hint,
            first.tests,
            tie=tuple(explanations[1:]),
            first_wrong_step=self._first_wrong_step(by_name[told.name], variant) if told else None,
        )

    # --- the search ---

    def _search(self, failed: list[Case], passed: list[Case]) -> list[Found]:
        """The simplest mistakes that explain the cases: all single ones, else all pairs."""
        to_fail, to_pass = ({case.name for case in cases} for cases in (failed, passed))
        # Outcomes follow from answers: a mistake that fails a test which the student passed is not
        # the student's, and one that fails none of them is right there.
        possible = [fault for fault in self._faults if not fault.fails & to_pass]
        alone = (((f,), self._single(f)) for f in possible if f.fails >= to_fail)
        return _fitting(alone, failed) or list(self._pairs(possible, failed, passed))

    def _pairs(
        self, possible: list[Fault], failed: list[Case], passed: list[Case]
    ) -> Iterator[Found]:
        """All pairs that explain the cases. Few are worth a try; there are hundreds that are not.

        Of the first failed test, one of the two gives all answers and the other does not show; or
        both show in the first wrong answer.
        """
        first, names = failed[0], {case.name for case in failed}
        parts = {fault.name: first.part_of(self._single(fault)) for fault in possible}
        whole, silent, partly = (
            [fault for fault in possible if parts[fault.name] == part]
            for part in ("all", "nothing", "some")
        )
        tries: list[tuple[tuple[Fault, Fault], list[Case]]] = [
            (pair, failed) for pair in itertools.combinations(partly, 2)
        ]
        for fault in whole:
            left = [case for case in failed[1:] if not case.fits(self._single(fault))]
            tries += [
                ((fault, other), left + failed)
                for other in silent
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

    # --- what is said of it ---

    def _first_wrong_step(self, case: Case, variant: Variant) -> WrongStep | None:
        """The first stage at which `variant` leaves the reference, in the first wrong call."""
        place = case.first_wrong
        if place is None:
            return None
        names = self.exercise.stages
        actual = variant.stages(case.record, place, names)
        expected = self._reference.stages(case.record, place, names)
        for name in names:
            if name in actual and name in expected:
                step = _step(case.name, name, actual[name], expected[name])
                if step is not None:
                    return step
        return None

    # --- variants ---

    def _is_forbidden(self, fault: Fault) -> bool:
        """Whether a fault is a forbidden call: its test says so, and skips the others."""
        source = f"import torch\nfrom torch import nn\n{textwrap.dedent(fault.by).strip()}"
        try:
            return bool(forbidden_calls(source, "", self.exercise.forbidden))
        except SyntaxError:
            return False

    def _single(self, fault: Fault) -> Variant:
        if fault.name not in self._singles:
            self._singles[fault.name] = self._variant(fault.apply(self._solution))
        return self._singles[fault.name]

    def _variant(self, text: str) -> Variant:
        files = {**self._solutions, self.exercise.name: text}
        _, sources = program(self.course, self.exercise, files)
        return Variant(sources, self.exercise.name)


def _fitting(candidates: Iterable[Found], cases: list[Case]) -> list[Found]:
    """The candidates that explain all cases; the closest, where only rounding tells."""
    found = [entry for entry in candidates if all(case.fits(entry[1]) for case in cases)]
    if len(found) < 2:
        return found
    closest = [entry for entry in found if all(c.fits(entry[1], exact=True) for c in cases)]
    return closest or found


def _form(answer: wire.Answer | None) -> object:
    """What an answer is, but for its numbers."""
    if isinstance(answer, wire.Failure):
        return answer.kind
    value = getattr(answer, "value", None)
    if isinstance(value, wire.WireTensor):
        return value.dtype, value.shape, value.requires_grad
    return type(value)


def _with_both(pair: tuple[Fault, Fault], solution: str) -> str | None:
    """The solution with both edits, where each still finds its text after the other."""
    for first, second in (pair, pair[::-1]):
        text = first.apply(solution)
        if text.count(second.replace) == 1:
            return second.apply(text)
    return None


def _explained(faults: tuple[Fault, ...], failed: Sequence[str]) -> Explanation:
    names = tuple(fault.name for fault in faults)
    says = " ".join(fault.says for fault in faults)
    if len(faults) > 1:
        says = TWO + says
    tests = tuple(tuple(name for name in failed if name in fault.fails) for fault in faults)
    return Explanation(names, says, " ".join(fault.hint for fault in faults), tests)


def _step(test: str, name: str, actual: Tensor, expected: Tensor) -> WrongStep | None:
    try:
        assert_close(actual, expected, f"`{name}`")
    except Mismatch as mismatch:
        found = mismatch.difference
        if found is not None:
            return WrongStep(test, name, found.summary, found.expected, found.actual)
    return None
