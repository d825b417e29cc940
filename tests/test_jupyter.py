"""The course in notebooks: generated, run in a kernel, checked in place, and handed in."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import nbformat
import pytest
import torch
from commandline import Cli
from nbclient import NotebookClient

import grader
from grader.commands.notebooks import FOLDER, notebooks
from grader.course.course import Course
from grader.errors import RequestError

CHECKED = re.compile(r"(%%check (\w+)\n).*", re.DOTALL)
Fill = Callable[[str], str]


def run(notebook: nbformat.NotebookNode, folder: Path) -> list[Mapping[str, Any]]:
    """Run a notebook top to bottom in a kernel; return what its code cells display."""
    client = NotebookClient(
        notebook, timeout=300, kernel_name="python3", resources={"metadata": {"path": str(folder)}}
    )
    client.execute()
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    return [
        {key: value for output in cell.outputs for key, value in output.get("data", {}).items()}
        for cell in cells
    ]


def filled(text: str, solutions: Mapping[str, str]) -> nbformat.NotebookNode:
    """Return a notebook with solutions in its cells."""
    notebook = nbformat.reads(text, as_version=4)
    for cell in notebook.cells:
        if found := CHECKED.fullmatch(cell.source):
            cell.source = found[1] + solutions[found[2]]
    return notebook


@pytest.fixture
def students(course: Course, tmp_path: Path, cli: Cli) -> Path:
    assert cli("init", tmp_path / "mine", "--notebooks").code == 0
    return tmp_path / "mine"


def test_the_same_course_gives_the_same_notebooks_without_outputs(course: Course) -> None:
    first = notebooks(course)
    assert first == notebooks(course)
    assert set(first) == {*(f"{name}.ipynb" for name in course.names), "course.ipynb"}
    for text in first.values():
        notebook = nbformat.reads(text, as_version=4)
        nbformat.validate(notebook)
        assert all(not cell.get("outputs") for cell in notebook.cells)
    whole = json.loads(first["course.ipynb"])["cells"]
    assert sum(cell["cell_type"] == "code" for cell in whole) == len(course.names) + 1


@pytest.mark.slow
def test_the_course_in_a_notebook_passes_with_the_solutions(
    course: Course, students: Path, solutions: dict[str, str]
) -> None:
    text = (students / "exercises" / FOLDER / "course.ipynb").read_text()
    _, *shown = run(filled(text, solutions), students)
    for exercise, data in zip(course.exercises, shown, strict=True):
        assert re.search(rf"{exercise.points} / {exercise.points}\b.*passed", data["text/plain"])
        assert data["text/html"].startswith("<iframe")


@pytest.mark.slow
def test_stubs_and_mistakes_are_told_in_the_notebook(
    students: Path, solutions: dict[str, str]
) -> None:
    text = (students / "exercises" / FOLDER / "dictionary_lookup.ipynb").read_text()
    notebook = nbformat.reads(text, as_version=4)
    wrong = solutions["dictionary_lookup"].replace("/ temp, dim=-1", "/ temp, dim=-2")
    more = (
        f"%%check dictionary_lookup\n{wrong}",
        "import grader\ngrader.check('dictionary_lookup')",
        "import torch\ngrader.show(torch.eye(3))",
    )
    notebook.cells += [nbformat.v4.new_code_cell(source) for source in more]
    _, stub, said, again, picture = run(notebook, students)
    assert "not started" in stub["text/plain"]
    assert "→ The softmax runs over the queries" in said["text/plain"]
    assert "→ The softmax runs over the queries" in again["text/plain"]
    assert "grader-notebook-" not in said["text/html"]
    assert "<svg" in picture["text/html"]


@pytest.mark.slow
def test_a_notebook_that_is_handed_in_counts_with_its_check_cells(
    cli: Cli, course: Course, students: Path, solutions: dict[str, str], tmp_path: Path
) -> None:
    text = (students / "exercises" / FOLDER / "course.ipynb").read_text()
    place = tmp_path / "s001" / "course.ipynb"
    place.parent.mkdir()
    nbformat.write(filled(text, solutions), place)
    said = cli("check", place.parent, "--course", course.root, "--format", "json", "--seed", 3)
    report = json.loads(said.out)
    assert (report["points"], said.code) == (course.points, 0), report["notes"]


@pytest.mark.slow
def test_untouched_notebooks_beside_the_files_are_no_rivals(
    cli: Cli, students: Path, solutions: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(students)
    assert "changed since" not in cli("status").out
    (students / "exercises" / "layer_norm.py").write_text(solutions["layer_norm"])
    said = cli("check", "exercises", "--format", "json")
    report = json.loads(said.out)
    assert [note for note in report["notes"] if "ipynb" in note] == []
    assert report["points"] == 13


def test_weights_are_drawn_as_a_matrix_and_as_lines_between_tokens() -> None:
    weights = torch.tensor([[1.0, 0.0], [0.25, 0.75]])
    assert repr(grader.show(weights)) == " 1.0000  0.0000\n 0.2500  0.7500"
    assert grader.show(weights)._repr_html_().count("<rect") == 4
    heads = grader.show(torch.stack([weights, weights]), ["a", "<b>"])._repr_html_()
    assert heads.count("<svg") == 2
    assert "&lt;b&gt;" in heads
    assert "<b>" not in heads


@pytest.mark.parametrize(
    ("weights", "tokens"),
    [(torch.ones(3), ()), (torch.ones(1, 1, 1, 1), ()), ([[1.0]], ("a", "b"))],
)
def test_what_is_no_matrix_of_weights_is_refused(weights: Any, tokens: tuple[str, ...]) -> None:
    with pytest.raises(RequestError):
        grader.show(weights, tokens)


def test_outside_a_notebook_check_says_what_to_use() -> None:
    with pytest.raises(RequestError, match="there is no notebook here"):
        grader.check("layer_norm")
