"""The class page: one self-contained HTML file for thousands of students.

The names and texts of students are untrusted: the template escapes them, the script shows them as
text only, and the data for the script cannot end the element that holds it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import fields
from functools import cache
from importlib import resources
from typing import Any, get_args
from urllib.parse import quote

from jinja2 import Environment

from grader.report import State
from grader.reports.pages import content_policy, environment
from grader.reports.summary import StudentRow, Summary

STATES: tuple[State, ...] = get_args(State)
KINDS: Mapping[State, str] = {  # the CSS class of a state, in the order of a bar
    "passed": "passed",
    "to fix": "to-fix",
    "error": "broken",
    "not started": "started",
    "not graded": "started",
}


def render(summary: Summary) -> str:
    """Return the page of a class."""
    style, script = _source("palette.css") + _source("class.css"), _source("class.js")
    states = [student.state for student in summary.students]
    template = _environment().get_template("class.html.j2")
    page = template.render(
        summary=summary,
        links={student.id: link(student.page) for student in summary.students},
        titles={exercise.name: exercise.title for exercise in summary.exercises},
        legend=_legend(),
        states={state: states.count(state) for state in STATES},
        flagged=[student for student in summary.students if student.flags],
        differing=[name for name, values in summary.circumstances.items() if len(values) > 1],
        style=style,
        script=script,
        content_policy=content_policy(style, script),
        data=data(summary),
    )
    return page.encode("utf-8", "replace").decode("utf-8")  # a name may hold a lone surrogate


@cache
def _environment() -> Environment:
    made: Environment = environment().overlay()
    own = {"signed": signed, "percent": percent, "words": _words, "by_kind": _by_kind}
    made.filters = {**made.filters, **own}
    return made


@cache
def _source(name: str) -> str:
    return resources.files("grader.reports").joinpath("templates", name).read_text("utf-8")


def _words(state: State) -> str:
    return "error in the course" if state == "error" else state


def _by_kind(counts: Mapping[State, int]) -> list[tuple[str, int]]:
    """Return the number of students for each CSS class, in the order of a bar."""
    kinds = dict.fromkeys(KINDS.values(), 0)
    for state, count in counts.items():
        kinds[KINDS[state]] += count
    return list(kinds.items())


def _legend() -> dict[str, list[str]]:
    """Return the states that each CSS class stands for."""
    kinds = dict.fromkeys(KINDS[state] for state in STATES)
    return {kind: [_words(state) for state in STATES if KINDS[state] == kind] for kind in kinds}


def data(summary: Summary) -> str:
    """Return the data of the table as JSON that is safe in a script element.

    The states of students are indices in `states`.
    """
    content = {
        "states": [{"name": state, "kind": KINDS[state]} for state in STATES],
        "exercises": [{"name": each.name, "title": each.title} for each in summary.exercises],
        "mistakes": [mistake.who for mistake in summary.mistakes],
        "students": _columns(summary.students),
    }
    text = json.dumps(content, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for sign in "<>&\u2028\u2029":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return text


def _columns(students: Sequence[StudentRow]) -> dict[str, list[Any]]:
    """Return a list of values for each field of a row.

    If each row repeated the names of the fields, they would take up most of the page.
    """
    names = [field.name for field in fields(StudentRow)]
    columns = {name: [getattr(student, name) for student in students] for name in names}
    for name in ("points", "max_points", "late_days"):
        columns[name] = [_rounded(points) for points in columns[name]]
    columns["points_of"] = [[_rounded(each) for each in points] for points in columns["points_of"]]
    columns["states"] = [[STATES.index(each) for each in states] for states in columns["states"]]
    columns["state"] = [STATES.index(state) for state in columns["state"]]
    columns["page"] = [link(page) for page in columns["page"]]
    return columns


def _rounded(value: float | None) -> float | None:
    return round(value, 2) if isinstance(value, float) else value


def link(path: str) -> str:
    """Return a relative path as a link that stays in the page's folder, whatever the path is."""
    return "./" + quote(path.encode("utf-8", "replace"), safe="/")


def signed(value: float | None) -> str:
    """Return a correlation with two decimals and a typographic minus."""
    return "–" if value is None else f"{value:.2f}".replace("-", "−")


def percent(part: float, of: float) -> str:
    """Return a part in percent; 0 only if it is nothing, 100 only if it is everything."""
    if not of:
        return "–"
    if 0 < part < 0.01 * of:
        return "< 1 %"
    if 0.99 * of < part < of:
        return "> 99 %"
    return f"{round(100 * part / of)} %"
