"""The test cells of a question → `test_public.py` and `test_hidden.py`.

One cell becomes one test, because the other graders give points for cells. The hidden suite runs
all of a cell, the public one only the part that students see. A cell that cannot be converted
faithfully becomes a comment with a TODO.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from grader.commands.assignments.checks import TRANSLATED, Translator, Untranslatable
from grader.commands.assignments.definitions import (
    NOTHING,
    UNREADABLE,
    Code,
    Statement,
    grouped,
    has_statements,
    indented,
    statements_of,
)
from grader.commands.assignments.question import CodeCell, MarkedTest

MAX_QUOTED = 60  # characters of a check in the sentence of its test
PLACEHOLDER = '''\
@pytest.mark.points(0)
def test_to_do(student):
    """TODO: write the first test; this one asks for no answer."""
    expect(callable(student.{0}), "there is no {0}")'''
PUBLIC = "Public tests of {}, which students can read and run."
HIDDEN = "Hidden tests of {}, which decide the points."
VALUE = """\
test_{0}_value = Check("`{0}` has the value that the solution gives it.", points=0)
test_{0}_value.case("The value of `{0}`.", output("{0}"), hidden=True)"""
CLOSE = ("allclose", "isclose", "assert_close", "assert_allclose", "round", "abs")
SAME = "\n\nTODO: students can read each of these tests; ask with other inputs, too.\n"


@dataclass
class ImportedSuite:
    """A suite that is being written: its tests, and the parts that they share."""

    exercise: str
    own: Mapping[str, str]  # what students write, and how a suite asks for it
    code: Code
    hidden: bool
    imports: set[str] = field(default_factory=lambda: {"import pytest"})
    calls: set[str] = field(default_factory=set)
    shared: dict[str, None] = field(default_factory=dict)
    tests: dict[str, str] = field(default_factory=dict)
    to_do: list[str] = field(default_factory=list)
    values: list[str] = field(default_factory=list)  # variables of which a case asks for the value

    def add(self, case: MarkedTest, name: str) -> bool:
        """Add the test of a cell, or a comment about it; return whether it is a test."""
        code = case.code if self.hidden else case.shown
        try:
            self.tests[name] = self._test(case, code, name)
            return True
        except (Untranslatable, *UNREADABLE) as error:
            reason = str(error) if isinstance(error, Untranslatable) else "it is no valid Python"
            called = f", `{case.name}`" if case.name else ""
            worth = f"{case.points} point{'s' * (case.points != 1)}"
            says = f"# TODO: write the test of cell {case.cell}{called} ({worth}): {reason}"
            lines = (case.original or code).strip("\n").split("\n")
            self.to_do.append("\n".join([says, *(f"#   {line}".rstrip() for line in lines)]))
            return False

    def _test(self, case: MarkedTest, code: str, called: str) -> str:
        if case.problem:
            raise Untranslatable(case.problem)
        sentence, body = _sentence(code)
        sentence = sentence or self._promise(body, secret=self.hidden and case.code != case.shown)
        statements = statements_of(CodeCell(case.cell, body))
        part = "hidden" if self.hidden else "shown"
        carried, unknown = self.code.needed(_needs(statements), case.cell, part, self.own)
        absent = [each.text for each in statements if each.kind == "not installed"]
        others = [min(each.binds) for each in carried if each.exercise]
        problems = [f"`{text}` finds nothing here" for text in absent]
        problems += [f"it uses `{name}`, which another exercise asks for" for name in others]
        for name in sorted(unknown - TRANSLATED):
            problems.append(f"it uses `{name}`, which is no function or class to write")
        if problems:
            raise Untranslatable(problems[0])
        inside = self._inside(carried)
        body = "\n".join([*(each.text for each in inside), body])
        is_secret = self.hidden and case.code != case.shown
        made = Translator(body, self.own, unknown & TRANSLATED, case.message, is_secret)
        body = re.sub(r"\n{3,}", "\n\n", made.translated()).strip("\n")
        marks = [f"@pytest.mark.points({case.points})"]
        marks += ['@pytest.mark.visible("after_due")'] if is_secret else []
        head = [*marks, f"def {called}(student):", f'    """{sentence}"""']
        text = "\n".join([*head, indented(body)])
        ast.parse(text)
        self.calls |= made.calls
        self.imports |= {each.text for each in (*carried, *statements) if each.kind == "import"}
        outside = (s for s in carried if s.kind != "import" and s not in inside)
        self.shared |= dict.fromkeys(each.text for each in outside)
        return text

    def _promise(self, code: str, *, secret: bool) -> str:
        """Return the sentence of a test that has none: its first check, unless that is secret."""
        nodes = [*ast.walk(ast.parse(code))]
        checks = [ast.unparse(node.test) for node in nodes if isinstance(node, ast.Assert)]
        shown = checks[0].replace("\\", "/").replace('"', "'") if checks else ""
        if shown and not secret and len(shown) <= MAX_QUOTED and "\n" not in shown:
            more = f", and {len(checks) - 1} more" if len(checks) > 1 else ""
            return f"`{shown}` holds{more}."
        named = {node.id for node in nodes if isinstance(node, ast.Name)} & self.own.keys()
        called = " and ".join(f"`{name}`" for name in sorted(named)) or "The code"
        return f"{called} {'give' if len(named) > 1 else 'gives'} the right answers."

    def _inside(self, carried: Sequence[Statement]) -> list[Statement]:
        """Return the statements that stand in the test: at the top of a suite, none computes."""
        names, found, size = {*self.own}, list[Statement](), -1
        while len(found) > size:
            size = len(found)
            found = [each for each in carried if each.kind == "computed" or each.needs & names]
            names |= {name for each in found for name in each.binds}
        return found

    def text(self, *, same: bool) -> str:
        """Return the file; `same` says that students can read all of the hidden tests."""
        tests = [*self.tests.values()]
        if not tests:  # a suite without any cannot be collected
            tests.append(PLACEHOLDER.format(next(iter(self.own))))
            self.calls.add("expect")
        about = (HIDDEN if self.hidden else PUBLIC).format(self.exercise)
        # A variable has no other inputs.
        about += SAME if self.hidden and self.tests and same and not self.values else ""
        imports = grouped(self.imports)
        own = ["from grader.authors import Check, output"] if self.values else []
        own += [f"from grader.testing import {', '.join(sorted(self.calls))}"] if self.calls else []
        imports = "\n\n".join(filter(None, [imports, "\n".join(own)]))
        cases = [VALUE.format(name) for name in self.values]
        blocks = "\n\n\n".join([imports, *self.shared, *tests, *cases, *self.to_do])
        return f'"""{about}"""\n\n{blocks}\n'


def suite_of(
    exercise: str,
    cases: Sequence[MarkedTest],
    own: Mapping[str, str],
    code: Code,
    *,
    hidden: bool,
    values: Collection[str] = (),
) -> tuple[str, int, int]:
    """Return the text of a suite, the number of its tests, and how many are to do.

    The hidden suite also has a case on each of the `values` that a test compares with numbers.
    """
    suite, names = ImportedSuite(exercise, own, code, hidden), list[str]()
    for number, case in enumerate(cases, start=1):
        if has_statements(case.code if hidden else case.shown) or (hidden and case.problem):
            wanted = re.sub(r"\W+", "_", case.name.lower()).strip("_") or str(number)
            wanted = f"test_{wanted.removeprefix('test_')}"
            tries = (wanted, *(f"{wanted}_{again}" for again in range(2, len(cases) + 2)))
            names.append(next(each for each in tries if each not in names))
            suite.add(case, names[-1])
    if hidden:
        suite.values += [name for name in own if name in values and _is_numeric(name, cases)]
    same = all(case.code == case.shown for case in cases)
    return suite.text(same=same), len(suite.tests), len(suite.to_do)


def convertible(
    exercise: str, cases: Sequence[MarkedTest], own: Mapping[str, str], code: Code
) -> list[MarkedTest]:
    """Return the cells of which the part that students see can be turned into a test."""
    suite = ImportedSuite(exercise, own, code, hidden=False)
    return [case for case in cases if has_statements(case.shown) and suite.add(case, "test")]


def _sentence(code: str) -> tuple[str, str]:
    """Return the sentence that a cell begins with, in quotes or as a comment, and the rest.

    The sentence is empty if there is none.
    """
    tree = ast.parse(code)
    text, rest = ast.get_docstring(tree), code
    if text is not None:
        rest = "\n".join(code.split("\n")[tree.body[0].end_lineno :])
    elif comment := re.match(r"\n*# (?!.*TODO)(.*)(?:\n|$)", code):
        text, rest = comment[1], code[comment.end() :]
    words = (text or "").strip().split("\n\n")[0].replace("\\", "/").replace('"', "'")
    sentence = " ".join(words.split()).strip("# ")
    if not sentence:
        return "", rest
    return f"{sentence[0].upper()}{sentence[1:]}{'' if sentence[-1] in '.!?' else '.'}", rest


def _is_numeric(name: str, cases: Sequence[MarkedTest]) -> bool:
    """Return whether a test compares a variable with numbers, so that a case can, too."""
    trees = (each.node for case in cases for each in statements_of(CodeCell(0, case.code)))
    for node in (node for tree in trees for node in ast.walk(tree)):
        match node:
            case ast.Compare(left=left, ops=[ast.Eq()], comparators=[right]):
                sides = {ast.unparse(left): right, ast.unparse(right): left}
                if name in sides and _holds_numbers(sides[name]):
                    return True
            case ast.Call(func=func, args=args) if ast.unparse(func).endswith(CLOSE):
                if any(isinstance(n, ast.Name) and n.id == name for a in args for n in ast.walk(a)):
                    return True
    return False


def _holds_numbers(value: ast.expr) -> bool:
    """Return whether an expression is a number, or a list of numbers."""
    if isinstance(value, ast.List | ast.Tuple):
        return bool(value.elts) and all(map(_holds_numbers, value.elts))
    try:
        return type(ast.literal_eval(value)) in (int, float)
    except UNREADABLE:
        return False


def _needs(statements: Sequence[Statement]) -> set[str]:
    """Return the names that code uses before it gives them a value."""
    bound, needs = set[str](), set[str]()
    for each in statements:
        own = each.binds if isinstance(each.node, ast.For | ast.With) else NOTHING
        needs |= each.needs - bound - own
        bound |= each.binds
    return needs
