"""The policy of a course: weights, the price of lateness, and what students may see when."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta, tzinfo
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct, to_builtins

from grader.course.settings import Amount, Count, Percent, convert
from grader.course.zones import in_zone, load_zone
from grader.errors import CourseError, did_you_mean
from grader.report import Adjustment, ExerciseResult, Mark, MarkStep

NOT_NEGATIVE = "no mark is below 0"
When = Literal["always", "after_due", "never"]  # from the least strict to the strictest


class Step(Struct, frozen=True, forbid_unknown_fields=True):
    """A step of the late rule: up to `days` late, a submission keeps `keeps` percent."""

    days: Amount
    keeps: Percent


class Late(Struct, frozen=True, forbid_unknown_fields=True):
    """The table `late` of `course.toml`; it has either `per_day` or `steps`.

    `budget` are late days that cost nothing, over all assignments of a course.
    """

    grace_minutes: Annotated[float, Meta(ge=0, le=365 * 24 * 60)] = 0.0
    per_day: Percent | None = None
    steps: tuple[Step, ...] | None = None
    floor: Percent = 0.0
    budget: Amount = 0.0


class Show(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The table `show` of `course.toml`: when students see which part of a report."""

    tests: When = "always"
    diagnosis: When = "always"
    idea: When = "always"


class Marking(Struct, frozen=True, forbid_unknown_fields=True):
    """The table `marking` of `course.toml`: how a mistake is charged."""

    carry_forward: bool = True


# Packages that draw, show progress or belong to a notebook: no exercise needs their results.
MUTED = (
    *("matplotlib", "mpl_toolkits", "pylab", "seaborn", "plotly", "tqdm", "IPython", "ipywidgets"),
    *("google.colab", "torch.utils.tensorboard", "tensorboard", "torchinfo", "torchsummary"),
    *("torchviz", "wandb"),
)


class CourseList(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A table in `lists` of `course.toml`: some of the exercises, as a separate course.

    Without `exercises`, it has all of them; without `title`, the course's title.
    """

    points: Count
    title: str = ""
    exercises: tuple[str, ...] = ()


class CourseSettings(Struct, frozen=True, forbid_unknown_fields=True):
    """The keys of `course.toml`. `points` is the maximum; with `lists`, each has its own.

    The other keys make up the policy.
    """

    title: str
    points: Count | None = None
    lists: dict[str, CourseList] = {}
    due: datetime | None = None
    start: datetime | None = None
    zone: str = ""
    late: Late = Late()
    extra_credit: tuple[str, ...] = ()
    weights: dict[str, Any] = {}  # converted one by one, so that an error names the exercise
    show: Show = Show()
    marking: Marking = Marking()
    mute_imports: tuple[str, ...] = MUTED
    missing: Literal[0] | None = None


@dataclass(frozen=True)
class Policy:
    """The rules of a course for points and for what students see.

    Lateness costs `per_day` percent for each day begun. With `steps`, the first step that covers
    the delay decides instead. A late submission never keeps less than `floor` percent. A delay
    within `grace` costs nothing; a longer one counts from the due date. The `visible` mark of a
    test may be stricter than `show`. With `carry_forward`, a mistake that explains all wrong
    answers of an exercise costs its price, whatever its checks take. `missing` are the points of
    whoever is on the roster and handed in nothing; None gives them no mark. `budget` days late cost
    nothing, counted over several assignments. Extra time in percent is of the time from `start`.
    """

    due: datetime | None = None
    grace: timedelta = timedelta()
    per_day: float = 0.0
    steps: tuple[Step, ...] = ()
    floor: float = 0.0
    weights: Mapping[str, float] = field(default_factory=dict)
    extra_credit: tuple[str, ...] = ()
    show: Mapping[str, When] = field(default_factory=dict)
    carry_forward: bool = True
    missing: int | None = field(default=None, repr=False)  # it decides the mark of no submission
    zone: tzinfo | None = field(default=None, repr=False)  # that of `due`, unless `zone` is given
    start: datetime | None = field(default=None, repr=False)
    budget: float = field(default=0.0, repr=False)

    def days_late(self, submitted: datetime | None, due: datetime | None = None) -> float:
        """Return the delay in days; `due` is an extension. Returns 0 within the grace period.

        In a course with a zone, a day ends at the same hour of the next day, however many hours
        it has: 23 or 25 if the clocks change.
        """
        due = due or self.due
        if submitted is None or due is None or submitted <= due + self.grace:
            return 0.0
        delay = submitted - due
        if self.zone is not None:
            # Of two times in one zone, Python subtracts what the clocks show.
            shown = submitted.astimezone(self.zone) - due.astimezone(self.zone)
            delay = shown if shown > timedelta() else delay  # clocks may show an hour twice
        return delay / timedelta(days=1)

    def extended(self, hours: float, percent: float) -> datetime | None:
        """Return the due date with extra time; None if there is none, or no start to count from."""
        if self.due is None or (percent and self.start is None):
            return None
        span = self.due - (self.start or self.due)
        return self.due + timedelta(hours=hours) + span * percent / 100

    @property
    def costs_lateness(self) -> bool:
        """Whether a late submission can lose points."""
        return bool(self.per_day or self.steps)

    def keeps(self, days: float) -> float:
        """Return the percentage of its points that a submission keeps if it is `days` late."""
        if days <= 0:
            return 100.0
        if self.steps:
            kept = next((step.keeps for step in self.steps if days <= step.days), self.floor)
        else:
            kept = 100.0 - self.per_day * math.ceil(days)
        return max(kept, self.floor)

    def counted_days(self, days: float) -> float:
        """Return the delay that counts: in days begun, unless the rule has steps."""
        return round(days, 2) if self.steps or not self.per_day else math.ceil(days)

    def mark(
        self,
        exercises: Sequence[ExerciseResult],
        days: float,
        adjustment: Adjustment | None = None,
        free: float = 0.0,
    ) -> Mark:
        """Return the mark for these results if the submission is `days` late.

        An `adjustment` of the mark is added at the end, whatever lateness takes off. Of the days
        begun, as many cost nothing as are `free`.
        """
        earned = max(0.0, sum(map(self._counts, exercises)))
        spent = float(min(math.ceil(days), math.floor(free)))
        kept = self.keeps(days - spent)
        left = earned * kept / 100
        points = round(max(0.0, left + (adjustment.points if adjustment else 0.0)), 2)
        worth = sum(
            self._weight(exercise) * exercise.max_points
            for exercise in exercises
            if exercise.name not in self.extra_credit
        )
        late = self.counted_days(days)
        remaining = round(free - spent, 2) if self.budget else None
        mark = Mark(
            *(points, round(worth, 2), round(earned, 2), late),
            free_days=spent,
            free_left=remaining,
        )
        if days <= 0 and not adjustment and not any(map(self._changes, exercises)):
            return mark
        how = self._how(exercises)
        return replace(
            mark,
            says=_calculation(mark, how, days, kept, round(left, 2), adjustment),
            steps=_summed(self._steps(exercises, days, kept, spent, adjustment)),
            adjustment=adjustment,
        )

    def _steps(
        self,
        exercises: Sequence[ExerciseResult],
        days: float,
        kept: float,
        free: float,
        adjustment: Adjustment | None,
    ) -> Iterator[tuple[str, float]]:
        """Yield the steps of a mark, each with the total after it."""
        total = 0.0
        for exercise in exercises:
            total += self._counts(exercise)
            yield self._in_words(exercise), total
        yield NOT_NEGATIVE, max(0.0, total)
        left = max(0.0, total) * kept / 100
        yield _late_in_words(days, self.counted_days(days), kept, free), left
        if adjustment:
            yield f"adjusted: {adjustment.why}", left + adjustment.points
            yield NOT_NEGATIVE, max(0.0, left + adjustment.points)

    def _how(self, exercises: Sequence[ExerciseResult]) -> str:
        """Return in words how exercises count, if not simply with the points of their tests."""
        ways = {
            "scaled": any(exercise.dropped for exercise in exercises),
            "adjusted": any(exercise.adjustment for exercise in exercises),
            "weighted": any(self._weight(exercise) != 1 for exercise in exercises),
            "with extra credit": any(each.name in self.extra_credit for each in exercises),
        }
        return ", ".join(way for way, applies in ways.items() if applies)

    def _changes(self, exercise: ExerciseResult) -> bool:
        """Return whether an exercise does not simply count with the points of its tests."""
        is_extra = exercise.name in self.extra_credit
        return is_extra or self._counts(exercise) != exercise.points

    def _weight(self, exercise: ExerciseResult) -> float:
        return self.weights.get(exercise.name, 1.0)

    def _counts(self, exercise: ExerciseResult) -> float:
        return self._weight(exercise) * exercise.counted

    def _in_words(self, exercise: ExerciseResult) -> str:
        """Return how an exercise counts: its points, adjusted, times its weight."""
        words = f"{exercise.title}: {exercise.points:g} of {exercise.worth:g}"
        if exercise.dropped:
            words += f", scaled to {exercise.max_points:g}"
        if exercise.adjustment:
            words += f", adjusted by {exercise.adjustment.points:+g}"
        if (weight := self._weight(exercise)) != 1:
            words += f", × {weight:.6g}"
        return f"{words}, extra credit" if exercise.name in self.extra_credit else words


def _summed(steps: Iterable[tuple[str, float]]) -> tuple[MarkStep, ...]:
    """Return the steps that have a text or change the total.

    Each step adds the difference of two rounded totals, so that every line adds up as printed.
    """
    summed: list[MarkStep] = []
    before = 0.0
    for says, exact in steps:
        total = round(exact, 2)
        if says and (says != NOT_NEGATIVE or total != before):
            summed.append(MarkStep(says, round(total - before, 2), total))
            before = total
    return tuple(summed)


def _late_in_words(days: float, counted: float, kept: float, free: float) -> str:
    """Return how lateness counts; nothing for a submission in time."""
    if days <= 0:
        return ""
    exact = f" (as {_days_in_words(counted)})" if counted != round(days, 2) else ""
    return f"{delay_in_words(days)}{exact}{_free_in_words(free)}: {kept:g} % count"


def _days_in_words(days: float) -> str:
    return f"{days:g} {'day' if days == 1 else 'days'}"


def _free_in_words(free: float) -> str:
    return f", {_days_in_words(free)} of them free" if free else ""


def delay_in_words(days: float) -> str:
    """Return a delay in words, such as "2 days and 6 minutes late"."""
    minutes = max(1, round(days * 24 * 60))
    sizes = {"day": minutes // 1440, "hour": minutes // 60 % 24, "minute": minutes % 60}
    parts = [f"{n} {unit}{'s' if n > 1 else ''}" for unit, n in sizes.items() if n]
    return f"{' and '.join(parts[:2])} late"


def _calculation(
    mark: Mark, how: str, days: float, kept: float, left: float, adjustment: Adjustment | None
) -> str:
    """Return the sentence that tells a student how the mark was calculated."""
    says = f"{mark.earned:g} points{how and ', '}{how}"
    if days > 0:
        late = f"handed in {delay_in_words(days)}{_free_in_words(mark.free_days)}"
        says += f", {late}: {kept:g} % of them count, {left:g} points"
    return f"{says}. The mark was adjusted by {adjustment.points:+g}." if adjustment else f"{says}."


def make_policy(settings: CourseSettings, names: Collection[str], where: str) -> Policy:
    """Return the policy of a course with these exercises; raises `CourseError`, at `where`."""
    late = settings.late
    if late.per_day is not None and late.steps is not None:
        raise CourseError(f"{where}: late has both `per_day` and `steps`; keep one of them")
    if late.budget and late.per_day is None and late.steps is None:
        raise CourseError(f"{where}: late.budget has no effect without `per_day` or `steps`")
    if late != Late() and settings.due is None:
        raise CourseError(f"{where}: late has no effect without a due date; add `due`")
    zone = load_zone(settings.zone, where) if settings.zone else None
    due, start = (
        _in_zone(time, zone, f"{where}: {name}")
        for name, time in (("due", settings.due), ("start", settings.start))
    )
    if start and (due is None or start >= due):
        raise CourseError(f"{where}: start is when work begins, before `due`")
    check_names(settings.extra_credit, names, f"{where}: extra_credit")
    check_names(settings.weights, names, f"{where}: weights")
    return Policy(
        due=due,
        zone=zone or (due.tzinfo if due else None),
        start=start,
        budget=late.budget,
        grace=timedelta(minutes=late.grace_minutes),
        per_day=late.per_day or 0.0,
        steps=tuple(sorted(late.steps or (), key=lambda step: step.days)),
        floor=late.floor,
        weights={
            name: convert(weight, Amount, f"{where}: weights.{name}")
            for name, weight in settings.weights.items()
        },
        extra_credit=settings.extra_credit,
        show=to_builtins(settings.show),
        carry_forward=settings.marking.carry_forward,
        missing=settings.missing,
    )


def _in_zone(time: datetime | None, zone: tzinfo | None, where: str) -> datetime | None:
    """Return a time in the zone of the course; raise `CourseError`, at `where`, if it has none."""
    if time is None or (zone is None and time.tzinfo is not None):
        return time
    if zone is None:
        raise CourseError(f'{where}: in which time zone? Add such as zone = "Europe/Berlin"')
    return in_zone(time, zone, where)


def check_names(listed: Iterable[str], names: Collection[str], where: str) -> None:
    """Raise `CourseError` if `where` lists a name that is not an exercise of the course."""
    for name in listed:
        if name not in names:
            raise CourseError(f"{where}: there is no exercise `{name}`{did_you_mean(name, names)}")
