"""The pages of a class and of a term: each one self-contained HTML file for thousands of students.

The names and texts of students are untrusted: the template escapes them, the script shows them as
text only, and the data for the script cannot end the element that holds it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, fields, replace
from functools import cache
from importlib import resources
from typing import Any, get_args
from urllib.parse import urlencode

import msgspec
from jinja2 import Environment

from grader.report import State
from grader.reports.flags import kind_of
from grader.reports.pages import content_policy, environment, link
from grader.reports.summary import ExerciseSummary, StudentRow, Summary, TermSummary

STATES: tuple[State, ...] = get_args(State)
KINDS: Mapping[State, str] = {  # the CSS class of a state, in the order of a bar
    "passed": "passed",
    "to fix": "to-fix",
    "error": "broken",
    "not started": "started",
    "not graded": "started",
}
UNTOUCHED: Mapping[State, str] = {
    "not started": "not begun",
    "not graded": "not handed in, or not graded",
}
MOST_SHOWN = 5  # mistakes or exercises on the first screen


def render(
    summary: Summary,
    errors_of: Callable[[str], AbstractContextManager[None]] = lambda _: nullcontext(),
) -> str:
    """Return the page of a class.

    If a student's row cannot be shown, it has only the name; `errors_of` is entered for each
    student, and gets the error.
    """
    rows = tuple(
        _showable(student, len(summary.exercises), errors_of) for student in summary.students
    )
    summary = replace(summary, students=rows)
    states = [student.state for student in summary.students]
    return _page(
        "class.html.j2",
        summary,
        links={student.id: link(student.page) for student in summary.students},
        names={student.id: student.name for student in summary.students},
        titles={exercise.name: exercise.title for exercise in summary.exercises},
        legend=_legend(),
        states={state: states.count(state) for state in STATES},
        flagged=[student for student in summary.students if student.flags],
        reasons=_reasons(summary),
        by_students=_by_students(summary),
        costly=_costly(summary),
        untouched=list(_untouched(summary)),
        differing=[name for name, values in summary.circumstances.items() if len(values) > 1],
    )


def render_term(term: TermSummary, far: float) -> str:
    """Return the page of a term; `far` is the share of the points that means to fall behind."""
    return _page("term.html.j2", term, far=round(100 * far))


def _page(template: str, summary: Summary | TermSummary, **values: object) -> str:
    style, script = _source("palette.css") + _source("class.css"), _source("class.js")
    page = (
        _environment()
        .get_template(template)
        .render(
            summary=summary,
            style=style,
            script=script,
            content_policy=content_policy(style, script),
            data=data(summary),
            **values,
        )
    )
    return page.encode("utf-8", "replace").decode("utf-8")  # a name may hold a lone surrogate


@cache
def _environment() -> Environment:
    made: Environment = environment().overlay()
    own = {"signed": signed, "percent": percent, "words": _words, "by_kind": _by_kind, "heat": heat}
    made.filters = {**made.filters, **own}
    made.globals = {**made.globals, "only": only, "link": link}
    return made


@cache
def _source(name: str) -> str:
    return resources.files("grader.reports").joinpath("templates", name).read_text("utf-8")


def _reasons(summary: Summary) -> list[tuple[str, str, list[StudentRow]]]:
    """Return each kind of flags with its title and students, the most frequent first.

    The title is the flag itself, if all flags of this kind are the same.
    """
    found: dict[str, list[StudentRow]] = {}
    titles: dict[str, str] = {}
    for student in summary.students:
        for flag, kind in zip(student.flags, _kinds(student, summary)):
            if student not in (own := found.setdefault(kind, []))[-1:]:
                own.append(student)
            titles[kind] = flag if titles.get(kind, flag) == flag else kind
    ordered = sorted(found.items(), key=lambda each: -len(each[1]))
    return [(kind, titles[kind], own) for kind, own in ordered]


def _kinds(student: StudentRow, summary: Summary | TermSummary) -> list[str]:
    """Return the kind of each flag of a student."""
    exercises = [exercise.name for exercise in summary.exercises]
    return [kind_of(flag, exercises) for flag in student.flags]


def _by_students(summary: Summary) -> list[int]:
    """Return the places of the mistakes that most students made, the most frequent first."""
    counts = [len(mistake.who) for mistake in summary.mistakes]
    return sorted(range(len(counts)), key=lambda at: -counts[at])[:MOST_SHOWN]


def _costly(summary: Summary) -> list[ExerciseSummary]:
    """Return the exercises that cost most if no two students made the same mistake; else none."""
    singles = len(summary.mistakes) > 1 and all(len(each.who) == 1 for each in summary.mistakes)
    wrong = [each for each in summary.exercises if singles and each.lost.get("to fix")]
    return sorted(wrong, key=lambda each: -each.lost["to fix"])[:MOST_SHOWN]


@dataclass(frozen=True)
class Untouched:
    """Exercises in which nobody can have made a mistake: how many, and what they cost whom."""

    says: str
    exercises: int
    points: int
    students: int


def _untouched(summary: Summary) -> Iterator[Untouched]:
    """Yield what was not begun, and what could not be graded."""
    for state, says in UNTOUCHED.items():
        exercises = sum(each.states.get(state, 0) for each in summary.exercises)
        points = sum(each.lost.get(state, 0) for each in summary.exercises)
        students = sum(state in student.states for student in summary.students)
        if points:
            yield Untouched(says, exercises, points, students)


def only(**filters: object) -> str:
    """Return a link that shows only some students in the table."""
    chosen = {key: str(value).encode("utf-8", "replace") for key, value in filters.items()}
    return f"#table&{urlencode(chosen)}"


def heat(share: float | None) -> str:
    """Return the CSS class of a pass rate: `heat-0` if everybody passes, to `heat-9` if nobody."""
    return "" if share is None else f"heat-{round(9 * (1 - share))}"


def _words(state: State) -> str:
    return "error in the course" if state == "error" else state


def _by_kind(counts: Mapping[State, int]) -> list[tuple[str, int]]:
    """Return the number of students for each CSS class, in the order of a bar."""
    kinds = dict.fromkeys(KINDS.values(), 0)
    for state, count in counts.items():
        kinds[KINDS[state]] += count
    return list(kinds.items())


def _legend() -> dict[str, list[str]]:
    """Return the states of each CSS class."""
    kinds = dict.fromkeys(KINDS[state] for state in STATES)
    return {kind: [_words(state) for state in STATES if KINDS[state] == kind] for kind in kinds}


def data(summary: Summary | TermSummary) -> str:
    """Return the data of the table as JSON that is safe in a script element.

    The states of students are indices in `states`.
    """
    content = {
        "states": [{"name": state, "kind": KINDS[state]} for state in STATES],
        "exercises": [{"name": each.name, "title": each.title} for each in summary.exercises],
        "mistakes": [mistake.who for mistake in summary.mistakes],
        "students": {
            **_columns(summary.students),
            "kinds": [_kinds(student, summary) for student in summary.students],
        },
    }
    text = json.dumps(content, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for sign in "<>&\u2028\u2029":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return text


def _columns(students: Sequence[StudentRow]) -> dict[str, list[Any]]:
    """Return a list of values for each field of a row.

    If each row repeated the names of the fields, they would take up most of the page.
    """
    rows = [_cells(student) for student in students]
    return {field.name: [row[field.name] for row in rows] for field in fields(StudentRow)}


def _cells(student: StudentRow) -> dict[str, Any]:
    """Return the values of a row as the script of the page reads them."""
    cells = {field.name: getattr(student, field.name) for field in fields(StudentRow)}
    for name in ("points", "max_points", "late_days"):
        cells[name] = _rounded(cells[name])
    return {
        **cells,
        "points_of": [_rounded(points) for points in student.points_of],
        "states": [STATES.index(state) for state in student.states],
        "state": STATES.index(student.state),
        "page": link(student.page) if student.page else "",
        "code": link(student.code) if student.code else "",
    }


def _showable(
    student: StudentRow, exercises: int, errors_of: Callable[[str], AbstractContextManager[None]]
) -> StudentRow:
    """Return a row that can be shown: the student's own, or one with only the name."""
    with errors_of(student.id):
        row = msgspec.convert(msgspec.to_builtins(student), StudentRow)
        json.dumps(_cells(row), allow_nan=False)
        return row
    return StudentRow(
        id=student.id,
        name="",
        section="",
        login="",
        email="",
        points=0.0,
        max_points=0.0,
        points_of=(None,) * exercises,
        states=("not graded",) * exercises,
        state="not graded",
        attempt=0,
        submitted="",
        late_days=0.0,
        flags=("this row cannot be shown; needs review",),
        page="",
    )


def _rounded(value: float | None) -> float | None:
    return round(value, 2) if isinstance(value, float) else value


def signed(value: float | None) -> str:
    """Return a correlation with two decimals and a typographic minus."""
    return "–" if value is None else f"{value:.2f}".replace("-", "−")


def percent(part: float, of: float) -> str:
    """Return a share in percent; 0 only if it is nothing, 100 only if it is everything."""
    if not of:
        return "–"
    if 0 < part < 0.01 * of:
        return "< 1 %"
    if 0.99 * of < part < of:
        return "> 99 %"
    return f"{round(100 * part / of)} %"
