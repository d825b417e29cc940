"""The notebooks of a course: one for each exercise, and one with all."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import nbformat

from grader.course.course import NOTEBOOKS, Course, Exercise
from grader.course.stubs import make_stub, statement_of
from grader.reports.course_path import Stop
from grader.reports.pages import path_picture

PATH = "path.svg"  # the graph of the exercises that build on others
WHOLE = "course"  # the name of the notebook with all exercises of a list
TOUR = "tour"  # the name of the notebook that leads a sentence through the exercises
ABOUT_TOUR = """\
# One sentence through the model

The cell below leads “the cat sat on the mat” through your exercises, stage by stage, and draws each
stage: words become vectors, heads look back, and the last picture says which word comes next. The
numbers were chosen by hand, so nothing is trained. Where your exercise is right, the stage shows
what your code computes; PyTorch's part stands in for what is not written yet."""
LOAD = "%load_ext grader"
SETUP = f"""\
# On Colab, first install the grader: the README of your teachers' repository says how.
{LOAD}"""
LED = "import grader\n\ngrader.tour()"
# One statement that begins with an import: it is no work of a student's.
SETUP_ON_COLAB = f"""\
# On Colab, get the exercises and the grader first; elsewhere, nothing happens here.
import os; os.path.isdir("/content/sample_data") and get_ipython().system("{{commands}}")
{LOAD}"""
ON_COLAB = (
    "git clone -q {address} /tmp/homework && cp -r /tmp/homework/. . "
    "&& python -m pip install -q -r requirements.txt"
)
BADGE = "[![Open in Colab](https://colab.research.google.com/assets/colab-badge.svg)]({})"
HOW = """\
Fill in the cell below and run it: `%%check` grades it at once. `!grader hint {name}` shows a hint,
and `grader.show(weights)` draws a matrix."""
EXAMPLE = " The cell after it, `%%example`, runs the worked example on your code."


@dataclass(frozen=True)
class HandOutAddress:
    """The address of a hand-out on GitHub, from where Colab opens its notebooks."""

    repository: str  # such as https://github.com/OWNER/NAME
    branch: str = "main"

    def badge(self, name: str) -> str:
        """Return Markdown with a button that opens a notebook on Colab."""
        place = self.repository.replace("https://github.com/", "github/", 1)
        path = f"{place}/blob/{self.branch}/exercises/{NOTEBOOKS}/{name}.ipynb"
        return BADGE.format(f"https://colab.research.google.com/{path}")

    @property
    def setup(self) -> str:
        """The code of the first cell: on Colab, it gets the hand-out and installs the grader."""
        return SETUP_ON_COLAB.format(commands=ON_COLAB.format(address=self.repository))


def notebooks(course: Course, address: HandOutAddress | None = None) -> dict[str, str]:
    """Return the text of each notebook by its name; the same course gives the same texts.

    With an `address`, each has a button for Colab. One notebook has all exercises, if the course is
    one that a student takes: a list, or a course without lists.
    """
    made = {}
    for exercise in course.exercises:
        cells = [*_setup(exercise.name, address), *_cells(exercise)]
        made[f"{exercise.name}.ipynb"] = _written(cells)
    if any(exercise.leads_tour for exercise in course.exercises):
        cells = [_markdown(TOUR, ABOUT_TOUR), *_setup(TOUR, address), _code("led", LED)]
        made[f"{TOUR}.ipynb"] = _written(cells)
    if course.lists and not course.chosen:
        return made
    cells = [cell for exercise in course.exercises for cell in _cells(exercise)]
    title = _markdown("title", f"# {course.title}\n\n![{PATH}](attachment:{PATH})")
    title["attachments"] = {PATH: {"image/svg+xml": path_picture(stops_of(course))}}
    made[f"{WHOLE}.ipynb"] = _written([title, *_setup(WHOLE, address), *cells])
    return made


def stops_of(course: Course) -> list[Stop]:
    """Return the exercises as stops on the path through the course."""
    return [
        Stop(
            each.name,
            each.title,
            (*each.requires, *each.builds_on),
            lists=course.lists_with(each.name),
        )
        for each in course.exercises
    ]


def _cells(exercise: Exercise) -> Iterator[nbformat.NotebookNode]:
    stub, name = make_stub(exercise), exercise.name
    yield _markdown(f"{name}-task", _with_formula(statement_of(stub), exercise.formula.strip()))
    how = HOW + (EXAMPLE if exercise.example else "")
    yield _markdown(f"{name}-how", how.format(name=name))
    yield _code(f"{name}-code", f"%%check {name}\n{_without_statement(stub)}")
    if exercise.example:
        yield _code(f"{name}-example", f"%%example {name}\n{exercise.example}")


def _with_formula(statement: str, formula: str) -> str:
    """Return a statement with a formula in LaTeX before its first indented block."""
    if not formula:
        return statement
    idea, indented, rest = statement.partition("\n\n    ")
    return f"{idea}\n\n$$\n{formula}\n$${indented}{rest}"


def _without_statement(stub: str) -> str:
    return stub.partition('"""')[2].partition('"""')[2].strip() + "\n"


def _setup(name: str, address: HandOutAddress | None) -> Iterator[nbformat.NotebookNode]:
    if address is not None:
        yield _markdown("colab", address.badge(name))
    yield _code("setup", SETUP if address is None else address.setup)


def _markdown(name: str, text: str) -> nbformat.NotebookNode:
    cell: nbformat.NotebookNode = nbformat.v4.new_markdown_cell(text, id=name)
    return cell


def _code(name: str, text: str) -> nbformat.NotebookNode:
    cell: nbformat.NotebookNode = nbformat.v4.new_code_cell(text, id=name)
    return cell


def _written(cells: list[nbformat.NotebookNode]) -> str:
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    metadata = {"kernelspec": kernel, "language_info": {"name": "python"}}
    made = nbformat.v4.new_notebook(cells=cells, metadata=metadata)
    text: str = nbformat.writes(made)
    return f"{text}\n"
