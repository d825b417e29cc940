"""The test cells of a question → `test_public.py` and `test_hidden.py`.

One cell becomes one test, because the other graders give points for cells. The hidden suite runs
all of a cell, the public one only the part that students see. A cell that cannot be converted
faithfully becomes a comment with a TODO.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Sequence
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

SENTENCE = "TODO: the sentence that students read if this fails."
PLACEHOLDER = '''\
@pytest.mark.points(0)
def test_to_do(student):
    """TODO: write the first test; this one asks for no answer."""
    expect(callable(student.{0}), "there is no {0}")'''
PUBLIC = "Public tests of {}, which students can read and run."
HIDDEN = "Hidden tests of {}, which decide the points."
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

    def add(self, case: MarkedTest, name: str) -> None:
        """Add the test of a cell, or a comment about it."""
        code = case.code if self.hidden else case.shown
        try:
            self.tests[name] = self._test(case, code, name)
        except (Untranslatable, *UNREADABLE) as error:
            reason = str(error) if isinstance(error, Untranslatable) else "it is no valid Python"
            called = f", `{case.name}`" if case.name else ""
            worth = f"{case.points} point{'s' * (case.points != 1)}"
            says = f"# TODO: write the test of cell {case.cell}{called} ({worth}): {reason}"
            lines = (case.original or code).strip("\n").split("\n")
            self.to_do.append("\n".join([says, *(f"#   {line}".rstrip() for line in lines)]))

    def _test(self, case: MarkedTest, code: str, called: str) -> str:
        if case.problem:
            raise Untranslatable(case.problem)
        sentence, body = _sentence(code)
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
        about += SAME if self.hidden and self.tests and same else ""
        imports = grouped(self.imports)
        if self.calls:
            imports += f"\n\nfrom grader.testing import {', '.join(sorted(self.calls))}"
        blocks = "\n\n\n".join([imports, *self.shared, *tests, *self.to_do])
        return f'"""{about}"""\n\n{blocks}\n'


def suite_of(
    exercise: str, cases: Sequence[MarkedTest], own: Mapping[str, str], code: Code, *, hidden: bool
) -> tuple[str, int, int]:
    """Return the text of a suite, the number of its tests, and how many are to do."""
    suite, names = ImportedSuite(exercise, own, code, hidden), list[str]()
    for number, case in enumerate(cases, start=1):
        if has_statements(case.code if hidden else case.shown) or (hidden and case.problem):
            wanted = re.sub(r"\W+", "_", case.name.lower()).strip("_") or str(number)
            wanted = f"test_{wanted.removeprefix('test_')}"
            tries = (wanted, *(f"{wanted}_{again}" for again in range(2, len(cases) + 2)))
            names.append(next(each for each in tries if each not in names))
            suite.add(case, names[-1])
    same = all(case.code == case.shown for case in cases)
    return suite.text(same=same), len(suite.tests), len(suite.to_do)


def _sentence(code: str) -> tuple[str, str]:
    """Return the sentence that a cell begins with, in quotes or as a comment, and the rest."""
    tree = ast.parse(code)
    text, rest = ast.get_docstring(tree), code
    if text is not None:
        rest = "\n".join(code.split("\n")[tree.body[0].end_lineno :])
    elif comment := re.match(r"\n*# (?!.*TODO)(.*)(?:\n|$)", code):
        text, rest = comment[1], code[comment.end() :]
    words = (text or "").strip().split("\n\n")[0].replace("\\", "/").replace('"', "'")
    sentence = " ".join(words.split()).strip("# ")
    if not sentence:
        return SENTENCE, rest
    return f"{sentence[0].upper()}{sentence[1:]}{'' if sentence[-1] in '.!?' else '.'}", rest


def _needs(statements: Sequence[Statement]) -> set[str]:
    """Return the names that code uses before it gives them a value."""
    bound, needs = set[str](), set[str]()
    for each in statements:
        own = each.binds if isinstance(each.node, ast.For | ast.With) else NOTHING
        needs |= each.needs - bound - own
        bound |= each.binds
    return needs
