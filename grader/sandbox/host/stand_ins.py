"""Stand-ins for a worker: compiled, because student code can read everything in its process."""

from __future__ import annotations

import ast
import functools
import marshal

from grader.errors import CourseError
from grader.sandbox.syntax import parsed
from grader.sandbox.wire import Source


@functools.lru_cache(maxsize=64)
def without_text(source: Source) -> Source:
    """Return a stand-in as code, without its text, comments and docstrings."""
    try:
        tree = parsed(source.text, source.file)
        for node in ast.walk(tree):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                _drop_docstring(node)
        code = compile(tree, source.file, "exec", dont_inherit=True)
    except SyntaxError as error:
        says = f"{source.file}: {error.msg} (line {error.lineno})"
        raise CourseError(says, "grader validate") from error
    return Source(source.file, "", own=False, code=marshal.dumps(code))


def _drop_docstring(
    node: ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef,
) -> None:
    if ast.get_docstring(node, clean=False) is not None:
        node.body[0] = ast.copy_location(ast.Pass(), node.body[0])
