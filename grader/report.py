"""A report and its parts: frozen values, from which every view in `grader.reports` is made.

Imports neither torch nor anything else of the project.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

TWO = "Two mistakes at once. "  # begins a diagnosis that names two mistakes
MAX_MESSAGE = 600  # characters of a student's text that a report shows

Verdict = Literal["passed", "failed", "error", "skipped"]
SYNTAX = frozenset(("SyntaxError", "IndentationError", "TabError"))  # of invalid Python
NO_COMPUTATION = "no computation"  # the kind of a failure of code that computes nothing
CASES_CHECK = "cases"  # the check of a students' copy that is made of its cases
UNWRITTEN = ("NotImplementedError", "Missing")  # kinds of failures of code that is not written yet
State = Literal["passed", "to fix", "not started", "not graded", "error"]  # of an exercise


@dataclass(frozen=True)
class Frame:
    """A place in one of the student's own files."""

    file: str
    line: int  # from 1
    source: str
    column: int = 0  # 0 if unknown
    function: str = ""
    around: str = ""  # the lines around it
    start: int = 0  # the number of the first line of `around`


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
class WrongCase:
    """A wrong case of a check, and whether a named mistake explains it."""

    name: str
    sentence: str
    explained: bool = False


@dataclass(frozen=True)
class Outcome:
    """One test's result, in words for the student. `error` means an error in the course itself."""

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
    consequence: bool = False  # of a mistake that is charged once, whatever it fails
    required: bool = False  # an exercise is not done before it passes, though it is worth nothing
    loading: bool = False  # the file failed before any call: no check says anything of its own
    wrong: tuple[WrongCase, ...] = ()  # its cases that came out wrong
    waived: str = ""  # by a teacher: what that means for the test, and why
    whose: ClassVar[str] = "yours"  # the actual values, in the words of a caption

    @property
    def is_wrong(self) -> bool:
        """Whether the test failed, or was stopped by an error."""
        return self.outcome in ("failed", "error")

    @property
    def headline(self) -> str:
        """What is wrong, in a sentence: what the check asks for, unless the file does not load."""
        if not self.loading:
            return self.sentence
        file = re.split(r"[/\\]", self.where.file)[-1] if self.where else "the file"
        return f"{file} cannot be loaded."


def first_failure(tests: Iterable[Outcome], explained: Collection[str] = ()) -> Outcome | None:
    """Return the failed test to fix first.

    One that costs points comes before one that informs, a file that does not load before all that
    follows from it, what is wrong before what is not written yet, and what the diagnosis explains
    before the rest.
    """

    def order(test: Outcome) -> tuple[bool, ...]:
        costs = test.points != test.max_points
        unwritten = test.kind == "NotImplementedError"
        vague = test.kind == NO_COMPUTATION and not test.wrong  # others show where it goes wrong
        first = not costs, not test.loading, unwritten, vague
        return *first, not test.required, test.name not in explained

    return min((test for test in tests if test.is_wrong), key=order, default=None)


HINT_BREAK = "\n\n"  # separates the hints on several mistakes


def separate_hints(hint: str) -> list[str]:
    """Return the hints on several mistakes one by one, or the only one."""
    return [each for each in hint.split(HINT_BREAK) if each.strip()]


@dataclass(frozen=True)
class Explanation:
    """One mistake, or two at once: the names of the mistakes, what is wrong, and where to look."""

    faults: tuple[str, ...]
    says: str
    hint: str
    tests: tuple[tuple[str, ...], ...] = ()  # for each mistake, the failed tests that show it
    each: tuple[str, ...] = ()  # for each mistake, what is wrong
    costs: tuple[int, ...] = ()  # the price of each mistake in points

    @property
    def explained(self) -> frozenset[str]:
        """The failed tests that show one of the mistakes, as far as that is known.

        For the public tests of a students' copy it is not.
        """
        return frozenset[str]().union(*self.tests) - {CASES_CHECK}

    def explains(self, test: Outcome) -> bool:
        """Return whether one of the mistakes may be why a test fails."""
        if not self.faults:
            return True
        return test.kind not in UNWRITTEN and (not self.explained or test.name in self.explained)

    @property
    def separate_hints(self) -> list[str]:
        """The hints, one for each mistake that has one."""
        return separate_hints(self.hint)


@dataclass(frozen=True)
class WrongStep:
    """The first stage of the computation that differs; `says` states where and how."""

    probe: str  # the sentence of the case that makes the call
    stage: str
    says: str
    expected: Excerpt
    actual: Excerpt
    # Not the student's: their code gives the same answers, but may have other values on the way.
    whose: ClassVar[str] = "with the mistake"


@dataclass(frozen=True)
class Diagnosis(Explanation):
    """The known mistake that gives an exercise's answers; `faults` is empty if there is none."""

    tie: tuple[Explanation, ...] = ()  # other explanations that fit as well
    first_wrong_step: WrongStep | None = None
    besides: str = ""  # a sentence on the wrong cases that the mistakes do not explain
    facts: tuple[str, ...] = ()  # facts about answers that no mistake explains
    repeat: str = ""  # a call that shows the first fact, as a program
    complete: bool = False  # whether the mistakes explain everything that is wrong
    explains_cases: tuple[str, ...] = ()  # the cases that the mistakes explain, by name
    signature: str = ""  # of answers that no known mistake explains; for the teacher alone
    secret: str = ""  # the signature at a secret seed, which confirms it; for the teacher alone
    # At that seed, the signatures of the programs behind a named mistake, by the programs' hashes.
    members: Mapping[str, str] = field(default_factory=dict)

    def introduction(self, test: Outcome) -> str:
        """Return the words before the mistakes; none if they may well be why a test fails."""
        if not self.explains(test):
            return "Other checks show:"
        is_known = self.complete or self.explained or not self.faults
        return "" if is_known else "Certain so far:"


@dataclass(frozen=True)
class Charge:
    """The price in points of one mistake, which is charged once; `says` states the mistake."""

    fault: str
    says: str
    points: int


@dataclass(frozen=True)
class HeadView:
    """The attention weights of a sentence: for each head a matrix of queries by keys."""

    tokens: tuple[str, ...]
    expected: tuple[tuple[tuple[float, ...], ...], ...]
    actual: tuple[tuple[tuple[float, ...], ...], ...]


Matrix = tuple[tuple[float, ...], ...]


@dataclass(frozen=True)
class Drawing:
    """A picture of values that the student's code computes on a sequence.

    It is one matrix or one for each head, with optional labels for rows and columns; or a `text`.
    If several exercises take part, it says `whose` values it shows.
    """

    title: str
    says: str  # what it shows
    matrices: tuple[Matrix, ...] = ()
    rows: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    text: str = ""
    whose: str = ""


@dataclass(frozen=True)
class Reached:
    """A value that a trained model reaches, and the limit that the course sets."""

    what: str
    value: float
    limit: float
    is_least: bool = True  # whether the limit is a minimum

    @property
    def says(self) -> str:
        """Return it as a line of text."""
        bound = "at least" if self.is_least else "at most"
        return f"{self.what}: {self.value:.4g}, where {bound} {self.limit:g} is asked for"


MAX_POINTS = 120  # points of a curve: a drawing shows no more


@dataclass(frozen=True)
class LossCurve:
    """The losses that a training of the student's code reported, by steps, and what it reached."""

    name: str
    steps: tuple[int, ...] = ()
    losses: tuple[float, ...] = ()
    reached: tuple[Reached, ...] = ()
    # Taken from an earlier check of the same code. Equality ignores this: the curve is the same.
    kept: bool = field(default=False, compare=False)

    @property
    def caption(self) -> str:
        """Return what it shows, as a caption."""
        again = " (kept from an earlier check: the code is the same)" if self.kept else ""
        return f"the loss while {self.name} was trained{again}"

    @classmethod
    def of(
        cls,
        name: str,
        reported: Sequence[tuple[int, float]],
        reached: Iterable[Reached] = (),
        *,
        kept: bool = False,
    ) -> LossCurve:
        """Return the curve of the reported losses, with as many points as can be drawn."""
        every = -(-len(reported) // MAX_POINTS) or 1
        chosen = [*reported[:-1:every], *reported[-1:]]
        losses = printable([loss for _, loss in chosen], ".4g")
        steps = tuple(step for step, _ in chosen)
        return cls(name, steps, tuple(losses), tuple(reached), kept)


@dataclass(frozen=True)
class Adjustment:
    """The points that a teacher added to an exercise or took away, and why."""

    points: float
    why: str


@dataclass(frozen=True)
class Comment:
    """A teacher's comment on a place in the student's code; `line` counts in the whole file."""

    where: Frame
    text: str
    line: int

    @property
    def place(self) -> str:
        """Return the place in words."""
        return f"{self.where.file}, line {self.where.line}"


@dataclass(frozen=True)
class ExerciseResult:
    """The result of one exercise: has `statement` and `hints` until it passes, then `idea`."""

    name: str
    title: str
    points: int
    max_points: int
    advice: str  # one sentence about the exercise as a whole, or empty
    tests: tuple[Outcome, ...]
    unfinished: bool = (
        False  # whether nothing is written yet: no check is run, or all fail as stubs
    )
    diagnosis: Diagnosis | None = None
    head_view: HeadView | None = None
    builds_on: tuple[str, ...] = ()  # the exercises before it, by name
    stand_ins: tuple[str, ...] = ()  # of earlier exercises that are not right yet
    curves: tuple[LossCurve, ...] = ()  # of its trainings
    pictures: tuple[Drawing, ...] = ()  # of what the student's code computes
    statement: str = ""
    hints: tuple[str, ...] = ()
    idea: str = ""  # what the reference does
    adjustment: Adjustment | None = None
    given_back: int = 0  # of `points`: taken by failed checks, given back by a single charge
    charges: tuple[Charge, ...] = ()  # the mistakes that are charged once, with their prices
    dropped: int = 0  # of `max_points`: those of tests that a teacher took out
    comments: tuple[Comment, ...] = ()  # by teachers

    @property
    def first_failure(self) -> Outcome | None:
        """The test to fix first."""
        return first_failure(self.tests, self.diagnosis.explained if self.diagnosis else ())

    @property
    def parts_line(self) -> str:
        """Return a sentence that names the earlier exercises which stand-ins replaced; or empty."""
        names = ", ".join(self.stand_ins)
        says = "Stand-ins replaced the exercises that are not right yet, or not written: "
        return f"{says}{names}" if names else ""

    @property
    def state(self) -> State:
        """How far the exercise is."""
        if not self.tests:
            return "not started" if self.unfinished else "not graded"
        if any(test.outcome == "error" for test in self.tests):
            return "error"
        if self.passed:
            return "passed"
        return "not started" if self.unfinished else "to fix"

    @property
    def counted(self) -> float:
        """The points that count: the points of the tests, scaled, with the teacher's adjustment."""
        return self.points + self.scaled_by + (self.adjustment.points if self.adjustment else 0.0)

    @property
    def worth(self) -> int:
        """The points of the tests that count."""
        return self.max_points - self.dropped

    @property
    def scaled_by(self) -> float:
        """The points that scaling adds, so that the tests that count are worth the maximum."""
        if not self.dropped:
            return 0.0
        return round(self.points * self.max_points / self.worth, 2) - self.points

    @property
    def lost_besides(self) -> int:
        """The points lost for other reasons than the charged mistakes."""
        charged = sum(charge.points for charge in self.charges)
        return max(0, self.worth - self.points - charged) if self.charges else 0

    @property
    def passed(self) -> bool:
        """Whether all points were earned, and every required check passed."""
        missing = any(test.required and test.outcome != "passed" for test in self.tests)
        return bool(self.tests) and self.points == self.worth and not missing


@dataclass(frozen=True)
class Person:
    """The student behind a submission, as far as the platform or the roster identifies them."""

    name: str = ""
    email: str = ""
    login: str = ""
    number: str = ""  # a school's own number for them
    section: str = ""

    def beside(self, student: str) -> str:
        """Return a student's id with the name beside it, as far as it is known."""
        return f"{student} ({self.name})" if self.name not in ("", student) else student


@dataclass(frozen=True)
class MarkStep:
    """A step in the calculation of a mark: the points that it adds, and the total so far."""

    says: str
    adds: float
    total: float


@dataclass(frozen=True)
class Mark:
    """The mark of a submission.

    `steps` calculate it: each adds its points to the total before it. They are empty if `points`
    are simply the points of the tests.
    """

    points: float
    max_points: float
    earned: float  # the points of all exercises, adjusted and weighted
    late_days: float = 0.0  # the mark itself
    says: str = ""  # explains the steps in a sentence
    steps: tuple[MarkStep, ...] = ()
    adjustment: Adjustment | None = None  # of the mark itself, after lateness
    free_days: float = 0.0  # of the late days, those that a budget pays for
    free_left: float | None = None  # the days that the budget still has; None without a budget


@dataclass(frozen=True)
class Report:
    """Everything that one grading run says about one submission.

    In a class it also has the `person`, the number of the attempt (from 1), the times of
    submission and of an extension (`due`; ISO 8601, or empty), the `mark`, and the `flags`, which
    give the reasons for a review.
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
    due: str = ""
    flags: tuple[str, ...] = ()
    mark: Mark | None = None

    @property
    def who(self) -> str:
        """The student's id, with the name beside it."""
        return self.person.beside(self.submission)

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
        """Whether every exercise passed."""
        return all(exercise.passed for exercise in self.exercises)

    @property
    def state(self) -> State:
        """How far the submission is as a whole."""
        states = {exercise.state for exercise in self.exercises}
        if "error" in states:
            return "error"
        if len(states) == 1:
            return states.pop()
        # An exercise that could not be graded, for example without a file, does not count as
        # started.
        return "not started" if states <= {"not started", "not graded"} else "to fix"

    @property
    def has_errors(self) -> bool:
        """Whether a test failed because of an error in the course or the grader."""
        return any(test.outcome == "error" for ex in self.exercises for test in ex.tests)

    @property
    def counted(self) -> float:
        """The points that count in the end: the mark's points, if there is a mark."""
        return self.points if self.mark is None else self.mark.points

    @property
    def max_counted(self) -> float:
        """The most points that could count: the mark's maximum, if there is a mark."""
        return self.max_points if self.mark is None else self.mark.max_points

    @property
    def first_to_fix(self) -> ExerciseResult | None:
        """The first exercise that is wrong, else the first that is not written yet."""
        left = [exercise for exercise in self.exercises if not exercise.passed]
        later = ("not started", "not graded")
        return next(iter(sorted(left, key=lambda exercise: exercise.state in later)), None)

    @property
    def advice(self) -> str:
        """What to fix first, in one sentence."""
        exercise = self.first_to_fix
        return "Everything here passes." if exercise is None else _what_to_fix(exercise)


def _what_to_fix(exercise: ExerciseResult) -> str:
    test, diagnosis = exercise.first_failure, exercise.diagnosis
    if test is None:
        return f"{exercise.title} could not be graded: {exercise.advice or 'nothing was checked'}."
    if exercise.unfinished:
        return f"Next is {exercise.title}: {exercise.name} is not written yet."
    if test.loading:
        return f"Fix {exercise.title} first: {test.headline.rstrip('.')}, because {test.message}."
    if diagnosis is not None and diagnosis.faults:
        return f"Fix {exercise.title} first: {diagnosis.says.removeprefix(TWO)}"
    return f"Fix {exercise.title} first. This does not hold yet: {test.sentence}"


def printable(values: Any, form: str) -> Any:
    """Return numbers, alone or in lists, rounded as `form` prints them; nan and infinities as text.

    JSON has no infinity, and rounding turns the largest numbers into one.
    """
    if isinstance(values, list):
        return [printable(value, form) for value in values]
    if not isinstance(values, float):
        return values
    rounded = float(format(values, form))
    return rounded if math.isfinite(rounded) else str(values)


WIDE = 1e4  # larger numbers are written as a power of ten, so that they stay short


def fixed(number: float, digits: int, width: int = 0) -> str:
    """Return a number with `digits` digits after the point, or as a power of ten if it is large."""
    is_short = abs(number) < WIDE or not math.isfinite(number)
    return (f"{number:.{digits}f}" if is_short else f"{number:.2g}").rjust(width)


# Invisible characters: some change how the text around them is read, such as its direction.
UNSEEN = (
    r"\u00ad\u061c\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u2064\u2066-\u206f\ufeff"
    r"\U000e0000-\U000e007f"
)
_UNPRINTED = re.compile(rf"[\x00-\x08\x0b-\x1f\x7f-\x9f{UNSEEN}]")
_CONTROL = re.compile(rf"\x1b\[[0-9;?]*[ -/]*[@-~]|{_UNPRINTED.pattern}")


def without_controls(text: str) -> str:
    """Return a text without terminal controls and without characters that turn its direction."""
    return _CONTROL.sub("", text)


def visible(text: str) -> str:
    """Return a text with the code of each control or invisible character in its place."""
    text = text.replace("\r\n", "\n")
    return _UNPRINTED.sub(lambda found: f"⟨U+{ord(found[0]):04X}⟩", text)


def clean(text: str) -> str:
    """Return a student's text without terminal controls, cut to a length that fits a report."""
    text = without_controls(text)
    return text if len(text) <= MAX_MESSAGE else text[:MAX_MESSAGE] + " […]"
