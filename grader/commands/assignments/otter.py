"""The format of otter assign: cells that begin and end blocks, with settings in YAML.

The blocks of today's format are delimited by raw cells. In the older one, a Markdown cell holds
the settings of a question, and comments say which cells are tests. A test passes if its last line
gives the output that the notebook shows below it, or if its function raises nothing.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import yaml

from grader.commands.assignments.definitions import UNREADABLE
from grader.commands.assignments.question import (
    Assignment,
    CodeCell,
    MarkedTest,
    Question,
    cleaned,
    first_line,
    one_line,
    points_in,
    unclosed,
    unopened,
    with_marks,
)
from grader.course.stubs import END, START
from grader.errors import RequestError
from grader.submissions.notebook import NotebookCell

BLOCK = re.compile(r"\s*#+ *(ASSIGNMENT CONFIG|(BEGIN|END) (QUESTION|SOLUTION|PROMPT|TESTS))\b.*")
OLD_QUESTION = re.compile(r"```\w*\n\s*BEGIN QUESTION\s*\n(.*?)```", re.DOTALL)
OLD_CONFIG = re.compile(r"\s*```\w*\n\s*BEGIN ASSIGNMENT\b")
OLD_TEST = re.compile(r"\s*#+ *(hidden +)?tests? *#*\s*(?:\n|$)", re.IGNORECASE)
IGNORED = re.compile(r"\s*#+ *ignore *#*\s*(?:\n|$)", re.IGNORECASE)
HIDDEN = re.compile(r"\s*#+ *HIDDEN\b.*(?:\n|$)")
CONFIG = re.compile(
    r"""\s*(?P<quotes>\"{3}|'{3})\s*\#\ *BEGIN\ TEST\ CONFIG[^\n]*\n
        (?P<yaml>.*?)(?P=quotes);?[ ]*(?:\#\ *END\ TEST\ CONFIG[^\n]*)?(?:\n|$)""",
    re.DOTALL | re.VERBOSE,
)
BEGIN, END_SOLUTION = re.compile(r"^\s*# BEGIN SOLUTION\b"), re.compile(r"^\s*# END SOLUTION\b")
WITHOUT = re.compile(
    r"^[ \t]*# BEGIN IGNORE\b.{0,9999}?^[ \t]*# END IGNORE\b[^\n]*\n?", re.S | re.M
)
LINE = re.compile(r"^(.*\S)[ \t]*#+ *SOLUTION( NO PROMPT)?\s*$")
LEFT_OUT = re.compile(r"#+ *(SEED|IGNORE)\s*$")
PROMPT = re.compile(
    r"^[ \t]*(\"{3}|''')[ \t]*# BEGIN PROMPT[^\n]*\n(.{0,9999}?)\1;?[ \t]*# END PROMPT[^\n]*$",
    re.S | re.M,
)
ENV = re.compile(r"""\benv\[(["'])(\w+)\1\]""")
TENSOR = re.compile(r"tensor\([^()]*\)")
DIGITS = "atol=1e-4, rtol=0"  # torch shows four digits


def is_marked(cells: Sequence[NotebookCell]) -> bool:
    """Return whether a notebook has cells that begin a question."""
    return any(_block(cell) == ("BEGIN", "QUESTION") or _old_settings(cell) for cell in cells)


def parse(cells: Sequence[NotebookCell]) -> Assignment:
    """Return the questions of a notebook. Raises `RequestError` that names the cell."""
    reader = _Reader()
    for cell in cells:
        reader.take(cell)
    return reader.finish()


def _block(cell: NotebookCell) -> tuple[str, str]:
    """Return whether a cell begins or ends a block, and which; two empty texts for other cells."""
    found = cell.kind in ("raw", "markdown") and BLOCK.match(cell.source)
    if not found:
        return "", ""
    return (found[2], found[3]) if found[2] else ("BEGIN", "CONFIG")


def _old_settings(cell: NotebookCell) -> str | None:
    found = cell.kind == "markdown" and OLD_QUESTION.search(cell.source)
    return found[1] if found else None


@dataclass
class _Reader:
    """Takes one cell after the other."""

    assignment: Assignment = field(default_factory=Assignment)
    prose: list[str] = field(default_factory=list)
    open: list[tuple[str, NotebookCell]] = field(default_factory=list)  # blocks, the inner one last
    question: Question | None = None
    by_hand: bool = False
    is_old: bool = False  # whether the question is in the older format

    def take(self, cell: NotebookCell) -> None:
        """Take the next cell."""
        verb, block = _block(cell)
        if IGNORED.match(cell.source) or OLD_CONFIG.match(cell.source):
            return
        if verb == "BEGIN" and block != "CONFIG":
            self._begin(block, cell)
        elif verb == "END":
            self._end(block, cell)
        elif (settings := _old_settings(cell)) is not None:
            self._finish_question()
            self._start(settings, cell)
            self.is_old = True
            self.prose.append(OLD_QUESTION.sub("", cell.source))
        elif not verb:
            self._take_content(cell)

    def finish(self) -> Assignment:
        """Return the assignment that was read."""
        if self.open:
            block, cell = self.open[-1]
            raise unclosed(cell.number, f"# BEGIN {block}")
        self._finish_question()
        texts = [first_line(text) for text in self.prose if text.strip()]
        self.assignment.left += [f"text after the last question: {text}" for text in texts]
        return self.assignment

    def _begin(self, block: str, cell: NotebookCell) -> None:
        if self.open and (block == "QUESTION" or self.open[-1][0] != "QUESTION"):
            raise unclosed(self.open[-1][1].number, f"# BEGIN {self.open[-1][0]}")
        if block == "QUESTION":
            self._finish_question()
            self._start(cell.source.partition("\n")[2], cell)
        elif not self.open:
            problem = f"cell {cell.number}: `# BEGIN {block}` stands in no question"
            raise RequestError(problem, "add a raw cell `# BEGIN QUESTION` before it")
        self.open.append((block, cell))

    def _end(self, block: str, cell: NotebookCell) -> None:
        if not self.open or all(block != each for each, _ in self.open):
            raise unopened(cell.number, f"# END {block}")
        last, opened = self.open.pop()
        if last != block:
            raise unclosed(opened.number, f"# BEGIN {last}")
        if block == "QUESTION":
            self._finish_question()

    def _start(self, settings: str, cell: NotebookCell) -> None:
        found = _yaml(settings, cell.number)
        self.question = Question(cell.number, one_line(found.get("name")))
        self.question.points = self._points(found.get("points"), cell.number)
        self.by_hand = bool(found.get("manual"))
        self.is_old = False

    def _points(self, points: Any, cell: int) -> Any:
        """Store the points of a question; each of its tests gets its points when it ends."""
        self.each: list[Any] | None = None
        if isinstance(points, list):
            self.each = points
        elif isinstance(points, Mapping):
            self.each = [points.get("each")] * 10_000
        else:
            return points_in(points, cell)
        return None

    def _finish_question(self) -> None:
        question, self.question = self.question, None
        if question is None:
            return
        if self.by_hand:
            called = f"cell {question.cell} `{question.name}`"
            self.assignment.left.append(f"{called}: it is graded by hand")
            self.prose.clear()
            return
        if self.each is not None:
            pairs = zip(question.cases, [*self.each, *[None] * len(question.cases)])
            question.cases = [
                replace(case, points=points_in(each, case.cell)) for case, each in pairs
            ]
        self.assignment.questions.append(question)

    def _take_content(self, cell: NotebookCell) -> None:
        block = self.open[-1][0] if self.open else ""
        if self.is_old:
            block = self._old_block(cell)
        if cell.kind == "markdown" and block in ("", "QUESTION"):
            self.prose.append(cell.source)
        elif cell.kind == "code" and self.question is not None and block == "TESTS":
            self.question.cases.append(_case(cell))
        elif cell.kind == "code" and self.question is not None and block == "SOLUTION":
            answer = CodeCell(cell.number, _answer(cell))
            self.question.answers.append(answer)
            self.question.prose += self.prose
            self.prose.clear()
        elif cell.kind == "code" and block != "PROMPT":
            self.assignment.plain.append(CodeCell(cell.number, cell.source))

    def _old_block(self, cell: NotebookCell) -> str:
        """Return the kind of a cell in the older format, where nothing ends a question."""
        if cell.kind == "code" and OLD_TEST.match(cell.source):
            return "TESTS"
        if cell.kind == "code" and self.question is not None and not self.question.answers:
            return "SOLUTION"
        if self.question is not None and self.question.answers:
            self._finish_question()
            self.is_old = False
        return ""


def _yaml(text: str, cell: int) -> Mapping[str, Any]:
    """Return settings. Raises `RequestError` that names the cell."""
    try:
        found = yaml.safe_load(text)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        reason = " ".join(str(getattr(error, "problem", None) or error).split())[:100]
        problem = f"cell {cell}: the settings are no valid YAML ({reason})"
        raise RequestError(problem, "otter assign shows the same problem") from None
    if found is not None and not isinstance(found, Mapping):
        raise RequestError(f"cell {cell}: the settings are no `key: value` lines", "name: q1")
    return found or {}


def _answer(cell: NotebookCell) -> str:
    """Return an answer with the course's marks in place of otter's."""
    code = PROMPT.sub(lambda found: _commented(found[0], found[2]), cell.source)
    code = WITHOUT.sub("", code)
    lines = [line for line in code.split("\n") if not LEFT_OUT.search(line)]
    marked = with_marks("\n".join(lines), BEGIN, END_SOLUTION, cell.number)
    return _with_marked_lines(marked)


def _commented(whole: str, prompt: str) -> str:
    """Return the text that students get in place of an answer, as comments."""
    indent = whole[: len(whole) - len(whole.lstrip())].lstrip("\n")
    lines = [line.strip().removeprefix("#").strip() for line in prompt.splitlines()]
    return "\n".join(f"{indent}# {line}" for line in lines if line and line not in ("pass", "..."))


def _with_marked_lines(code: str) -> str:
    """Return code with marks around each statement that has a line marked as solution."""
    lines, inside = list[str](), False
    for line in code.split("\n"):
        found = LINE.match(line)
        inside = line.strip() == START or (inside and line.strip() != END)
        if found is None or inside:
            lines.append(found[1] if found else line)
            continue
        indent = line[: len(line) - len(line.lstrip())]
        lines += [indent + START, found[1], indent + END]
    text = "\n".join(lines)
    return re.sub(rf"^[ \t]*{END}\n[ \t]*{START}\n", "", text, flags=re.MULTILINE)


def _case(cell: NotebookCell) -> MarkedTest:
    """Return the test of a cell, with the settings at its top."""
    code, hidden, settings = cell.source, False, {}
    if old := OLD_TEST.match(code):
        code, hidden = code[old.end() :], bool(old[1])
    if comment := HIDDEN.match(code):
        code, hidden = code[comment.end() :], True
    if config := CONFIG.match(code):
        code = code[config.end() :]
        settings = dict(_yaml(config["yaml"], cell.number))
    elif re.match(r"\s*(\"{3}|''')\s*#\s*BEGIN TEST CONFIG", code):
        raise unclosed(cell.number, '""" # BEGIN TEST CONFIG')
    code = "\n".join(line for line in code.split("\n") if not LEFT_OUT.search(line))
    body, name, problem = _body(code, cell)
    shown = _shown(cell)
    original = f"{code}\n# gives {shown}" if shown else code
    hidden = hidden or bool(settings.get("hidden"))
    return MarkedTest(
        *(cell.number, one_line(settings.get("name")) or name, body, "" if hidden else body),
        points_in(settings.get("points"), cell.number),
        one_line(settings.get("failure_message")),
        problem,
        original,
    )


def _body(code: str, cell: NotebookCell) -> tuple[str, str, str]:
    """Return the statements of a test, its name, and why they cannot be a test."""
    try:
        nodes = ast.parse(code).body
    except UNREADABLE:
        return code, "", ""  # a suite has it as a comment
    functions = [node for node in nodes if isinstance(node, ast.FunctionDef)]
    if len(functions) == 1 and functions[0].name.startswith("test_"):
        before = [node for node in nodes if node is not functions[0]]
        return _inlined(functions[0], before), functions[0].name, ""
    if nodes and isinstance(nodes[-1], ast.Expr):
        return _with_expected(code, nodes[-1], cell)
    return code, "", ""


def _inlined(function: ast.FunctionDef, others: Sequence[ast.stmt]) -> str:
    """Return the body of a test that is a function; its arguments keep their names."""
    imports = [
        each for each in others if isinstance(each, ast.Import | ast.ImportFrom | ast.Assign)
    ]
    text = "\n".join(ast.unparse(each) for each in (*imports, *function.body))
    return ENV.sub(r"\2", text)


def _with_expected(code: str, last: ast.Expr, cell: NotebookCell) -> tuple[str, str, str]:
    """Return a test whose last line must give the output below it."""
    shown = _shown(cell)
    lines = code.split("\n")
    before, value = "\n".join(lines[: last.lineno - 1]), ast.get_source_segment(code, last) or ""
    if shown is None:
        return code, "", "it prints" if cell.outputs else "the notebook does not show what it gives"
    if not shown:
        return code, "", ""
    if shown == "True":
        check = f"assert {value}"
    elif TENSOR.fullmatch(shown):
        check = f"torch.testing.assert_close({value}, torch.{shown}, {DIGITS})"
    elif _is_literal(shown):
        is_call = isinstance(last.value, ast.Call | ast.Name | ast.Subscript | ast.Attribute)
        check = f"assert {value if is_call else f'({value})'} == {shown}"
    else:
        return code, "", f"what it gives is no plain value: {first_line(shown)}"
    return f"{before}\n{check}".strip("\n"), "", ""


def _shown(cell: NotebookCell) -> str | None:
    """Return the shown value of a cell; empty if it is None, and None if it is unknown."""
    if not cell.outputs:
        return "" if cell.was_run else None
    first, *more = cell.outputs
    data = first.get("data")
    if more or first.get("output_type") != "execute_result" or not isinstance(data, Mapping):
        return None
    text = data.get("text/plain", "")
    return cleaned("".join(map(str, text))).strip() if isinstance(text, str | list) else None


def _is_literal(text: str) -> bool:
    try:
        ast.literal_eval(text)
    except UNREADABLE:
        return False
    return True
