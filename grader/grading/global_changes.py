"""Changes in a student's file that affect all code that runs with it, such as default dtypes.

Such a line has effects far away, so the report names it first. Imports no torch.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from grader.grading.code_text import line_in_words
from grader.sandbox.syntax import root_name
from grader.syntax_trees import syntax_tree

CHANGED_BY = {  # by the last part of a called function's name
    "set_default_dtype": "the dtype of new tensors",
    "set_default_tensor_type": "the type of new tensors",
    "set_default_device": "the device of new tensors",
    "set_grad_enabled": "whether gradients are recorded",
    "setrecursionlimit": "how deeply calls may be nested",
    "use_deterministic_algorithms": "which algorithms torch uses",
    "set_flush_denormal": "how torch rounds small numbers",
    "set_float32_matmul_precision": "how precisely torch multiplies",
}


def global_change(text: str) -> str:
    """Return a sentence on the first such change in a file; empty if there is none."""
    try:
        tree = syntax_tree(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ""
    found = min(_changes(tree), default=None)
    if found is None:
        return ""
    number, what = found
    where = line_in_words(text, number)
    return f"Your file changes {what} for all code that runs with it: {where}."


def _changes(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield each line with a change, and the thing that it changes."""
    modules: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            modules |= {(each.asname or each.name).partition(".")[0] for each in node.names}
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("torch"):
            modules |= {each.asname or each.name for each in node.names}
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            function = node.value.func
            name = getattr(function, "attr", getattr(function, "id", ""))
            if what := CHANGED_BY.get(name):
                yield node.lineno, what
        elif isinstance(node, ast.Assign | ast.AugAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            for target in targets:
                if isinstance(target, ast.Attribute) and root_name(target) in modules:
                    yield node.lineno, f"`{ast.unparse(target)}`"
