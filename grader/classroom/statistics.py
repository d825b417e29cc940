"""The statistics of a graded class, counted report by report; no report is kept.

Item discrimination is the corrected item-total correlation of classical test theory (Nunnally and
Bernstein, Psychometric Theory, 1994, chapter 8; Henrysson, Correction of item-total correlations
in item analysis, Psychometrika 28, 1963).
"""

from __future__ import annotations

import dataclasses
import math
import statistics
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence

from grader.classroom.mistakes import MistakeTally
from grader.report import ExerciseResult, Outcome, Person, Report, State, Verdict
from grader.reports.summary import (
    ExerciseSummary,
    Section,
    SimilarGroup,
    Spread,
    StudentRow,
    Summary,
    TestSummary,
)

FEWEST = 5  # students; a correlation among fewer means nothing
BINS = 10  # of the histogram
MAX_CASES = 2  # that are named of a check
_NOT_GRADED: tuple[State, ...] = ("not graded",)


class ClassTally:
    """The running counts of a class, from which its `Summary` is made.

    `named` are the ids of the mistakes that teachers have named.
    """

    def __init__(self, named: Collection[str] = ()) -> None:
        self._exercises: dict[str, _ExerciseTally] = {}
        self._students: list[StudentRow] = []
        self._mistakes = MistakeTally(named)
        self._circumstances: defaultdict[str, Counter[str]] = defaultdict(Counter)

    def add(self, report: Report, page: str, code: str = "") -> None:
        """Count a student, once, from the teacher's view of the report.

        `page` is the path of the report, and `code` that of the page with the student's code.
        """
        for result in report.exercises:
            if result.name not in self._exercises:
                self._exercises[result.name] = _ExerciseTally(result)
        number = len(self._students)
        self._students.append(self._row(report, page, code))  # first: the number is used up now
        for result in report.exercises:
            self._exercises[result.name].add(result, report.points)
            self._mistakes.add(result, number)
        for name, value in _circumstances(report):
            self._circumstances[name][value] += 1

    def _row(self, report: Report, page: str, code: str) -> StudentRow:
        graded = {result.name: result for result in report.exercises}
        results = [graded.get(name) for name in self._exercises]
        return StudentRow(
            id=report.submission,
            name=report.person.name,
            section=report.person.section,
            login=report.person.login,
            email=report.person.email,
            points=report.counted,
            max_points=report.max_counted,
            points_of=tuple(result.counted if result else None for result in results),
            states=tuple(result.state if result else "not graded" for result in results),
            state=report.state,
            attempt=report.attempt,
            submitted=report.submitted,
            late_days=report.mark.late_days if report.mark else 0.0,
            free_days=report.mark.free_days if report.mark else 0.0,
            free_left=report.mark.free_left if report.mark else None,
            flags=report.flags,
            page=page,
            code=code,
        )

    def summary(
        self,
        title: str,
        missing: Mapping[str, Person] | None = None,
        similar: Sequence[SimilarGroup] = (),
    ) -> Summary:
        """Return the summary of the class so far."""
        students = tuple(self._padded(student) for student in self._students)
        conditions = self._circumstances.items()
        return Summary(
            title=title,
            max_points=max((student.max_points for student in students), default=0),
            exercises=tuple(each.summary() for each in self._exercises.values()),
            students=students,
            histogram=histogram(students),
            spread=spread([student.points for student in students]),
            mistakes=self._mistakes.mistakes(),
            missing=missing or {},
            similar=tuple(similar),
            sections=sections(students),
            wrong=self._mistakes.wrong(),
            circumstances={name: tuple(values.most_common()) for name, values in conditions},
        )

    def _padded(self, student: StudentRow) -> StudentRow:
        """Return a row as long as the others: later students may bring new exercises."""
        short = len(self._exercises) - len(student.states)
        if not short:
            return student
        points, states = (None,) * short, _NOT_GRADED * short
        return dataclasses.replace(
            student, points_of=student.points_of + points, states=student.states + states
        )


def _circumstances(report: Report) -> Iterator[tuple[str, str]]:
    """Yield the name and value of each condition, besides the submission, that affects results."""
    yield "seed", str(report.seed)
    yield "tests", report.suites
    if any(result.tests for result in report.exercises):  # otherwise no code ran
        yield "confinement", ", ".join(report.confinement) or "none"
    yield from report.versions.items()
    for name, value in report.hashes.items():
        if name != "submission":
            yield f"hash of the {name}", value


def sections(students: Sequence[StudentRow]) -> tuple[Section, ...]:
    """Return the results of each section, by name; nothing unless there are several."""
    own: defaultdict[str, list[StudentRow]] = defaultdict(list)
    for student in students:
        own[student.section].append(student)
    return tuple(_section(name, own[name]) for name in sorted(own)) if len(own) > 1 else ()


def _section(name: str, students: Sequence[StudentRow]) -> Section:
    shares = [each.points / each.max_points if each.max_points else 0.0 for each in students]
    columns = zip(*(student.states for student in students))
    passed = tuple(_share_passed(states) for states in columns)
    return Section(name, len(students), statistics.fmean(shares), passed)


def _share_passed(states: Sequence[State]) -> float | None:
    graded = len(states) - states.count("not graded")
    return states.count("passed") / graded if graded else None


def histogram(students: Sequence[StudentRow]) -> tuple[int, ...]:
    """Return the number of students in each tenth of their maximum; full marks are in the last."""
    bins = [0] * BINS
    for student in students:
        share = student.points / student.max_points if student.max_points else 0.0
        bins[min(BINS - 1, max(0, int(share * BINS)))] += 1
    return tuple(bins)


def spread(points: Sequence[float]) -> Spread | None:
    """Return mean and quartiles, interpolated between two students; None without students."""
    if not points:
        return None
    several = points if len(points) > 1 else [*points, *points]
    lower, median, upper = statistics.quantiles(several, n=4, method="inclusive")
    return Spread(statistics.fmean(points), min(points), lower, median, upper, max(points))


def _correlation(pairs: Counter[tuple[int, int]]) -> float | None:
    """Return Pearson's correlation; None with fewer than `FEWEST` pairs or a constant side."""

    def moment(x_power: int, y_power: int) -> int:
        return sum(count * x**x_power * y**y_power for (x, y), count in pairs.items())

    n, x, y = moment(0, 0), moment(1, 0), moment(0, 1)
    x_spread, y_spread = n * moment(2, 0) - x**2, n * moment(0, 2) - y**2
    if n < FEWEST or not x_spread or not y_spread:
        return None
    return (n * moment(1, 1) - x * y) / math.sqrt(x_spread * y_spread)


class _TestTally:
    """The results of a test so far.

    Its discrimination is the correlation of passing it with all other points, among the students
    for whom it ran. Near 1, the test separates strong from weak students; near 0, it does not;
    below 0, strong students fail it, and the test needs review. Its own points are left out of
    the total, so that it is not correlated with itself.
    """

    def __init__(self, test: Outcome) -> None:
        self._head = test.name, test.sentence, test.max_points
        self._outcomes: Counter[Verdict] = Counter()
        self._pairs: Counter[tuple[int, int]] = Counter()
        self._cases: Counter[str] = Counter()
        self._alone = 0

    def add(self, test: Outcome, total: int, *, alone: bool) -> None:
        self._outcomes[test.outcome] += 1
        self._cases.update(case.sentence for case in test.wrong)
        self._alone += alone
        if test.outcome in ("passed", "failed"):
            self._pairs[test.outcome == "passed", total - test.points] += 1

    def summary(self) -> TestSummary:
        verdicts: tuple[Verdict, ...] = ("passed", "failed", "skipped", "error")
        passed, failed, skipped, errors = (self._outcomes[verdict] for verdict in verdicts)
        correlation = _correlation(self._pairs)
        cases = tuple(self._cases.most_common(MAX_CASES))
        counts = passed, failed, skipped, errors
        return TestSummary(*self._head, *counts, correlation, self._alone, cases)


class _ExerciseTally:
    """The results of an exercise so far.

    Its discrimination is the correlation of its points with all other points, among all students.
    """

    def __init__(self, result: ExerciseResult) -> None:
        self._head = result.name, result.title, result.max_points
        self._states: Counter[State] = Counter()
        self._pairs: Counter[tuple[int, int]] = Counter()
        self._points = 0.0
        self._unknown = 0
        self._lost: Counter[State] = Counter()
        self._failed: Counter[int] = Counter()
        self._tests: dict[str, _TestTally] = {}

    def add(self, result: ExerciseResult, total: int) -> None:
        self._states[result.state] += 1
        self._points += result.points + result.scaled_by
        self._pairs[result.points, total - result.points] += 1
        self._unknown += result.diagnosis is not None and not result.diagnosis.faults
        self._lost[result.state] += result.worth - result.points
        failed = [test for test in result.tests if test.outcome == "failed"]
        if result.state == "to fix":  # what was not begun fails every check, and says nothing
            self._failed[len(failed)] += 1
        for test in result.tests:
            if test.name not in self._tests:
                self._tests[test.name] = _TestTally(test)
            self._tests[test.name].add(test, total, alone=failed == [test])

    def summary(self) -> ExerciseSummary:
        students = self._pairs.total()
        return ExerciseSummary(
            *self._head,
            students,
            dict(self._states),
            self._points / students,
            _correlation(self._pairs),
            self._unknown,
            tuple(test.summary() for test in self._tests.values()),
            {state: lost for state, lost in self._lost.items() if lost},
            dict(sorted(self._failed.items())),
        )
