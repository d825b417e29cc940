"""A student's source as a syntax tree, and the cells of a notebook that an exercise needs."""

from __future__ import annotations

import ast
import re
import symtable
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import NamedTuple

from grader.sandbox.cells import CELL, NOTEBOOK
from grader.syntax_trees import syntax_tree

MAX_NODES = 300_000  # nodes of a syntax tree
# Without any of these words, every forbidden name occurs literally in the text.
INDIRECT = re.compile(
    "attr|vars|dict|import_module|__import__|modules|builtins|eval|exec|globals|locals"
)
# Without any of these, a cell binds only names that occur literally in it, unless it puts them
# together: reading an attribute binds no name, nor does a module's `eval()` or `modules()`.
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
        body = syntax_tree(text).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return {*re.findall(r"^(?:async\s+def|def|class)\s+(\w+)", text, re.MULTILINE)}
    defined = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    names = {node.name for node in body if isinstance(node, defined)}
    assigned = (target for node in body if isinstance(node, ast.Assign) for target in node.targets)
    return names | {target.id for target in assigned if isinstance(target, ast.Name)}


def parsed(text: str, file: str = "<unknown>") -> ast.Module:
    """Return the tree of a source as it is run and searched: without its block for scripts.

    That block, `if __name__ == "__main__":`, is empty in the tree, because no file runs as a
    script.
    """
    tree = syntax_tree(text, file)
    for node in tree.body:
        if isinstance(node, ast.If) and _asks_for_script(node.test):
            node.body = [ast.copy_location(ast.Pass(), node.body[0])]
    return tree


def _asks_for_script(test: ast.expr) -> bool:
    match test:
        case ast.Compare(left=left, ops=[ast.Eq()], comparators=[right]):
            names = [side.id for side in (left, right) if isinstance(side, ast.Name)]
            values = [side.value for side in (left, right) if isinstance(side, ast.Constant)]
            return names == ["__name__"] and values == ["__main__"]
    return False


def searched_nodes(
    text: str, file: str, names: Collection[str], reaches_any: ReachesAny
) -> list[ast.AST]:
    """Return the nodes of a source; of a notebook, those of the cells that `names` need.

    A source or cell that does not parse has no nodes: loading it reports the error.
    `reaches_any` says whether a cell looks up attributes that may bind any name.
    """
    if not file.endswith(NOTEBOOK):
        return _nodes(text)
    cells = ((cell, _nodes(cell)) for cell in _cells(text))
    return _needed([_cell_of(*cell, reaches_any) for cell in cells if cell[1]], names)


class _CellNames(NamedTuple):
    """A cell: its nodes, and the global names and attributes that it sets and reads."""

    nodes: list[ast.AST]
    is_indirect: bool  # whether it may bind any name
    binds: set[str]
    imports: set[str]
    uses: set[str]
    sets: set[tuple[str, str]]  # attributes, each with the name that begins the way to its owner
    reads: set[str]

    def may_mean(self, wanted: set[str], not_imported: set[str]) -> bool:
        """Return whether it binds a wanted name, or imports one that others do not import."""
        return bool(self.binds & wanted or self.imports & not_imported)

    def may_set(self, read: set[str], modules: set[str]) -> bool:
        """Return whether it sets attributes of `modules` that other cells read."""
        return any(root in modules and part in read for root, part in self.sets)

    def may_change(self, bound: set[str]) -> bool:
        """Return whether it may change the objects of these names, such as a list of functions."""
        return self.is_indirect or bool(self.uses & bound)


def _needed(cells: Sequence[_CellNames], names: Collection[str]) -> list[ast.AST]:
    """Return the nodes of the cells that `names` need.

    A cell is needed if it may give a meaning to one of these names or to a name in a needed cell,
    or if it may change an object that a needed cell binds. If no cell defines the names, all are
    needed.
    """
    wanted = not_imported = set(names)
    needed = [cell for cell in cells if cell.may_mean(wanted, not_imported)]
    if not needed:
        return [node for cell in cells for node in cell.nodes]
    # Setting an attribute of an object that the notebook made changes only that object.
    made = set[str]().union(*(cell.binds for cell in cells))
    modules = set[str]().union(*(cell.imports for cell in cells)) - made
    size = 0
    while size < len(needed):
        size = len(needed)
        wanted = set(names).union(*(cell.uses for cell in needed))
        not_imported = set[str]().union(*(cell.uses - cell.imports for cell in needed))
        read = set[str]().union(*(cell.reads for cell in needed))
        bound = wanted & set[str]().union(*(cell.binds for cell in needed))
        needed = [
            each
            for each in cells
            if each.may_mean(wanted, not_imported)
            or each.may_set(read, modules)
            or each.may_change(bound)
        ]
    return [node for cell in needed for node in cell.nodes]


def _cell_of(text: str, nodes: list[ast.AST], reaches_any: ReachesAny) -> _CellNames:
    is_indirect = BINDS_ANY.search(text) is not None or reaches_any(nodes)
    cell = _CellNames(nodes, is_indirect, *(set() for _ in range(5)))
    try:
        _add_names(cell, symtable.symtable(text, "cell", "exec"))
    except SyntaxError:  # perhaps in its block for scripts, without which the cell runs
        return cell._replace(is_indirect=True)
    for node in cell.nodes:
        match node:
            case ast.Name(id=name, ctx=ast.Store()) if name in cell.imports:
                cell.binds.add(name)
            # A name whose attribute is set means something else from then on, and its owner may be
            # a module.
            case ast.Attribute(value=ast.Name(id=name), attr=part, ctx=ast.Store()):
                cell.binds.update({name} & cell.uses, () if name == "self" else [part])
                cell.sets.add((name, part))
            case ast.Attribute(attr=part, ctx=ast.Store()):
                cell.binds.add(part)
                cell.sets.add((root_name(node), part))
            case ast.Attribute(attr=part):
                cell.reads.add(part)
            case ast.alias(name="*"):
                return cell._replace(is_indirect=True)
    return cell


def root_name(node: ast.expr) -> str:
    """Return the name that a chain of attributes begins with; empty if it begins otherwise."""
    while isinstance(node, ast.Attribute):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


def _add_names(cell: _CellNames, top: symtable.SymbolTable) -> None:
    """Add the global names that a cell binds, imports and uses, also within its functions."""
    tables = [top]
    for table in tables:
        tables += table.get_children()
        for symbol in table.get_symbols():
            if table is top or symbol.is_global():
                if symbol.is_imported():
                    cell.imports.add(symbol.get_name())
                elif symbol.is_assigned() or symbol.is_namespace():
                    cell.binds.add(symbol.get_name())
                if symbol.is_referenced():
                    cell.uses.add(symbol.get_name())


def _cells(text: str) -> Iterator[str]:
    """Yield the cells of a notebook, each with empty lines in front that keep its line numbers."""
    lines = text.split("\n")
    starts = [0, *(n for n, line in enumerate(lines) if line.startswith(CELL))]
    for start, end in zip(starts, [*starts[1:], len(lines)]):
        yield "\n" * start + "\n".join(lines[start:end])


def _nodes(text: str) -> list[ast.AST]:
    """Return the nodes of a source; none if it does not parse, which loading it reports."""
    try:
        tree = parsed(text)
    except (SyntaxError, ValueError):
        return []
    nodes = []
    for node in ast.walk(tree):
        nodes.append(node)
        if len(nodes) > MAX_NODES:
            raise Unsearchable(f"its syntax tree has more than {MAX_NODES} nodes")
    return nodes
