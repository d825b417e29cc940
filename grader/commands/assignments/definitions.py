"""The definitions and needs of code, found without running it."""

from __future__ import annotations

import ast
import builtins
import importlib.machinery
import os
import symtable
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from grader.commands.assignments.question import CodeCell

UNREADABLE = (SyntaxError, ValueError, RecursionError, MemoryError)
GIVEN = frozenset(dir(builtins)) | {"__name__", "__file__", "get_ipython", "display"}
NOSE = "nose"  # today's Python no longer has it; `checks` does the same without it
DEFINITION = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
IMPORT = (ast.Import, ast.ImportFrom)


@dataclass(frozen=True, eq=False)
class Statement:
    """One statement at the top level of a cell, with the names that it binds and needs."""

    cell: int
    text: str
    node: ast.stmt
    binds: frozenset[str]
    needs: frozenset[str]

    @property
    def is_import(self) -> bool:
        """Whether it imports."""
        return isinstance(self.node, IMPORT)

    @property
    def is_definition(self) -> bool:
        """Whether it defines a function or a class."""
        return isinstance(self.node, DEFINITION)

    @property
    def is_constant(self) -> bool:
        """Whether it gives a name a value without computing anything."""
        value = getattr(self.node, "value", None)
        if not isinstance(self.node, ast.Assign | ast.AnnAssign) or value is None:
            return False
        try:
            ast.literal_eval(value)
        except UNREADABLE:
            return False
        return not self.needs


def statements_of(cell: CodeCell) -> list[Statement]:
    """Return the statements of a cell; none if it does not parse."""
    try:
        nodes = ast.parse(cell.code).body
        return [_statement(cell, node) for node in nodes]
    except UNREADABLE:
        return []


def defined_in(code: str) -> list[str]:
    """Return the functions and classes that code defines at its top level."""
    nodes = (statement.node for statement in statements_of(CodeCell(0, code)))
    return [node.name for node in nodes if isinstance(node, DEFINITION)]


def source_of(code: str, node: ast.stmt) -> str:
    """Return the lines of a statement, with its decorators."""
    return "\n".join(code.split("\n")[first_line_of(node) - 1 : node.end_lineno])


def first_line_of(node: ast.stmt) -> int:
    """Return the first line of a statement, or of its first decorator."""
    decorators: list[ast.expr] = getattr(node, "decorator_list", [])
    return min([node.lineno, *(each.lineno for each in decorators)])


def _statement(cell: CodeCell, node: ast.stmt) -> Statement:
    segment = ast.get_source_segment(cell.code, node) or ""
    text = source_of(cell.code, node) if isinstance(node, DEFINITION) else segment
    binds, needs = names_in(text)
    return Statement(cell.cell, text, node, binds, needs)


def names_in(code: str) -> tuple[frozenset[str], frozenset[str]]:
    """Return the names that code binds at its top level, and the names that it uses."""
    top = symtable.symtable(code, "<cell>", "exec")
    bound = {
        symbol.get_name()
        for symbol in top.get_symbols()
        if symbol.is_assigned() or symbol.is_imported() or symbol.is_namespace()
    }
    return frozenset(bound), frozenset(_referred(top, is_top=True)) - GIVEN


def _referred(table: symtable.SymbolTable, *, is_top: bool = False) -> Iterator[str]:
    for symbol in table.get_symbols():
        if symbol.is_referenced() and (is_top or symbol.is_global()):
            yield symbol.get_name()
    for child in table.get_children():
        yield from _referred(child)


@dataclass
class Carried:
    """The statements of other cells that some code needs, and the names not found."""

    imports: list[Statement] = field(default_factory=list)
    others: list[Statement] = field(default_factory=list)
    earlier: dict[str, str] = field(default_factory=dict)  # names that earlier exercises define
    unknown: set[str] = field(default_factory=set)


class Definitions:
    """The statements of a whole notebook, in order; finds those that later code needs."""

    def __init__(
        self, cells: Iterable[CodeCell], exercises: Sequence[tuple[int, str, str]]
    ) -> None:
        """`exercises` has the cell, the name and the exercise of each function to be written."""
        ordered = sorted(cells, key=lambda cell: cell.cell)
        self._statements = [each for cell in ordered for each in statements_of(cell)]
        self._places = defaultdict[str, list[int]](list)  # of the statements that bind a name
        for place, each in enumerate(self._statements):
            for name in each.binds:
                self._places[name].append(place)
        self._exercises = exercises
        self.used: set[int] = set()  # cells with statements that were carried over

    def carried(self, names: Iterable[str], cell: int, own: Iterable[str] = ()) -> Carried:
        """Return the statements that a cell needs for `names`; `own` names are there already."""
        found, queue, seen = Carried(), [(name, cell) for name in sorted(names)], {*own, *GIVEN}
        chosen: dict[int, Statement] = {}
        while queue:
            name, before = queue.pop()
            if name in seen:
                continue
            seen.add(name)
            defines = [one for one in self._exercises if one[1] == name and one[0] < before]
            places = self._binding(name, before)
            if defines and (not places or self._statements[places[0]].cell <= defines[-1][0]):
                found.earlier[name] = defines[-1][2]
                continue
            if not places:
                found.unknown.add(name)
            for place in places:
                chosen[place] = self._statements[place]
                needs = sorted(self._statements[place].needs)
                queue += [(needed, cell) for needed in needs]
        if found.unknown and (stars := self._stars(cell)):
            chosen, found.unknown = chosen | stars, set()  # they may come from there
        return self._sorted(chosen, found)

    def _stars(self, before: int) -> dict[int, Statement]:
        return {
            place: each
            for place, each in enumerate(self._statements)
            if each.cell < before and each.text.endswith("import *") and is_importable(each)
        }

    def _binding(self, name: str, before: int) -> list[int]:
        """Return the places of the statements that give a name its value."""
        places = []
        for place in reversed(self._places[name]):
            each = self._statements[place]
            if each.cell < before and is_importable(each):
                places.append(place)
                if name not in each.needs or each.is_definition:
                    return places[::-1]
        return []

    def _sorted(self, chosen: dict[int, Statement], found: Carried) -> Carried:
        self.used |= {each.cell for each in chosen.values()}
        values = [each for each in chosen.values() if not each.is_import and not each.is_definition]
        seeded = {each.cell for each in values if not each.is_constant}
        seeds = {
            place: each
            for place, each in enumerate(self._statements if seeded else [])
            if each.cell in seeded and each.text.startswith("torch.manual_seed(")
        }
        every = [each for _, each in sorted((chosen | seeds).items())]
        found.imports = [each for each in every if each.is_import]
        found.others = [each for each in every if not each.is_import]
        return found


def is_importable(statement: Statement) -> bool:
    """Return whether an import finds its package here; true for any other statement."""
    node = statement.node
    if isinstance(node, ast.ImportFrom):
        return not node.level and _is_installed(node.module or "")
    return not isinstance(node, ast.Import) or all(_is_installed(one.name) for one in node.names)


def grouped(imports: Iterable[str]) -> str:
    """Return imports in the order of Python's style guide: first those of Python itself."""
    ours, theirs = list[str](), list[str]()
    for text in sorted(set(imports), key=lambda text: (text.startswith("from"), text)):
        is_own = text.split()[1].partition(".")[0] in sys.stdlib_module_names
        (ours if is_own else theirs).append(text)
    return "\n\n".join("\n".join(group) for group in (ours, theirs) if group)


def _is_installed(module: str) -> bool:
    """Return whether a module of Python or of a package is there; nothing is imported.

    Modules in the current folder do not count, because no exercise finds them later.
    """
    top = module.partition(".")[0]
    if top == NOSE:
        return False
    if top in sys.stdlib_module_names:
        return True
    here = {"", str(Path.cwd())}
    folders = [folder for folder in sys.path if os.path.abspath(folder) not in here and folder]
    return importlib.machinery.PathFinder.find_spec(top, folders) is not None
