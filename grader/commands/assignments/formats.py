"""The marks of other graders: nbgrader's in the metadata of cells, otter's in cells and comments.

In nbgrader an answer cell begins a question, and a test cell belongs to the last question before it
of which it names a function. In otter raw cells begin and end blocks; in its older format a
Markdown cell holds the settings of a question, and comments say which cells are tests. A test of
otter is right if its last line gives what the notebook shows below it, or if it raises nothing.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import zip_longest
from typing import Any

import yaml

from grader.commands.assignments.definitions import UNREADABLE, is_literal, statements_of
from grader.commands.assignments.question import (
    Assignment,
    CodeCell,
    MarkedTest,
    Question,
    cleaned,
    first_line,
    one_line,
    points_in,
)
from grader.errors import RequestError
from grader.submissions.notebook import NotebookCell

GENERATED = re.compile(r"cell-?[0-9a-f]{6,}")  # a grade_id that nobody chose
AUTOTEST = re.compile(r"^\s*#+ *(?:HASHED )?AUTOTEST\b", re.MULTILINE)
BLOCK = re.compile(r"\s*#+ *(BEGIN|END) (QUESTION|SOLUTION|PROMPT|TESTS)\b")
OLD_QUESTION = re.compile(r"```\w*\n\s*BEGIN QUESTION\s*\n(.*?)```", re.DOTALL)
OLD_TEST = re.compile(r"\s*#+ *(hidden +)?tests? *#*\s*(?:\n|$)", re.IGNORECASE)
SKIPPED = re.compile(
    r"\s*#+ *(?:ignore *#*\s*(?:\n|$)|ASSIGNMENT CONFIG\b)|\s*```\w*\n\s*BEGIN ASSIGNMENT\b", re.I
)
HIDDEN = re.compile(r"\s*#+ *HIDDEN\b.*(?:\n|$)")
LINE = re.compile(r"^(.*\S)[ \t]*#+ *SOLUTION( NO PROMPT)?\s*$")
LEFT_OUT = re.compile(r"#+ *(SEED|IGNORE)\s*$")
ENV = re.compile(r"""\benv\[(["'])(\w+)\1\]""")
TENSOR = re.compile(r"tensor\([^()]*\)")
DIGITS = "atol=1e-4, rtol=0"  # torch shows four digits
# What a cell is in: a block of a question, or nothing; or the end or the beginning of a question.
Part = tuple[str, NotebookCell, Mapping[str, Any]]


@dataclass(frozen=True)
class Format:
    """How a grader marks a notebook."""

    is_marked: Callable[[NotebookCell], bool]  # whether a cell belongs to a question
    parts: Callable[[Sequence[NotebookCell]], Iterator[Part]]
    test: Callable[[NotebookCell], MarkedTest]

    def read(self, cells: Sequence[NotebookCell]) -> Assignment:
        """Return the questions of a notebook. Raises `RequestError` that names the cell."""
        made, prose, question = Assignment(), list[str](), None
        for part, cell, settings in self.parts(cells):
            if part == "BEGIN":
                question = Question(cell.number, one_line(settings.get("name")))
                made.questions.append(question)
            elif part == "END":
                if question:
                    _finish(made, settings, prose)
                question = None
            elif cell.kind != "code":
                prose += [cell.source] if part in ("", "QUESTION") and cell.source.strip() else []
            elif part in ("SOLUTION", "TESTS"):
                about = question or _tested(cell, made.questions)
                if part == "SOLUTION":
                    about.answers.append(_answer(cell))
                else:
                    about.cases.append(self.test(cell))
                about.prose += prose
                prose.clear()
            elif part != "PROMPT":
                made.plain.append(CodeCell(cell.number, cell.source))
        made.left += [f"text after the last question: {first_line(text)}" for text in prose]
        return made


def _finish(made: Assignment, settings: Mapping[str, Any], prose: list[str]) -> None:
    """Give the last question its points, or leave it out with its text."""
    question, points = made.questions[-1], settings.get("points")
    if settings.get("manual"):
        made.questions.pop()
        is_given = points and not isinstance(points, Mapping | list)
        worth = f", {one_line(points)} points" if is_given else ""
        says = f"cell {question.cell} `{question.name}`{worth}: it is graded by hand"
        made.left.append(says)
        prose.clear()
    elif isinstance(points, Mapping | list):
        cases = question.cases
        each = [points.get("each")] * len(cases) if isinstance(points, Mapping) else points
        pairs = zip_longest(cases, each[: len(cases)])
        question.cases = [replace(case, points=points_in(p, case.cell)) for case, p in pairs]
    else:
        question.points = points_in(points, question.cell)


def _tested(cell: NotebookCell, questions: Sequence[Question]) -> Question:
    """Return the last question of which a test names a function, or the last."""
    if not questions:
        problem = f"cell {cell.number} tests something, and no cell before it is an answer"
        raise RequestError(problem, "mark the answer as `Autograded answer` in nbgrader")
    words = {*re.findall(r"\w+", cell.source)}
    for question in reversed(questions):
        statements = [each for answer in question.answers for each in statements_of(answer)]
        if any(each.kind == "definition" and each.binds & words for each in statements):
            return question
    return questions[-1]


@dataclass
class Blocks:
    """The blocks of lines or of cells that are open, the inner one last."""

    open: list[tuple[str, str, int]] = field(default_factory=list)

    @property
    def inner(self) -> str:
        """The block that is open, or nothing."""
        return self.open[-1][0] if self.open else ""

    def take(self, verb: str, block: str, mark: str, cell: int) -> None:
        """Begin or end a block. Raises `RequestError`; only questions hold others."""
        if verb == "BEGIN":
            if self.open and (block == "QUESTION" or self.inner != "QUESTION"):
                self.close()
            self.open.append((block, mark, cell))
        elif all(block != each for each, *_ in self.open):
            shown = " ".join(mark.split())
            remedy = f"add `{shown.replace('END', 'BEGIN')}` before it, or remove it"
            raise RequestError(f"cell {cell}: `{shown}` closes nothing", remedy)
        elif self.inner != block:
            self.close()
        else:
            self.open.pop()

    def close(self) -> None:
        """Raise `RequestError` if a block is open."""
        if self.open:
            _, mark, cell = self.open[-1]
            shown = " ".join(mark.split())
            remedy = f"add `{shown.replace('BEGIN', 'END')}` after it"
            raise RequestError(f"cell {cell}: `{shown}` is not closed", remedy)


def _lines(code: str, blocks: str, cell: int) -> list[tuple[str, str]]:
    """Return the lines of a cell except those that mark blocks, each with the block it is in."""
    lines, marks = list[tuple[str, str]](), Blocks()
    for line in code.split("\n"):
        if mark := re.match(rf"\W*(BEGIN|END) ({blocks})\b", line):
            marks.take(mark[1], mark[2], line, cell)
        else:
            lines.append((line, marks.inner))
    marks.close()
    return lines


def _answer(cell: NotebookCell) -> CodeCell:
    """Return an answer: marks are around lines or behind them, and a prompt becomes a comment."""
    ignored = _lines(cell.source, "IGNORE", cell.number)
    code = "\n".join(line for line, block in ignored if not block and not LEFT_OUT.search(line))
    lines = list[tuple[str, bool]]()
    for line, block in _lines(code, "SOLUTION|PROMPT", cell.number):
        mark, words = LINE.match(line), line.strip().removeprefix("#").strip()
        if block != "PROMPT":
            lines.append((mark[1] if mark else line, bool(mark or block)))
        elif words not in ("", "pass", "..."):
            lines.append((f"{line[: len(line) - len(line.lstrip())]}# {words}", False))
    marked = (number for number, (_, is_marked) in enumerate(lines, start=1) if is_marked)
    code = "\n".join(line for line, _ in lines)
    return CodeCell(cell.number, code, frozenset(marked), "answer")


def _marks(cell: NotebookCell) -> Mapping[str, Any]:
    marks = cell.metadata.get("nbgrader")
    return marks if isinstance(marks, dict) else {}


def _nbgraders_parts(cells: Sequence[NotebookCell]) -> Iterator[Part]:
    for cell in cells:
        marks, name = _marks(cell), one_line(_marks(cell).get("grade_id"))
        by_hand = marks.get("task") or (marks.get("solution") and marks.get("grade"))
        if by_hand:
            yield "BEGIN", cell, {"name": name}
            yield "END", cell, {"manual": True, "points": marks.get("points")}
        elif marks.get("solution") and cell.kind == "code":
            yield "BEGIN", cell, {"name": _chosen_name(name)}
            yield "SOLUTION", cell, {}
            yield "END", cell, {}
        else:
            yield "TESTS" if marks.get("grade") and cell.kind == "code" else "", cell, {}


def _chosen_name(grade_id: str) -> str:
    return "" if GENERATED.fullmatch(grade_id) else grade_id


def _nbgraders_test(cell: NotebookCell) -> MarkedTest:
    lines = _lines(cell.source, "HIDDEN TESTS?", cell.number)
    code = "\n".join(line for line, _ in lines)
    shown = "\n".join(line for line, block in lines if not block)
    name = _chosen_name(one_line(_marks(cell).get("grade_id")))
    points = points_in(_marks(cell).get("points") or 0, cell.number)
    problem = "nbgrader makes its tests of a comment" if AUTOTEST.search(code) else ""
    return MarkedTest(cell.number, name, code, shown, points, problem=problem)


def _block(cell: NotebookCell) -> tuple[str, str]:
    """Return whether a cell begins or ends a block, and which; twice nothing for other cells."""
    found = cell.kind in ("raw", "markdown") and BLOCK.match(cell.source)
    return (found[1], found[2]) if found else ("", "")


def _old_settings(cell: NotebookCell) -> re.Match[str] | None:
    return OLD_QUESTION.search(cell.source) if cell.kind == "markdown" else None


def _otters_parts(cells: Sequence[NotebookCell]) -> Iterator[Part]:
    blocks, old, settings = Blocks(), "", _yaml("", 0)
    for cell in cells:
        (verb, block), begins, text = _block(cell), _old_settings(cell), cell.source
        if SKIPPED.match(text):
            continue
        if verb == "BEGIN" and block != "QUESTION" and not blocks.open:
            problem = f"cell {cell.number}: `# BEGIN {block}` stands in no question"
            raise RequestError(problem, "add a raw cell `# BEGIN QUESTION` before it")
        if verb:
            blocks.take(verb, block, f"# {verb} {block}", cell.number)
        is_test = cell.kind == "code" and OLD_TEST.match(text)
        if begins or block == "QUESTION" or (old == "SOLUTION" and not is_test):
            yield "END", cell, settings
            old = ""  # nothing else ends a question in the older format
        if begins or (verb, block) == ("BEGIN", "QUESTION"):
            settings = _yaml(begins[1] if begins else text.partition("\n")[2], cell.number)
            yield "BEGIN", cell, settings
            old = "BEGIN" if begins else ""
        if old and cell.kind == "code":
            part = "TESTS" if is_test else "SOLUTION"
            old = old if is_test else part
        else:
            part = blocks.inner
        if not verb:
            yield part, replace(cell, source=OLD_QUESTION.sub("", text) if begins else text), {}
    blocks.close()
    yield "END", cells[-1], settings


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


def _otters_test(cell: NotebookCell) -> MarkedTest:
    """Return the test of a cell, with the settings at its top."""
    code, hidden = cell.source, False
    for pattern in (OLD_TEST, HIDDEN):
        if mark := pattern.match(code):
            code, hidden = code[mark.end() :], hidden or "hidden" in mark[0].lower()
    lines = _lines(code, "TEST CONFIG", cell.number)
    settings = _yaml("\n".join(line for line, block in lines if block), cell.number)
    code = "\n".join(line for line, block in lines if not block and not LEFT_OUT.search(line))
    body, name, problem = _body(code, cell)
    shown = _shown(cell)
    return MarkedTest(
        *(cell.number, one_line(settings.get("name")) or name, body),
        "" if hidden or settings.get("hidden") else body,
        points_in(settings.get("points"), cell.number),
        one_line(settings.get("failure_message")),
        problem,
        f"{code}\n# gives {shown}" if shown else code,
    )


def _body(code: str, cell: NotebookCell) -> tuple[str, str, str]:
    """Return the statements of a test, its name, and why they are no test."""
    try:
        nodes = ast.parse(code).body
    except UNREADABLE:
        return code, "", ""  # a suite keeps it as a comment
    functions = [node for node in nodes if isinstance(node, ast.FunctionDef)]
    if len(functions) == 1 and functions[0].name.startswith("test_"):
        others = [n for n in nodes if isinstance(n, ast.Import | ast.ImportFrom | ast.Assign)]
        text = "\n".join(ast.unparse(each) for each in (*others, *functions[0].body))
        return ENV.sub(r"\2", text), functions[0].name, ""
    if not nodes or not isinstance(last := nodes[-1], ast.Expr) or (shown := _shown(cell)) == "":
        return code, "", ""
    if shown is None:
        return code, "", "it prints" if cell.outputs else "the notebook does not show what it gives"
    value = ast.get_source_segment(code, last) or ""
    if shown == "True":
        check = f"assert {value}"
    elif TENSOR.fullmatch(shown):
        check = f"torch.testing.assert_close({value}, torch.{shown}, {DIGITS})"
    elif is_literal(shown):
        is_call = isinstance(last.value, ast.Call | ast.Name | ast.Subscript | ast.Attribute)
        check = f"assert {value if is_call else f'({value})'} == {shown}"
    else:
        return code, "", f"what it gives is no plain value: {first_line(shown)}"
    lines = [*code.split("\n")[: last.lineno - 1], check]
    return "\n".join(lines).strip("\n"), "", ""


def _shown(cell: NotebookCell) -> str | None:
    """Return what a cell gives; nothing if it gives None, and None if nobody knows."""
    if not cell.outputs:
        return "" if cell.was_run else None
    first, *more = cell.outputs
    data = first.get("data")
    if more or first.get("output_type") != "execute_result" or not isinstance(data, Mapping):
        return None
    text = data.get("text/plain", "")
    return cleaned("".join(map(str, text))).strip() if isinstance(text, str | list) else None


FORMATS: Mapping[str, Format] = {
    "nbgrader": Format(
        lambda cell: bool(_marks(cell).get("grade") or _marks(cell).get("solution")),
        _nbgraders_parts,
        _nbgraders_test,
    ),
    "otter": Format(
        lambda cell: _block(cell) == ("BEGIN", "QUESTION") or _old_settings(cell) is not None,
        _otters_parts,
        _otters_test,
    ),
}
