"""The class page: one self-contained file that shows thousands of students, and asks nobody.

Students' names and texts are hostile: the template escapes them, the script shows them as text
only, and the data for it cannot end the element that holds it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any
from urllib.parse import quote

from jinja2 import Environment

from grader.reports.pages import environment, policy

STATES = ("passed", "to mend", "not started", "not graded", "error")


def render(summary: Mapping[str, Any]) -> str:
    """The page of a class, of what `grader.classroom.statistics.Summary.to_json` says of it."""
    style, script = _source("palette.css") + _source("class.css"), _source("class.js")
    states = [student["state"] for student in summary["students"]]
    page = (
        _environment()
        .get_template("class.html.j2")
        .render(
            summary=summary,
            pages={student["id"]: link(student["page"]) for student in summary["students"]},
            titles={exercise["name"]: exercise["title"] for exercise in summary["exercises"]},
            states={state: states.count(state) for state in STATES},
            flagged=[student for student in summary["students"] if student["flags"]],
            differing=[
                each["what"] for each in summary["circumstances"] if len(each["values"]) > 1
            ],
            style=style,
            script=script,
            policy=policy(style, script),
            data=data(summary),
        )
    )
    return page.encode("utf-8", "replace").decode("utf-8")  # a name may hold half a character


@cache
def _environment() -> Environment:
    """The templates, with what only this page uses."""
    made: Environment = environment().overlay()
    made.filters = {**made.filters, "number": number, "signed": signed, "percent": percent}
    return made


@cache
def _source(name: str) -> str:
    """A style or a script, as it is in its file."""
    loader = _environment().loader
    assert loader is not None
    return loader.get_source(_environment(), name)[0]


def data(summary: Mapping[str, Any]) -> str:
    """The rows of the table as JSON that is safe in a script element, whatever is in a name."""
    content = {
        "exercises": [
            {key: exercise[key] for key in ("name", "title", "max_points")}
            for exercise in summary["exercises"]
        ],
        "mistakes": [mistake["who"] for mistake in summary["mistakes"]],
        "students": [_row(student) for student in summary["students"]],
    }
    text = json.dumps(content, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for sign in "<>&\u2028\u2029":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return text


def _row(student: Mapping[str, Any]) -> Sequence[Any]:
    """A student as the script reads it, by position: of 20,000, every name of a key counts."""
    return [
        *(student[key] for key in ("id", "name", "section")),
        _short(student["points"]),
        _short(student["max_points"]),
        [_short(points) for points in student["points_of"]],
        "".join(str(STATES.index(state)) for state in student["states"]),
        STATES.index(student["state"]),
        *(student[key] for key in ("attempt", "submitted")),
        _short(student["late_days"]),
        *(student[key] for key in ("flags", "mend")),
        link(student["page"]),
    ]


def _short(value: float | None) -> float | None:
    return round(value, 2) if isinstance(value, float) else value


def link(path: str) -> str:
    """A relative path as a link that leads nowhere else, whatever the path is made of."""
    return "./" + quote(path.encode("utf-8", "replace"), safe="/")


def number(value: float | None) -> str:
    """A number with at most two decimals, and none that are zero."""
    return "–" if value is None else f"{value:.2f}".rstrip("0").rstrip(".")


def signed(value: float | None) -> str:
    """A correlation with its two decimals and a minus that looks like one."""
    return "–" if value is None else f"{value:.2f}".replace("-", "−")


def percent(part: float, of: float) -> str:
    """A part in percent: 0 and 100 only where it is nothing and all."""
    if not of:
        return "–"
    if 0 < part < 0.01 * of:
        return "< 1 %"
    if 0.99 * of < part < of:
        return "> 99 %"
    return f"{round(100 * part / of)} %"
