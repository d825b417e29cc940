"""The notebooks of a course: one for each exercise, and one with all."""

from __future__ import annotations

import ast
import itertools
from collections.abc import Iterator
from dataclasses import dataclass

import nbformat

from grader.course.course import NOTEBOOKS, Course, Exercise
from grader.course.questions import LessonQuestion
from grader.course.stubs import UNWRITTEN, make_stub, statement_of
from grader.reports.course_path import Stop
from grader.reports.pages import path_picture
from grader.syntax_trees import syntax_tree

PATH = "path.svg"  # the graph of the exercises that build on others
ASKS = "Write"  # begins or ends the paragraph above the interface
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
Fill in the cell below and run it: `%%check` grades it at once. {help}"""
IN_PIECES = """\
The task comes in {count} pieces, a cell each. Fill in one, run it, and try it in a cell of your own
before you go on; the last one, `%%check`, grades all of them. {help}"""
HELP = "`!grader hint {name}` shows a hint, and `grader.show(weights)` draws a matrix."
EXAMPLE = " Then `%%example` runs the worked example on your code."
PREDICT = """\
### Predict, then run

{predict}

Write down your answer before you run the next cell."""
QUESTION = """\
### {title}

{asks}

Write your answer in place of the dots. It is checked, and earns no points."""
ANSWER = 'import grader\n\ngrader.answer("{name}", ...{which})'


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
        pieces = _pieces(exercise)
        cells = [*_setup(exercise.name, address), *_cells(exercise, pieces)]
        made[f"{exercise.name}.ipynb"] = _written(cells)
    if any(exercise.leads_tour for exercise in course.exercises):
        cells = [_markdown(TOUR, ABOUT_TOUR), *_setup(TOUR, address), _code("led", LED)]
        made[f"{TOUR}.ipynb"] = _written(cells)
    if course.lists and not course.chosen:
        return made
    # Not in pieces: a cell that imports nothing may mean the names of any exercise's cell, so the
    # search for forbidden functions would look through all of them.
    whole = [(exercise, [_stub_code(exercise)]) for exercise in course.exercises]
    cells = [cell for exercise, code in whole for cell in _cells(exercise, code)]
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


def _cells(exercise: Exercise, code: list[str]) -> Iterator[nbformat.NotebookNode]:
    """Yield the cells of an exercise, with its code in one or several pieces."""
    name, statement = exercise.name, statement_of(make_stub(exercise))
    yield _markdown(f"{name}-task", _with_formula(statement, exercise.formula.strip()))
    *pieces, last = code
    how = IN_PIECES if pieces else HOW
    told = HELP.format(name=name) + (EXAMPLE if exercise.example else "")
    yield _markdown(f"{name}-how", how.format(count=len(pieces) + 1, help=told))
    for number, piece in enumerate(pieces, start=1):
        yield _code(f"{name}-piece-{number}", piece)
    yield _code(f"{name}-code", f"%%check {name}\n{last}")
    if exercise.predict:
        yield _markdown(f"{name}-predict", PREDICT.format(predict=exercise.predict.strip()))
    if exercise.example:
        yield _code(f"{name}-example", f"%%example {name}\n{exercise.example}")
    for number, question in enumerate(exercise.questions, start=1):
        which = f", question={number}" if number > 1 else ""
        title = f"Question {number}" if len(exercise.questions) > 1 else "A question"
        yield _markdown(
            f"{name}-question-{number}", QUESTION.format(title=title, asks=_asked(question))
        )
        yield _code(f"{name}-answer-{number}", ANSWER.format(name=name, which=which))


def _asked(question: LessonQuestion) -> str:
    """Return a question in Markdown, with its choices."""
    choices = "\n".join(f"- **{letter}** {text}" for letter, text in question.lettered)
    return f"{question.asks.strip()}\n\n{choices}".strip()


def _pieces(exercise: Exercise) -> list[str]:
    """Return the code of a stub as a text for each definition to write.

    The first text has everything above, and what is given stays with the definition before it.
    """
    code, starts = _stub_code(exercise), list[int]()
    lines = code.splitlines()
    for node in syntax_tree(code).body:
        if not isinstance(node, ast.FunctionDef | ast.ClassDef):
            continue
        if node.name in exercise.implements and UNWRITTEN in ast.unparse(node):
            first = min(each.lineno for each in (node, *node.decorator_list)) - 1
            while first and lines[first - 1].startswith("#"):  # what is said of it
                first -= 1
            starts.append(first)
    bounds = [0, *starts[1:], len(lines)]
    texts = ("\n".join(lines[start:end]) for start, end in itertools.pairwise(bounds))
    return [f"{text.strip()}\n" for text in texts]


def _with_formula(statement: str, formula: str) -> str:
    """Return a statement with a formula in LaTeX before the paragraph that says what to write.

    Without such a paragraph, it stands before the first indented block.
    """
    if not formula:
        return statement
    paragraphs = statement.split("\n\n")
    asks = (n for n, text in enumerate(paragraphs) if text.startswith(ASKS) or text.endswith(ASKS))
    blocks = (n for n, text in enumerate(paragraphs) if text.startswith("    "))
    place = next(itertools.chain(asks, blocks), len(paragraphs))
    return "\n\n".join([*paragraphs[:place], f"$$\n{formula}\n$$", *paragraphs[place:]])


def _stub_code(exercise: Exercise) -> str:
    """Return the code of a stub, below the statement."""
    return make_stub(exercise).partition('"""')[2].partition('"""')[2].strip() + "\n"


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
