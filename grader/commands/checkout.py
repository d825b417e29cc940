"""Where in a repository the code of a report stands, as CI systems show remarks beside it."""

from __future__ import annotations

import ast
import json
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from grader.course.course import Course
from grader.files import read_bounded
from grader.report import ExerciseResult, Outcome, clean
from grader.reports.remarks import Place
from grader.sandbox.cells import CELL, NOTEBOOK
from grader.submissions.submission import Submission
from grader.syntax_trees import syntax_tree

WORKSPACES = ("GITHUB_WORKSPACE", "CI_PROJECT_DIR")  # the checkout, where no repository is seen
MAX_NOTEBOOK_BYTES = 64 << 20
DEFINITIONS = (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
NO_TREE = (SyntaxError, ValueError, RecursionError, MemoryError)


@dataclass(frozen=True)
class PlacesInCheckout:
    """Finds the line of the checkout where a test fails: called with a result and its test."""

    course: Course
    submission: Submission

    def __call__(self, result: ExerciseResult, test: Outcome | None) -> Place | None:
        """Return the line that failed, or that of the stage that goes wrong, or of the definition.

        None if the exercise has no file in the checkout.
        """
        if test is not None and test.where is not None:
            for name, path in self.submission.paths.items():
                shown = rf"{re.escape(clean(path))}(?:, cell (\d+))?"
                if found := re.fullmatch(shown, test.where.file):
                    return self._place(name, self._start_of_cell(name, found[1]) + test.where.line)
        if result.name not in self.submission.files:
            return None
        return self._place(result.name, self._line(result, test))

    def _line(self, result: ExerciseResult, test: Outcome | None) -> int:
        """Return the line, of the text that was graded, that a failure without a line is about."""
        try:
            nodes = [*ast.walk(syntax_tree(self.submission.files[result.name]))]
        except NO_TREE:
            return 1
        diagnosis = result.diagnosis
        step = diagnosis.first_wrong_step if diagnosis is not None and test is not None else None
        if step and test is result.first_failure and (lines := [*_assigning(step.stage, nodes)]):
            return min(lines)
        defined = {node.name: node.lineno for node in nodes if isinstance(node, DEFINITIONS)}
        names = [name for name in self.course[result.name].implements if name in defined]
        said = f"{test.called} {test.message} {test.sentence}" if test is not None else ""
        meant = [name for name in names if re.search(rf"\b{re.escape(name)}\b", said)]
        return defined[[*meant, *names][0]] if names else 1

    def _start_of_cell(self, name: str, cell: str | None) -> int:
        """Return the line, of the text that was graded, before a cell; 0 if there are no cells."""
        lines = self.submission.files.get(name, "").split("\n")
        return lines.index(f"{CELL}{cell}") + 1 if f"{CELL}{cell}" in lines else 0

    def _place(self, name: str, line: int) -> Place | None:
        """Return the place in the checkout of a line of the text that was graded."""
        path = Path(self.submission.paths[name]).absolute()
        if not path.is_file():  # such as one in a zip
            return None
        if path.suffix == NOTEBOOK:
            line = _line_in_notebook(path, self.submission.files.get(name, ""), line)
        return Place(_path_in_checkout(path), line)


def _assigning(name: str, nodes: list[ast.AST]) -> Iterator[int]:
    """Yield the lines that assign a variable, or an attribute, of a name."""
    for node in nodes:
        match node:
            case ast.Name(id=found, ctx=ast.Store()) | ast.Attribute(attr=found, ctx=ast.Store()):
                if found == name:
                    yield node.lineno


def _line_in_notebook(path: Path, text: str, line: int) -> int:
    """Return the line of a notebook's file that holds a line of its code; 0 if none is found.

    Of equal lines it is the one before which the code has as many of them.
    """
    lines = text.split("\n")
    wanted = lines[line - 1] if 0 < line <= len(lines) else ""
    spelt = {json.dumps(wanted + end, ensure_ascii=a) for end in ("", "\n") for a in (True, False)}
    try:
        raw = read_bounded(path, MAX_NOTEBOOK_BYTES).decode("utf-8", "replace").splitlines()
    except OSError:
        return 0
    found = [number for number, here in enumerate(raw, 1) if here.strip().rstrip(",") in spelt]
    before = lines[: line - 1].count(wanted)
    return found[min(before, len(found) - 1)] if wanted.strip() and found else 0


def _path_in_checkout(path: Path) -> str:
    """Return a path in the repository that holds it, or else in the checkout of the job."""
    workspaces = (Path(os.environ[name]).absolute() for name in WORKSPACES if os.environ.get(name))
    repositories = (folder for folder in path.parents if (folder / ".git").exists())
    for root in (*repositories, *workspaces, Path.cwd()):
        if path.is_relative_to(root):
            return path.relative_to(root).as_posix()
    return path.as_posix()
