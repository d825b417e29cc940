"""The test cells of a question → `test_public.py` and `test_hidden.py`.

One cell becomes one test, because the other graders give points for cells. The hidden suite runs
all of a cell, the public one only the part that students see. A cell that cannot be converted
faithfully becomes a comment with a TODO.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from grader.commands.assignments.checks import TRANSLATED, Checks, Untranslatable, checks_of
from grader.commands.assignments.definitions import (
    UNREADABLE,
    Carried,
    Definitions,
    Statement,
    grouped,
    is_importable,
    names_in,
    statements_of,
)
from grader.commands.assignments.question import CodeCell, MarkedTest

SENTENCE = "TODO: the sentence that students read if this fails."
MAX_TEST = 16 * 1024  # characters; the time to convert them grows with their square
PLACEHOLDER = '''\
@pytest.mark.points(0)
def test_to_do(student):
    """TODO: write the first test; this one asks for no answer."""
    expect(callable(student.{0}), "there is no {0}")'''
SAME = "\n\nTODO: students can read each of these tests; ask with other inputs, too.\n"


@dataclass(frozen=True)
class WrittenSuite:
    """The text of a suite, with the numbers of cells that became tests and that are to do."""

    text: str
    tests: int
    to_do: int


@dataclass
class _SuiteParts:
    """The parts of a suite that its tests share, and the tests."""

    imports: set[str] = field(default_factory=set)
    calls: set[str] = field(default_factory=set)
    shared: dict[str, None] = field(default_factory=dict)
    tests: list[str] = field(default_factory=list)
    to_do: list[str] = field(default_factory=list)


def suite_of(
    exercise: str,
    cases: Sequence[tuple[MarkedTest, int]],
    definitions: Definitions,
    own: Sequence[str],
    *,
    hidden: bool,
) -> WrittenSuite:
    """Return a suite of the cases, each with its points."""
    parts, names = _SuiteParts(), set[str]()
    for number, (case, points) in enumerate(cases, start=1):
        code = case.code if hidden else case.shown
        if not has_statements(code) and not (hidden and case.problem):
            continue
        writer = _TestWriter(case, code, definitions, set(own), hidden, parts)
        name = _unique(_test_name(case, code, number), names)
        try:
            text = writer.test(name, points)
            parts.tests.append(text)
        except Untranslatable as reason:
            parts.to_do.append(_as_comment(case, code, str(reason), points))
        except UNREADABLE:
            parts.to_do.append(_as_comment(case, code, "it is no valid Python", points))
    tests = len(parts.tests)
    if not tests:  # because a suite without tests cannot be collected
        parts.tests.append(PLACEHOLDER.format(own[0]))
        parts.calls.add("expect")
    same = bool(tests) and not any(case.is_hidden for case, _ in cases)
    text = _text(exercise, parts, hidden=hidden, same=same)
    return WrittenSuite(text, tests, len(parts.to_do))


def _text(exercise: str, parts: _SuiteParts, *, hidden: bool, same: bool) -> str:
    if hidden:
        about = f"Hidden tests of {exercise}, which decide the points.{SAME if same else ''}"
    else:
        about = f"Public tests of {exercise}, which students can read and run."
    imports = grouped({"import pytest", *parts.imports})
    if parts.calls:
        imports += f"\n\nfrom grader.testing import {', '.join(sorted(parts.calls))}"
    blocks = [f'"""{about}"""\n', imports]
    blocks += [f"\n\n{text}" for text in (*parts.shared, *parts.tests, *parts.to_do)]
    return "\n".join([*blocks, ""])


@dataclass
class _TestWriter:
    """Writes one test."""

    case: MarkedTest
    code: str
    definitions: Definitions
    own: set[str]
    hidden: bool
    parts: _SuiteParts
    imported: list[Statement] = field(default_factory=list)  # names in the test's own code

    def test(self, name: str, points: int) -> str:
        """Return the text of the test; code shared with others goes to the suite's parts."""
        if self.case.problem:
            raise Untranslatable(self.case.problem)
        if len(self.code) > MAX_TEST:
            raise Untranslatable(f"it has more than {MAX_TEST} characters")
        sentence, body = _sentence(self.code)
        body = self._without_imports(body)
        needs = _needs(body) - {name for each in self.imported for name in each.binds}
        carried = self.definitions.carried(needs - self.own, self.case.cell, self.own)
        self._refuse_unknown(carried)
        inside = [each for each in carried.others if not self._is_shared(each, carried)]
        code = "\n".join([*(each.text for each in inside), body])
        checks = self._checks(code, carried.unknown & TRANSLATED)
        if not checks.asks_student:
            raise Untranslatable("it calls nothing that students write")
        fixture = f"def {name}(student):"
        lines = [f"@pytest.mark.points({points})", fixture, f'    """{sentence}"""']
        if self.hidden and self.case.is_hidden:
            lines.insert(1, '@pytest.mark.visible("after_due")')
        text = "\n".join([*lines, _indented(checks.text.strip("\n"))])
        ast.parse(text)
        self._share(carried, checks)
        return text

    def _without_imports(self, body: str) -> str:
        """Remove the imports from a test's code; the suite has them at its top."""
        lines = body.split("\n")
        for each in statements_of(CodeCell(self.case.cell, body)):
            if each.is_import and lines[each.node.lineno - 1].strip() == each.text.split("\n")[0]:
                if not is_importable(each):
                    raise Untranslatable(f"`{each.text}` finds nothing here")
                self.imported.append(each)
                for number in range(each.node.lineno, (each.node.end_lineno or 0) + 1):
                    lines[number - 1] = ""
        return re.sub(r"\n{3,}", "\n\n", "\n".join(lines))

    def _refuse_unknown(self, carried: Carried) -> None:
        if names := sorted(carried.earlier):
            raise Untranslatable(f"it uses `{names[0]}`, which another exercise asks for")
        if names := sorted(carried.unknown - TRANSLATED):
            raise Untranslatable(f"it uses `{names[0]}`, which is no function or class to write")

    def _is_shared(self, statement: Statement, carried: Carried) -> bool:
        """Return whether a statement may be at module level, where nothing is computed."""
        if statement.is_constant:
            return True
        others = {name: each for each in carried.others for name in each.binds}
        needed = [others[name] for name in statement.needs if name in others]
        return (
            statement.is_definition
            and not statement.needs & self.own
            and all(each is statement or self._is_shared(each, carried) for each in needed)
        )

    def _checks(self, code: str, asserting: set[str]) -> Checks:
        hidden = self.hidden and self.case.is_hidden
        return checks_of(code, self.own, asserting, self.case.message, hidden=hidden)

    def _share(self, carried: Carried, checks: Checks) -> None:
        self.parts.imports |= {each.text for each in (*carried.imports, *self.imported)}
        self.parts.calls |= checks.calls
        for each in carried.others:
            if self._is_shared(each, carried):
                self.parts.shared[each.text] = None


def has_statements(code: str) -> bool:
    """Return whether code does more than describe itself; true if it does not parse."""
    try:
        return any(not _is_text(node) for node in ast.parse(code).body)
    except UNREADABLE:
        return bool(code.strip())


def _is_text(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _sentence(code: str) -> tuple[str, str]:
    """Return the sentence that a cell begins with, in quotes or as a comment, and the rest."""
    tree = ast.parse(code)
    if (text := ast.get_docstring(tree)) is not None:
        rest = "\n".join(code.split("\n")[tree.body[0].end_lineno :])
        return _one_sentence(text), rest
    first, _, rest = code.strip("\n").partition("\n")
    if first.startswith("# ") and "TODO" not in first:
        return _one_sentence(first), rest
    return SENTENCE, code


def _one_sentence(text: str) -> str:
    lines = text.strip().split("\n\n")[0]
    sentence = " ".join(lines.replace("\\", "/").replace('"', "'").split()).strip("# ")
    if not sentence:
        return SENTENCE
    sentence = f"{sentence[0].upper()}{sentence[1:]}"
    return sentence if sentence[-1] in ".!?" else f"{sentence}."


def _needs(code: str) -> set[str]:
    """Return the names that code uses before it gives them a value."""
    bound, needs = set[str](), set[str]()
    for node in ast.parse(code).body:
        binds, uses = names_in(ast.unparse(node))
        needs |= uses - bound if not isinstance(node, ast.For | ast.With) else uses - bound - binds
        bound |= binds
    return needs


def _indented(code: str) -> str:
    """Return code one step to the right; the lines of its strings stay where they are."""
    inside = {
        line
        for node in ast.walk(ast.parse(code))
        if isinstance(node, ast.Constant | ast.JoinedStr)
        for line in range(node.lineno + 1, (node.end_lineno or node.lineno) + 1)
    }
    lines = enumerate(code.split("\n"), start=1)
    return "\n".join(text if n in inside or not text else f"    {text}" for n, text in lines)


def _test_name(case: MarkedTest, code: str, number: int) -> str:
    name = re.sub(r"\W+", "_", case.name.lower()).strip("_")
    if not name:
        return f"test_{number}"
    return name if name.startswith("test_") else f"test_{name}"


def _unique(name: str, names: set[str]) -> str:
    found, number = name, 2
    while found in names:
        found, number = f"{name}_{number}", number + 1
    names.add(found)
    return found


def _as_comment(case: MarkedTest, code: str, reason: str, points: int) -> str:
    called = f", `{case.name}`" if case.name else ""
    worth = f"{points} point{'s' * (points != 1)}"
    says = f"# TODO: write the test of cell {case.cell}{called} ({worth}): {reason}"
    lines = (case.original or code).strip("\n").split("\n")
    return "\n".join([says, *(f"#   {line}".rstrip() for line in lines)])


def cells_of_cases(cases: Iterable[MarkedTest], *, hidden: bool) -> Iterator[CodeCell]:
    """Yield the code of test cells, of which later ones may use what it defines."""
    for case in cases:
        yield CodeCell(case.cell, case.code if hidden else case.shown)
