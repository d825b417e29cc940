"""Making a student's stub out of a reference solution: the marked parts become an exception."""

from __future__ import annotations

import ast
import textwrap

from grader.course.course import Exercise
from grader.errors import CourseError

START, END = "# --- solution", "# --- end"


def make_stub(exercise: Exercise) -> str:
    """The stub: the statement as docstring, and `NotImplementedError` in place of each solution.

    In a students' copy, without solutions, the stub is the one that came with the course.
    """
    if exercise.stub:
        return exercise.stub
    where = exercise.folder / "solution.py"
    text = exercise.read("solution.py")
    statement = exercise.read("statement.md").strip()
    if '"""' in statement or statement.endswith("\\"):
        raise CourseError(f"{exercise.folder / 'statement.md'} cannot stand in a docstring")
    body = _without_docstring(text)
    docstring = statement + _not_accepted(exercise)
    return f'r"""{docstring}\n"""\n{_blanked(body, exercise.name, str(where))}'


def statement_of(stub: str) -> str:
    """The task in words, as it stands in a stub."""
    return ast.get_docstring(ast.parse(stub), clean=False) or ""


def _not_accepted(exercise: Exercise) -> str:
    """What the exercise forbids, in words: its patterns without their wildcards."""
    names = [pattern.removeprefix("torch").strip("*.") for pattern in exercise.forbidden]
    if not names:
        return ""
    listed = f"Write it by hand. Of torch, these are not accepted here: {', '.join(names)}."
    return "\n\n" + "\n".join(textwrap.wrap(listed, 76))


def _without_docstring(text: str) -> str:
    """The module's text behind its own docstring, which speaks to the teaching team."""
    tree = ast.parse(text)
    if ast.get_docstring(tree) is None:
        return "\n" + text
    lines = text.splitlines(keepends=True)
    return "".join(lines[tree.body[0].end_lineno or 0 :])


def _blanked(text: str, name: str, where: str) -> str:
    lines: list[str] = []
    inside = 0
    for number, line in enumerate(text.splitlines(), start=1):
        indent = line[: len(line) - len(line.lstrip())]
        match line.strip():
            case s if s == START and not inside:
                inside = number
                lines.append(f'{indent}raise NotImplementedError("fill in {name}")')
            case s if s == END and inside:
                inside = 0
            case s if s in (START, END):
                raise CourseError(f"{where}: `{s}` is not where it can be")
            case _ if not inside:
                lines.append(line)
    if inside:
        raise CourseError(f"{where}: `{START}` without `{END}`")
    stub = "\n".join(lines) + "\n"
    if "NotImplementedError" not in stub:
        raise CourseError(f"{where}: no `{START}` … `{END}`")
    return stub
