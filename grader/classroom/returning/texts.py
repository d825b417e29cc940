"""The short texts for a student: a comment in a gradebook, and a mail."""

from __future__ import annotations

import html
import re

from grader.report import ExerciseResult, Report
from grader.reports.figures import amount
from grader.reports.platforms.grades import CELL_START, FORMULA
from grader.reports.text import describe_state

_OWN = re.compile(r"<p>(?:&#45;)?[0-9.]+ of [0-9.]+ points\.")
_FORMULAS = re.compile(rf"({CELL_START})([{re.escape(''.join(FORMULA))}]+)")


def one_line(text: str) -> str:
    """Return a text as one line that can be encoded, with any student's name."""
    spaced = "".join(letter if letter.isprintable() else " " for letter in text)
    return " ".join(spaced.split())


def summary(report: Report) -> str:
    """Return the points, how they were calculated, and what to fix first."""
    points = f"{amount(report.counted)} of {amount(report.max_counted)} points."
    calculation = report.mark.says if report.mark else ""
    return one_line(" ".join([points, calculation, report.advice]))


def comment(report: Report) -> str:
    """Return the summary as HTML in which a spreadsheet finds no formula."""
    text = html.escape(summary(report), quote=False)
    return f"<p>{_FORMULAS.sub(_as_entities, text)}</p>"


def is_own_comment(text: str) -> bool:
    """Return whether `comment` has made a comment before."""
    return bool(_OWN.match(text))


def _as_entities(found: re.Match[str]) -> str:
    return found[1] + "".join(f"&#{ord(letter)};" for letter in found[2])


def letter(report: Report, title: str) -> str:
    """Return the body of a mail: the summary, and the points of each exercise."""
    greeting = one_line(f"Hello {report.person.name or report.submission}") + ","
    lines = (_exercise_line(result) for result in report.exercises)
    return "\n\n".join(
        [
            greeting,
            f"here is the feedback on {one_line(title)}.",
            summary(report),
            "\n".join(lines),
            "The attached page is the whole report; open it in a browser.\n",
        ]
    )


def _exercise_line(result: ExerciseResult) -> str:
    points = f"{amount(result.counted)} / {amount(result.max_points)}"
    return one_line(f"{result.title}: {points}, {describe_state(result)}")
