"""The search for the known mistakes that give the answers of a student's code.

The student's code, and the reference with each known mistake in it, answer the same cases. A
mistake is named if it gives the student's answers to every case of each aspect that it touches,
and is right wherever the student is right. Wrong cases of other aspects are explained by other
mistakes, or listed in the report.
"""

from __future__ import annotations

import functools
import itertools
import math
import operator
import warnings
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from grader.course.known_mistakes import Mistake
from grader.grading.aspects import ASPECTS
from grader.grading.cases import Case
from grader.grading.diagnosis.answers import Answer, Raised, finite_differences
from grader.grading.diagnosis.asked import Answers, ask_all
from grader.grading.diagnosis.catalogue import MIN_NUMBERS, AnyCatalogue, Candidate
from grader.grading.diagnosis.facts import Said, facts_of
from grader.grading.failures import SELF_EXPLAINING
from grader.grading.price import Nearest, price_of
from grader.report import CASES_CHECK, HINT_BREAK, Diagnosis, Explanation, Outcome, WrongStep
from grader.sandbox.host.proxies import Student

UNKNOWN = "This is not one of the mistakes we know."
LOOK_FIRST = "Look at this first."  # begins a fact that may explain everything
LEAST_OVERLAP = 0.6  # the least overlap of a pattern of wrong cases with a mistake's
MAX_EXPLANATIONS = 3  # if more mistakes fit, none is named
MAX_MISTAKES = 4  # mistakes named in one exercise
MAX_PAIRS = 200  # pairs that are run for one student, most of them at one or two cases
FEW_DOUBTS, MANY_DOUBTS = 2, 8  # cases at which a pattern may differ from that at the public seed
COUNTED = {2: "Two mistakes at once. ", 3: "Three mistakes at once. "}


class Diagnostician:
    """Diagnoses one exercise by the answers of a catalogue to the cases."""

    def __init__(self, catalogue: AnyCatalogue) -> None:
        self.catalogue = catalogue
        self.last: Answers | None = None  # of the last student

    def ask(self, student: Student, given: Mapping[str, Answer] = {}) -> Answers:
        """Return a student's answers to the cases, up to an answer that ends the worker.

        The cases in `given` were asked before, for checks.
        """
        catalogue, name = self.catalogue, self.catalogue.exercise.name
        self.last = {**given, **ask_all(catalogue.cases, student, catalogue.seed, name, given)}
        return self.last

    def diagnose(
        self,
        tests: Sequence[Outcome],
        answers: Answers,
        text: str,
    ) -> Diagnosis | None:
        """Return the diagnosis of an exercise from its outcomes and the student's answers.

        None if nothing failed, or if the failures themselves say everything.
        """
        failed = [t.name for t in tests if t.outcome == "failed" and t.kind not in SELF_EXPLAINING]
        return self.explain(answers, text, failed) if failed else None

    def explain(
        self,
        answers: Answers,
        text: str,
        failed: Sequence[str] = (),
    ) -> Diagnosis | None:
        """Return the diagnosis of some answers; None if none is wrong, or if all are errors.

        `text` is the student's file, whose numbers are tried if a mistake leaves one open;
        `failed` are the names of the failed tests.
        """
        if not answers:
            return None
        with warnings.catch_warnings(action="ignore"):  # of torch, about our faulty programs
            return _Search(self.catalogue, answers, text).diagnosis(failed)

    def nearest(self, wrong: Collection[str], text: str) -> Nearest | None:
        """Return the known mistake whose pattern of wrong cases is nearest to some wrong cases.

        Of equally near mistakes, the most expensive one counts. None if no pattern is near.
        """
        catalogue = self.catalogue
        deciding = catalogue.recorded & catalogue.bits(p for p in catalogue.cases if p.decides)
        found = catalogue.bits(p for p in catalogue.cases if p.name in wrong) & deciding
        points, best = catalogue.exercise.points, None
        for candidate in catalogue.singles(text):
            pattern = candidate.pattern & deciding
            overlap = (pattern & found).bit_count() / max(1, (pattern | found).bit_count())
            if overlap < LEAST_OVERLAP:
                continue
            price = sum(price_of(fault, points) for fault in candidate.faults)
            cases = frozenset(case.name for case in catalogue.cases_in(pattern))
            near = Nearest(overlap, price, cases)
            if best is None or (near.overlap, near.price) > (best.overlap, best.price):
                best = near
        return best


@dataclass(frozen=True)
class Fit:
    """The comparison of a candidate's answers with a student's."""

    candidate: Candidate
    touched: int  # the cases that the candidate answers wrongly, as bits
    _catalogue: AnyCatalogue
    _answers: Answers
    _just_wrong: int = 0  # the cases with answers that hardly differ from the right ones

    @functools.cached_property
    def explains(self) -> int:
        """The wrong cases to which both give the same answer, including slightly wrong ones."""
        just_wrong = self._catalogue.cases_in(self._just_wrong & ~self.same)
        return self.same | self._catalogue.bits(filter(self._is_same, just_wrong))

    @functools.cached_property
    def also(self) -> tuple[Case, ...]:
        """The wrong cases, of those that only decide, to which both give the same answer."""
        answers = self._answers
        wrong = [p for p in self._catalogue.deciding_only if p.name in answers]
        wrong = [p for p in wrong if not self._catalogue.is_right(answers[p.name], p)]
        return tuple(p for p in wrong if self.candidate.answer(p).same(answers[p.name]))

    @functools.cached_property
    def checks(self) -> frozenset[str]:
        """The checks with cases that it explains."""
        cases = (*self._catalogue.cases_in(self.explains), *self.also)
        return frozenset(case.check for case in cases if case.check)

    @functools.cached_property
    def same(self) -> int:
        """Of the cases `touched`, those to which both give the same answer."""
        cases = self._catalogue.cases_in(self.touched)
        return self._catalogue.bits(case for case in cases if self._is_same(case))

    def is_same(self, bits: int) -> bool:
        """Return whether both give the same answers to those of the cases that are `touched`."""
        return all(map(self._is_same, self._catalogue.cases_in(self.touched & bits)))

    def _is_same(self, case: Case) -> bool:
        return self.candidate.answer(case).same(self._answers[case.name])


class _Search:
    """The search for the mistakes that explain one student's answers."""

    def __init__(self, catalogue: AnyCatalogue, answers: Answers, text: str) -> None:
        self._catalogue, self._answers, self._text = catalogue, answers, text
        self._right, wrong = catalogue.compared(answers)
        self._wrong = catalogue.bits(wrong)
        # A mistake's answer may lack a difference that just exceeds the tolerance.
        self._known = self._right | self._wrong
        self._just_wrong = catalogue.bits(p for p in catalogue.cases if p.name in answers)
        self._just_wrong &= ~self._known
        self._principal = catalogue.principal

    def diagnosis(self, failed: Sequence[str]) -> Diagnosis | None:
        """Return the diagnosis of these answers; `failed` are the names of the failed tests."""
        if not self._wrong:
            return None
        found, left = self._explanations()
        found = self._seen(found, failed)
        if not found and self._only_raises():
            return None  # the message of the failed test shows the error and its place
        if not found or math.prod(map(len, found)) > MAX_EXPLANATIONS:
            said = self._said(self._wrong)
            says = LOOK_FIRST if said and said[0].is_all else UNKNOWN
            return Diagnosis((), says, "", **self._facts(said))
        points = self._catalogue.exercise.points
        explained = [_joined(each, failed, points) for each in itertools.product(*found)]
        fits = [*itertools.chain(*found)]
        also = dict.fromkeys(case for fit in fits for case in fit.also)
        cases = self._catalogue.cases_in(
            functools.reduce(operator.or_, (fit.explains for fit in fits), self._wrong & ~left)
        )
        first, *others = (each for each, _ in explained)
        return Diagnosis(
            **vars(first),
            tie=tuple(others),
            first_wrong_step=self._first_wrong_step(found[0]),
            besides=self._besides(left),
            complete=not left and any(is_proven for _, is_proven in explained),
            explains_cases=tuple(case.name for case in (*cases, *also) if case.check),
            **self._facts(self._said(left)),
        )

    def _only_raises(self) -> bool:
        """Return whether all wrong answers are errors, at ordinary sizes too."""
        wrong = self._catalogue.cases_in(self._wrong)
        ordinary = self._catalogue.of_aspects([next(iter(ASPECTS))])
        raises = all(isinstance(self._answers[case.name], Raised) for case in wrong)
        return raises and not ordinary & ~self._wrong

    # --- which mistakes ---------------------------------------------------------------------------

    def _explanations(self) -> tuple[list[list[Fit]], int]:
        """Return the mistakes that explain the answers, and the wrong cases that are left over.

        Each mistake is a list of alternatives that explain the same cases.
        """
        if not self._shows_numbers(self._wrong):
            return [], self._wrong
        singles = list(self._catalogue.singles(self._text))
        strict = [*self._fitting(each for each in singles if self._suits(each, FEW_DOUBTS))]
        found, left = self._chosen(strict)
        if not left:
            return found, left
        near = [each for each in singles if self._suits(each, MANY_DOUBTS)]
        pairs = [*self._pairs(near)]
        found, left = min((found, left), self._chosen(strict + pairs), key=_left)
        # Again without gradients, and then without edges: a mistake may have other results there.
        for within in (~self._catalogue.of_aspects(["gradient"]), self._principal):
            if not left & within:
                continue
            near = [each for each in singles if self._suits(each, MANY_DOUBTS, within)]
            lenient = [*self._fitting(near, within)]
            if not lenient and within == self._principal:
                lenient = [*self._pairs(near, within)]
            others = self._chosen(lenient)
            if _left(others, within) < _left((found, left), within):
                found, left = others
        return found, left

    def _suits(self, candidate: Candidate, doubts: int, within: int = -1) -> bool:
        """Return whether a mistake may, by its pattern, explain some of the cases `within`.

        Answers may be right at one seed and wrong at another, so a few differences do not matter.
        A mistake without a wrong recorded case may explain cases that are not recorded.
        """
        if not candidate.pattern:
            return bool(self._wrong & ~self._catalogue.recorded)
        pattern = candidate.pattern & within
        against = pattern & self._right & self._catalogue.recorded
        return bool(pattern & self._wrong) and against.bit_count() <= doubts

    def _fitting(self, candidates: Iterable[Candidate], within: int = -1) -> Iterator[Fit]:
        """Yield the candidates that give the student's answers to the cases `within`."""
        for candidate in candidates:
            pattern = candidate.pattern or ~self._catalogue.recorded
            if not self._is_contradicted(candidate, pattern, within):
                fit = self._fit(candidate)
                if self._agrees(fit, within):
                    yield fit

    def _seen(self, found: list[list[Fit]], failed: Sequence[str]) -> list[list[Fit]]:
        """Return the mistakes, without those that show only in answers that right code may give.

        Right code may answer some cases in its own way. If an answer is that of a mistake, but no
        check that the mistake fails has failed, the code does not have the mistake.
        """
        claimed = [fits for fits in found if any(fit.checks & {*failed} for fit in fits)]
        if not claimed:  # the checks of a students' copy have other names
            return found
        return [fits for fits in found if fits in claimed or self._decides(fits[0].same)]

    def _decides(self, bits: int) -> bool:
        return any(case.decides for case in self._catalogue.cases_in(bits))

    def _is_contradicted(self, candidate: Candidate, pattern: int, within: int = -1) -> bool:
        """Return whether some case `within` disproves a mistake.

        It does if the mistake's wrong answer is not the student's, or if the mistake is right
        where its `pattern` says that it is wrong, and the student is wrong. The cases of the
        pattern come first, because they disprove most mistakes at once.
        """
        asked, wrong = candidate.asked
        if wrong & self._right & within:
            return True
        cases = self._catalogue.cases_in
        if not all(self._is_same(candidate, p) for p in cases(wrong & self._wrong & within)):
            return True
        left = self._known & within & ~asked
        likely = pattern & self._wrong & within
        if any(self._contradicts(candidate, case) for case in cases(left & likely)):
            return True
        if likely and not likely & candidate.asked[1]:
            return True
        rest = left & ~likely
        order = (rest & pattern, rest & ~pattern & self._wrong, rest & ~pattern & ~self._wrong)
        return any(self._contradicts(candidate, case) for bits in order for case in cases(bits))

    def _contradicts(self, candidate: Candidate, case: Case) -> bool:
        if not candidate.is_wrong(case):
            return False
        is_right = self._catalogue.bits((case,)) & self._right
        return bool(is_right) or not self._is_same(candidate, case)

    def _is_same(self, candidate: Candidate, case: Case) -> bool:
        return candidate.answer(case).same(self._answers[case.name])

    def _fit(self, candidate: Candidate) -> Fit:
        touched = candidate.touched & self._known
        return Fit(candidate, touched, self._catalogue, self._answers, self._just_wrong)

    def _agrees(self, fit: Fit, within: int = -1) -> bool:
        """Return whether the student's answers to the cases `within` are a mistake's answers.

        They have to agree in whole aspects, with and without an effect of the mistake, and enough
        numbers of one answer have to show it.
        """
        touched = fit.touched & within
        if not touched or touched & ~self._wrong or not fit.is_same(within):
            return False
        if self._wrong & within & ~touched & self._catalogue.whole_aspects(touched):
            return False
        return self._shows_numbers(touched)

    def _shows_numbers(self, bits: int) -> bool:
        """Return whether enough numbers of one of the student's answers are wrong."""
        right = self._catalogue.reference
        return any(
            finite_differences(self._answers[case.name], right.answer(case)) >= MIN_NUMBERS
            for case in self._catalogue.cases_in(bits)
        )

    def _chosen(self, fits: Sequence[Fit]) -> tuple[list[list[Fit]], int]:
        """Return mistakes in separate aspects that explain the most, and the remaining cases."""
        found: list[list[Fit]] = []
        left = self._wrong
        while left and len(found) < MAX_MISTAKES:
            possible = [fit for fit in fits if fit.same and not fit.same & ~left]
            if not possible:
                break
            best = max(map(self._rank, possible))
            alike = [fit for fit in possible if self._rank(fit) == best]
            alike = [fit for fit in alike if fit.same == alike[0].same]
            found.append(self._distinct(alike))
            left &= ~alike[0].same
        return found, left

    def _rank(self, fit: Fit) -> tuple[int, int, int]:
        """Return how much mistakes explain: aspects, then cases, then how few mistakes they are."""
        aspects = len(self._catalogue.aspects(fit.same))
        return aspects, fit.same.bit_count(), -len(fit.candidate.faults)

    def _distinct(self, fits: Sequence[Fit]) -> list[Fit]:
        """Return one fit for each set of names; of several sets, those equal up to rounding."""
        if len(fits) > 1:
            fits = [fit for fit in fits if self._matches_exactly(fit)] or fits
        named = {frozenset(fault.name for fault in fit.candidate.faults): fit for fit in fits[::-1]}
        return list(named.values())[::-1]

    def _matches_exactly(self, fit: Fit) -> bool:
        return all(
            fit.candidate.answer(case).same(self._answers[case.name], exact=True)
            for case in self._catalogue.cases_in(fit.same)
        )

    def _pairs(self, halves: Sequence[Candidate], within: int = -1) -> Iterator[Fit]:
        """Yield the pairs that explain the cases `within`, among the most promising ones.

        Most pairs are wrong wherever one of the two mistakes is. But one may hide the effect of
        the other, or change it at an edge, so the most promising pairs are run, each up to the
        first answer that differs.
        """
        # If a model is trained, one pair takes as long as all single mistakes of another exercise.
        most = MAX_PAIRS if self._catalogue.exercise.training is None else 0
        for first, second in self._promising(halves, within)[:most]:
            pair = self._catalogue.pair(first, second)
            pattern = first.pattern | second.pattern
            if pair is None or self._is_contradicted(pair, pattern, within):
                continue
            fit = self._fit(pair)
            if self._agrees(fit, within) and self._catalogue.adds_to_halves(
                pair, first, second, fit.same
            ):
                yield fit

    def _promising(
        self, halves: Sequence[Candidate], within: int
    ) -> list[tuple[Candidate, Candidate]]:
        """Return the pairs of mistakes, first those whose patterns are nearest to the answers'.

        Of equally near pairs, mistakes in their usual forms come first.
        """
        recorded = self._catalogue.recorded & within
        wrong, right = self._wrong & recorded, self._right & recorded
        ranked = []
        for first, second in itertools.combinations(halves, 2):
            union = (first.pattern | second.pattern) & recorded
            misses = (wrong & ~union).bit_count() + (right & union).bit_count()
            if first.faults != second.faults and misses <= MANY_DOUBTS:
                ranked.append((misses, first.form + second.form, first, second))
        ranked.sort(key=operator.itemgetter(0, 1))
        return [(first, second) for *_, first, second in ranked]

    # --- what is said of them ---------------------------------------------------------------------

    def _besides(self, left: int) -> str:
        """Return a sentence on the aspects that no mistake explains, or nothing."""
        phrases = self._catalogue.phrases(left)
        return f"This comes out otherwise than asked, too: {'; '.join(phrases)}." if phrases else ""

    def _said(self, left: int) -> tuple[Said, ...]:
        return facts_of(self._catalogue, self._catalogue.cases_in(left), self._answers)

    def _facts(self, said: Sequence[Said]) -> dict[str, Any]:
        """Return the facts, and a call that shows the first one, as keyword arguments."""
        if not said:
            return {}
        calls = self._catalogue.reference.repeat(said[0].case)
        return {"facts": tuple(fact.says for fact in said), "repeat": calls}

    def _first_wrong_step(self, fits: Sequence[Fit]) -> WrongStep | None:
        """Return the first stage that the answers prove to be wrong.

        Of programs with the same answers, the one that stays right the longest counts, because the
        student's code may be like that one.
        """
        case = self._catalogue.cases_in(fits[0].same)[0]
        steps = [step for fit in fits if (step := fit.candidate.first_wrong_step(case))]
        order = self._catalogue.exercise.stages
        return max(steps, key=lambda step: order.index(step.stage), default=None)


def _left(choice: tuple[list[list[Fit]], int], within: int = -1) -> int:
    return (choice[1] & within).bit_count()


def _joined(
    fits: Sequence[Fit], failed: Sequence[str], max_points: int
) -> tuple[Explanation, bool]:
    """Return one explanation made of mistakes in separate aspects, and whether it is chargeable.

    A failed test that no mistake fails is assigned to a mistake without failed tests, if there is
    one; but something else may be wrong there.
    """
    said: dict[str, tuple[Mistake, str]] = {}
    for fit in fits:
        for fault in fit.candidate.faults:
            said.setdefault(fault.name, (fault, fault.saying(fit.candidate.number)))
    lead = "" if len(said) == 1 else COUNTED.get(len(said), "Several mistakes at once. ")
    faults = [fault for fault, _ in said.values()]
    fails: dict[str, frozenset[str]] = {}
    for fit in fits:
        for fault in fit.candidate.faults:
            known = fails.get(fault.name, frozenset((CASES_CHECK,)))
            fails[fault.name] = known | fit.checks
    shown = [tuple(name for name in failed if name in fails[fault.name]) for fault in faults]
    others = tuple(name for name in failed if not any(name in each for each in shown))
    explanation = Explanation(
        tuple(said),
        lead + " ".join(says for _, says in said.values()),
        HINT_BREAK.join(fault.hint for fault in faults),
        tuple(tests or others for tests in shown),
        tuple(says for _, says in said.values()),
        tuple(price_of(fault, max_points) for fault in faults),
    )
    return explanation, all(shown) or not others
