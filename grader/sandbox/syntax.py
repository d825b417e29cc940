"""A student's source as a syntax tree, and which cells of a notebook an exercise needs."""

from __future__ import annotations

import ast
import contextlib
import re
import symtable
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import NamedTuple

from grader.sandbox.cells import CELL, NOTEBOOK

MAX_NODES = 300_000  # of a syntax tree
# The words without which every forbidden name stands in the text as it is.
INDIRECT = re.compile(
    "attr|vars|dict|import_module|__import__|modules|builtins|eval|exec|globals|locals"
)
# And those without which a cell binds only names that stand in it, unless it puts them together: to
# read an attribute binds none, nor does a module's `eval()` or `modules()`.
BINDS_ANY = re.compile(
    r"(?:set|del)attr|\bvars\b|__dict__|import_module|__import__|\bmodules\b(?!\()|builtins"
    r"|(?<![.\w])eval\b|\bexec\b|globals|locals"
)


ReachesAny = Callable[[list[ast.AST]], bool]


class Unsearchable(Exception):
    """A source that is too large, too deep or too tangled to be searched."""


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


def drop_script(tree: ast.Module) -> None:
    """Empty the blocks `if __name__ == "__main__":` of a file, which is never run as a script."""
    for node in tree.body:
        match node:
            case ast.If(test=ast.Compare(left=left, ops=[ast.Eq()], comparators=[right])):
                sides = {ast.unparse(side) for side in (left, right)}
                if sides == {"__name__", "'__main__'"}:
                    node.body = [ast.copy_location(ast.Pass(), node.body[0])]


def searched_nodes(
    text: str, file: str, names: Collection[str], reaches_any: ReachesAny
) -> list[ast.AST]:
    """Return the nodes of a source, of a notebook those of the cells that `names` need.

    A source that does not parse has none, and a notebook's cell neither: loading it tells.
    `reaches_any` says whether a cell looks attributes up by which it may bind any name.
    """
    if not file.endswith(NOTEBOOK):
        with contextlib.suppress(SyntaxError, ValueError):
            return _nodes(text)
        return []
    cells = []
    for cell in _cells(text):
        with contextlib.suppress(SyntaxError, ValueError):
            cells.append(_cell_of(cell, reaches_any))
    return _needed(cells, names)


class _CellNames(NamedTuple):
    """A cell: its nodes, and the global names that it binds, imports and uses."""

    nodes: list[ast.AST]
    binds: set[str]
    imports: set[str]
    uses: set[str]
    is_indirect: bool  # whether it may bind any name

    def may_mean(self, wanted: set[str], not_imported: set[str]) -> bool:
        """Return whether it may give a meaning to names that others want, or do not import."""
        return bool(self.binds & wanted or self.imports & not_imported)

    def may_change(self, bound: set[str]) -> bool:
        """Return whether it may change what these names mean, such as a list of functions."""
        return self.is_indirect or bool(self.uses & bound)


def _needed(cells: Sequence[_CellNames], names: Collection[str]) -> list[ast.AST]:
    """Return the nodes of those cells of which some of `names` need something.

    A cell is needed if it may give a meaning to one of these names or to a name in a needed cell,
    or change what a needed cell binds. If no cell defines the names, all are.
    """
    wanted = not_imported = set(names)
    needed = [cell for cell in cells if cell.may_mean(wanted, not_imported)]
    if not needed:
        return [node for cell in cells for node in cell.nodes]
    size = 0
    while size < len(needed):
        size = len(needed)
        wanted = set(names).union(*(cell.uses for cell in needed))
        not_imported = set[str]().union(*(cell.uses - cell.imports for cell in needed))
        bound = wanted & set[str]().union(*(cell.binds for cell in needed))
        needed = [
            each for each in cells if each.may_mean(wanted, not_imported) or each.may_change(bound)
        ]
    return [node for cell in needed for node in cell.nodes]


def _cell_of(text: str, reaches_any: ReachesAny) -> _CellNames:
    nodes = _nodes(text)
    is_indirect = BINDS_ANY.search(text) is not None or reaches_any(nodes)
    cell = _CellNames(nodes, set(), set(), set(), is_indirect)
    tables = [symtable.symtable(text, "cell", "exec")]
    for table in tables:
        tables += table.get_children()
        is_top = table.get_type() == "module"
        for symbol in table.get_symbols():
            if is_top or symbol.is_global():
                if symbol.is_imported():
                    cell.imports.add(symbol.get_name())
                elif symbol.is_assigned() or symbol.is_namespace():
                    cell.binds.add(symbol.get_name())
                if symbol.is_referenced():
                    cell.uses.add(symbol.get_name())
    for node in cell.nodes:
        match node:
            case ast.Name(id=name, ctx=ast.Store()) if name in cell.imports:
                cell.binds.add(name)
            # What has an attribute that is set means something else from then on; and what it is
            # set of may be the module.
            case ast.Attribute(value=ast.Name(id=name), attr=part, ctx=ast.Store()):
                cell.binds.update({name} & cell.uses, () if name == "self" else [part])
            case ast.Attribute(attr=part, ctx=ast.Store()):
                cell.binds.add(part)
            case ast.alias(name="*"):
                return cell._replace(is_indirect=True)
    return cell


def _cells(text: str) -> Iterator[str]:
    """Yield the cells of a notebook, each with empty lines in front that keep its line numbers."""
    lines = text.split("\n")
    starts = [0, *(n for n, line in enumerate(lines) if line.startswith(CELL))]
    for start, end in zip(starts, [*starts[1:], len(lines)]):
        yield "\n" * start + "\n".join(lines[start:end])


def _nodes(text: str) -> list[ast.AST]:
    nodes = []
    tree = ast.parse(text)
    drop_script(tree)
    for node in ast.walk(tree):
        nodes.append(node)
        if len(nodes) > MAX_NODES:
            raise Unsearchable(f"its syntax tree has more than {MAX_NODES} nodes")
    return nodes
