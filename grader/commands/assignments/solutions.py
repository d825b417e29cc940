"""The answer of a question → `solution.py`, with the student's parts between the course's marks.

Students write functions and classes: the body of each function and method, below its signature and
docstring, or the part of it that is marked in the notebook.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Collection
from dataclasses import replace
from itertools import groupby

from grader.commands.assignments.definitions import (
    UNREADABLE,
    Code,
    Statement,
    grouped,
    indented,
    lines_of,
    statements_of,
)
from grader.commands.assignments.question import CodeCell, Question, first_sentence
from grader.course.stubs import END, START
from grader.errors import RequestError

OUTSIDE = "it is in no function or class"
FUNCTION = (ast.FunctionDef, ast.AsyncFunctionDef)


def prepare(question: Question) -> tuple[list[str], list[str]]:
    """Return the functions and classes that students write, and those that stand for variables.

    Has every line of an answer marked that has no marks. Raises `RequestError`.
    """
    question.answers = [_parsable(answer) for answer in question.answers]
    asked = [
        name
        for answer in question.answers
        for each in statements_of(answer)
        if each.kind == "definition" and answer.marked.intersection(lines_of(each.node))
        for name in each.binds
    ]
    if asked:
        return asked, []
    tests = [each for case in question.cases for each in statements_of(CodeCell(0, case.code))]
    variables = [
        (name, answer)
        for answer in question.answers
        for name in sorted(_values_in(answer))
        if any(name in each.needs for each in tests)
    ]
    question.answers = [_as_function(*each) for each in variables] or question.answers
    names = [name for name, _ in variables]
    return names, names


def _values_in(answer: CodeCell) -> set[str]:
    """Return the names to which an answer gives a value; its imports are none of them."""
    imports = (ast.Import, ast.ImportFrom)
    given = (each for each in statements_of(answer) if not isinstance(each.node, imports))
    return {name for each in given for name in each.binds}


def _parsable(answer: CodeCell) -> CodeCell:
    """Return an answer with marks. Raises `RequestError` if it does not parse."""
    try:
        tree = ast.parse(answer.code)
    except UNREADABLE as error:
        reason = getattr(error, "msg", None) or str(error)
        problem = f"cell {answer.cell}: the answer is no valid Python ({reason})"
        raise RequestError(problem, "run the notebook, and import it again") from None
    code, marked = answer.code.encode().split(b"\n"), {*answer.marked}
    marked = marked or {*range(1, len(code) + 1)}
    functions = (node for node in ast.walk(tree) if isinstance(node, FUNCTION))
    for node in sorted(functions, key=lambda node: node.lineno, reverse=True):
        number, start = node.lineno, node.body[0].col_offset
        if node.body[0].lineno == number:  # a body on the line of its `def` has no place for marks
            head, body = code[number - 1][:start].rstrip(), code[number - 1][start:]
            code[number - 1 : number] = [head, b" " * (node.col_offset + 4) + body]
            marked = {m for m in marked if m <= number} | {m + 1 for m in marked if m >= number}
    return replace(answer, code=b"\n".join(code).decode(), marked=frozenset(marked))


def _as_function(name: str, answer: CodeCell) -> CodeCell:
    """Return the answer that gives a variable a value as a function that returns the value."""
    code = f'def {name}():\n    """Return `{name}`."""\n{indented(answer.code)}\n    return {name}'
    return replace(answer, code=code, marked=frozenset(line + 2 for line in answer.marked))


def solution_of(
    question: Question, exercise: str, code: Code, values: Collection[str], title: str
) -> tuple[str, list[str], list[str]]:
    """Return the text of `solution.py`, the exercises that it requires, and what is left out.

    `values` are the names that stand for variables.
    """
    answers = [each for each in code.statements if each.source in question.answers]
    names = {name for each in answers if each.kind == "definition" for name in each.binds}
    chosen, missing = code.needed(names, question.answers[-1].cell + 1, "answer", own=exercise)
    others = {
        name: each.exercise
        for each in chosen
        if each.exercise not in ("", exercise)
        for name in each.binds
    }
    imports = [each.text for each in chosen if each.kind == "import"]
    imports += [f"from {other} import {name}" for name, other in others.items()]
    about = re.sub(r'[\\"]', "'", title) or "TODO: what it is"
    blocks = [f'"""Reference solution: {about}."""', grouped(imports)]
    if missing:
        says = f"TODO: {', '.join(sorted(missing))}: the notebook uses this here and defines it"
        blocks.append(f"# {says} nowhere before")
    blocks += [f"\n{name} = {name}()" for name in others if name in values]
    blocks += [
        f"\n{_with_marks(each) if each.source in question.answers else each.text}"
        for each in chosen
        if each.kind != "import" and not each.binds & others.keys()
    ]
    left = [
        f"cell {each.source.cell}, `{' '.join(each.text.split())[:60]}`: {OUTSIDE}"
        for each in answers
        if each not in chosen and each.kind in ("computed", "constant")
    ]
    return "\n\n".join(filter(None, blocks)) + "\n", sorted({*others.values()}), left


def idea_in(solution: str, names: Collection[str]) -> str:
    """Return the first sentence of the docstring of what students write; empty if none has one."""
    for node in ast.parse(solution).body:
        if isinstance(node, (*FUNCTION, ast.ClassDef)) and node.name in names:
            return first_sentence(ast.get_docstring(node) or "")
    return ""


def _with_marks(statement: Statement) -> str:
    """Return a statement of an answer with marks around what students write."""
    theirs = _theirs(statement.node, statement.source.marked)
    lines, text = statement.source.code.split("\n"), list[str]()
    if not theirs:
        return statement.text
    for is_theirs, numbers in groupby(lines_of(statement.node), theirs.__contains__):
        part = "\n".join(lines[number - 1] for number in numbers)
        indent = re.search(r"^[ \t]*(?=\S)", part, re.MULTILINE)
        text.append(
            f"{indent[0]}{START}\n{part}\n{indent[0]}{END}" if is_theirs and indent else part
        )
    return "\n".join(text)


def _theirs(node: ast.stmt, marked: Collection[int]) -> set[int]:
    """Return the lines of a definition that students write, as whole statements.

    Signatures and docstrings are given: without its methods, a class could not be loaded.
    """
    if isinstance(node, ast.ClassDef):
        return {line for each in node.body for line in _theirs(each, marked)}
    if not isinstance(node, FUNCTION):
        return set()
    described = ast.get_docstring(node) is not None
    body = node.body[described:]
    if node.lineno in marked:
        return {*range(lines_of(body[0])[0], lines_of(body[-1])[-1] + 1)} if body else set()
    given = node.body[0].end_lineno or 0 if described else node.lineno
    theirs = {line for line in marked if given < line <= (node.end_lineno or 0)}
    for each in (each for part in body for each in ast.walk(part) if isinstance(each, ast.stmt)):
        is_whole = not hasattr(each, "body") or each.lineno in theirs
        if is_whole and theirs.intersection(lines_of(each)):
            theirs |= {*lines_of(each)}
    return theirs
