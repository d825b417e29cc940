"""The path through a course as a picture: its exercises in their order, and what builds on what."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from grader.reports.pages import environment

ROW = 30  # the height of an exercise, in pixels
MIDDLE = 16  # of the first row
BEND = 4  # by how much an arc bends for each row that it spans
STRAIGHT = 10  # and an arc that spans one row
TEXT = 8  # the width of a letter at most
MARGIN = 14


@dataclass(frozen=True)
class Stop:
    """An exercise on the path: its name and title, and the names of those that it builds on."""

    name: str
    title: str
    builds_on: tuple[str, ...] = ()


@dataclass(frozen=True)
class Arc:
    """A line from one exercise to a later one, on the left of both."""

    first: Stop
    second: Stop
    top: int
    bottom: int
    bend: int


def path_picture(stops: Sequence[Stop]) -> str:
    """Return the path as SVG, which is light or dark as the reader's screen is.

    What a stop builds on and is not on the path itself is left out.
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
    widest = max(len(stop.title) for stop in stops)
    return (
        environment()
        .get_template("path.svg.j2")
        .render(
            stops=[(stop, places[stop.name]) for stop in stops],
            arcs=sorted(arcs, key=lambda arc: arc.top - arc.bottom),
            gutter=gutter,
            width=gutter + 2 * MARGIN + TEXT * widest,
            height=ROW * len(stops),
        )
    )


def path_in_words(stops: Sequence[Stop]) -> str:
    """Return the path for whoever cannot see the picture."""
    titles = {stop.name: stop.title for stop in stops}
    said = []
    for stop in stops:
        before = [titles[name] for name in stop.builds_on if name in titles]
        said.append(f"{stop.title}, after {' and '.join(before)}" if before else stop.title)
    return "; ".join(said)


def _bend(places: dict[str, int], first: str, second: str) -> int:
    rows = (places[second] - places[first]) // ROW
    return STRAIGHT if rows == 1 else STRAIGHT + BEND * rows * 2
