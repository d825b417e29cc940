"""Which cells of a notebook count, and what a teacher should know about the others.

A definition may be left in a cell that is no code, go on in the next cell, or be given twice. What
is there for an exercise is used if there is no doubt, and flagged; nothing is run for that.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from textwrap import dedent
from typing import NamedTuple

from grader.course.course import Exercise
from grader.course.stubs import is_untouched, only_code, untouched_text
from grader.submissions.notes import for_review
from grader.syntax_trees import syntax_tree

MAX_CELLS = 5000
MAX_CELL = 64 * 1024  # characters of a cell without code that may be code; others hold pictures
MAX_JOINED = 400_000  # characters of cells that are parsed to see whether they can be joined
MAX_DEFINITIONS = 20  # of one name that are compared, the last ones
METHOD = (ast.FunctionDef, ast.AsyncFunctionDef)
BLOCK = (*METHOD, ast.ClassDef)
FENCED = re.compile(r"^ {0,3}(```|~~~).*?(?:^ {0,3}\1|\Z)", re.MULTILINE | re.DOTALL)
DEFINED = re.compile(r"^(?:(?:async[ \t]+)?def|class)[ \t]+(\w+)|^(\w+)[ \t]*=(?!=)", re.MULTILINE)
INDENTED = re.compile(r"^[ \t]*(?:async[ \t]+def|def|class)[ \t]+\w", re.MULTILINE)


@dataclass
class SourceCell:
    """A cell: of what kind it is, its source, and its code, empty as long as it is not used."""

    kind: str
    source: str
    code: str = ""

    @property
    def is_code(self) -> bool:
        """Whether it is run."""
        return self.kind == "code"

    @property
    def is_text(self) -> bool:
        """Whether it may be code that is not run."""
        return not self.is_code and len(self.source) <= MAX_CELL

    def defines(self, name: str) -> bool:
        """Return whether a name is defined at the start of a line."""
        return name in defined_names(self.code if self.is_code else self.source)

    def is_stub(self, exercise: Exercise) -> bool:
        """Return whether nothing was written for an exercise."""
        return is_untouched(self.code, untouched_text(exercise))


@lru_cache(maxsize=MAX_CELLS)
def defined_names(text: str) -> frozenset[str]:
    """Return the names that are defined at the start of a line; the text need not parse."""
    return frozenset(name for names in DEFINED.findall(text) for name in names if name)


@dataclass
class NotebookCells:
    """The cells of one notebook; `remarks` are about them, those that need review as flags."""

    cells: list[SourceCell]
    exercises: Sequence[Exercise]
    remarks: list[str] = field(default_factory=list)

    def choose(self) -> list[str]:
        """Return the code of the cells that count, in order."""
        for exercise in self.exercises:
            for name in exercise.implements:
                self._use_text(exercise, name)
        self._join()
        self._remark_on_broken()
        for exercise in self.exercises:
            for name in exercise.implements:
                self._choose_definition(exercise, name)
                self._remark_on_changed(name)
        return [cell.code for cell in self._code]

    @property
    def _code(self) -> list[SourceCell]:
        return [cell for cell in self.cells if cell.is_code]

    def _flag(self, says: str) -> None:
        self.remarks.append(for_review(says))

    def _use_text(self, exercise: Exercise, name: str) -> None:
        """Use the only cell without code that defines a name which no code cell defines."""
        code = [cell for cell in self._code if cell.defines(name)]
        if not all(cell.is_stub(exercise) for cell in code):
            return
        texts = [one for one in self.cells if one.is_text and one.defines(name)]
        usable = {only_code(one.source): one for one in texts if _parses(one.source)}
        if len(usable) == 1:
            (cell,) = usable.values()
            self._flag(f"a {cell.kind} cell was used as code, because it alone defines `{name}`")
            cell.kind, cell.code = "code", cell.source
        elif len(usable) > 1:
            self._flag(f"several cells that are no code define `{name}`, so none was used")
        elif not code and any(not _is_fenced(one.source, name) for one in texts):
            self._flag(f"a cell that is no code defines `{name}`, but is no valid Python either")

    def _join(self) -> None:
        """Join what is indented and cannot stand alone with the code cell before."""
        last: SourceCell | None = None
        left = MAX_JOINED
        for number, cell in enumerate(self._code, start=1):
            if last is not None and _continues(cell.source):
                joined = f"{last.code.rstrip()}\n{cell.source}"
                left -= len(joined)
                if left >= 0 and isinstance([None, *_parsed(joined).body][-1], BLOCK):
                    last.code, cell.code = joined, ""
                    self._flag(f"cell {number} was joined with the one before, whose block goes on")
                    continue
            if cell.code.strip():
                last = cell

    def _remark_on_broken(self) -> None:
        asked = [name for each in self.exercises for name in each.implements]
        for number, cell in enumerate(self._code, start=1):
            if _parses(cell.code):
                continue
            says = f"cell {number} is no valid Python and was left out"
            may_count = INDENTED.search(cell.code) or any(name in cell.code for name in asked)
            self.remarks.append(for_review(says) if may_count else says)

    def _choose_definition(self, exercise: Exercise, name: str) -> None:
        """Leave out a stub that comes after work; flag a name that is defined in several ways."""
        defining = [
            (number, cell)
            for number, cell in enumerate(self._code, start=1)
            if cell.defines(name) and _parses(cell.code)
        ][-MAX_DEFINITIONS:]
        if len(defining) < 2:
            return
        work = [(number, cell) for number, cell in defining if not cell.is_stub(exercise)]
        if work and defining[-1][1].is_stub(exercise):
            number, stub = defining[-1]
            stub.code = _without_definition(stub.code, name)
            self._flag(f"cell {number} has the stub of `{name}` again, which was left out")
        numbers = {_definition(cell.code, name): number for number, cell in work}
        numbers.pop("", None)
        if len(numbers) > 1:
            last = max(numbers.values())
            self._flag(
                f"`{name}` is defined in {len(numbers)} ways; cell {last} counts as the last"
            )

    def _remark_on_changed(self, name: str) -> None:
        """Flag a variable that a definition reads and a later cell sets to something else.

        The student may have seen the right answer before that cell ran.
        """
        cells = list(enumerate(self._code, start=1))
        places = [at for at, (_, cell) in enumerate(cells) if cell.defines(name)]
        if not places:
            return
        before, after = cells[: places[-1] + 1], cells[places[-1] + 1 :]
        for variable in sorted(_names_read(before[-1][1].code, name)):
            values = [_definition(cell.code, variable) for _, cell in before]
            known = next(filter(None, reversed(values)), "")
            for number, cell in after if known else ():
                if _definition(cell.code, variable) not in ("", known):
                    self._flag(f"`{variable}`, which `{name}` reads, is set again in cell {number}")
                    break


def _names_read(code: str, name: str) -> set[str]:
    """Return the names that a definition in a cell reads and does not define itself."""
    read, own = set[str](), {name}
    for node in _body(code):
        if isinstance(node, BLOCK) and node.name == name:
            for part in ast.walk(node):
                match part:
                    case ast.Name(id=word, ctx=ast.Load()):
                        read.add(word)
                    case ast.Name(id=word) | ast.arg(arg=word):
                        own.add(word)
    return read - own


def _without_definition(code: str, name: str) -> str:
    """Return the code of a cell with the functions and classes of this name commented out."""
    lines = code.splitlines()
    for node in _body(code):
        if isinstance(node, BLOCK) and node.name == name:
            for at in range(min(_first_lines(node)) - 1, node.end_lineno or node.lineno):
                lines[at] = f"# {lines[at]}"
    return "\n".join(lines)


def _first_lines(node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> Iterator[int]:
    yield from (each.lineno for each in (node, *node.decorator_list))


def _is_fenced(source: str, name: str) -> bool:
    """Return whether Markdown defines a name only in blocks of code, such as an example."""
    return name not in defined_names(FENCED.sub("", source))


def _continues(source: str) -> bool:
    """Return whether a cell is indented as a whole, and only the rest of another block."""
    lines = [line for line in source.splitlines() if line.strip()]
    if not lines or not all(line[0] in " \t" for line in lines):
        return False
    body = _body(dedent(source))
    return (
        not body
        or all(_is_method(node) for node in body)
        or any(isinstance(node, ast.Return) for node in body)
    )


def _is_method(node: ast.stmt) -> bool:
    return isinstance(node, METHOD) and [arg.arg for arg in node.args.args[:1]] == ["self"]


def _definition(code: str, name: str) -> str:
    """Return the code of the last definition of a name in a cell.

    What builds on an earlier definition, such as a class with a base of its own name, is no other.
    """
    found = ""
    for node in _body(code):
        match node:
            case ast.FunctionDef(name=own) | ast.AsyncFunctionDef(name=own) if own == name:
                found = _code_of(node, code)
            case ast.ClassDef(name=own, bases=bases) if own == name:
                found = "" if any(_uses(base, name) for base in bases) else _code_of(node, code)
            case ast.Assign(targets=[ast.Name(id=own)], value=value) if own == name:
                found = found if _uses(value, name) else _code_of(node, code)
    return found


def _code_of(node: ast.stmt, code: str) -> str:
    return only_code("\n".join(code.splitlines()[node.lineno - 1 : node.end_lineno]))


def _uses(node: ast.expr, name: str) -> bool:
    return any(isinstance(part, ast.Name) and part.id == name for part in ast.walk(node))


def _body(code: str) -> Sequence[ast.stmt]:
    return parsed_cell(code).body


def _parses(code: str) -> bool:
    return not parsed_cell(code).problem


class ParsedCell(NamedTuple):
    """The statements of a cell or, if it is no Python, the reason."""

    body: Sequence[ast.stmt]
    problem: str = ""


def _parsed(code: str) -> ParsedCell:
    try:
        return ParsedCell(syntax_tree(code).body)
    except SyntaxError as error:
        return ParsedCell((), f"{error.msg} (line {error.lineno} of the cell)")
    except (ValueError, RecursionError, MemoryError) as error:
        return ParsedCell((), str(error) or "too deeply nested")


parsed_cell = lru_cache(maxsize=MAX_CELLS)(_parsed)  # each cell is asked for several times
