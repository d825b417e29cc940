"""nbgrader's format: cells have their kind in the metadata, and comments mark hidden parts.

An answer cell begins a question. A test cell belongs to the last earlier question with a function
that it names.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from grader.commands.assignments.definitions import defined_in
from grader.commands.assignments.question import (
    Assignment,
    CodeCell,
    MarkedTest,
    Question,
    first_line,
    one_line,
    points_in,
    unclosed,
    unopened,
    with_marks,
)
from grader.errors import RequestError
from grader.submissions.notebook import NotebookCell

KEY = "nbgrader"
BEGIN, END = re.compile(r"^\W*BEGIN SOLUTION\b"), re.compile(r"^\W*END SOLUTION\b")
BEGIN_HIDDEN = re.compile(r"^\W*BEGIN HIDDEN TESTS?\b")
END_HIDDEN = re.compile(r"^\W*END HIDDEN TESTS?\b")
GENERATED = re.compile(r"cell-?[0-9a-f]{6,}")  # a generated grade_id
AUTOTEST = re.compile(r"^\s*#+ *(?:HASHED )?AUTOTEST\b", re.MULTILINE)


def is_marked(cells: Sequence[NotebookCell]) -> bool:
    """Return whether a notebook has cells that nbgrader has marked."""
    return any(_marks(cell).get("grade") or _marks(cell).get("solution") for cell in cells)


def parse(cells: Sequence[NotebookCell]) -> Assignment:
    """Return the questions of a notebook. Raises `RequestError` that names the cell."""
    assignment, prose = Assignment(), list[str]()
    for cell in cells:
        marks = _marks(cell)
        if marks.get("task") or (marks.get("solution") and marks.get("grade")):
            assignment.left.append(_by_hand(cell, marks))
            prose = []  # the test belongs to that question
        elif marks.get("solution") and cell.kind == "code":
            assignment.questions.append(_question(cell, marks, prose))
            prose = []
        elif marks.get("grade") and cell.kind == "code":
            question = _question_of(cell, assignment)
            question.prose += prose
            question.cases.append(_case(cell, marks))
            prose = []
        elif cell.kind == "code":
            assignment.plain.append(CodeCell(cell.number, cell.source))
        elif cell.source.strip():
            prose.append(cell.source)
    assignment.left += [f"text after the last question: {first_line(text)}" for text in prose]
    return assignment


def _marks(cell: NotebookCell) -> dict[str, Any]:
    marks = cell.metadata.get(KEY)
    return marks if isinstance(marks, dict) else {}


def _by_hand(cell: NotebookCell, marks: dict[str, Any]) -> str:
    points = f", {one_line(marks['points'])} points" if marks.get("points") else ""
    return f"cell {cell.number} `{one_line(marks.get('grade_id'))}`{points}: it is graded by hand"


def _question(cell: NotebookCell, marks: dict[str, Any], prose: list[str]) -> Question:
    name = one_line(marks.get("grade_id"))
    answer = CodeCell(cell.number, with_marks(cell.source, BEGIN, END, cell.number))
    return Question(cell.number, "" if GENERATED.fullmatch(name) else name, prose, [answer])


def _question_of(cell: NotebookCell, assignment: Assignment) -> Question:
    if not assignment.questions:
        problem = f"cell {cell.number} tests something, and no cell before it is an answer"
        raise RequestError(problem, "mark the answer as `Autograded answer` in nbgrader")
    for question in reversed(assignment.questions):
        names = {name for answer in question.answers for name in defined_in(answer.code)}
        if any(re.search(rf"\b{re.escape(name)}\b", cell.source) for name in names):
            return question
    return assignment.questions[-1]


def _case(cell: NotebookCell, marks: dict[str, Any]) -> MarkedTest:
    code, shown = _parts(cell)
    name = one_line(marks.get("grade_id"))
    return MarkedTest(
        *(cell.number, "" if GENERATED.fullmatch(name) else name, code, shown),
        points_in(marks.get("points"), cell.number) or points_in(0, cell.number),
        problem="nbgrader makes its tests of a comment" if AUTOTEST.search(code) else "",
    )


def _parts(cell: NotebookCell) -> tuple[str, str]:
    """Return all lines of a test cell, and the lines that students see."""
    every, shown, opened = list[str](), list[str](), ""
    for line in cell.source.split("\n"):
        if END_HIDDEN.search(line):
            if not opened:
                raise unopened(cell.number, line)
            opened = ""
        elif BEGIN_HIDDEN.search(line):
            if opened:
                raise unclosed(cell.number, opened)
            opened = line
        else:
            every.append(line)
            shown += [] if opened else [line]
    if opened:
        raise unclosed(cell.number, opened)
    return "\n".join(every), "\n".join(shown)
