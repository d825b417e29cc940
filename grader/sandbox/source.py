"""Static analysis of a student's source: forbidden calls and top-level names. Nothing is run."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable
from fnmatch import fnmatchcase
from operator import itemgetter

from grader.report import Frame


def forbidden_calls(text: str, file: str, patterns: Iterable[str]) -> list[Frame]:
    """Return the places that name something matching a pattern such as `torch*.layer_norm`.

    Names are resolved through imports, aliases and `getattr` with a constant: `ln(x)` may be
    `torch.nn.functional.layer_norm`. A frame's `function` is the full name. The list is empty for a
    source that does not parse; loading that source reports the error.
    """
    patterns = tuple(patterns)
    if not any(_landmark(pattern) in text for pattern in patterns):
        return []
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []
    lines = text.splitlines()
    return [
        Frame(file, line, lines[line - 1].strip() if line <= len(lines) else "", 0, name)
        for name, line in sorted(_Resolver(tree).found, key=itemgetter(1))
        if any(fnmatchcase(name, pattern) for pattern in patterns)
    ]


def _landmark(pattern: str) -> str:
    """Return the longest plain piece of a pattern: a text without it cannot match the pattern."""
    return max(re.split(r"[*?\[\].]+", pattern.partition("torch")[2]), key=len)


def top_level_names(text: str) -> set[str]:
    """Return the functions, classes and variables that a source defines at its top level.

    In a source that does not parse, only the lines that start a function or class count.
    """
    try:
        body = ast.parse(text).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return {*re.findall(r"^(?:async\s+def|def|class)\s+(\w+)", text, re.MULTILINE)}
    defined = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    names = {node.name for node in body if isinstance(node, defined)}
    assigned = (target for node in body if isinstance(node, ast.Assign) for target in node.targets)
    return names | {target.id for target in assigned if isinstance(target, ast.Name)}


MAX_PARTS = 12  # of a dotted name; no name of torch is longer


class _Resolver:
    """Collects in `found` the full dotted name and the line of everything that was imported."""

    def __init__(self, tree: ast.Module) -> None:
        self.names: dict[str, str] = {}
        self.stars: list[str] = []  # modules imported with `import *`
        self.found: set[tuple[str, int]] = set()
        nodes = list(ast.walk(tree))
        for node in nodes:
            if isinstance(node, ast.Import | ast.ImportFrom):
                self._import(node)
        for node in nodes:
            if isinstance(node, ast.Assign):
                self._assign(node)
        uses = (ast.Attribute, ast.Call, ast.Name) if self.stars else (ast.Attribute, ast.Call)
        for node in nodes:
            if isinstance(node, uses) and (full := self._resolve(node)):
                self.found.add((full, node.lineno))

    def _import(self, node: ast.Import | ast.ImportFrom) -> None:
        for alias in node.names:
            if isinstance(node, ast.Import):
                root = alias.name.partition(".")[0]
                self.names[alias.asname or root] = alias.name if alias.asname else root
            elif alias.name == "*":
                self.stars.append(node.module or "")
            else:
                full = f"{node.module or ''}.{alias.name}"
                self.names[alias.asname or alias.name] = full
                self.found.add((full, node.lineno))

    def _assign(self, node: ast.Assign) -> None:
        full = self._resolve(node.value)
        for target in node.targets:
            if isinstance(target, ast.Name) and full:
                self.names[target.id] = full

    def _resolve(self, node: ast.expr) -> str:
        """Return the full dotted name of `node`; empty if it is too long or not imported."""
        parts: list[str] = []
        while len(parts) < MAX_PARTS:
            match node:
                case ast.Attribute(attr=name, value=owner):
                    parts.append(name)
                case ast.Call(ast.Name("getattr"), [owner, ast.Constant(str(name)), *_]):
                    parts.append(name)
                case _:
                    root = self._root(node)
                    long = root.count(".") + len(parts) > MAX_PARTS
                    return "" if long or not root else ".".join([root, *reversed(parts)])
            node = owner
        return ""

    def _root(self, node: ast.expr) -> str:
        """Return the imported name at the start of a dotted name; empty if there is none."""
        match node:
            case ast.Name():
                star = f"{self.stars[-1]}.{node.id}" if self.stars else ""
                return self.names.get(node.id, star)
            case ast.Call(ast.Name("__import__"), [ast.Constant(str(name)), *_]):
                return name.partition(".")[0]
            case ast.Call(ast.Attribute(attr="import_module"), [ast.Constant(str(name)), *_]):
                return name
        return ""
