"""Reading a student's notebook as one Python text, without running it.

Each code cell follows a line that names it. IPython turns its own syntax (`%`, `!`, `?`) into
calls, and the worker makes these do nothing. Cell magics that time or capture their cell are
commented out; a cell with any other cell magic is commented out as a whole.
"""

from __future__ import annotations

import codecs
import contextlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any, TypedDict

import msgspec

from grader.course.course import Exercise
from grader.sandbox.cells import CELL
from grader.submissions.notebook_cells import MAX_CELLS, NotebookCells, SourceCell, parsed_cell
from grader.submissions.notes import for_review
from grader.submissions.reader.sharing import require_own_reader

BROKEN_CELL = "raise SyntaxError("  # after a cell that does not parse
BROKEN_NAME = re.compile(r"^# (?:async\s+def|def|class)\s+(\w+)", re.MULTILINE)
WRITES_ITS_BODY = ("writefile", "file")  # cell magics
RUNS_ITS_BODY = ("time", "timeit", "capture", "prun", "check")  # cell magics
# IPython reads a whole cell again for each piece of its own syntax: `/f`, `,f`, `x = %f` or `%f`.
# This limits the characters that it reads for all cells together.
MAX_TRANSFORM_WORK = 400_000  # about a second
MAX_CODE = 256 * 1024  # bytes in UTF-8; parsing more takes seconds
LARGE = 8 * 1024 * 1024  # bytes, of which only outputs are that many
OLDEST, NEWEST = 2, 4  # versions of the format
NO_VERSION = "the key `nbformat` is missing, so the version of its format was guessed"
KINDS = {"markdown": "Markdown", "raw": "Raw", "heading": "heading"}  # of cells without code


class UnreadableNotebook(Exception):
    """The file is not a readable notebook; the message says why."""


@dataclass(frozen=True)
class NotebookCell:
    """A cell of a notebook: its source, its metadata and its outputs."""

    number: int  # from 1, over cells of every kind
    kind: str
    source: str  # of a code cell as Python, with IPython's own syntax turned into calls
    metadata: Mapping[str, Any]
    outputs: tuple[Mapping[str, Any], ...] = ()
    was_run: bool = False


@dataclass(frozen=True)
class NotebookText:
    """The code of a notebook as one text, and notes on its cells without the notebook's name."""

    code: str
    remarks: tuple[str, ...] = ()


def read_notebook(data: bytes, exercises: Sequence[Exercise] = ()) -> NotebookText:
    """Return the code of a notebook's cells, in order. Raises `UnreadableNotebook`.

    A cell that writes the file of one of the exercises counts as its code.
    """
    require_own_reader()
    with _explained():
        notebook = _parsed(data)
        cells = NotebookCells(_source_cells(notebook, exercises), exercises)
        if "nbformat" not in notebook:
            cells.remarks.append(for_review(NO_VERSION))
        text = _as_one_text(_within_limit(cells.choose()))
        return NotebookText(text, tuple(dict.fromkeys(cells.remarks)))


def read_cells(data: bytes) -> tuple[NotebookCell, ...]:
    """Return all cells of a notebook, with metadata and outputs. Raises `UnreadableNotebook`."""
    require_own_reader()
    with _explained():
        cells, key = _cells(json.loads(data.decode("utf-8-sig")))
        _within_limit("".join(cell[key]) for cell in cells if cell["cell_type"] == "code")
        budget = _Budget(MAX_TRANSFORM_WORK)
        return tuple(_cell(number, cell, key, budget) for number, cell in enumerate(cells, start=1))


@contextlib.contextmanager
def _explained() -> Iterator[None]:
    try:
        yield
    except UnreadableNotebook:
        raise
    except UnicodeDecodeError:
        raise UnreadableNotebook("is not UTF-8, which a notebook must be") from None
    except Exception as error:  # libraries raise any error for unexpected data
        raise UnreadableNotebook(f"is not a readable notebook ({_reason(error)})") from None


def _within_limit(sources: Iterable[str]) -> list[str]:
    listed = list(sources)
    if sum(len(source.encode()) for source in listed) > MAX_CODE:
        raise UnreadableNotebook(f"holds more than {MAX_CODE // 1024} KiB of code")
    return listed


def _cell(number: int, cell: Any, key: str, budget: _Budget) -> NotebookCell:
    kind, source = str(cell["cell_type"]), "".join(cell.get(key) or cell.get("source", ""))
    metadata, outputs = cell.get("metadata"), cell.get("outputs")
    return NotebookCell(
        number,
        kind,
        _to_python(source, (), budget) if kind == "code" else source,
        metadata if isinstance(metadata, dict) else {},
        tuple(each for each in outputs if isinstance(each, dict))
        if isinstance(outputs, list)
        else (),
        was_run=bool(outputs) or cell.get("execution_count") is not None,
    )


def _parsed(data: bytes) -> Any:
    """Return a notebook as plain values; for a large one, only the used parts.

    Outputs such as pictures take no memory then. `msgspec` knows no NaN, which they may hold.
    """
    if len(data) > LARGE:
        with contextlib.suppress(msgspec.MsgspecError):
            return msgspec.json.decode(data.removeprefix(codecs.BOM_UTF8), type=_Notebook)
    return json.loads(data.decode("utf-8-sig"))


class _Cell(TypedDict, total=False):
    cell_type: Any
    source: Any
    input: Any


class _Sheet(TypedDict, total=False):
    cells: list[_Cell]


class _Notebook(TypedDict, total=False):
    """The parts of a notebook that are used."""

    nbformat: Any
    cells: list[_Cell]
    worksheets: list[_Sheet]


def _source_cells(notebook: Any, exercises: Sequence[Exercise]) -> list[SourceCell]:
    """Return all cells; nothing else of the notebook is looked at, such as outputs."""
    cells, key = _cells(notebook)
    # A text or a list of texts, which is joined either way.
    code = _within_limit("".join(cell[key]) for cell in cells if cell["cell_type"] == "code")
    budget, sources = _Budget(MAX_TRANSFORM_WORK), iter(code)
    names = [exercise.name for exercise in exercises]
    return [
        SourceCell("code", source := next(sources), _to_python(source, names, budget))
        if cell["cell_type"] == "code"
        else SourceCell(KINDS.get(cell["cell_type"], "strange"), _text_of(cell))
        for cell in cells
    ]


def _text_of(cell: Any) -> str:
    source = cell.get("source", "")
    lines = source if isinstance(source, list) else [source]
    return "".join(line for line in lines if isinstance(line, str))


def _cells(notebook: Any) -> tuple[list[Any], str]:
    """Return the cells of a notebook of any version, and the key of their code."""
    version = notebook.get("nbformat") or (NEWEST if "cells" in notebook else NEWEST - 1)
    if version not in range(OLDEST, NEWEST + 1):
        raise ValueError(f"its format has version {version!r}")
    sheets, key = ([notebook], "source") if version == NEWEST else (notebook["worksheets"], "input")
    cells = [cell for sheet in sheets for cell in sheet["cells"]]
    if len(cells) > MAX_CELLS:
        raise UnreadableNotebook(f"holds more than {MAX_CELLS} cells")
    return cells, key


def _as_one_text(sources: Sequence[str]) -> str:
    codes = [_without_syntax_error(source) for source in sources]
    # A string could hold a line that names a cell. The checks for forbidden calls would read
    # the lines after it as text, and the worker would run them as a cell.
    codes = [f"\n{code}".replace(f"\n{CELL}", f"\n#{CELL}")[1:] for code in codes]
    return "".join(f"{CELL}{number}\n{code}\n" for number, code in enumerate(codes, start=1))


def cell_of(text: str, line: int) -> tuple[int, int]:
    """Return the number of the cell that holds a line of the whole text, and the line in the cell.

    All numbers count from 1; cell 0 means that no cell holds the line.
    """
    lines = text.split("\n")[:line]
    starts = [number for number, here in enumerate(lines, start=1) if here.startswith(CELL)]
    return len(starts), line - starts[-1] if starts else line


class _Budget:
    """A limited amount of work."""

    def __init__(self, left: int) -> None:
        self._left = left

    def spend(self, work: int) -> bool:
        """Take `work` from the budget; return whether there was enough."""
        self._left -= work
        return self._left >= 0


def names_in_broken_cells(text: str) -> set[str]:
    """Return the functions and classes in the cells of a notebook's text that do not parse."""
    broken = (cell for cell in text.split(f"\n{CELL}") if f"\n{BROKEN_CELL}" in cell)
    return {name for cell in broken for name in BROKEN_NAME.findall(cell)}


def _to_python(cell: str, names: Sequence[str], budget: _Budget) -> str:
    head, _, body = cell.lstrip().partition("\n")
    if head.startswith("%%"):
        magic, *arguments = head[2:].split() or [""]
        writes = {PurePosixPath(argument).name for argument in arguments}
        is_exercise = magic in WRITES_ITS_BODY and any(f"{name}.py" in writes for name in names)
        if magic not in RUNS_ITS_BODY and not is_exercise:
            return _commented_out(cell)
        cell = f"# {head}\n{body}"
    if any(_is_magic(line.strip()) for line in cell.splitlines()):
        return _transformed(cell, budget)
    if not _problem(cell):
        return cell
    code = _transformed(cell, budget)  # `x = %f`, prompts, a cell that is indented as a whole
    return cell if _problem(code) else code


def _transformed(cell: str, budget: _Budget) -> str:
    """Return a cell as IPython would run it, or unchanged if it is not Python or too long."""
    from IPython.core.inputtransformer2 import TransformerManager  # noqa: PLC0415, slow

    manager: Any = TransformerManager()  # type: ignore[no-untyped-call]
    transform_one = manager.do_one_token_transform

    def transform_within_budget(lines: list[str]) -> Any:
        if not budget.spend(sum(map(len, lines))):
            raise SyntaxError("too much of IPython's own syntax")
        return transform_one(lines)

    manager.do_one_token_transform = transform_within_budget
    try:
        return str(manager.transform_cell(cell))
    except (SyntaxError, RuntimeError):  # which IPython raises after some rounds
        return cell


def _is_magic(line: str) -> bool:
    return bool(line) and (line[0] in "%!?" or line[-1] == "?")


def _without_syntax_error(cell: str) -> str:
    """Return the cell if it parses; else comment it out and add a line that raises the error.

    So the whole text can be searched for forbidden calls, and later cells still run.
    """
    problem = _problem(cell)
    return f"{_commented_out(cell)}{BROKEN_CELL}{problem!r})\n" if problem else cell


def _problem(cell: str) -> str:
    """Return why a cell is no Python; empty if it is."""
    return parsed_cell(cell).problem


def _commented_out(cell: str) -> str:
    return "".join(f"# {line}\n" for line in cell.splitlines())


def _reason(error: Exception) -> str:
    text = " ".join(str(error).split())
    return text[:100] or type(error).__name__
