"""The mistakes that cost a class its points: named ones, plain failures, and unnamed groups.

Every point that a check takes is counted once, for the mistake that shows in it. Two named
mistakes in one exercise count separately, each with its price.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field

from grader.course.visibility import SKIPPED_UNTIL
from grader.grading.failures import SELF_EXPLAINING, group_of, says_of
from grader.grading.signatures import are_comparable, bucket, identity, is_same_mistake
from grader.report import SYNTAX, Diagnosis, ExerciseResult, Outcome
from grader.reports.summary import MistakeKind, MistakeRow, Wrong

UNNAMED_SAYS = "An unnamed mistake."
APART = SELF_EXPLAINING | SYNTAX | {"type"}  # failures that need no diagnosis
MAX_FACTS = 2  # facts shown of a group


@dataclass
class _Tally:
    """The students who made a mistake so far, its cost, and the facts in their reports."""

    kind: MistakeKind
    fault: str
    says: str
    who: list[int] = field(default_factory=list)
    points: int = 0
    facts: Counter[str] = field(default_factory=Counter)

    def add(self, student: int, points: int) -> None:
        """Count points that a student lost; one who lost them in several checks counts once."""
        if not self.who or self.who[-1] != student:
            self.who.append(student)
        self.points += points

    def mistake(self, exercise: str) -> MistakeRow:
        """Return what was counted."""
        counts = self.facts.most_common(MAX_FACTS)
        who, facts = tuple(self.who), tuple(fact for fact, n in counts if self._is_usual(n))
        return MistakeRow(exercise, self.fault, self.says, who, self.points, self.kind, facts)

    def _is_usual(self, count: int) -> bool:
        return 2 * count > len(self.who)


class MistakeTally:
    """The running count of a class's mistakes; `named` are ids that teachers gave."""

    def __init__(self, named: Collection[str] = ()) -> None:
        self._tallies: dict[tuple[str, str, str], _Tally] = {}  # by exercise, kind and fault
        self._groups = UnnamedGroups(named)
        self._wrong: Counter[str] = Counter()

    def add(self, result: ExerciseResult, student: int) -> None:
        """Count the mistakes in one exercise of a student; an exercise without tests adds none."""
        if result.state == "to fix":
            self._wrong[_how(result)] += 1
        if not result.unfinished:
            self._count_named(result, student)
            self._count_others(result, student)

    def _tally(self, result: ExerciseResult, kind: MistakeKind, fault: str, says: str) -> _Tally:
        key = (result.name, kind, fault)
        return self._tallies.setdefault(key, _Tally(kind, fault, says))

    def _count_named(self, result: ExerciseResult, student: int) -> None:
        """Count each mistake of an exercise for itself; of a tie, those of the first explanation.

        A tie is charged for its most expensive explanation, but counts for its first.
        """
        diagnosis = result.diagnosis
        if diagnosis is None:
            return
        charged = {charge.fault: charge.points for charge in result.charges}
        costs = dict(zip(diagnosis.faults, diagnosis.costs))
        for fault, says, tests in zip(diagnosis.faults, diagnosis.each, diagnosis.tests):
            shown = [test for test in result.tests if test.name in tests]
            taken = sum(test.max_points - test.points for test in shown)
            if not taken and any(test.waived for test in shown):
                continue
            lost = charged.get(fault, costs[fault]) if charged else taken
            self._tally(result, "named", fault, says).add(student, lost)

    def _count_others(self, result: ExerciseResult, student: int) -> None:
        """Count the points that checks took for other reasons than a named mistake."""
        explained = set().union(*result.diagnosis.tests) if result.diagnosis else set()
        for test, root in _with_roots(result.tests):
            lost = test.max_points - test.points
            if lost and not test.consequence and root.name not in explained:
                self._of(result, root).add(student, lost)
        diagnosis = result.diagnosis
        if diagnosis is not None and not diagnosis.faults:
            self._of_unnamed(result, diagnosis).facts.update(diagnosis.facts)

    def _of(self, result: ExerciseResult, root: Outcome) -> _Tally:
        """Return the tally of the reason why a test failed."""
        diagnosis = result.diagnosis
        if diagnosis is not None and not diagnosis.faults and root.kind not in APART:
            return self._of_unnamed(result, diagnosis)
        group = group_of(root.kind)
        return self._tally(result, "failure", group, says_of(group))

    def _of_unnamed(self, result: ExerciseResult, diagnosis: Diagnosis) -> _Tally:
        group = self._groups.group(result.name, diagnosis.signature, diagnosis.secret)
        return self._tally(result, "unnamed", group, UNNAMED_SAYS)

    def mistakes(self) -> tuple[MistakeRow, ...]:
        """Return everything that cost points, the most expensive first.

        Unwritten code comes last: it costs the most in an early class, and shows nothing.
        """
        found = [each.mistake(key[0]) for key, each in self._tallies.items() if each.who]
        unwritten = says_of(group_of("NotImplementedError"))
        found.sort(key=lambda each: (each.says == unwritten, -each.points, -len(each.who)))
        return tuple(found)

    def wrong(self) -> Wrong:
        """Return how many wrong solutions have a named mistake."""
        return Wrong(*(self._wrong[how] for how in ("named", "failure", "unnamed")))


class UnnamedGroups:
    """Groups of unnamed mistakes, by the signatures of their answers; none is called as `taken`."""

    def __init__(self, taken: Collection[str] = ()) -> None:
        self._known: dict[tuple[str, frozenset[str]], list[tuple[str, str, str]]] = {}
        self.signatures: dict[str, tuple[str, str]] = {}  # by group: exercise and signature
        self._taken = taken

    def group(self, exercise: str, signature: str, secret: str = "") -> str:
        """Return the name of a mistake's group: that of the first student who made it.

        Answers that agree at the public seed but not at the `secret` one belong to another group.
        Results without a signature are one group.
        """
        if not signature:
            return f"{exercise}-unsigned"
        cases = bucket(signature)
        known = self._known.setdefault((exercise, cases), [])
        for group, first, confirms in known:
            if is_same_mistake(first, signature) and _may_be_same(confirms, secret):
                return group
        group = self._fresh(f"{exercise}-{identity(signature)}")
        known.append((group, signature, secret))
        self.signatures[group] = exercise, signature
        return group

    def _fresh(self, name: str) -> str:
        taken = (f"{name}{letter}" for letter in ("", *(f"-{at}" for at in range(2, 10_000))))
        return next(
            each for each in taken if each not in self.signatures and each not in self._taken
        )


def _may_be_same(one: str, other: str) -> bool:
    """Return whether two signatures at secret seeds agree, if they are of the same seed."""
    if not (one and other and are_comparable(one, other)):
        return bool(one) == bool(other)
    return is_same_mistake(one, other)


def _how(result: ExerciseResult) -> MistakeKind:
    """Return whether a wrong exercise has a named mistake, says what is wrong, or neither."""
    if result.diagnosis is None:
        return "failure"
    return "named" if result.diagnosis.faults else "unnamed"


def _with_roots(tests: tuple[Outcome, ...]) -> Iterator[tuple[Outcome, Outcome]]:
    """Yield each test that was not passed, and the failed one because of which it did not run."""
    by_name = {test.name: test for test in tests}
    for test in tests:
        if test.outcome in ("failed", "skipped"):
            yield test, _root(test, by_name)


def _root(test: Outcome, by_name: Mapping[str, Outcome]) -> Outcome:
    before, after = SKIPPED_UNTIL.split("{}")
    for _ in by_name:  # a bound: tests need others, but never in a circle
        needed = by_name.get(test.message.removeprefix(before).removesuffix(after))
        if test.outcome != "skipped" or needed is None:
            break
        test = needed
    return test
