"""The grader in a notebook: `%%check`, `%%example`, `grader.check`, `grader.answer`, `grader.show`.

The kernel has run the student's code, so it is not trusted with the verdict: the cells' texts go
to a separate process, which grades them like a notebook that is handed in.
"""

from __future__ import annotations

import ast
import html
import os
import re
import symtable
import sys
import tempfile
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import click
import nbformat

from grader.commands.standby_process import CheckOrder, Standby
from grader.course.course import Course, Exercise, find_course, packaged_course
from grader.course.stubs import is_untouched, make_stub
from grader.errors import RequestError
from grader.report import fixed
from grader.reports import charts, pages
from grader.sandbox.cells import NOTEBOOK
from grader.submissions.code_files import MAX_BYTES
from grader.submissions.notebook_cells import defined_names
from grader.trees import NotOpened, read_file

FILE = "notebook"
HEIGHT, HIGH = 480, 860  # pixels of a report's frame: a sandboxed page cannot report its own height
WEIGHTS = "weights"  # the title of a matrix whose rows are queries, and whose columns are keys
MAX_SHOWN = 32  # rows and columns of a matrix that is drawn
_standby = Standby()
MAX_NAMED = 8  # names in a message, of those that a cell defines
MAX_OTHERS = 200  # lines shown of a check that does not finish
CHECKED = re.compile(r"\s*%%check\b[ \t]*(\S*)")
_OWN_CALLS = re.compile(
    r"^([ \t]*)((?:import grader|grader\.(?:check|answer|show|tour)\(.*\))[ \t]*)$", re.M
)


@dataclass(frozen=True)
class NotebookVerdict:
    """The grader's verdict on the definitions in a notebook, as a page and as text."""

    text: str
    page: str
    passed: bool

    def __repr__(self) -> str:
        return self.text

    def _repr_html_(self) -> str:
        if not self.page:
            return f"<pre>{html.escape(self.text)}</pre>"
        height = HIGH if "<figure" in self.page else HEIGHT
        return (
            f'<iframe title="report" style="width:100%;height:{height}px;border:0;resize:vertical"'
            f' sandbox="" srcdoc="{html.escape(self.page)}"></iframe>'
        )


@dataclass(frozen=True)
class Picture:
    """A matrix, or one for each head, as an SVG drawing and as text."""

    drawing: str
    text: str

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the drawing as an SVG file, for a slide or a page."""
        Path(path).write_text(self.drawing, "utf-8")

    def __repr__(self) -> str:
        return self.text

    def _repr_html_(self) -> str:
        return self.drawing


def check(name: str, *, seed: int | None = None) -> NotebookVerdict:
    """Grade what this notebook defines for an exercise; the last definition counts.

    All cells that were run so far count, in the order in which they were run.
    """
    course = _course()
    exercise, cells = course[name], _cells_so_far()
    checked = [place for place, cell in enumerate(cells) if _checks(cell, exercise)]
    for place in checked[:-1]:  # earlier tries of a `%%check` cell do not count
        cells[place] = "pass"
    return _graded(course, exercise, cells, seed)


def tour() -> NotebookVerdict:
    """Lead a sentence through the exercises of this notebook and of the files beside it."""
    course = _course()
    return _graded(course, course.leader_of_tour(), _cells_so_far(), tour=True)


def answer(name: str, given: object, *, question: int = 1) -> None:
    """Print whether an answer is right, and why; or a sentence that helps. It earns no points."""
    questions = _course()[name].questions
    if not 1 <= question <= len(questions):
        problem = f"{name} has no question {question}"
        raise RequestError(problem, f"its notebook has {len(questions)}")
    asked = questions[question - 1]
    if given is ...:
        click.echo("write your answer in place of the dots")
    elif asked.accepts(given):
        click.echo(f"Right. {asked.because}")
    else:
        click.echo(f"Not yet. {asked.nudge}")


def _graded(
    course: Course,
    exercise: Exercise,
    cells: Sequence[str],
    seed: int | None = None,
    *,
    tour: bool = False,
) -> NotebookVerdict:
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    with tempfile.TemporaryDirectory(prefix="grader-notebook-") as root:
        folder, page = Path(root, FILE), Path(root, "report.html")
        folder.mkdir()  # the report is named after it
        file = folder / f"{FILE}{NOTEBOOK}"
        nbformat.write(notebook, file)
        for path, data in _other_files(course, cells):
            (folder / path.name).write_bytes(data)
        order = CheckOrder(str(course.root), str(file), exercise.name, str(page), seed, tour)
        code, said = _standby.check(order, _show_notes)
        shown = page.read_text("utf-8") if page.is_file() else ""
    text, html_page = (each.replace(f"{folder}{os.sep}", "") for each in (said, shown))
    return NotebookVerdict(text, html_page, code == 0)


def _show_notes(lines: Iterable[str], exercise: str) -> str:
    """Show each note on the progress in place of the one before; return all other lines."""
    others, width = deque[str](maxlen=MAX_OTHERS), 0
    for line in lines:
        if line.split(" ", 1)[0].rstrip() != exercise:
            others.append(line)
        elif note := line.rstrip().removeprefix(exercise):
            sys.stdout.write(f"\r{note:<{width}}")
            sys.stdout.flush()
            width = len(note)
    if width:
        sys.stdout.write("\r" + " " * width + "\r")
    return "".join(others)


def show(
    weights: Any,
    tokens: Sequence[str] = (),
    *,
    title: str = WEIGHTS,
    axes: tuple[str, str] | None = None,
) -> Picture:
    """Draw a matrix of weights, or one for each head; `tokens` label its rows and columns.

    `weights` has shape (n_queries, n_keys) or (heads, n_queries, n_keys): a tensor, an array or
    lists of numbers. A single matrix gets the `title`. `axes` says what rows and columns are, by
    default ("query", "key") if they are weights. `show(…).save("weights.svg")` writes a file.
    """
    rows = weights.tolist() if hasattr(weights, "tolist") else weights
    heads = _as_heads(rows)
    sizes = {len(head) for head in heads} | {len(row) for head in heads for row in head}
    if tokens and sizes != {len(tokens)}:
        raise RequestError(f"the weights are not those of {len(tokens)} tokens", "leave out tokens")
    titles = [title] if len(heads) == 1 else [f"head {n}" for n in range(len(heads))]
    if axes is None and (tokens or title == WEIGHTS):
        axes = "query", "key"
    template = pages.environment().get_template("picture.svg.j2")
    picture = charts.matrices([*zip(titles, heads)], tokens)
    drawing = template.render(picture=picture, axes=axes, label=title)
    text = "\n\n".join("\n".join(_line(row) for row in head) for head in heads)
    return Picture(drawing.strip(), text)


def load_extension(shell: Any) -> None:
    """Make `%%check` and `%%example` known to IPython, and the exercises importable."""

    def check_cell(line: str, cell: str) -> NotebookVerdict:
        """Grade a cell's definitions, then run it for the cells after it: `%%check layer_norm`.

        Without a name, the exercise is the one for which the cell defines something.
        """
        try:
            course = _course()
            exercise = course[line.strip()] if line.strip() else _exercise_in(cell, course)
        except RequestError as error:
            return NotebookVerdict(f"{error.message}\n{error.remedy}", "", passed=False)
        verdict = _cell_graded(course, exercise, cell, shell.transform_cell(cell))
        shell.run_cell(cell, store_history=False)
        _make_importable(exercise, cell, shell.user_ns)
        return verdict

    def example_cell(line: str, cell: str) -> Any:
        """Run a worked example on this notebook's definitions: `%%example layer_norm`."""
        return run_example(_course()[line.strip()], cell, shell.user_ns)

    _standby.prepare()
    shell.register_magic_function(check_cell, "cell", "check")
    shell.register_magic_function(example_cell, "cell", "example")
    folder = str(_course().student_folder)
    if folder not in sys.path:
        sys.path.append(folder)


def _cell_graded(course: Course, exercise: Exercise, cell: str, program: str) -> NotebookVerdict:
    """Grade a cell, in Python `program`, by its own definitions: no earlier one counts."""
    try:
        names = {
            symbol.get_name()
            for symbol in symtable.symtable(program, "cell", "exec").get_symbols()
            if symbol.is_assigned() or symbol.is_imported() or symbol.is_namespace()
        }
    except SyntaxError as error:
        # The program has neither the line of the magic nor the empty lines after it.
        above = 1 + len(cell) - len(cell.lstrip("\n"))
        where = f"line {above + (error.lineno or 1)} of this cell is not valid Python: {error.msg}"
        return NotebookVerdict(f"{where}\n    {(error.text or '').strip()}", "", passed=False)
    except (ValueError, RecursionError, MemoryError) as error:
        return NotebookVerdict(f"this cell cannot be read: {error}", "", passed=False)
    defined = [name for name in exercise.implements if name in names]
    if not defined:
        asked = " or ".join(f"`{name}`" for name in exercise.implements)
        others = ", ".join(sorted(map("`{}`".format, names))[:MAX_NAMED]) or "nothing"
        text = f"this cell defines no {asked}, which {exercise.name} asks for, but {others}"
        return NotebookVerdict(text, "", passed=False)
    *earlier, last = _cells_so_far()
    before = ["pass" if _checks(each, exercise) else each for each in earlier]
    return _graded(course, exercise, [*before, *_forgetting(defined, last)])


def _exercise_in(cell: str, course: Course) -> Exercise:
    """Return the only exercise for which a cell defines something. Raises `RequestError`."""
    defined = defined_names(cell)
    found = [each for each in course.exercises if defined & {*each.implements}]
    if len(found) == 1:
        return found[0]
    names = " and ".join(each.name for each in found)
    problem = f"this cell defines parts of {names}" if found else "this cell defines no exercise"
    example = (found or course.exercises)[0].name
    raise RequestError(problem, f"name the exercise, such as: %%check {example}")


def _checks(cell: str, exercise: Exercise) -> bool:
    """Return whether a cell is a `%%check` of an exercise, by its name or by what it defines."""
    magic = CHECKED.match(cell)
    if magic is None or magic[1]:
        return magic is not None and magic[1] == exercise.name
    return bool(defined_names(cell) & {*exercise.implements})


def _forgetting(names: Iterable[str], cell: str) -> list[str]:
    """Return a `%%check` cell that first deletes some names of earlier cells.

    Otherwise a cell that breaks off would be graded by earlier definitions. The names are deleted
    in the line of the magic, so that the numbers of lines and cells stay the same; only an import
    from `__future__` has to come first.
    """
    forget = "; ".join(f"{name} = None; del {name}" for name in names)
    if "__future__" in cell:
        return [forget, cell]
    return [re.sub(r"^[ \t]*%%check\b.*$", forget, cell, count=1, flags=re.MULTILINE)]


def run_example(exercise: Exercise, code: str, names: Mapping[str, Any]) -> Any:
    """Return the value of an example's last line; print a sentence if the code is not written yet.

    Pictures of other lines are displayed. It sees the `names` of the notebook, and leaves them as
    they are.
    """
    missing = [name for name in exercise.implements if name not in names]
    if missing:
        click.echo(f"{missing[0]} is not defined yet: run the cells above first")
        return None
    try:
        return _value_of(code, dict(names))
    except NotImplementedError as error:  # a stub says what to fill in
        click.echo(f"not written yet: {error}".removesuffix(": "))
        return None


def _value_of(code: str, names: dict[str, Any]) -> Any:
    """Run code; return the value of its last line, or None, and display the pictures before."""
    from IPython.display import display  # noqa: PLC0415, slow, and there in a notebook

    value = None
    for statement in ast.parse(code).body:
        if isinstance(value, Picture):
            display(value)  # type: ignore[no-untyped-call]
        value = None
        if isinstance(statement, ast.Expr):
            value = eval(compile(ast.Expression(statement.value), "<example>", "eval"), names)
        else:
            exec(compile(ast.Module([statement], []), "<example>", "exec"), names)
    return value


def _make_importable(exercise: Exercise, cell: str, names: Mapping[str, Any]) -> None:
    """Let later cells import a cell's definitions, as they import the file of an exercise.

    A stub does not replace the file.
    """
    if is_untouched(cell, make_stub(exercise)):
        return
    module = ModuleType(exercise.name)
    vars(module).update({name: names[name] for name in exercise.implements if name in names})
    sys.modules[exercise.name] = module


def _course() -> Course:
    """Return the course around the current folder, or else the one that came with the grader."""
    try:
        return find_course(Path.cwd())
    except RequestError:
        return packaged_course()


def _other_files(course: Course, cells: Iterable[str]) -> Iterator[tuple[Path, bytes]]:
    """Yield the student's files of the exercises that no cell defines: others may import them.

    Stubs are among them: they show that an exercise was not started.
    """
    defined = defined_names("\n".join(cells))
    for exercise in course.exercises:
        path = course.student_folder / f"{exercise.name}.py"
        try:
            data = read_file(path, course.root, MAX_BYTES)
        except (OSError, NotOpened):
            continue
        text = data.decode("utf-8", "replace")
        if not defined & set(exercise.implements) or is_untouched(text, make_stub(exercise)):
            yield path, data


def _cells_so_far() -> list[str]:
    """Return the texts of the cells that were run, without calls of the grader."""
    from IPython import get_ipython  # noqa: PLC0415, slow, and there in a notebook

    shell = get_ipython()
    if shell is None:
        raise RequestError("there is no notebook here", "grader check")
    run = shell.history_manager.input_hist_raw[1:]  # the first entry of `In` is empty
    return [_OWN_CALLS.sub(r"\1pass  # \2", cell) for cell in run]


def _as_heads(rows: Any) -> list[list[list[float]]]:
    """Return the matrices in nested lists, cut to a size that can be drawn."""
    depth, inside = 0, rows
    while isinstance(inside, list):
        depth, inside = depth + 1, inside[0] if inside else 0.0
    if depth not in (2, 3):
        raise RequestError(f"the weights have {depth} axes, not 2 or 3", "weights[0]")
    matrices: Iterable[Any] = rows if depth == 3 else [rows]
    return [
        [[float(number) for number in row[:MAX_SHOWN]] for row in matrix[:MAX_SHOWN]]
        for matrix in matrices
    ]


def _line(row: Iterable[float]) -> str:
    return " ".join(fixed(number, 4, width=7) for number in row)
