"""A graded class as a whole: counted student by student, of whom only little is kept.

Knows neither torch nor files. What it makes of a class, `Summary.to_json`, is what
`grader.reports.dashboard` draws. Item discrimination is that of classical test theory: the
corrected item-total correlation (Nunnally and Bernstein, Psychometric Theory, 1994, chapter 8;
Henrysson, Correction of item-total correlations in item analysis, Psychometrika 28, 1963).
"""

from __future__ import annotations

import dataclasses
import math
import statistics
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from grader.report import ExerciseResult, Outcome, Person, Report
from grader.classroom.similarity import Pair

FEWEST = 5  # students; a correlation among fewer says nothing
BINS = 10  # of the histogram

State = Literal["passed", "to mend", "not started", "not graded", "error"]


@dataclass(frozen=True, slots=True)
class Student:
    """A row of the class. `points_of` and `states` follow the exercises; None is not graded.

    `mend` names the first exercise that is not passed. `page` is the report's relative path.
    """

    id: str
    name: str
    section: str
    points: float
    max_points: float
    points_of: tuple[float | None, ...]
    states: tuple[State, ...]
    state: State
    attempt: int
    submitted: str
    late_days: float
    flags: tuple[str, ...]
    mend: str
    page: str


@dataclass(frozen=True)
class TestSummary:
    """How a test went. It `ran` where it passed or failed; only there its rate means something."""

    name: str
    sentence: str
    max_points: int
    passed: int
    failed: int
    skipped: int
    errors: int
    discrimination: float | None

    @property
    def ran(self) -> int:
        """For how many students the test came to a verdict."""
        return self.passed + self.failed

    @property
    def verdict(self) -> Literal["everyone", "nobody", ""]:
        """Whether all, or none, of those pass for whom it ran."""
        if not self.ran or (self.passed and self.failed):
            return ""
        return "nobody" if self.failed else "everyone"


@dataclass(frozen=True)
class ExerciseSummary:
    """How an exercise went, with and without points that a teacher added.

    `states` counts students; `mean` is that of the tests' points; `unknown` counts answers that
    are wrong in a way that is no known mistake.
    """

    name: str
    title: str
    max_points: int
    students: int
    states: Mapping[State, int]
    mean: float
    discrimination: float | None
    unknown: int
    tests: tuple[TestSummary, ...]


@dataclass(frozen=True)
class Mistake:
    """A diagnosis and the places in `students` of those who made it."""

    exercise: str
    faults: str
    says: str
    who: tuple[int, ...]


@dataclass(frozen=True)
class Spread:
    """Where the points of the class lie."""

    mean: float
    lowest: float
    lower: float
    median: float
    upper: float
    highest: float


@dataclass(frozen=True)
class Missing:
    """Somebody of the roster who handed nothing in."""

    id: str
    name: str
    section: str


@dataclass(frozen=True)
class Circumstance:
    """One thing of how it was graded: its values, and for how many students each."""

    what: str
    values: tuple[tuple[str, int], ...]


@dataclass(frozen=True)
class Summary:
    """Everything there is to say of a class. `histogram` counts students by tenth of the maximum.

    `max_points` is the most that anybody could earn.
    """

    title: str
    max_points: float
    exercises: tuple[ExerciseSummary, ...]
    students: tuple[Student, ...]
    histogram: tuple[int, ...]
    spread: Spread | None
    mistakes: tuple[Mistake, ...]
    missing: tuple[Missing, ...]
    resembling: tuple[Pair, ...]
    circumstances: tuple[Circumstance, ...]

    def to_json(self) -> dict[str, Any]:
        """The summary as plain data."""
        body = dataclasses.asdict(self)
        for exercise, counted in zip(body["exercises"], self.exercises):
            for test, of in zip(exercise["tests"], counted.tests):
                test.update(ran=of.ran, verdict=of.verdict)
        return body


class Tally:
    """Takes the reports of a class one by one, and says in the end what they have in common."""

    def __init__(self) -> None:
        self._exercises: dict[str, _Exercise] = {}
        self._students: list[Student] = []
        self._mistakes: dict[tuple[str, str], tuple[str, list[int]]] = {}
        self._circumstances: dict[str, Counter[str]] = {}

    def add(self, report: Report, page: str) -> None:
        """Count a student once: the report as the teacher sees it, and its path from the page."""
        for result in report.exercises:
            if result.name not in self._exercises:
                self._exercises[result.name] = _Exercise(result)
            self._exercises[result.name].add(result, report.points)
            self._note_mistake(result)
        for what, value in _circumstances(report):
            self._circumstances.setdefault(what, Counter())[value] += 1
        self._students.append(self._row(report, page))

    def _note_mistake(self, result: ExerciseResult) -> None:
        diagnosis = result.diagnosis
        if diagnosis is not None and diagnosis.faults:
            key = (result.name, " + ".join(diagnosis.faults))
            self._mistakes.setdefault(key, (diagnosis.says, []))[1].append(len(self._students))

    def _row(self, report: Report, page: str) -> Student:
        results = {result.name: result for result in report.exercises}
        found = [results.get(name) for name in self._exercises]
        mark = report.mark
        return Student(
            id=report.submission,
            name=report.person.name,
            section=report.person.section,
            points=mark.points if mark else report.points,
            max_points=mark.max_points if mark else report.max_points,
            points_of=tuple(_adjusted(result) for result in found),
            states=tuple(map(state_of, found)),
            state=_state_of_all(report),
            attempt=report.attempt,
            submitted=report.submitted,
            late_days=mark.late_days if mark else 0.0,
            flags=report.flags,
            mend=next((each.name for each in report.exercises if not each.passed), ""),
            page=page,
        )

    def summary(
        self,
        title: str,
        missing: Mapping[str, Person] | None = None,
        resembling: Sequence[Pair] = (),
    ) -> Summary:
        """The class so far; `missing` are those of the roster who handed nothing in."""
        students = tuple(self._padded(student) for student in self._students)
        return Summary(
            title=title,
            max_points=max((student.max_points for student in students), default=0),
            exercises=tuple(each.summary() for each in self._exercises.values()),
            students=students,
            histogram=histogram(students),
            spread=spread([student.points for student in students]),
            mistakes=self._commonest(),
            missing=tuple(Missing(i, p.name, p.section) for i, p in (missing or {}).items()),
            resembling=tuple(resembling),
            circumstances=tuple(
                Circumstance(what, tuple(values.most_common()))
                for what, values in self._circumstances.items()
            ),
        )

    def _padded(self, student: Student) -> Student:
        """A row as long as the others: an exercise may join after the first students."""
        short = len(self._exercises) - len(student.states)
        if not short:
            return student
        unknown: tuple[State, ...] = ("not graded",)
        return dataclasses.replace(
            student,
            points_of=student.points_of + (None,) * short,
            states=student.states + unknown * short,
        )

    def _commonest(self) -> tuple[Mistake, ...]:
        found = [
            Mistake(exercise, faults, says, tuple(who))
            for (exercise, faults), (says, who) in self._mistakes.items()
        ]
        return tuple(sorted(found, key=lambda mistake: -len(mistake.who)))


def _adjusted(result: ExerciseResult | None) -> float | None:
    return None if result is None else result.counted


def state_of(result: ExerciseResult | None) -> State:
    """How far one exercise is."""
    if result is None or not result.tests:
        return "not graded"
    if any(test.outcome == "error" for test in result.tests):
        return "error"
    if result.passed:
        return "passed"
    return "not started" if result.unfinished else "to mend"


def _state_of_all(report: Report) -> State:
    """How far a student is; what nobody wrote or handed in does not count as started."""
    states = {state_of(result) for result in report.exercises}
    if len(states) == 1 or "error" in states:
        return "error" if "error" in states else states.pop()
    return "not started" if states <= {"not started", "not graded"} else "to mend"


def _circumstances(report: Report) -> list[tuple[str, str]]:
    """What a result depends on beside the submission itself."""
    ran = any(result.tests for result in report.exercises)  # otherwise nothing had to be confined
    return [
        ("seed", str(report.seed)),
        ("tests", report.suites),
        *([("confinement", ", ".join(report.confinement) or "none")] if ran else []),
        *report.versions.items(),
        *((f"hash of the {k}", v) for k, v in report.hashes.items() if k != "submission"),
    ]


def histogram(students: Sequence[Student]) -> tuple[int, ...]:
    """How many students have points in each tenth of their maximum; all of it is in the last."""
    bins = [0] * BINS
    for student in students:
        share = student.points / student.max_points if student.max_points else 0.0
        bins[min(BINS - 1, max(0, math.floor(share * BINS)))] += 1
    return tuple(bins)


def spread(points: Sequence[float]) -> Spread | None:
    """Mean and quartiles, which are points of students or between two of them; None of nobody."""
    if not points:
        return None
    lower, median, upper = (
        statistics.quantiles(points, n=4, method="inclusive")
        if len(points) > 1
        else [points[0]] * 3
    )
    return Spread(statistics.fmean(points), min(points), lower, median, upper, max(points))


class _Correlation:
    """Pearson's correlation of whole numbers, from exact running sums."""

    def __init__(self) -> None:
        self.count = 0
        self._x = self._y = self._xx = self._yy = self._xy = 0

    def add(self, x: int, y: int) -> None:
        self.count += 1
        self._x += x
        self._y += y
        self._xx += x * x
        self._yy += y * y
        self._xy += x * y

    def value(self) -> float | None:
        """None of too few, or where one side never varies."""
        n = self.count
        x_spread, y_spread = n * self._xx - self._x**2, n * self._yy - self._y**2
        if n < FEWEST or not x_spread or not y_spread:
            return None
        return (n * self._xy - self._x * self._y) / math.sqrt(x_spread * y_spread)


class _Test:
    """A test's verdicts so far.

    Discrimination is the correlation of passing it with all the other points, among those for
    whom it ran: near 1, it tells who does well; near 0, it tells little; below 0, those who do
    well otherwise fail it, and the test is to be looked at. Without its own points in the total
    it does not correlate with itself.
    """

    def __init__(self, test: Outcome) -> None:
        self._name, self._sentence, self._max_points = test.name, test.sentence, test.max_points
        self._outcomes: Counter[str] = Counter()
        self._discrimination = _Correlation()

    def add(self, test: Outcome, total: int) -> None:
        self._outcomes[test.outcome] += 1
        if test.outcome in ("passed", "failed"):
            self._discrimination.add(test.outcome == "passed", total - test.points)

    def summary(self) -> TestSummary:
        return TestSummary(
            self._name,
            self._sentence,
            self._max_points,
            self._outcomes["passed"],
            self._outcomes["failed"],
            self._outcomes["skipped"],
            self._outcomes["error"],
            self._discrimination.value(),
        )


class _Exercise:
    """An exercise's results so far; its discrimination is of its points, among all students."""

    def __init__(self, result: ExerciseResult) -> None:
        self._name, self._title, self._max_points = result.name, result.title, result.max_points
        self._states: Counter[State] = Counter()
        self._points = self._unknown = 0
        self._discrimination = _Correlation()
        self._tests: dict[str, _Test] = {}

    def add(self, result: ExerciseResult, total: int) -> None:
        self._states[state_of(result)] += 1
        self._points += result.points
        self._discrimination.add(result.points, total - result.points)
        self._unknown += result.diagnosis is not None and not result.diagnosis.faults
        for test in result.tests:
            if test.name not in self._tests:
                self._tests[test.name] = _Test(test)
            self._tests[test.name].add(test, total)

    def summary(self) -> ExerciseSummary:
        students = self._discrimination.count
        return ExerciseSummary(
            self._name,
            self._title,
            self._max_points,
            students,
            dict(self._states),
            self._points / students,
            self._discrimination.value(),
            self._unknown,
            tuple(test.summary() for test in self._tests.values()),
        )
