"""The course as one notebook, for the tools that grade notebooks.

The cell of a solution writes the file of its exercise, because exercises import each other.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from peers.harness import Case

Cell = dict[str, Any]
KERNEL = {"display_name": "Python 3", "language": "python", "name": "python3"}


def write(path: Path, cells: Sequence[Cell]) -> None:
    """Write a notebook with these cells."""
    path.parent.mkdir(parents=True, exist_ok=True)
    version = {"nbformat": 4, "nbformat_minor": 4}
    notebook = {"cells": cells, "metadata": {"kernelspec": KERNEL}, **version}
    path.write_text(json.dumps(notebook), "utf-8")


def code(name: str, source: str, **nbgrader: Any) -> Cell:
    """Return a code cell with the metadata that nbgrader needs."""
    about = {"grade_id": name, "grade": False, "locked": False, "solution": False, "task": False}
    metadata = {"nbgrader": {**about, "schema_version": 3, **nbgrader}}
    cell: Cell = {"cell_type": "code", "metadata": metadata, "source": source}
    return {**cell, "execution_count": None, "outputs": []}


def cell_of(case: Case) -> str:
    """Return the name of the cell that holds a hidden test."""
    return f"{case.exercise}-{case.test}"


def solution(exercise: str, text: str) -> Cell:
    """Return the cell in which a student solves an exercise."""
    return code(exercise, f"%%writefile {exercise}.py\n{text}", solution=True)


def source(solutions: Mapping[str, str], cases: Sequence[Case]) -> list[Cell]:
    """Return the cells of the teacher's notebook: marked solutions, and every hidden test."""
    marked = "### BEGIN SOLUTION\n{}\n### END SOLUTION"
    hidden = "### BEGIN HIDDEN TESTS\ncheck({!r}, {!r})\n### END HIDDEN TESTS"
    tests = [
        code(
            cell_of(case),
            hidden.format(case.exercise, case.test),
            grade=True,
            locked=True,
            points=case.points,
        )
        for case in cases
    ]
    solved = [solution(name, marked.format(text)) for name, text in solutions.items()]
    return [code("setup", "from harness import check", locked=True), *solved, *tests]


def submitted(released: Path, files: Mapping[str, str]) -> list[Cell]:
    """Return the cells of the released notebook with a student's files in them."""
    cells: list[Cell] = json.loads(released.read_text("utf-8"))["cells"]
    for cell in cells:
        name = cell["metadata"].get("nbgrader", {}).get("grade_id")
        if name in files:
            cell["source"] = solution(name, files[name])["source"]
    return cells
