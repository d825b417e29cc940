"""The words between the stages: frozen values that say what happened, and their JSON.

A record knows neither torch nor files. `Report.to_json` is the public format
(`attention-grader/report/v1`, documented in docs/report-format.md); every view is made from it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Literal

import msgspec

SCHEMA = "attention-grader/report/v1"
TWO = "Two mistakes at once. "  # how a diagnosis of two begins
MAX_MESSAGE = 600  # characters of a student's text that a report shows

Verdict = Literal["passed", "failed", "error", "skipped"]


@dataclass(frozen=True)
class Frame:
    """A place in one of the student's own files. `line` counts from 1; `column` 0 is unknown.

    `around` is the code around it, `start` the number of its first line; both may be missing.
    """

    file: str
    line: int
    source: str
    column: int = 0
    function: str = ""
    around: str = ""
    start: int = 0


@dataclass(frozen=True)
class Excerpt:
    """A small, printable part of a value.

    For a tensor: its whole `shape` and `dtype`, and `values`, a window of at most two dimensions
    that starts at index `at`. For anything else only `text`. Non-finite numbers are strings.
    """

    text: str
    shape: tuple[int, ...] | None = None
    dtype: str | None = None
    at: tuple[int, ...] = ()
    values: Any = None


@dataclass(frozen=True)
class Difference:
    """How an actual value differs from the expected one; `aspect` is the first thing wrong."""

    aspect: Literal["type", "shape", "dtype", "finite", "value"]
    summary: str
    expected: Excerpt
    actual: Excerpt


@dataclass(frozen=True)
class Outcome:
    """One test's result, in words for the student. `error` means a fault of the course itself."""

    name: str
    sentence: str
    outcome: Verdict
    points: int
    max_points: int
    message: str = ""
    kind: str = ""
    expected: Excerpt | None = None
    actual: Excerpt | None = None
    where: Frame | None = None
    called: str = ""
    printed: str = ""
    visible: str = "always"


def first_failure(tests: Iterable[Outcome]) -> Outcome | None:
    """The test to mend first; one that costs points comes before one that informs."""
    failed = [test for test in tests if test.outcome in ("failed", "error")]
    return min(failed, key=lambda test: test.points == test.max_points, default=None)


@dataclass(frozen=True)
class Explanation:
    """One mistake, or two at once, by the names of its faults: what it is, and where to look.

    `tests` holds, of each fault, the failed tests that show it.
    """

    faults: tuple[str, ...]
    says: str
    hint: str
    tests: tuple[tuple[str, ...], ...] = ()


@dataclass(frozen=True)
class WrongStep:
    """The first stage of the computation that differs; `says` where it first does, and how.

    `test` is the failed test whose inputs these are; `actual` is what the known mistake computes,
    whose answers are the student's.
    """

    test: str
    stage: str
    says: str
    expected: Excerpt
    actual: Excerpt


@dataclass(frozen=True)
class Diagnosis(Explanation):
    """Which known mistake an exercise's answers are those of.

    `faults` is empty where it is none of them. `tie` holds other explanations that fit as well.
    """

    tie: tuple[Explanation, ...] = ()
    first_wrong_step: WrongStep | None = None


@dataclass(frozen=True)
class HeadView:
    """The attention weights of a sentence, a matrix of rows (queries) and columns (keys) a head."""

    tokens: tuple[str, ...]
    expected: tuple[tuple[tuple[float, ...], ...], ...]
    actual: tuple[tuple[tuple[float, ...], ...], ...]


@dataclass(frozen=True)
class Adjustment:
    """Points that a teacher added to an exercise, or took away, and why."""

    points: float
    why: str


@dataclass(frozen=True)
class ExerciseResult:
    """One exercise's results. `advice` is one sentence about the exercise as a whole, or empty.

    What helps to mend it is here as long as it is not passed (`statement`, `hints`, from a nudge
    to nearly the answer); `idea` is what the reference does, once it is. `unfinished` says that
    nothing was written yet: every failure is the stub's own.
    """

    name: str
    title: str
    points: int
    max_points: int
    advice: str
    tests: tuple[Outcome, ...]
    unfinished: bool = False
    diagnosis: Diagnosis | None = None
    head_view: HeadView | None = None
    statement: str = ""
    hints: tuple[str, ...] = ()
    idea: str = ""
    adjustment: Adjustment | None = None

    @property
    def first_failure(self) -> Outcome | None:
        """The test to mend first."""
        return first_failure(self.tests)

    @property
    def counted(self) -> float:
        """The points that count: what the tests gave, and what a teacher added or took."""
        return self.points + (self.adjustment.points if self.adjustment else 0.0)

    @property
    def passed(self) -> bool:
        """Whether all points were earned; a check that costs none may still fail, and inform."""
        return bool(self.tests) and self.points == self.max_points


@dataclass(frozen=True)
class Person:
    """Whose submission it is, as far as the platform or the roster says."""

    name: str = ""
    email: str = ""
    login: str = ""
    number: str = ""  # a school's own number for them
    section: str = ""


@dataclass(frozen=True)
class Mark:
    """What a submission counts in the end.

    `earned` are the points of all exercises, adjusted and weighted; `points` what lateness leaves
    of them; `says` how that came about, or is empty where both are what the tests gave.
    """

    points: float
    max_points: float
    earned: float
    late_days: float = 0.0
    says: str = ""


@dataclass(frozen=True)
class Report:
    """Everything one grading run says about one submission.

    Of a class besides: the `person`, which of their attempts this is (from 1) and when it was
    handed in (ISO 8601, or empty), the `mark`, and in `flags` what a person should look at.
    """

    submission: str
    seed: int
    suites: Literal["hidden", "public"]
    confinement: tuple[str, ...]
    exercises: tuple[ExerciseResult, ...]
    notes: tuple[str, ...] = ()
    versions: dict[str, str] = field(default_factory=dict)
    hashes: dict[str, str] = field(default_factory=dict)
    person: Person = Person()
    attempt: int = 1
    submitted: str = ""
    flags: tuple[str, ...] = ()
    mark: Mark | None = None

    @property
    def points(self) -> int:
        """Points earned over all exercises graded."""
        return sum(exercise.points for exercise in self.exercises)

    @property
    def max_points(self) -> int:
        """Points that could be earned over all exercises graded."""
        return sum(exercise.max_points for exercise in self.exercises)

    @property
    def passed(self) -> bool:
        """Whether every exercise graded passed whole."""
        return all(exercise.passed for exercise in self.exercises)

    @property
    def has_errors(self) -> bool:
        """Whether a test failed for a reason of the course's or the grader's own."""
        return any(test.outcome == "error" for ex in self.exercises for test in ex.tests)

    @property
    def advice(self) -> str:
        """What to mend first, in one sentence."""
        for exercise in self.exercises:
            if not exercise.passed:
                return _what_to_mend(exercise)
        return "Everything here passes."

    def to_json(self) -> dict[str, Any]:
        """The report as plain JSON data, schema `attention-grader/report/v1`."""
        body = msgspec.to_builtins(self)
        return {
            "schema": SCHEMA,
            "submission": body.pop("submission"),
            "points": self.points,
            "max_points": self.max_points,
            "advice": self.advice,
            **body,
        }


def _what_to_mend(exercise: ExerciseResult) -> str:
    test, diagnosis = exercise.first_failure, exercise.diagnosis
    if test is None:
        return f"{exercise.title} could not be graded: {exercise.advice or 'nothing was checked'}."
    if exercise.unfinished:
        return f"Next is {exercise.title}: {exercise.name} is not written yet."
    if diagnosis is not None and diagnosis.faults:
        return f"Mend {exercise.title} first: {diagnosis.says.removeprefix(TWO)}"
    return f"Mend {exercise.title} first. This does not hold yet: {test.sentence}"


_CONTROL = re.compile(
    r"\x1b\[[0-9;?]*[ -/]*[@-~]|[\x00-\x08\x0b-\x1f\x7f-\x9f]"
    r"|[\u200e\u200f\u202a-\u202e\u2066-\u2069]"
)


def clean(text: str) -> str:
    """A student's text without terminal controls, at a length that fits a report."""
    text = _CONTROL.sub("", text)
    return text if len(text) <= MAX_MESSAGE else text[:MAX_MESSAGE] + " […]"
