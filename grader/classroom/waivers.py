"""Waivers: the checks and cases that a teacher takes out of results which are stored already.

A result changes as far as the stored data tells; `doubts` are what only a new grading can tell.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TypeVar

from grader.classroom.ledger import Ledger
from grader.classroom.stored.settings import WAIVERS
from grader.course.visibility import SKIPPED_UNTIL
from grader.grading.price import Nearest, charged
from grader.report import NO_COMPUTATION, Diagnosis, ExerciseResult, Explanation, Outcome

FULL, DROP, UNDONE = "full", "drop", ""  # what a waiver gives
ENDED = ("Timeout", "Crash")  # kinds of failures after which no further case is asked
E = TypeVar("E", bound=Explanation)
EFFECTS = {FULL: "counts as passed", DROP: "does not count"}


@dataclass(frozen=True)
class Waiver:
    """A check, or a `case` of it, that a teacher takes out for some `students` or for everybody.

    `says` names it in words. A later waiver of the same check or case replaces it; one that gives
    nothing takes it back.
    """

    exercise: str
    test: str
    case: str
    says: str
    gives: str
    why: str
    students: tuple[str, ...] = ()

    @property
    def in_words(self) -> str:
        """What it does and why, in a sentence for students: it does not name a hidden case."""
        effect = "one of its cases does not count" if self.case else EFFECTS[self.gives]
        return f"waived, {effect}: {self.why}"

    def concerns(self, student: str) -> bool:
        """Return whether it is for this student."""
        return not self.students or student in self.students


def stored_waivers(ledger: Ledger) -> tuple[Waiver, ...]:
    """Return every waiver of a class, the oldest first, also those that were taken back."""
    kept = ledger.get(WAIVERS) or []
    return tuple(Waiver(**{**each, "students": tuple(each["students"])}) for each in kept)


def store(ledger: Ledger, waiver: Waiver) -> None:
    """Store one more waiver."""
    ledger.put(WAIVERS, [asdict(each) for each in (*stored_waivers(ledger), waiver)])


def strike(ledger: Ledger, student: str) -> None:
    """Forget the waivers for one student alone, and name the student in no other."""
    waivers = stored_waivers(ledger)
    others = [
        replace(each, students=tuple(name for name in each.students if name != student))
        for each in waivers
        if each.students != (student,)
    ]
    if (*others,) != waivers:
        ledger.put(WAIVERS, [asdict(each) for each in others])


def waivers_of(student: str, waivers: Sequence[Waiver]) -> tuple[Waiver, ...]:
    """Return the waivers that count for a student: of each check or case the last."""
    last = {(w.exercise, w.test, w.case): w for w in waivers if w.concerns(student)}
    return tuple(each for each in last.values() if each.gives != UNDONE)


# --- the result without what is waived ------------------------------------------------------------


def without_waived(
    result: ExerciseResult,
    waivers: Sequence[Waiver],
    worth: Mapping[str, int],
    *,
    charge_once: bool,
) -> ExerciseResult:
    """Return a result in which every waived check passes, and waived cases were not asked.

    `worth` has the points of each check, for an exercise of which there is no file. The wrong cases
    that no known mistake explains cost what they cost before, and never more than the other checks.
    """
    if not result.tests:
        points = sum(worth.get(each.test, 0) for each in waivers if not each.case)
        return replace(result, points=points)
    tests = tuple(
        _waived(test, [w for w in waivers if w.test == test.name]) for test in result.tests
    )
    if tests == result.tests:
        return result
    after = replace(result, tests=tests, points=sum(test.points for test in tests))
    if not any(test.outcome in ("failed", "error", "skipped") for test in tests):
        return replace(after, diagnosis=None, advice="", given_back=0, charges=())
    if result.diagnosis is None or result.unfinished or not charge_once:
        return after
    passed = {test.name for test in tests if test.outcome == "passed"}
    price = _price_besides(result)
    clear = {case.name for test in tests if not test.consequence for case in test.wrong}
    nearest = Nearest(1.0, price, frozenset(clear))
    plain = replace(after, diagnosis=_diagnosis_without(result.diagnosis, passed))
    return replace(charged(plain, clear, lambda wrong: nearest), diagnosis=result.diagnosis)


def _waived(test: Outcome, waivers: Sequence[Waiver]) -> Outcome:
    """Return a test as its waivers leave it."""
    cases = {each.case for each in waivers if each.case}
    wrong = tuple(case for case in test.wrong if case.name not in cases)
    whole = next((each for each in waivers if not each.case), None)
    if whole or (test.wrong and not wrong and test.kind not in ENDED):
        most, says = test.max_points, (whole or waivers[-1]).in_words
        passed = Outcome(test.name, test.sentence, "passed", most, most, visible=test.visible)
        return replace(passed, required=test.required, waived=says)
    if not wrong or wrong == test.wrong:
        return test
    gone = next((c for c in test.wrong if c.name in cases and _is_about(test, c.sentence)), None)
    after = replace(test, wrong=wrong, waived=waivers[-1].in_words)
    if gone is None:
        return after
    message = f"{wrong[0].sentence.rstrip('.')}: this is wrong, too"
    return replace(after, message=message, expected=None, actual=None, where=None, called="")


def _is_about(test: Outcome, sentence: str) -> bool:
    return test.message.startswith(f"{sentence.rstrip('.')}: ")


def _diagnosis_without(diagnosis: Diagnosis, passed: Collection[str]) -> Diagnosis:
    """Return a diagnosis without the mistakes that show only in tests that pass now."""
    tie = tuple(_explanation_without(each, passed) for each in diagnosis.tie)
    found = _explanation_without(diagnosis, passed)
    return replace(found, tie=tuple(each for each in tie if each.faults))


def _explanation_without(explanation: E, passed: Collection[str]) -> E:
    left = [tuple(name for name in names if name not in passed) for names in explanation.tests]
    kept = [at for at, names in enumerate(explanation.tests) if left[at] or not names]
    return replace(
        explanation,
        faults=tuple(explanation.faults[at] for at in kept),
        tests=tuple(left[at] for at in kept),
        each=tuple(explanation.each[at] for at in kept),
        costs=tuple(explanation.costs[at] for at in kept),
    )


def _lost(test: Outcome) -> int:
    return test.max_points - test.points


def _others(result: ExerciseResult) -> list[Outcome]:
    """Return the tests that cost points besides the named mistakes."""
    return [test for test in result.tests if _lost(test) and not test.consequence]


def _price_besides(result: ExerciseResult) -> int:
    """Return what the wrong cases cost that no named mistake explains."""
    named = sum(charge.points for charge in result.charges)
    if not result.charges:
        named = sum(_lost(test) for test in result.tests if test.consequence)
    plain = [t for t in _others(result) if not t.wrong or t.kind == NO_COMPUTATION]
    return max(0, result.max_points - result.points - named - sum(map(_lost, plain)))


def without_dropped(
    result: ExerciseResult, waivers: Sequence[Waiver], worth: Mapping[str, int]
) -> ExerciseResult:
    """Return a result without the checks that count for nobody, after they were made to pass.

    The points of the other checks are scaled to the maximum of the exercise, so that it weighs as
    much as before, in every export.
    """
    names = {each.test for each in waivers if each.gives == DROP and not each.case}
    known = {test.name: test.max_points for test in result.tests} or worth
    dropped = sum(known.get(name, 0) for name in names)
    if not names or dropped >= result.max_points:  # no other check is left to count
        return result
    tests = tuple(
        replace(test, outcome="skipped", points=0, max_points=0, required=False)
        if test.name in names
        else test
        for test in result.tests
    )
    return replace(result, tests=tests, points=result.points - dropped, dropped=dropped)


# --- what stored results do not tell --------------------------------------------------------------


def doubts(result: ExerciseResult, waivers: Sequence[Waiver]) -> Iterator[str]:
    """Yield, in sentences, what only a new grading could tell about a result as it was graded."""
    tests = {test.name: test for test in result.tests}
    after = {name: _waived(t, [w for w in waivers if w.test == name]) for name, t in tests.items()}
    changed = [name for name in tests if after[name] != tests[name]]
    for test in result.tests:
        if any(test.message == SKIPPED_UNTIL.format(name) for name in changed):
            yield f'"{test.sentence}" was not asked, because it waited for what is waived'
        cases = {each.case for each in waivers if each.test == test.name}
        if test.kind in ENDED and {case.name for case in test.wrong} & cases:
            yield f'"{test.sentence}" ended at that case, and asked no other'
    others = [test for test in _others(result) if test.wrong]
    is_shared = any(test.name in changed for test in others) and any(
        after[test.name].wrong for test in others
    )
    if is_shared and _price_besides(result) < sum(map(_lost, others)):
        yield "what else is wrong keeps its price, which was that of the nearest known mistake"
