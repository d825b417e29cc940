"""Stubs: the files that students fill in, made from the reference solutions."""

from __future__ import annotations

import ast
import functools
import re
import textwrap
from collections import Counter
from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path

from grader.course.course import Exercise
from grader.errors import CourseError
from grader.syntax_trees import syntax_tree

START, END = "# --- solution", "# --- end"
UNWRITTEN = "NotImplementedError"  # the error of every stub
MAX_COMMENTS = 8 * 1024  # characters that may be added to a stub without counting as work

# Each pattern takes linear time, because no part of it is tried twice. A repeated group is in
# `(?>…)`, because Python 3.11.0 to 3.11.4 match a group with `*+` wrongly.
_LONG = r'"""[^"\\]*+(?>(?:(?:\\(?:.|\Z)|"(?!""))[^"\\]*+)*)(?:"""|\Z)'
_SHORT = r'"[^"\\\r\n]*+(?>(?:\\(?:.|\Z)[^"\\\r\n]*+)*)"?'
_STRING = "|".join([_LONG, _LONG.replace('"', "'"), _SHORT, _SHORT.replace('"', "'")])
_COMMENT = r"\#[^\r\n]*+"
_COMMENT_OR_STRING = re.compile(rf"{_COMMENT}|{_STRING}", re.DOTALL)
_ONLY_STRING = re.compile(rf"[rRuUbB]{{0,2}}(?:{_STRING})", re.DOTALL)
_IMPORT = r"(?:import|from)[ \t][^\r\n\"'#;]*+"
_PREAMBLE = rf"(?>(?:\s++|{_COMMENT}|[rRuUbB]{{0,2}}(?:{_STRING})|^{_IMPORT})*)"
_DEFINES_FIRST = re.compile(rf"{_PREAMBLE}^(?:async\b|def\b|class\b|@)", re.DOTALL | re.MULTILINE)
_DEFINES = re.compile(r"(?:async |def |class )|[^\W\d][^=(]*=")
_COMMANDS = "get_ipython()"  # IPython's translation of lines such as `%pip`
_ADDS_NOTHING = ("import ", "from ", _COMMANDS)


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
    code = _without_docstring(exercise.read("solution.py"), exercise.folder / "solution.py")
    notes = _forbidden_note(exercise) + _origin(exercise)
    return f'r"""{statement}{notes}\n"""\n{_blanked(code, exercise)}'


def untouched_text(exercise: Exercise) -> str:
    """Return the stub, or an empty text if the course has none to compare with."""
    try:
        return make_stub(exercise)
    except CourseError:
        return ""


def is_untouched(text: str, stub: str) -> bool:
    """Return whether a text is no more than a stub, or defines nothing at all.

    Only code counts, not comments, docstrings, imports or the marks of cells. It uses no parser
    and takes linear time, so it may run on a stranger's text.
    """
    if len(text) > 2 * len(stub) + MAX_COMMENTS:
        return False
    if UNWRITTEN not in text and _DEFINES_FIRST.match(text):
        return False  # quick, and enough for most files, which are written
    lines = _written(text)
    return not Counter(lines) - _code_of_stub(stub) or not any(map(_DEFINES.match, lines))


def line_left_above_code(text: str) -> int:
    """Return the first line in which a stub's `raise` keeps the code below from running.

    0 if there is none, or if the text cannot be parsed.
    """
    try:
        nodes = [*ast.walk(syntax_tree(text))]
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return 0
    bodies = (node.body for node in nodes if isinstance(node, ast.FunctionDef))
    above = (statement for body in bodies for statement in body[:-1])
    lines = (each.lineno for each in above if isinstance(each, ast.Raise) and _is_stub(each))
    return min(lines, default=0)


def _is_stub(statement: ast.Raise) -> bool:
    raised = statement.exc.func if isinstance(statement.exc, ast.Call) else statement.exc
    return isinstance(raised, ast.Name) and raised.id == UNWRITTEN


def only_code(text: str) -> str:
    """Return a text without its comments, docstrings and blank lines, and without `%` commands.

    Texts with the same result do the same. It takes linear time as well.
    """
    return "\n".join(line for line in _code_lines(text) if not line.startswith(_COMMANDS))


@functools.lru_cache(maxsize=128)
def _code_of_stub(stub: str) -> Counter[str]:
    return Counter(_written(stub))


def _written(text: str) -> list[str]:
    """Return the lines of code that a student writes, without their spaces."""
    lines = (" ".join(line.split()) for line in _code_lines(text))
    return [line for line in lines if not line.startswith(_ADDS_NOTHING)]


def _code_lines(text: str) -> Iterator[str]:
    """Yield the lines of code in a text, each with the whole of a string that begins in it."""
    for line in _COMMENT_OR_STRING.sub(_on_one_line, text).splitlines():
        if (code := line.strip()) and not _ONLY_STRING.fullmatch(code):
            yield line.rstrip()


def _on_one_line(found: re.Match[str]) -> str:
    piece = found[0]
    return "" if piece.startswith("#") else "\\n".join(piece.splitlines())


def statement_of(stub: str) -> str:
    """Return the statement in a stub."""
    return ast.get_docstring(syntax_tree(stub), clean=False) or ""


def _forbidden_note(exercise: Exercise) -> str:
    """Return the sentence that lists the forbidden names, without the wildcards of patterns."""
    names = [pattern.removeprefix("torch").strip("*.") for pattern in exercise.forbidden]
    if not names:
        return ""
    are_torchs = all(pattern.startswith("torch") for pattern in exercise.forbidden)
    which = "These names of torch" if are_torchs else "These names"
    note = f"Write it by hand. {which} are not accepted here: {', '.join(names)}."
    return "\n\n" + textwrap.fill(note, 76)


def _origin(exercise: Exercise) -> str:
    """Return lines on what is new in the exercise, and on the paper that it comes from."""
    said = f"What is new: {exercise.adds}" if exercise.adds else ""
    paper = f"From: {exercise.paper}" if exercise.paper else ""
    return "".join(f"\n\n{textwrap.fill(text, 76)}" for text in (said, paper) if text)


def _without_docstring(text: str, file: Path) -> str:
    try:
        tree = syntax_tree(text)
    except SyntaxError as error:
        raise CourseError(f"{file}:{error.lineno}: this is not valid Python: {error.msg}") from None
    if ast.get_docstring(tree) is None:
        return "\n" + text
    return "".join(text.splitlines(keepends=True)[tree.body[0].end_lineno :])


def _blanked(code: str, exercise: Exercise) -> str:
    """Return the code with an exception in place of each part between the marks."""
    where = exercise.folder / "solution.py"
    code = code.removesuffix("\n") + "\n"
    # the text before the first mark; then, for each mark, its indent, itself, and the text after
    # it
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
