"""What a course makes of points: weights, extra credit, lateness, and what students see when."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Literal, get_args

from grader.errors import CourseError
from grader.report import ExerciseResult, Mark

When = Literal["always", "after_due", "never"]
PARTS = ("tests", "diagnosis", "idea")
DAY = timedelta(days=1)
MAX_GRACE = 365 * 24 * 60  # minutes


@dataclass(frozen=True)
class Step:
    """Handed in up to `days` late, a submission keeps `keeps` percent of its points."""

    days: float
    keeps: float


@dataclass(frozen=True)
class Policy:
    """What `course.toml` says beside the exercises.

    Lateness takes `per_day` percent for each day begun, or leaves what the first of the `steps`
    says that is long enough; never less than `floor` percent. `grace` is not counted, unless it is
    exceeded. `show` says when students see a part of their reports: the tests' details, the
    diagnosis, the idea behind a solution; a test's own mark may be stricter.
    """

    due: datetime | None = None
    grace: timedelta = timedelta()
    per_day: float = 0.0
    steps: tuple[Step, ...] = ()
    floor: float = 0.0
    weights: Mapping[str, float] = field(default_factory=dict)
    extra_credit: tuple[str, ...] = ()
    show: Mapping[str, When] = field(default_factory=dict)

    def days_late(self, submitted: datetime | None, due: datetime | None = None) -> float:
        """Days after `due` (the course's, unless one of one's own is given); 0 within the grace."""
        due = due or self.due
        if submitted is None or due is None or submitted <= due + self.grace:
            return 0.0
        return (submitted - due) / DAY

    @property
    def costs_lateness(self) -> bool:
        """Whether lateness can cost anything."""
        return bool(self.per_day or self.steps)

    def keeps(self, days: float) -> float:
        """The percentage of its points that a submission keeps, so many days late."""
        if days <= 0:
            return 100.0
        if self.steps:
            kept = next((step.keeps for step in self.steps if days <= step.days), self.floor)
        else:
            kept = 100.0 - self.per_day * math.ceil(days)
        return max(kept, self.floor)

    def mark(self, exercises: Sequence[ExerciseResult], days: float) -> Mark:
        """What the exercises' points count, so many days late."""
        earned = worth = 0.0
        given = 0
        for exercise in exercises:
            weight = self.weights.get(exercise.name, 1.0)
            extra = exercise.adjustment.points if exercise.adjustment else 0.0
            earned += weight * (exercise.points + extra)
            given += exercise.points
            if exercise.name not in self.extra_credit:
                worth += weight * exercise.max_points
        earned = max(0.0, earned)
        kept = self.keeps(days)
        points = round(earned * kept / 100, 2)
        says = ""
        if points != given or days > 0:
            says = _story(round(earned, 2), kept, days, points)
        return Mark(points, round(worth, 2), round(earned, 2), round(days, 2), says)


def _story(earned: float, kept: float, days: float, points: float) -> str:
    """How a mark came about, in one sentence."""
    if days <= 0:
        return f"{earned:g} points, adjusted and weighted."
    late = f"{days:.1f} days late" if days >= 0.05 else "late by some minutes"
    return f"{earned:g} points, handed in {late}: {kept:g} % of them count, {points:g} points."


def read_policy(settings: Mapping[str, Any], names: Sequence[str], where: str) -> Policy:
    """The policy in a course's settings; raises `CourseError` with what is wrong in `where`."""
    late = _table(settings, "late", {"grace_minutes", "per_day", "steps", "floor"}, where)
    weights = _table(settings, "weights", set(names), where)
    show = _table(settings, "show", set(PARTS), where)
    extra = settings.get("extra_credit", [])
    due = settings.get("due")
    if due is not None and (not isinstance(due, datetime) or due.tzinfo is None):
        raise CourseError(f"{where}: due must be a time with its zone")
    if not isinstance(extra, list):
        raise CourseError(f"{where}: extra_credit must be a list of exercises")
    for name in extra:
        if name not in names:
            raise CourseError(f"{where}: extra_credit names `{name}`, which is no exercise")
    for part, when in show.items():
        if when not in get_args(When):
            raise CourseError(f"{where}: show.{part} is one of {', '.join(get_args(When))}")
    if "per_day" in late and "steps" in late:
        raise CourseError(f"{where}: late has either per_day or steps")
    if late and due is None:
        raise CourseError(f"{where}: late needs a time `due`")
    return Policy(
        due=due,
        grace=timedelta(minutes=_number(late, "grace_minutes", where, most=MAX_GRACE)),
        per_day=_number(late, "per_day", where, most=100),
        steps=_steps(late.get("steps", []), where),
        floor=_number(late, "floor", where, most=100),
        weights={name: _number(weights, name, where) for name in weights},
        extra_credit=tuple(extra),
        show=show,
    )


def _table(settings: Mapping[str, Any], key: str, known: set[str], where: str) -> dict[str, Any]:
    table = settings.get(key, {})
    if not isinstance(table, dict):
        raise CourseError(f"{where}: {key} must be a table")
    for unknown in sorted(set(table) - known):
        knows = ", ".join(sorted(known))
        raise CourseError(f"{where}: {key} knows no `{unknown}`; it knows {knows}")
    return table


def _number(table: Mapping[str, Any], key: str, where: str, most: float = math.inf) -> float:
    value = table.get(key, 0)
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not math.isfinite(value) or not 0 <= value <= most:
        limit = f" to {most:g}" if math.isfinite(most) else ""
        raise CourseError(f"{where}: {key} must be a number from 0{limit}")
    return float(value)


def _steps(entries: Any, where: str) -> tuple[Step, ...]:
    """Steps from the shortest delay to the longest."""
    if not isinstance(entries, list) or any(
        not isinstance(entry, dict) or set(entry) != {"days", "keeps"} for entry in entries
    ):
        raise CourseError(f"{where}: each of late.steps says {{ days = …, keeps = … }}")
    steps = [
        Step(_number(entry, "days", where), _number(entry, "keeps", where, 100))
        for entry in entries
    ]
    return tuple(sorted(steps, key=lambda step: step.days))
