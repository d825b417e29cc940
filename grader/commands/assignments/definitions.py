"""The definitions and needs of code, found without running it."""

from __future__ import annotations

import ast
import builtins
import importlib.machinery
import symtable
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from grader.commands.assignments.question import CodeCell

UNREADABLE = (SyntaxError, ValueError, RecursionError, MemoryError)
GIVEN = frozenset(dir(builtins)) | {"__name__", "__file__", "get_ipython", "display"}
NOSE = "nose"  # no Python of today runs it; `checks` says the same without it
NOTHING = frozenset[str]()


@dataclass(frozen=True, eq=False)
class Statement:
    """One statement at the top level of a cell, with the names that it binds and needs."""

    source: CodeCell
    node: ast.stmt
    kind: str  # "import", "not installed", "definition", "constant", "text" or "computed"
    text: str
    binds: frozenset[str]
    needs: frozenset[str]
    exercise: str = ""  # that asks students for what this defines


def statements_of(source: CodeCell) -> list[Statement]:
    """Return the statements of a cell; none if it does not parse."""
    lines, found = source.code.encode().split(b"\n"), list[Statement]()
    try:
        for node in ast.parse(source.code).body:
            kind, numbers = _kind(node), lines_of(node)
            text = b"\n".join(lines[numbers.start - 1 : numbers.stop - 1])
            if kind != "definition":  # it may share its lines with others
                after = len(lines[numbers.stop - 2]) - (node.end_col_offset or 0)
                text = text[node.col_offset : len(text) - after]
            found.append(Statement(source, node, kind, text.decode(), *names_in(text.decode())))
    except UNREADABLE:
        return []
    return found


def _kind(node: ast.stmt) -> str:
    match node:
        case ast.Import(names=names):
            return "import" if all(_is_installed(each.name) for each in names) else "not installed"
        case ast.ImportFrom(module=module, level=level):
            return "import" if not level and _is_installed(module or "") else "not installed"
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
            return "definition"
        case ast.Expr(value=ast.Constant()):
            return "text"
        case ast.Assign(value=value) | ast.AnnAssign(value=value) if is_literal(value):
            return "constant"
    return "computed"


def has_statements(code: str) -> bool:
    """Return whether code does more than to describe itself; what does not parse may do more."""
    try:
        return any(_kind(node) != "text" for node in ast.parse(code).body)
    except UNREADABLE:
        return True


def is_literal(value: ast.expr | str | None) -> bool:
    """Return whether an expression is a plain value."""
    try:
        ast.literal_eval(value or "")
    except UNREADABLE:
        return False
    return True


def lines_of(node: ast.stmt) -> range:
    """Return the numbers of a statement's lines, with those of its decorators."""
    first = (getattr(node, "decorator_list", None) or [node])[0].lineno
    return range(first, (node.end_lineno or first) + 1)


def names_in(code: str) -> tuple[frozenset[str], frozenset[str]]:
    """Return the names that code binds at its top level, and the names that it uses."""
    top = symtable.symtable(code, "<cell>", "exec")
    bound = {
        symbol.get_name()
        for symbol in top.get_symbols()
        if symbol.is_assigned() or symbol.is_imported() or symbol.is_namespace()
    }
    return frozenset(bound), frozenset(_referred(top)) - GIVEN


def _referred(table: symtable.SymbolTable) -> Iterator[str]:
    for symbol in table.get_symbols():
        if symbol.is_referenced() and (symbol.is_global() or table.get_type() == "module"):
            yield symbol.get_name()
    for child in table.get_children():
        yield from _referred(child)


@dataclass
class Code:
    """The code of a notebook, in order, and the cells of which a file uses something."""

    statements: Sequence[Statement]
    used: set[CodeCell] = field(default_factory=set)

    def needed(
        self, names: Iterable[str], cell: int, part: str, given: Iterable[str] = (), own: str = ""
    ) -> tuple[list[Statement], set[str]]:
        """Return the statements before a cell that bind names, and the names that none binds.

        They are in plain cells, in those of `part`, or asked for by an exercise. Nothing is needed
        for names that are `given`, nor by answers except those of exercise `own`.
        """
        before = [
            each
            for each in self.statements
            if each.source.cell < cell and (each.exercise or each.source.part in ("plain", part))
        ]
        wanted, chosen, size = {*names}, set[Statement](), -1
        while len(chosen) > size:  # a function may need names that are bound below it
            size, missing = len(chosen), wanted - {*given}
            for each in reversed(before):
                if each.binds & missing and each.kind != "not installed":
                    chosen.add(each)
                    needs = each.needs - {*given} if each.exercise in ("", own) else NOTHING
                    if each.kind == "definition":
                        wanted |= needs
                        needs -= each.binds
                    missing -= NOTHING if each.binds & needs else each.binds
                    missing |= needs
        stars = {s for s in before if s.text.endswith("import *") and s.kind == "import"}
        if missing and stars:
            chosen, missing = chosen | stars, set()  # they may come from there
        drawn = {each.source for each in chosen if each.kind == "computed"}
        seeds = {each for each in before if each.text.startswith("torch.manual_seed(")}
        chosen |= {seed for seed in seeds if seed.source in drawn}
        self.used |= {each.source for each in chosen}
        return [each for each in before if each in chosen], missing


def indented(code: str) -> str:
    """Return code one step to the right; the lines of its strings stay where they are."""
    inside = {
        line
        for node in ast.walk(ast.parse(code))
        if isinstance(node, ast.Constant | ast.JoinedStr)
        for line in range(node.lineno + 1, (node.end_lineno or node.lineno) + 1)
    }
    lines = enumerate(code.split("\n"), start=1)
    return "\n".join(text if n in inside or not text else f"    {text}" for n, text in lines)


def grouped(imports: Iterable[str]) -> str:
    """Return imports in the order of Python's style guide: first those of Python itself."""
    ordered = sorted(set(imports), key=lambda text: (text.startswith("from"), text))
    groups = [[text for text in ordered if _is_pythons(text.split()[1]) == own] for own in (1, 0)]
    return "\n\n".join("\n".join(group) for group in groups if group)


def _is_pythons(module: str) -> bool:
    return module.partition(".")[0] in sys.stdlib_module_names


def _is_installed(module: str) -> bool:
    """Return whether a module of Python or of a package is there; nothing is imported.

    Modules in the current folder do not count, because no exercise finds them later.
    """
    top, here = module.partition(".")[0], Path.cwd()
    folders = [folder for folder in sys.path if folder and Path(folder).absolute() != here]
    is_found = top != NOSE and importlib.machinery.PathFinder.find_spec(top, folders)
    return bool(_is_pythons(module) or is_found)
