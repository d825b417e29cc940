"""Reading a student's notebook as one Python text, without running it.

Each code cell follows a line that names it. IPython turns its own syntax (`%`, `!`, `?`) into
calls, and the worker makes these do nothing. Cell magics that time or capture their cell are
commented out; a cell with any other cell magic is commented out as a whole.
"""

from __future__ import annotations

import ast
import contextlib
import warnings
from typing import Any

from grader.sandbox.cells import CELL

RUNS_ITS_BODY = ("time", "timeit", "capture", "prun")  # cell magics
# IPython reads a whole cell again for each of its magic lines. This limits the sum, over all
# cells, of magic lines times characters.
MAX_TRANSFORM_WORK = 500_000
MAX_CODE = 256 * 1024  # characters; parsing more takes seconds
NOTEBOOK_ERRORS = (ValueError, TypeError, KeyError, AttributeError, RuntimeError, AssertionError)


class UnreadableNotebook(Exception):
    """The file is not a readable notebook; the message says why."""


def read_notebook(data: bytes) -> str:
    """Return the code of a notebook's cells, in order. Raises `UnreadableNotebook`."""
    import nbformat  # noqa: PLC0415, slow: only notebooks need it

    try:
        text = data.decode("utf-8-sig")
        read: Any = nbformat.reads
        with warnings.catch_warnings(action="ignore"):  # about what nbformat fixes by itself
            cells = read(text, as_version=4)["cells"]
        sources = [cell["source"] for cell in cells if cell["cell_type"] == "code"]
        if sum(len(line) for source in sources for line in source) > MAX_CODE:
            raise UnreadableNotebook(f"holds more than {MAX_CODE // 1024} KiB of code")
        budget = _Budget(MAX_TRANSFORM_WORK)
        codes = [_without_syntax_error(_to_python("".join(source), budget)) for source in sources]
        # A string could hold a line that names a cell. The checks for forbidden calls would read
        # the lines after it as text, and the worker would run them as a cell.
        codes = [f"\n{code}".replace(f"\n{CELL}", f"\n#{CELL}")[1:] for code in codes]
        "".join(codes).encode()  # fails for a lone surrogate, which JSON can hold but UTF-8 cannot
    except UnicodeDecodeError:
        raise UnreadableNotebook("is not UTF-8, which a notebook must be") from None
    except (*NOTEBOOK_ERRORS, nbformat.ValidationError) as error:
        raise UnreadableNotebook(f"is not a readable notebook ({_reason(error)})") from None
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


def _to_python(cell: str, budget: _Budget) -> str:
    from IPython.core.inputtransformer2 import TransformerManager  # noqa: PLC0415, slow, as above

    head, _, body = cell.lstrip().partition("\n")
    if head.startswith("%%"):
        magic = head[2:].split(maxsplit=1)[0] if head[2:].strip() else ""
        if magic not in RUNS_ITS_BODY:
            return _commented_out(cell)
        cell = f"# {head}\n{body}"
    magics = sum(_is_magic(line.strip()) for line in cell.splitlines())
    if not magics or not budget.spend(magics * len(cell)):
        return cell
    with contextlib.suppress(SyntaxError):
        cell = TransformerManager().transform_cell(cell)  # type: ignore[no-untyped-call]
    return cell


def _is_magic(line: str) -> bool:
    return bool(line) and (line[0] in "%!?" or line[-1] == "?")


def _without_syntax_error(cell: str) -> str:
    """Return the cell if it parses; else comment it out and add a line that raises the error.

    So the whole text can be searched for forbidden calls, and the cells after it still run.
    """
    try:
        ast.parse(cell)
        return cell
    except SyntaxError as error:
        reason = f"{error.msg} (line {error.lineno} of the cell)"
    except (ValueError, RecursionError, MemoryError) as error:
        reason = str(error) or "too deeply nested"
    return f"{_commented_out(cell)}raise SyntaxError({reason!r})\n"


def _commented_out(cell: str) -> str:
    return "".join(f"# {line}\n" for line in cell.splitlines())


def _reason(error: Any) -> str:
    text = " ".join(str(error).split())
    return text[:100] or type(error).__name__
