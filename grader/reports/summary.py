"""The summaries of a graded class and of a term: the statistics that their pages show."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from grader.report import Person, State


@dataclass(frozen=True, slots=True)
class StudentRow:
    """A student's row in the table of the class.

    `points_of` and `states` have one item per exercise, in the order of `Summary.exercises`; the
    points of an exercise that was not graded are None. `login` and `email` are searched, not shown.
    `page` is the path of the student's report, relative to the class page, and `code` that of their
    code, or empty. `submitted` is in ISO 8601. `free_days` are the late days that cost
    nothing, and `free_left` those that still will; None without a budget.

    On the page of a term, assignments are in the place of exercises, and `flags` say why a student
    falls behind.
    """

    id: str
    name: str
    section: str
    login: str
    email: str
    points: float
    max_points: float
    points_of: tuple[float | None, ...]
    states: tuple[State, ...]
    state: State
    attempt: int
    submitted: str
    late_days: float
    flags: tuple[str, ...]
    page: str
    code: str = ""
    free_days: float = 0.0
    free_left: float | None = None


@dataclass(frozen=True)
class TestSummary:
    """The results of one test: how many students passed it, failed it and so on.

    `alone` counts those who failed this test of the exercise and no other. `cases` are the cases
    that came out wrong most often, each with its number of students.
    """

    name: str
    sentence: str
    max_points: int
    passed: int
    failed: int
    skipped: int
    errors: int
    discrimination: float | None
    alone: int = 0
    cases: tuple[tuple[str, int], ...] = ()

    @property
    def ran(self) -> int:
        """The number of students whom the test passed or failed."""
        return self.passed + self.failed

    @property
    def verdict(self) -> Literal["everyone", "nobody", ""]:
        """Who passes the test, if all students for whom it ran have the same result."""
        if not self.ran or (self.passed and self.failed):
            return ""
        return "nobody" if self.failed else "everyone"


@dataclass(frozen=True)
class ExerciseSummary:
    """The results of one exercise.

    `states` counts students by state, and `lost` the points that they lost; `mean` is the mean of
    the points, before adjustments; `unknown` counts wrong solutions that match no known mistake.
    `failed` counts students by the number of tests that they failed, if they failed any.
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
    lost: Mapping[State, int] = field(default_factory=dict)
    failed: Mapping[int, int] = field(default_factory=dict)


# Diagnosed, or a failure whose message says everything, or wrong answers without a name.
MistakeKind = Literal["named", "failure", "unnamed"]


@dataclass(frozen=True)
class MistakeRow:
    """A mistake that cost points.

    `who` holds the indices in `Summary.students` of those who made it, alone or with other
    mistakes. `points` is its cost for all of them, before lateness and weights: its price if it
    was charged once, else the points of the failed checks that show it. `fault` is the name of a
    diagnosed mistake, the kind of a failure, or the name of a group without a name. `facts` are
    what most reports of the group state.
    """

    exercise: str
    fault: str
    says: str
    who: tuple[int, ...]
    points: int
    kind: MistakeKind = "named"
    facts: tuple[str, ...] = ()


@dataclass(frozen=True)
class Wrong:
    """The numbers of wrong solutions with a named mistake, a plain failure, or neither."""

    named: int = 0
    failure: int = 0
    unnamed: int = 0

    @property
    def total(self) -> int:
        """The number of all wrong solutions."""
        return self.named + self.failure + self.unnamed


@dataclass(frozen=True)
class Section:
    """The results of a section: its students, their mean share of the points, and pass rates.

    `passed` has the share of students who pass each exercise, in the order of
    `Summary.exercises`; None for an exercise on which none of them was graded.
    """

    name: str
    students: int
    mean: float
    passed: tuple[float | None, ...]


@dataclass(frozen=True)
class Spread:
    """The distribution of the points: mean, extremes, quartiles and median."""

    mean: float
    lowest: float
    lower: float
    median: float
    upper: float
    highest: float


@dataclass(frozen=True)
class Pair:
    """Two students with similar files in `exercises`; those in `identical` have the same text.

    `share` is the part of their fingerprints in these exercises, from 0 to 1, that both have.
    """

    students: tuple[str, str]
    exercises: tuple[str, ...]
    share: float
    identical: tuple[str, ...] = ()


@dataclass(frozen=True)
class SimilarGroup:
    """Students whose files in `exercises` are similar, each to another member's.

    Those in `identical` have the same text. `shares` is the lowest and the highest share of their
    own fingerprints that two of them have in common. `shown` are pairs to look at, the most similar
    first, and `pages` the paths of the pages that show them side by side.
    """

    students: tuple[str, ...]
    exercises: tuple[str, ...]
    identical: tuple[str, ...]
    shares: tuple[float, float]
    shown: tuple[tuple[str, str], ...]
    pages: tuple[str, ...] = ()


@dataclass(frozen=True)
class Summary:
    """Everything that the class page shows.

    `max_points` is the most that any student could earn. `histogram` counts students by tenth of
    their maximum. `spread` is None if no student was graded. `mistakes` begins with those that cost
    the most points. `missing` are the students of the roster who submitted nothing, by their ids.
    `sections` is empty unless there are several. `circumstances` are the conditions of the grading,
    such as the seed: by name, each value with its number of students. `remarks` need review for
    the class as a whole.
    """

    title: str
    max_points: float
    exercises: tuple[ExerciseSummary, ...]
    students: tuple[StudentRow, ...]
    histogram: tuple[int, ...]
    spread: Spread | None
    mistakes: tuple[MistakeRow, ...]
    missing: Mapping[str, Person]
    similar: tuple[SimilarGroup, ...]
    sections: tuple[Section, ...]
    wrong: Wrong
    circumstances: Mapping[str, Sequence[tuple[str, int]]]
    remarks: tuple[str, ...] = ()


@dataclass(frozen=True)
class AssignmentSummary:
    """The results of one assignment of a term, among the students who have handed in.

    `students` are those who were to hand in. `mean` and `median` are of the students' shares of
    the points; None if nobody has a mark. `late` counts students. `page` is the path of the
    assignment's own page.
    """

    name: str
    students: int
    handed_in: int
    passed: int
    mean: float | None
    median: float | None
    late: int
    free_days: float
    page: str

    @property
    def title(self) -> str:
        """The name above the assignment's column."""
        return self.name


@dataclass(frozen=True)
class RecurringMistake:
    """A named mistake that students made in several assignments.

    `who` holds the indices in `TermSummary.students` of those who did. `made` has the number of
    students who made it in each assignment in which anybody did, in the order of the term.
    """

    fault: str
    says: str
    who: tuple[int, ...]
    made: tuple[tuple[str, int], ...]


@dataclass(frozen=True)
class TermSummary:
    """Everything that the page of a term shows.

    `behind` holds the indices in `students` of those who fall behind, the furthest first;
    `mistakes` begins with those that most students repeat. `remarks` need a teacher's attention.
    """

    exercises: tuple[AssignmentSummary, ...]
    students: tuple[StudentRow, ...]
    behind: tuple[int, ...]
    mistakes: tuple[RecurringMistake, ...]
    remarks: tuple[str, ...] = ()
