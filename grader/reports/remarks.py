"""What to fix in each exercise, and where in the repository: for whatever shows it beside code."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from grader.report import ExerciseResult, Outcome, Report


@dataclass(frozen=True)
class Place:
    """A line of a file, by its path in the repository; line 0 is unknown."""

    file: str
    line: int


PlaceOf = Callable[[ExerciseResult, Outcome | None], Place | None]


@dataclass(frozen=True)
class Checkout:
    """What a report does not know of a check: where code stands, and what each exercise took."""

    place_of: PlaceOf = lambda result, test: None
    seconds: Mapping[str, float] = field(default_factory=dict)  # by exercise


UNKNOWN = Checkout()


@dataclass(frozen=True)
class Remark:
    """What to fix first in an exercise. `check` is the name of the test that says so."""

    exercise: str
    check: str
    title: str
    message: str
    named: str  # the mistake, if it is a known one
    place: Place | None  # None if no file has the exercise


def remarks(report: Report, checkout: Checkout) -> Iterator[Remark]:
    """Yield the remark on each exercise that was begun and does not pass, or is not there."""
    for result in report.exercises:
        test, diagnosis = result.first_failure, result.diagnosis
        if result.state in ("passed", "not started"):
            continue
        yield Remark(
            exercise=result.name,
            check=test.name if test else "",
            title=f"{result.title}: {result.points} of {result.max_points} points",
            message="\n".join(filter(None, (test.headline, test.message)))
            if test
            else result.advice,
            named=diagnosis.says if test and diagnosis is not None and diagnosis.faults else "",
            place=checkout.place_of(result, test),
        )
