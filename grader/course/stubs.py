"""Stubs: the files that students fill in, made from the reference solutions."""

from __future__ import annotations

import ast
import re
import textwrap
from itertools import zip_longest

from grader.course.course import Exercise
from grader.errors import CourseError

START, END = "# --- solution", "# --- end"


def make_stub(exercise: Exercise) -> str:
    """Return the stub: the statement as docstring, and an exception in place of each solution.

    A students' copy has no solutions; there the stub is the one in `course.json`. Raises
    `CourseError` if the statement or the marks of the solution are wrong.
    """
    if exercise.stub:
        return exercise.stub
    statement = exercise.read("statement.md").strip()
    if '"""' in statement or statement.endswith("\\"):
        problem = 'a statement becomes a docstring: it must not contain """ or end in a backslash'
        raise CourseError(f"{exercise.folder / 'statement.md'}: {problem}")
    code = _without_docstring(exercise.read("solution.py"))
    return f'r"""{statement}{_forbidden_note(exercise)}\n"""\n{_blanked(code, exercise)}'


def untouched_text(exercise: Exercise) -> str:
    """Return the stub, or an empty text if the course has none to compare with."""
    try:
        return make_stub(exercise)
    except CourseError:
        return ""


def statement_of(stub: str) -> str:
    """Return the statement in a stub."""
    return ast.get_docstring(ast.parse(stub), clean=False) or ""


def _forbidden_note(exercise: Exercise) -> str:
    """Return the sentence that lists the forbidden names, without the wildcards of patterns."""
    names = [pattern.removeprefix("torch").strip("*.") for pattern in exercise.forbidden]
    if not names:
        return ""
    note = f"Write it by hand. These names of torch are not accepted here: {', '.join(names)}."
    return "\n\n" + textwrap.fill(note, 76)


def _without_docstring(text: str) -> str:
    tree = ast.parse(text)
    if ast.get_docstring(tree) is None:
        return "\n" + text
    return "".join(text.splitlines(keepends=True)[tree.body[0].end_lineno :])


def _blanked(code: str, exercise: Exercise) -> str:
    """Return the code with an exception in place of each part between the marks."""
    where = exercise.folder / "solution.py"
    code = code.removesuffix("\n") + "\n"
    # the text before the first mark; then the indent of each mark, the mark, the text after it
    text, *parts = re.split(rf"(?m)^([ \t]*)({START}|{END})[ \t]*\n", code)
    marks = parts[1::3]
    for mark, wanted in zip_longest(marks, [START, END] * ((len(marks) + 1) // 2)):
        if mark != wanted:
            problem = f"`{mark}` is out of place" if mark else f"`{START}` without `{END}`"
            raise CourseError(f"{where}: {problem}; `{START}` and `{END}` go in pairs")
    raised = f'raise NotImplementedError("fill in {exercise.name}")'
    blanks = zip(parts[::6], parts[5::6], strict=True)
    stub = text + "".join(f"{indent}{raised}\n{after}" for indent, after in blanks)
    if "NotImplementedError" not in stub:
        raise CourseError(f"{where}: no `{START}` … `{END}`")
    return stub
