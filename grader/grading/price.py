"""The price of a mistake: what it costs once, however many checks it fails.

A teacher deducts points for a mistake, not for its consequences.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from grader.course.known_mistakes import Mistake
from grader.course.visibility import SKIPPED_UNTIL
from grader.report import NO_COMPUTATION, Charge, ExerciseResult, Explanation, Outcome


def price_of(fault: Mistake, max_points: int) -> int:
    """Return what a mistake costs in points; a third of the exercise unless it says otherwise."""
    return max(1, round(max_points / 3)) if fault.costs is None else fault.costs


@dataclass(frozen=True)
class Nearest:
    """The known mistake nearest to some wrong cases: its price, and its own wrong cases."""

    overlap: float
    price: int
    cases: frozenset[str]


FindNearest = Callable[[Collection[str]], Nearest | None]


def charged(result: ExerciseResult, clear: Collection[str], nearest: FindNearest) -> ExerciseResult:
    """Return the result of an exercise with each mistake, named or not, charged once.

    A check whose wrong cases the named mistakes explain costs nothing beside their prices. The
    other wrong cases cost the price of the mistake that is `nearest`, and the checks that are
    wrong beyond it; or, if none is near, the points of these checks. `clear` are the clearly wrong
    cases, of those that tell mistakes apart. No mistake excuses code that computes nothing.
    """
    diagnosis = result.diagnosis
    explained = {*diagnosis.explains_cases} if diagnosis and diagnosis.faults else set()
    result = replace(result, tests=tuple(_marked(test, explained) for test in result.tests))
    lost = {test.name: test.max_points - test.points for test in result.tests}
    explanations = (diagnosis, *diagnosis.tie) if diagnosis and diagnosis.faults else ()
    bills = [_bill(result.tests, each) for each in explanations]
    bill = max(bills, key=lambda bill: bill.total, default=None)
    echoes = bill.echoes if bill else frozenset[str]()
    others = [
        test
        for test in result.tests
        if lost[test.name]
        and (test.name not in echoes or {c.name for c in test.wrong} & {*clear} - explained)
    ]
    echoes -= {test.name for test in others}
    total = _besides(others, lost, {*clear} - explained, nearest)
    taken = sum(lost[name] for name in echoes)
    charges = bill.charges if bill and echoes and bill.total <= taken else ()
    total += bill.total if bill and charges else taken
    by_checks = sum(test.points for test in result.tests)
    given_back = result.max_points - total - by_checks
    tests = tuple(replace(t, consequence=True) if t.name in echoes else t for t in result.tests)
    return replace(
        result,
        points=by_checks + given_back,
        given_back=given_back,
        charges=charges,
        tests=tests,
    )


def _besides(
    others: Sequence[Outcome],
    lost: Mapping[str, int],
    clear: Collection[str],
    nearest: FindNearest,
) -> int:
    """Return the charge for the checks that no named mistake explains."""
    idle = sum(lost[test.name] for test in others if test.kind == NO_COMPUTATION)
    others = [test for test in others if test.kind != NO_COMPUTATION]
    most = sum(lost[test.name] for test in others)
    wrong = {case.name for test in others for case in test.wrong} & {*clear}
    near = nearest(wrong) if wrong and not idle else None
    if near is None:
        return idle + most
    beyond = [test for test in others if not {case.name for case in test.wrong} & near.cases]
    return idle + min(most, near.price + sum(lost[test.name] for test in beyond))


def _marked(test: Outcome, explained: Collection[str]) -> Outcome:
    cases = tuple(replace(case, explained=case.name in explained) for case in test.wrong)
    return replace(test, wrong=cases)


@dataclass(frozen=True)
class _Bill:
    """The cost of the mistakes in one explanation, and the checks that fail because of them."""

    charges: tuple[Charge, ...]
    echoes: frozenset[str]

    @property
    def total(self) -> int:
        return sum(charge.points for charge in self.charges)


def _bill(tests: Sequence[Outcome], explained: Explanation) -> _Bill:
    echoes = _with_skipped(tests, frozenset().union(*explained.tests))
    lost = {test.name: test.max_points - test.points for test in tests}
    taken = sum(lost[name] for name in echoes)
    costs = explained.costs
    if len(costs) == 1:  # the checks may cost less than the price
        costs = (min(costs[0], taken),)
    named = zip(explained.faults, explained.each, costs, strict=True)
    return _Bill(tuple(Charge(*each) for each in named), echoes)


def _with_skipped(tests: Sequence[Outcome], echoes: frozenset[str]) -> frozenset[str]:
    """Return `echoes` with the tests that were skipped because of one of them."""
    reasons = {SKIPPED_UNTIL.format(name) for name in echoes}
    skipped = {test.name for test in tests if test.outcome == "skipped" and test.message in reasons}
    return echoes if skipped <= echoes else _with_skipped(tests, echoes | skipped)
