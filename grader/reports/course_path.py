"""The path through a course, for a picture: the exercises in order, and their dependences."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from grader.report import Report

ROW = 30  # the height of an exercise, in pixels
MIDDLE = 16  # the position of the first row
BEND = 4  # the bend of an arc for each row that it spans
STRAIGHT = 10  # the bend of an arc that spans one row
TEXT = 8  # the most width of a letter
MARGIN = 14


@dataclass(frozen=True)
class Stop:
    """An exercise on the path: its name and title, and the names of those that it builds on.

    A student's path also has the state of each exercise, and the path of a course with several
    lists the lists that have it.
    """

    name: str
    title: str
    builds_on: tuple[str, ...] = ()
    state: str = ""
    lists: tuple[str, ...] = ()


@dataclass(frozen=True)
class Arc:
    """A line from one exercise to a later one, on the left of both."""

    first: Stop
    second: Stop
    top: int
    bottom: int
    bend: int


@dataclass(frozen=True)
class Path:
    """The places of all stops and arcs, in pixels; `gutter` is the position of the stops."""

    stops: tuple[tuple[Stop, int], ...]
    arcs: tuple[Arc, ...]
    gutter: int
    width: int
    height: int


def path_through(stops: Sequence[Stop]) -> Path:
    """Return the places of the stops and arcs of a path.

    Exercises that are not on the path are left out, even if a stop builds on them.
    """
    places = {stop.name: ROW * row + MIDDLE for row, stop in enumerate(stops)}
    by_name = {stop.name: stop for stop in stops}
    arcs = [
        Arc(by_name[name], stop, places[name], places[stop.name], _bend(places, name, stop.name))
        for stop in stops
        for name in stop.builds_on
        if name in places
    ]
    # A curve reaches three quarters of the way to its control points.
    gutter = MARGIN + max((3 * arc.bend // 4 for arc in arcs), default=0)
    widest = max(len(" · ".join((stop.title, *stop.lists))) for stop in stops)
    return Path(
        stops=tuple((stop, places[stop.name]) for stop in stops),
        arcs=tuple(sorted(arcs, key=lambda arc: arc.top - arc.bottom)),
        gutter=gutter,
        width=gutter + 2 * MARGIN + TEXT * widest,
        height=ROW * len(stops),
    )


def path_of(report: Report) -> Path | None:
    """Return the path through the exercises of a report; None if nothing builds on another."""
    stops = [
        Stop(each.name, each.title, each.builds_on, each.state.replace(" ", "-"))
        for each in report.exercises
    ]
    path = path_through(stops) if stops else None
    return path if path and path.arcs else None


def titles_before(report: Report) -> dict[str, str]:
    """Return for each exercise of a report the titles of those before it; empty if all have none.

    Those are the exercises that it builds on.
    """
    titles = {each.name: each.title for each in report.exercises}
    before = {
        each.name: ", ".join(titles[name] for name in each.builds_on if name in titles)
        for each in report.exercises
    }
    return before if any(before.values()) else {}


def path_in_words(stops: Sequence[Stop]) -> str:
    """Return the path in words, for readers who cannot see the picture."""
    titles = {stop.name: stop.title for stop in stops}
    said = []
    for stop in stops:
        before = [titles[name] for name in stop.builds_on if name in titles]
        said.append(f"{stop.title}, after {' and '.join(before)}" if before else stop.title)
    return "; ".join(said)


def _bend(places: dict[str, int], first: str, second: str) -> int:
    rows = (places[second] - places[first]) // ROW
    return STRAIGHT if rows == 1 else STRAIGHT + BEND * rows * 2
