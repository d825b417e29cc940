"""Reading a notebook that a student handed in, as Python text; nothing of it is run here.

Code cells become one text, each behind a line that names it. IPython turns its own syntax (`%`,
`!`, `?`) into calls, which a worker answers with nothing; a cell magic that times or captures is
taken off its cell, and any other takes its cell with it.
"""

from __future__ import annotations

import ast
import warnings
from typing import Any

from grader.sandbox.cells import CELL

RUNS_ITS_BODY = ("time", "timeit", "capture", "prun")  # cell magics
# Each line of IPython's makes IPython read its whole cell anew: lines times characters, in all.
MAX_READING = 500_000
MAX_CODE = 256 * 1024  # characters; parsing more takes seconds
BROKEN = (ValueError, TypeError, KeyError, AttributeError, RuntimeError, AssertionError)


class Unreadable(Exception):
    """The file is no notebook; the message says why."""


def read_notebook(data: bytes) -> str:
    """The code of a notebook's cells, in order. Raises `Unreadable`."""
    import nbformat

    try:
        text = data.decode("utf-8-sig")
        read: Any = nbformat.reads
        with warnings.catch_warnings(action="ignore"):  # of what it mends by itself
            cells = read(text, as_version=4)["cells"]
        sources = [cell["source"] for cell in cells if cell["cell_type"] == "code"]
        if sum(len(line) for source in sources for line in source) > MAX_CODE:
            raise Unreadable(f"holds more than {MAX_CODE // 1024} KiB of code")
        read_at_most = _Budget(MAX_READING)
        codes = [_parsing(_python("".join(source), read_at_most)) for source in sources]
        # A line that names a cell, within a cell, would begin one that no search has seen as code.
        codes = [f"\n{code}".replace(f"\n{CELL}", f"\n#{CELL}")[1:] for code in codes]
        "".join(codes).encode()  # JSON can hold half a character, which no file and no wire can
    except UnicodeDecodeError:
        raise Unreadable("is not UTF-8, as notebooks are") from None
    except (*BROKEN, nbformat.ValidationError) as error:
        raise Unreadable(f"is no notebook that can be read ({_reason(error)})") from None
    return "".join(f"{CELL}{number}\n{code}\n" for number, code in enumerate(codes, start=1))


def cell_of(text: str, line: int) -> tuple[int, int]:
    """The cell, and the line in it, of a line of the whole text; both count from 1."""
    lines = text.split("\n")[:line]
    starts = [number for number, here in enumerate(lines, start=1) if here.startswith(CELL)]
    return len(starts), line - starts[-1] if starts else line


def _python(cell: str, budget: _Budget) -> str:
    """One cell as plain Python."""
    from IPython.core.inputtransformer2 import TransformerManager

    head, _, body = cell.lstrip().partition("\n")
    if head.startswith("%%"):
        magic = head[2:].split(maxsplit=1)[0] if head[2:].strip() else ""
        if magic not in RUNS_ITS_BODY:
            return "".join(f"# {line}\n" for line in cell.splitlines())
        cell = f"# {head}\n{body}"
    magics = sum(_is_magic(line.strip()) for line in cell.splitlines())
    if not magics or not budget.allows(magics * len(cell)):
        return cell
    try:
        transformed: str = TransformerManager().transform_cell(cell)  # type: ignore[no-untyped-call]
    except SyntaxError:
        return cell
    return transformed


class _Budget:
    """So much work, and no more."""

    def __init__(self, left: int) -> None:
        self._left = left

    def allows(self, work: int) -> bool:
        """Whether there is room for so much more, which is then taken."""
        self._left -= work
        return self._left >= 0


def _is_magic(line: str) -> bool:
    return bool(line) and (line[0] in "%!?" or line[-1] == "?")


def _parsing(cell: str) -> str:
    """The cell, if it parses; else the same lines as comments, and the error raised where it ran.

    The whole text can then be searched for forbidden calls, and the cells behind it still run.
    """
    try:
        ast.parse(cell)
        return cell
    except SyntaxError as error:
        what = f"{error.msg} in its line {error.lineno}"
    except (ValueError, RecursionError, MemoryError) as error:
        what = str(error) or "too deeply nested"
    return "".join(f"# {line}\n" for line in cell.splitlines()) + f"raise SyntaxError({what!r})\n"


def _reason(error: Any) -> str:
    text = " ".join(str(error).split())
    return text[:100] or type(error).__name__
