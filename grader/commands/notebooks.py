"""The notebooks of a course: one for each exercise, and one with all."""

from __future__ import annotations

from collections.abc import Iterator

import nbformat

from grader.course.course import Course, Exercise
from grader.course.stubs import make_stub, statement_of
from grader.reports.course_path import Stop
from grader.reports.pages import path_picture

PATH = "path.svg"  # the graph of the exercises that build on others
WHOLE = "course"  # the name of the notebook with all exercises
SETUP = """\
# On Colab, first install the grader: the README of your teachers' repository says how.
%load_ext grader"""
HOW = """\
Fill in the cell below and run it: `%%check` grades it at once. `!grader hint {name}` shows a hint,
and `grader.show(weights)` draws a matrix."""
EXAMPLE = " The cell after it, `%%example`, runs the worked example on your code."


def notebooks(course: Course) -> dict[str, str]:
    """Return the text of each notebook by its name; the same course gives the same texts."""
    made = {}
    for exercise in course.exercises:
        made[f"{exercise.name}.ipynb"] = _written([_setup(), *_cells(exercise)])
    cells = [cell for exercise in course.exercises for cell in _cells(exercise)]
    title = _markdown("title", f"# {course.title}\n\n![{PATH}](attachment:{PATH})")
    title["attachments"] = {PATH: {"image/svg+xml": path_picture(stops_of(course))}}
    made[f"{WHOLE}.ipynb"] = _written([title, _setup(), *cells])
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


def _setup() -> nbformat.NotebookNode:
    return _code("setup", SETUP)


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
