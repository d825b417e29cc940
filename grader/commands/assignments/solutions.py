"""The answer of a question → `solution.py`, with the student's parts between the course's marks.

Students can write only functions and classes. They write all of an answer without marks: the body
of each function and method, with given signatures and docstrings.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from grader.commands.assignments.definitions import (
    DEFINITION,
    UNREADABLE,
    Definitions,
    Statement,
    first_line_of,
    grouped,
    statements_of,
)
from grader.commands.assignments.question import CodeCell, Question
from grader.course.stubs import END, START
from grader.errors import RequestError

FUNCTION = (ast.FunctionDef, ast.AsyncFunctionDef)
Lines = tuple[int, int]  # the first and the last line of a part, counted from 1


@dataclass
class Solution:
    """The result of an answer: the text of `solution.py`, and the names in it."""

    text: str = ""
    implements: list[str] = field(default_factory=list)
    requires: list[str] = field(default_factory=list)
    left: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class _Answer:
    """An answer cell without its marks, and the lines that were between them."""

    cell: CodeCell
    parts: list[Lines]


def to_implement(question: Question) -> list[str]:
    """Return the functions and classes that students write. Raises `RequestError`."""
    return [each.name for answer in _answers(question) for each in _written(answer)]


def solution_of(question: Question, definitions: Definitions) -> Solution:
    """Return the solution of a question. Raises `RequestError` that names the cell."""
    answers = _answers(question)
    written = {id(node): node for answer in answers for node in _written(answer)}
    statements = [each for answer in answers for each in statements_of(answer.cell)]
    solution = Solution(implements=[node.name for node in written.values()])
    kept = _kept(statements, solution)
    own = {name for each in kept for name in each.binds}
    needs = {name for each in kept for name in each.needs} - own
    carried = definitions.carried(needs, question.cell, own)
    solution.requires = sorted(set(carried.earlier.values()))
    imports = [each.text for each in (*carried.imports, *kept) if each.is_import]
    earlier = [f"from {exercise} import {name}" for name, exercise in carried.earlier.items()]
    body = [each.text for each in carried.others]
    body += [_text(each, answers) for each in kept if not each.is_import]
    missing = sorted(carried.unknown)
    solution.text = _file([*imports, *earlier], body, missing)
    return solution


def _answers(question: Question) -> list[_Answer]:
    return [_unmarked(answer) for answer in question.answers]


def _unmarked(answer: CodeCell) -> _Answer:
    """Return an answer without its marks. Raises `RequestError` if it does not parse."""
    lines, parts = list[str](), list[Lines]()
    start = 0
    for line in answer.code.split("\n"):
        if line.strip() == START:
            start = len(lines) + 1
        elif line.strip() == END:
            parts.append((start, len(lines)))
        else:
            lines.append(line)
    plain = CodeCell(answer.cell, _unfolded("\n".join(lines)) if not parts else "\n".join(lines))
    try:
        ast.parse(plain.code)
    except UNREADABLE as error:
        reason = getattr(error, "msg", None) or str(error)
        problem = f"cell {answer.cell}: the answer is no valid Python ({reason})"
        raise RequestError(problem, "run the notebook, and import it again") from None
    return _Answer(plain, [(first, last) for first, last in parts if first <= last])


def _unfolded(code: str) -> str:
    """Return code in which no body is on the line of its `def`, where no mark can be."""
    try:
        tree = ast.parse(code)
    except UNREADABLE:
        return code
    functions = (node for node in ast.walk(tree) if isinstance(node, FUNCTION))
    return ast.unparse(tree) if any(n.body[0].lineno == n.lineno for n in functions) else code


def _written(answer: _Answer) -> list[ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef]:
    """Return the functions and classes of an answer with a part for students to write."""
    nodes = [node for node in ast.parse(answer.cell.code).body if isinstance(node, DEFINITION)]
    if not answer.parts:
        return nodes
    return [
        node
        for node in nodes
        if any(first <= _last(node) and first_line_of(node) <= last for first, last in answer.parts)
    ]


def _kept(statements: Sequence[Statement], solution: Solution) -> list[Statement]:
    """Return the statements that `solution.py` needs; report the others."""
    needed = {name for each in statements if each.is_definition for name in each.needs}
    kept = []
    for each in statements:
        if each.is_import or each.is_definition or each.binds & needed:
            kept.append(each)
        elif not isinstance(each.node, ast.Expr) or not isinstance(each.node.value, ast.Constant):
            line = " ".join(each.text.split())[:60]
            solution.left.append(f"cell {each.cell}, `{line}`: it is in no function or class")
    return kept


def _text(statement: Statement, answers: Iterable[_Answer]) -> str:
    """Return the text of a statement of the answer, with marks if students write a part of it."""
    if not statement.is_definition:
        return statement.text
    answer = next(one for one in answers if one.cell.cell == statement.cell)
    node = statement.node
    parts = [
        (max(first, first_line_of(node)), min(last, _last(node)))
        for first, last in answer.parts
        if first <= _last(node) and first_line_of(node) <= last
    ]
    if answer.parts:
        chosen = [lines for part in parts for lines in _within(node, part)]
    else:
        chosen = list(_bodies(node))
    lines = answer.cell.code.split("\n")
    return "\n".join(_with_marks(lines, first_line_of(node), _last(node), _joined(chosen)))


def _within(node: ast.stmt, part: Lines) -> Iterator[Lines]:
    """Yield the lines of a part as whole statements; of a function in it, only the body.

    A class whose methods are missing, or a module without its functions, could not be loaded.
    """
    if first_line_of(node) >= part[0] or not isinstance(node, DEFINITION):
        yield from _bodies(node)
        return
    blocks = [each for each in ast.walk(node) if isinstance(each, ast.stmt) and each is not node]
    inner = [each for each in blocks if first_line_of(each) <= part[1] and _last(each) >= part[0]]
    for each in inner:
        if (
            isinstance(each, DEFINITION)
            and first_line_of(each) < part[0]
            and part[1] <= _last(each)
        ):
            yield from _within(each, part)
            return
    functions = [each for each in inner if isinstance(each, FUNCTION)]
    if isinstance(node, ast.ClassDef):
        for each in functions:
            yield from _bodies(each)
        return
    simple = [each for each in inner if not hasattr(each, "body") or first_line_of(each) >= part[0]]
    yield (
        min([part[0], *(first_line_of(each) for each in simple)]),
        max([part[1], *(_last(each) for each in simple)]),
    )


def _bodies(node: ast.stmt) -> Iterator[Lines]:
    """Yield the lines of a function's body below its docstring, or of a class's methods."""
    if isinstance(node, ast.ClassDef):
        for each in node.body:
            yield from _bodies(each)
    elif isinstance(node, FUNCTION):
        body = node.body[1:] if ast.get_docstring(node) is not None else node.body
        if body:
            yield first_line_of(body[0]), _last(body[-1])


def _last(node: ast.stmt) -> int:
    return node.end_lineno or node.lineno


def _joined(parts: Iterable[Lines]) -> list[Lines]:
    """Return parts in order, with adjacent ones joined."""
    joined: list[Lines] = []
    for first, last in sorted(set(parts)):
        if joined and first <= joined[-1][1] + 1:
            joined[-1] = joined[-1][0], max(last, joined[-1][1])
        else:
            joined.append((first, last))
    return joined


def _with_marks(lines: Sequence[str], first: int, last: int, parts: list[Lines]) -> Iterator[str]:
    starts, ends = {start for start, _ in parts}, {end for _, end in parts}
    indent = ""
    for number in range(first, last + 1):
        line = lines[number - 1]
        if number in starts:
            indent = line[: len(line) - len(line.lstrip())]
            yield indent + START
        yield line
        if number in ends:
            yield indent + END


def _file(imports: Sequence[str], body: Sequence[str], missing: Sequence[str]) -> str:
    blocks = ['"""Reference solution: TODO: what it is."""']
    if imports:
        blocks.append(f"\n{grouped(imports)}")
    if missing:
        names = ", ".join(missing)
        blocks.append(
            f"\n# TODO: {names}: the notebook uses this here and defines it nowhere before"
        )
    return "\n".join([*blocks, *(f"\n\n{each}" for each in body), ""])
