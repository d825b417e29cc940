"""The part of a suite made of cases that students' copies get.

Plain tests are cut, cases with `hidden=True` or `tells=False`, and code that only these use.
Comments between statements are cut as well, because they may be about cut code.
"""

from __future__ import annotations

import ast
import functools
from collections import Counter
from collections.abc import Iterator, Sequence

from grader.course.course import Exercise
from grader.syntax_trees import syntax_tree

SUITE = "test_hidden.py"
MADE_OF_CASES = "grader.authors"  # the module that suites made of cases import
CUT = {"hidden": True, "tells": False}  # keywords of cases that students' copies do not get
MARKS = "pytestmark"


def has_cases(exercise: Exercise) -> bool:
    """Return whether an exercise has a suite made of cases."""
    path = exercise.folder / SUITE
    return bool(exercise.folder.name) and path.is_file() and MADE_OF_CASES in exercise.read(SUITE)


def shipped_cases(exercise: Exercise) -> str:
    """Return the part of an exercise's suite that students' copies get."""
    return shipped(exercise.read(SUITE))


@functools.lru_cache(maxsize=64)
def shipped(text: str) -> str:
    """Return the text of a suite without its hidden parts; raises `SyntaxError`."""
    tree, lines = syntax_tree(text), text.split("\n")
    kept = [_Part(part) for node in tree.body if (part := _kept(node, lines)) is not None]
    while len(used := _used(kept)) < len(kept):
        kept = used
    return "\n".join(part.text for part in kept) + "\n"


def _kept(node: ast.stmt, lines: Sequence[str]) -> str | None:
    """Return the text of a statement without the cut cases; None if nothing is left."""
    if _is_cut(node):
        return None
    start = _start(node)
    if isinstance(node, ast.For | ast.If | ast.With):
        header = lines[start - 1 : _start(node.body[0]) - 1]
        body = _kept_parts(node.body, lines)
        other = _kept_parts(getattr(node, "orelse", []), lines)
        if not body and not other:
            return None
        indent = " " * node.body[0].col_offset
        parts = [*header, *(body or [f"{indent}pass"])]
        return "\n".join([*parts, f"{' ' * node.col_offset}else:", *other] if other else parts)
    return "\n".join(lines[start - 1 : node.end_lineno])


def _kept_parts(nodes: Sequence[ast.stmt], lines: Sequence[str]) -> list[str]:
    return [part for each in nodes if (part := _kept(each, lines)) is not None]


def _start(node: ast.stmt) -> int:
    """Return the first line of a statement, or of its first decorator."""
    decorators: list[ast.expr] = getattr(node, "decorator_list", [])
    return min([node.lineno, *(each.lineno for each in decorators)])


def _is_cut(node: ast.stmt) -> bool:
    if isinstance(node, ast.FunctionDef):
        return node.name.startswith("test_") or any(map(_makes_cut, node.decorator_list))
    if isinstance(node, ast.Assign):
        return any(isinstance(each, ast.Name) and each.id == MARKS for each in node.targets)
    return isinstance(node, ast.Expr) and _makes_cut(node.value)


def _makes_cut(call: ast.expr) -> bool:
    """Return whether an expression makes a cut case."""
    return isinstance(call, ast.Call) and any(
        keyword.arg in CUT
        and isinstance(keyword.value, ast.Constant)
        and keyword.value.value is CUT[keyword.arg]
        for keyword in call.keywords
    )


class _Part:
    """The text of a statement, the names that it defines, and all names in it."""

    def __init__(self, text: str) -> None:
        tree = syntax_tree(text)
        self.text, self.defined = text, {*_defined(tree)}
        self.names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}


def _used(parts: Sequence[_Part]) -> list[_Part]:
    """Return the parts without the imports, functions and values that no other part uses."""
    users = Counter(name for part in parts for name in part.names)
    return [
        part
        for part in parts
        if not part.defined or any(users[n] > (n in part.names) for n in part.defined)
    ]


def _defined(tree: ast.Module) -> Iterator[str]:
    """Yield the names that a statement defines, if it may do nothing else."""
    node = tree.body[0]
    if isinstance(node, ast.Import | ast.ImportFrom):
        if getattr(node, "module", "") != "__future__":
            yield from ((each.asname or each.name).partition(".")[0] for each in node.names)
    elif isinstance(node, ast.FunctionDef | ast.ClassDef):
        if not node.decorator_list:
            yield node.name
    elif isinstance(node, ast.Assign):
        for each in node.targets:
            if isinstance(each, ast.Name) and each.id != "AXES" and not _is_check(node.value):
                yield each.id


def _is_check(value: ast.expr) -> bool:
    return (
        isinstance(value, ast.Call)
        and isinstance(value.func, ast.Name)
        and value.func.id == "Check"
    )
