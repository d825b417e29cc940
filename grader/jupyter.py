"""The grader in a notebook: `%load_ext grader`, `%%check`, `grader.check` and `grader.show`.

The kernel, in which a student's code has run, is not trusted with the verdict: the texts of the
cells go to a process of their own, which grades them as it grades a notebook that is handed in.
"""

from __future__ import annotations

import html
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import nbformat

from grader.course.course import Course, find_course, packaged_course
from grader.course.stubs import is_untouched, make_stub
from grader.errors import RequestError
from grader.reports import pages

FILE = "notebook"
HEIGHT = 480  # pixels of a report's frame
ENDED = (0, 1)  # the exit codes of a check that came to its end
MAX_SHOWN = 32  # rows and columns of a matrix that is drawn
STYLE = """<style>
.grader-picture {display: flex; flex-wrap: wrap; gap: 1em}
.grader-picture figure {margin: 0}
.grader-picture svg {font: 12px sans-serif; overflow: visible}
.grader-picture svg > text {fill: currentColor}
.grader-picture line {stroke: #3b7dd8; stroke-linecap: round}
</style>"""
MATRICES = """\
{% import "charts.html.j2" as draw with context %}
{% for title, rows in matrices %}
{% if tokens %}{{ draw.attention(rows, tokens, title) }}
{% else %}{{ draw.heatmap(charts.matrix(title, rows), "values") }}{% endif %}
{% endfor %}
"""


@dataclass(frozen=True)
class NotebookVerdict:
    """What the grader says of the definitions in a notebook, as a page and as text."""

    text: str
    page: str
    passed: bool

    def __repr__(self) -> str:
        return self.text

    def _repr_html_(self) -> str:
        if not self.page:
            return f"<pre>{html.escape(self.text)}</pre>"
        return (
            f'<iframe title="report" style="width:100%;height:{HEIGHT}px;border:0;resize:vertical"'
            f' sandbox="" srcdoc="{html.escape(self.page)}"></iframe>'
        )


@dataclass(frozen=True)
class Picture:
    """A matrix, or one for each head, as a drawing and as text."""

    drawing: str
    text: str

    def __repr__(self) -> str:
        return self.text

    def _repr_html_(self) -> str:
        return f'{STYLE}<div class="grader-picture">{self.drawing}</div>'


def check(name: str, *, seed: int | None = None) -> NotebookVerdict:
    """Grade what this notebook defines for an exercise; the last definition counts.

    All cells that were run so far count, in the order in which they were run.
    """
    course = _course()
    exercise = course[name].name
    cells = _cells_so_far()
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    with tempfile.TemporaryDirectory(prefix="grader-notebook-") as root:
        folder = str(Path(root, FILE))  # whose name the report has
        Path(folder).mkdir()
        file, page = Path(folder, f"{FILE}.ipynb"), Path(root, "report.html")
        nbformat.write(notebook, file)
        for path in _other_files(course, cells):
            shutil.copy(path, folder)
        command = [sys.executable, "-m", "grader", "check", folder, exercise, "--all"]
        command += ["--course", str(course.root), "--also", f"html={page}"]
        command += [] if seed is None else ["--seed", str(seed)]
        # What the kernel has changed in its environment, such as its path, is the student's.
        run = subprocess.run(
            command,
            capture_output=True,
            text=True,
            check=False,
            encoding="utf-8",
            env={**os.environ, "PYTHONSAFEPATH": "1", "PYTHONIOENCODING": "utf-8"},
        )
        said = run.stdout if run.returncode in ENDED else run.stderr
        told = said.replace(f"{folder}{os.sep}", "")
        shown = page.read_text("utf-8").replace(f"{folder}{os.sep}", "") if page.is_file() else ""
    return NotebookVerdict(told, shown, run.returncode == 0)


def show(weights: Any, tokens: Sequence[str] = ()) -> Picture:
    """Draw a matrix of weights, or one for each head; with `tokens`, as lines between them.

    `weights` has shape (n_queries, n_keys) or (heads, n_queries, n_keys): a tensor, an array or
    lists of numbers.
    """
    rows = weights.tolist() if hasattr(weights, "tolist") else weights
    heads = _as_heads(rows)
    sizes = {len(head) for head in heads} | {len(row) for head in heads for row in head}
    if tokens and sizes != {len(tokens)}:
        raise RequestError(f"the weights are not those of {len(tokens)} tokens", "leave out tokens")
    titles = ["weights"] if len(heads) == 1 else [f"head {n}" for n in range(len(heads))]
    template = pages.environment().from_string(MATRICES)
    drawing = template.render(matrices=list(zip(titles, heads)), tokens=list(tokens))
    text = "\n\n".join("\n".join(_line(row) for row in head) for head in heads)
    return Picture(drawing, text)


def load_extension(shell: Any) -> None:
    """Make `%%check` known to IPython, and the exercises importable."""

    def check_cell(line: str, cell: str) -> NotebookVerdict:
        """Run a cell, then grade what it defines: `%%check layer_norm`."""
        verdict = check(line.strip())
        shell.run_cell(cell, store_history=False)
        return verdict

    shell.register_magic_function(check_cell, "cell", "check")
    folder = str(_course().student_folder)
    if folder not in sys.path:
        sys.path.append(folder)


def _course() -> Course:
    """Return the course around the current folder, or else the one that came with the grader."""
    try:
        return find_course(Path.cwd())
    except RequestError:
        return packaged_course()


def _other_files(course: Course, cells: Iterable[str]) -> Iterator[Path]:
    """Yield the student's files of exercises that no cell defines, which others may import.

    Stubs come along, too: they say of an exercise that it was not started.
    """
    defined = set(_DEFINITION.findall("\n".join(cells)))
    for exercise in course.exercises:
        path = course.student_folder / f"{exercise.name}.py"
        if not path.is_file():
            continue
        text = path.read_text("utf-8", errors="replace")
        if not defined & set(exercise.implements) or is_untouched(text, make_stub(exercise)):
            yield path


def _cells_so_far() -> list[str]:
    """Return the texts of the cells that were run, without calls of the grader."""
    from IPython import get_ipython  # noqa: PLC0415, slow, and there in a notebook

    shell = get_ipython()
    if shell is None:
        raise RequestError("there is no notebook here", "grader check")
    return [_OWN_CALLS.sub(r"\1pass  # \2", cell) for cell in shell.history_manager.input_hist_raw]


_DEFINITION = re.compile(r"^(?:def|class)[ \t]+(\w+)", re.M)
_OWN_CALLS = re.compile(r"^([ \t]*)((?:import grader|grader\.(?:check|show)\(.*\))[ \t]*)$", re.M)


def _as_heads(rows: Any) -> list[list[list[float]]]:
    """Return the matrices of nested lists, cut to what can be drawn."""
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
    return " ".join(f"{number:7.4f}" for number in row)
