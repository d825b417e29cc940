"""The modules of this package that some code runs, found by the imports in their texts.

Nothing is imported: a module is a text in the package's folder.
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Collection, Iterator
from importlib.util import resolve_name
from pathlib import Path

PACKAGE = Path(__file__).parent.parent
DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


def modules_run_by(roots: Collection[str], package: Path = PACKAGE) -> list[Path]:
    """Return the files of the modules `roots` and of all that they import, directly or indirectly.

    An import in a function counts, and so does a text that is the name of a module, because a
    process may be started with it. If a package is imported for a module or a constant in it, only
    its top level counts, because none of its functions is called. Raises `LookupError` for a root
    that is not a module.
    """
    if missing := [root for root in roots if _file_of(root, package) is None]:
        raise LookupError(f"no module of {package}: {', '.join(missing)}")
    found: set[Path] = set()
    seen: set[tuple[str, bool]] = set()
    left = [(root, True) for root in roots]
    while left:
        name, whole = left.pop()
        file = _file_of(name, package)
        if file is None or (name, whole) in seen or (name, True) in seen:
            continue
        seen.add((name, whole))
        found.add(file)
        within = name if file.stem == "__init__" else name.rpartition(".")[0]
        left += _modules_named_in(file.read_text("utf-8"), package, within, whole)
        left.append((name.rpartition(".")[0], False))
    return sorted(found)


def modules_named_in(text: str) -> set[str]:
    """Return the modules of a package that a source outside of it imports. Raises `SyntaxError`."""
    return {name for name, _ in _modules_named_in(text, PACKAGE, "", whole=True)}


@functools.cache
def _modules_named_in(
    text: str, package: Path, within: str, whole: bool
) -> Collection[tuple[str, bool]]:
    """Return the modules that a source in the package `within` names, and if they run whole."""
    found: set[tuple[str, bool]] = set()
    for node in _nodes_run(ast.parse(text), whole=whole):
        match node:
            case ast.Import():
                named = [(alias.name, True) for alias in node.names]
            case ast.ImportFrom():
                source = resolve_name("." * node.level + (node.module or ""), within or None)
                parts = (alias.name for alias in node.names)
                named = [
                    (f"{source}.{part}", True)
                    if _file_of(f"{source}.{part}", package)
                    else (source, _calls(part, _file_of(source, package)))
                    for part in parts
                ]
            case ast.Constant(value=str(words)) if "." in words:
                named = [(words, True)]
            case _:
                continue
        found.update(each for each in named if _file_of(each[0], package))
    return found


def _calls(name: str, file: Path | None) -> bool:
    """Return whether an importer of `name` from a file may call a function of that file."""
    if file is None or file.stem != "__init__" or name == "*":
        return True
    body = ast.parse(file.read_text("utf-8")).body
    return any(isinstance(node, DEFINITIONS) and node.name == name for node in body)


def _nodes_run(tree: ast.Module, *, whole: bool) -> Iterator[ast.AST]:
    """Yield the nodes of a source, or only of its top level, without imports for types."""
    left: list[ast.AST] = [tree]
    while left:
        node = left.pop()
        match node:
            case ast.If(test=ast.Name(id="TYPE_CHECKING")):
                continue
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.Lambda() if not whole:
                continue
        yield node
        left += ast.iter_child_nodes(node)


def _file_of(name: str, package: Path) -> Path | None:
    top, *parts = name.split(".")
    if top != package.name or not all(part.isidentifier() for part in parts):
        return None
    place = package.joinpath(*parts)
    files = (place / "__init__.py", place.with_name(f"{place.name}.py"))
    return next((file for file in files if file.is_file()), None)
