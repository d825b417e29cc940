"""Pages with students' code, only for teachers: one student's, or two side by side.

The code is untrusted: it is escaped, coloured and shown, and nothing in it is followed.
"""

from __future__ import annotations

import shlex
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from markupsafe import Markup

from grader.report import ExerciseResult, Report, visible
from grader.reports.pages import coloured_lines, environment, link

MAX_SHOWN = 60_000  # characters shown of a file


@dataclass(frozen=True)
class ShownFile:
    """A student's file for an exercise, its result, and the lines where checks failed, by check."""

    path: str
    text: str
    result: ExerciseResult
    lines: Mapping[str, int]


@dataclass(frozen=True)
class CodeView:
    """The code of a student, exercise by exercise, with the teacher's view of the report."""

    report: Report
    files: tuple[ShownFile, ...]


@dataclass(frozen=True)
class SharedFile:
    """The files of two students for an exercise, each with the lines that both have."""

    title: str
    texts: tuple[str, str]
    shared: tuple[Collection[int], Collection[int]]


@dataclass(frozen=True)
class PairView:
    """Two students side by side."""

    students: tuple[str, str]
    files: tuple[SharedFile, ...]


def render(view: CodeView) -> str:
    """Return the page with a student's code beside the verdicts."""
    return _page("code.html.j2", view=view, student=view.report.submission)


def render_missing(student: str) -> str:
    """Return a page for a student whose code cannot be shown."""
    return _page("code.html.j2", view=None, student=student)


def render_pair(view: PairView) -> str:
    """Return the page with two students' code side by side, with shared lines marked."""
    return _page("pair.html.j2", view=view)


def _page(template: str, **values: object) -> str:
    functions = {"lines_of": lines_of, "link": link, "command": command, "most": MAX_SHOWN}
    page = environment().get_template(template).render(**functions, **values)
    return page.encode("utf-8", "replace").decode("utf-8")


def command(student: str, exercise: str) -> str:
    """Return the command that comments on a line of a student's code, without the line."""
    return f"grader comment {shlex.quote(student)} {exercise}.py:"


def lines_of(text: str, marked: Collection[int], prefix: str = "") -> Markup:
    """Return the lines of a file that are shown; nothing in them is invisible to a teacher."""
    return coloured_lines(visible(text[:MAX_SHOWN]), 1, set(marked), prefix)
