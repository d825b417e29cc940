"""A notebook is graded as a file would be, cell by cell, even if some cells are broken."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from commandline import Cli

from grader.submissions.notebook import UnreadableNotebook, cell_of, read_notebook

TINY = Path(__file__).parent / "tiny"


def notebook(*cells: str) -> bytes:
    made: dict[str, Any] = {
        "nbformat": 4,
        "nbformat_minor": 5,
        "metadata": {},
        "cells": [
            {"cell_type": "markdown", "metadata": {}, "source": "# Scale", "id": "m"},
            *(
                {
                    "cell_type": "code",
                    "metadata": {},
                    "source": cell.splitlines(keepends=True),
                    "outputs": [],
                    "execution_count": None,
                    "id": f"c{number}",
                }
                for number, cell in enumerate(cells)
            ),
        ],
    }
    return json.dumps(made).encode()


@pytest.fixture
def check(cli: Cli, tmp_path: Path, tiny_solution: str) -> Callable[..., Any]:
    """Grade a notebook made of cells; each may hold @SOLUTION@."""

    def checking(*cells: str) -> tuple[int, dict[str, Any]]:
        data = notebook(*(cell.replace("@SOLUTION@", tiny_solution) for cell in cells))
        (tmp_path / "scale.ipynb").write_bytes(data)
        said = cli("check", tmp_path, "--course", TINY, "--format", "json", "--seed", 3)
        return said.code, json.loads(said.out)

    return checking


@pytest.mark.slow
@pytest.mark.parametrize(
    "cells",
    [
        ("@SOLUTION@",),
        ("%matplotlib inline\n!pip install torch\n", "@SOLUTION@", "scale?\nx = !ls\n"),
        ("%%time\n@SOLUTION@",),
        ("%%capture out\n@SOLUTION@", "out.show()"),
        ("%%bash\nrm -rf /\n", "%%html\n<b>", "@SOLUTION@"),
        ("this is no Python", "@SOLUTION@", "1 / 0", "def later(:"),
        ("@SOLUTION@", "raise KeyError('a demo that fails')"),
        ("", "  ", "@SOLUTION@", "%%\n", "%%time"),
        ("files = !ls\nout = %time 1 + 1\n@SOLUTION@",),
        ("    x = 1\n    y = x\n", ">>> z = y\n", "@SOLUTION@", "w = z"),
    ],
)
def test_a_correct_notebook_earns_all_points(
    cells: tuple[str, ...], check: Callable[..., Any]
) -> None:
    code, report = check(*cells)
    assert (code, report["points"]) == (0, 8), report["exercises"][0]["tests"]


def test_an_error_is_located_in_its_cell(check: Callable[..., Any]) -> None:
    code, report = check("import torch\n", "@SOLUTION@", "def scale(x, factor):\n    return nope\n")
    assert code == 1
    where = next(test["where"] for test in report["exercises"][0]["tests"] if test["where"])
    assert where["file"].endswith("scale.ipynb, cell 3")
    assert (where["line"], where["source"].strip()) == (2, "return nope")


def test_a_name_that_a_broken_cell_should_have_defined_names_the_cell(
    check: Callable[..., Any],
) -> None:
    _, report = check("import torch\n", "def scale(x, factor:\n    return x\n")
    message = report["exercises"][0]["tests"][1]["message"]
    assert "scale.ipynb defines no `scale`" in message
    assert "cell 2 raised SyntaxError: '(' was never closed (line 1 of the cell)" in message


def test_ipythons_own_syntax_breaks_no_cell() -> None:
    data = notebook("x = !ls\ndef f(): return 1\n", "  def g():\n    return 2\n", "x = = !ls\n")
    text = read_notebook(data).code
    assert "\ndef f(): return 1\n" in text
    assert "\ndef g():\n  return 2\n" in text
    assert text.count("SyntaxError") == 1
    assert "# x = = !ls\n" in text


def test_a_broken_cell_hides_no_forbidden_call(check: Callable[..., Any]) -> None:
    code, report = check(
        "(", "@SOLUTION@", "import torch\ndef scale(x, f): return torch.multiply(x, f)"
    )
    assert code == 1
    assert "torch.multiply does the work" in report["exercises"][0]["tests"][0]["message"]


HIDDEN = '''text = """
# %% notebook cell 2
import torch
def scale(x, factor): return torch.multiply(x, factor)
# %% notebook cell 3
"""
'''


@pytest.mark.slow
def test_a_line_that_looks_like_the_start_of_a_cell_starts_none(
    check: Callable[..., Any], cli: Cli, tmp_path: Path, tiny_solution: str
) -> None:
    """A text that the search for forbidden calls skips must not run as code."""
    code, report = check("@SOLUTION@", HIDDEN)
    assert (code, report["points"]) == (0, 8)
    (tmp_path / "file").mkdir()
    text = f"# %% notebook cell 1\n{tiny_solution}\n{HIDDEN}"
    (tmp_path / "file" / "scale.py").write_text(text)
    assert cli("check", tmp_path / "file", "--course", TINY).code == 0


def test_a_file_beside_the_notebook_is_used_and_reported(
    check: Callable[..., Any], tmp_path: Path, tiny_solution: str
) -> None:
    (tmp_path / "scale.py").write_text(tiny_solution)
    code, report = check("def scale(x, f): return None")
    assert code == 0
    note = "`scale.ipynb` is a second file for scale and was left out"
    assert note in report["notes"]


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "is not a readable notebook"),
        (b"[]", "is not a readable notebook"),
        (b"{}", "is not a readable notebook"),
        (b"null", "is not a readable notebook"),
        (b"\xff\xfe{}", "is not UTF-8"),
        (b"[" * 100_000, "is not a readable notebook"),
        (b'{"nbformat": 4, "nbformat_minor": 5, "cells": 3}', "is not a readable notebook"),
        (b'{"nbformat": 99, "nbformat_minor": 0, "cells": []}', "is not a readable notebook"),
        (notebook("x").replace(b'"source"', b'"sauce"'), "is not a readable notebook"),
    ],
)
def test_a_file_that_is_not_a_notebook_is_reported(data: bytes, said: str) -> None:
    with pytest.raises(UnreadableNotebook, match=said):
        read_notebook(data)


def test_older_notebooks_are_read() -> None:
    worksheet = {
        "cells": [{"cell_type": "code", "input": ["x = 1"], "language": "python", "outputs": []}]
    }
    old = {"nbformat": 3, "nbformat_minor": 0, "metadata": {}, "worksheets": [worksheet]}
    assert "x = 1" in read_notebook(json.dumps(old).encode()).code


def test_lines_are_counted_within_cells() -> None:
    text = read_notebook(b"\xef\xbb\xbf" + notebook("a = 1\nb = 2", "c = 3")).code
    lines = text.splitlines()
    assert cell_of(text, lines.index("b = 2") + 1) == (1, 2)
    assert cell_of(text, lines.index("c = 3") + 1) == (2, 1)
