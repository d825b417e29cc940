"""Reading a student's source, without running it, for calls that an exercise forbids."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable
from fnmatch import fnmatchcase
from typing import Any

from grader.report import Frame


def forbidden_calls(text: str, file: str, patterns: Iterable[str]) -> list[Frame]:
    """Places that name something matching a pattern such as `torch*.layer_norm`.

    Names are resolved through imports, aliases and `getattr` with a constant: `F.layer_norm`,
    `from torch.nn.functional import layer_norm as ln` and `getattr(F, "layer_norm")` are all
    `torch.nn.functional.layer_norm`. The full name is in the frame's `function`. A source that
    does not parse has none; loading it says what is wrong.
    """
    patterns = tuple(patterns)
    if not any(_landmark(pattern) in text for pattern in patterns):
        return []
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []
    lines = text.splitlines()
    found = _Resolver(tree).found
    return [
        Frame(file, line, lines[line - 1].strip() if line <= len(lines) else "", 0, name)
        for name, line in sorted(found, key=lambda found: found[1])
        if any(fnmatchcase(name, pattern) for pattern in patterns)
    ]


def _landmark(pattern: str) -> str:
    """The longest plain piece of a pattern: a text without it has nothing to resolve."""
    return max(re.split(r"[*?\[\].]+", pattern.partition("torch")[2]), key=len)


def top_level_names(text: str) -> set[str]:
    """The functions, classes and variables that a source defines, as far as it can be read."""
    try:
        body = ast.parse(text).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return {*re.findall(r"^(?:async\s+def|def|class)\s+(\w+)", text, re.MULTILINE)}
    defined = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    names = {node.name for node in body if isinstance(node, defined)}
    assigned = (target for node in body if isinstance(node, ast.Assign) for target in node.targets)
    return names | {target.id for target in assigned if isinstance(target, ast.Name)}


MAX_PARTS = 12  # of a dotted name; a longer one is none of torch's


class _Resolver:
    """Collects, as `found`, the full dotted name of everything that leads back to an import."""

    def __init__(self, tree: ast.Module) -> None:
        self.names: dict[str, str] = {}
        self.stars: list[str] = []  # modules of which every name was imported
        self.found: set[tuple[str, int]] = set()
        nodes = list(ast.walk(tree))
        for node in nodes:
            if isinstance(node, ast.Import | ast.ImportFrom):
                self._import(node)
        for node in nodes:
            if isinstance(node, ast.Assign):
                self._assign(node)
        for node in nodes:
            if isinstance(node, ast.Attribute | ast.Call) or (
                self.stars and isinstance(node, ast.Name)
            ):
                self._note(node)

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

    def _note(self, node: Any) -> None:
        full = self._resolve(node)
        if full:
            self.found.add((full, node.lineno))

    def _resolve(self, node: ast.expr) -> str:
        """The full dotted name of what `node` names, or nothing; no name has many parts."""
        parts: list[str] = []
        while len(parts) < MAX_PARTS:
            match node:
                case ast.Attribute(attr=name, value=owner):
                    pass
                case ast.Call(
                    func=ast.Name(id="getattr"), args=[owner, ast.Constant(value=str(name)), *_]
                ):
                    pass
                case _:
                    root = self._root(node)
                    long = root.count(".") + len(parts) > MAX_PARTS
                    return "" if long or not root else ".".join([root, *reversed(parts)])
            parts.append(name)
            node = owner
        return ""

    def _root(self, node: ast.expr) -> str:
        match node:
            case ast.Name():
                star = f"{self.stars[-1]}.{node.id}" if self.stars else ""
                return self.names.get(node.id, star)
            case ast.Call(func=ast.Name(id="__import__"), args=[ast.Constant(value=str(name)), *_]):
                return name.partition(".")[0]
            case ast.Call(
                func=ast.Attribute(attr="import_module"), args=[ast.Constant(value=str(name)), *_]
            ):
                return name
        return ""
