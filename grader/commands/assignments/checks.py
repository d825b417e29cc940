"""Statements of a notebook's test cell → statements of a suite.

The text stays as it is, with comments, except where the student's code is called from outside:
`f(x)` becomes `student.f(x)`, and an `assert` a check with a message that students can read.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any

WIDTH = 99  # characters of a line
MAX_SHOWN = 76  # characters quoted of a check
NOSE = {"assert_equal": "{} == {}", "assert_true": "{}", "assert_false": "not ({})"}
RAISES = ("pytest.raises", "assert_raises")
TRANSLATED = {*NOSE, "assert_raises"}  # names that need no definition
CLOSE = ("torch.allclose", "torch.testing.assert_close")
FAILS = re.compile(r"assert (False|0)\b|raise AssertionError\b")
IDLE = re.compile(r"pass|assert (True|1)\b.*|(['\"]).*\2|\.\.\.|\d+", re.DOTALL)
REFUSED = {
    "get_ipython": "it uses a command of IPython",
    "inspect": "suites do not see the student's source",
}
TEXT = (str, ast.JoinedStr)
NUMPY_IS_FINE = {"allclose", "isclose", "pi", "inf", "nan", "e"}


class Untranslatable(Exception):
    """A test cannot be converted faithfully; the message says why."""


@dataclass
class Translator:
    """Translates the code of one test. Raises `Untranslatable`.

    A check without a message gets `message`, or quotes itself unless that is `hidden`.
    """

    code: str
    own: Mapping[str, str]  # what students write, and how a suite asks for it
    asserting: set[str]  # functions of nose
    message: str
    hidden: bool
    calls: set[str] = field(default_factory=set)  # functions of `grader.testing`

    def translated(self) -> str:
        """Return the code as a suite has it."""
        tree, self._bytes = ast.parse(self.code), self.code.encode()
        self._starts = [0, *accumulate(len(line) + 1 for line in self._bytes.split(b"\n"))]
        self._asked = {each.id for each in _names(tree)} & self.own.keys()
        text = self._between(0, len(self._bytes), tree.body)
        if not self._asked:
            raise Untranslatable("it calls nothing that students write")
        return text

    # The text of a node is what stands around its children, and their texts.

    def _span(self, node: Any) -> tuple[int, int]:
        first = (getattr(node, "decorator_list", None) or [node])[0]
        start = self._starts[first.lineno - 1] + first.col_offset
        return start, self._starts[node.end_lineno - 1] + node.end_col_offset

    def _source(self, node: ast.AST) -> str:
        return self._bytes[slice(*self._span(node))].decode()

    def _between(self, start: int, end: int, nodes: Iterable[ast.AST]) -> str:
        text = ""
        for node in sorted(nodes, key=self._span):
            first, last = self._span(node)
            text, start = text + self._bytes[start:first].decode() + self._text(node), last
        return text + self._bytes[start:end].decode()

    def _text(self, node: ast.AST) -> str:
        self._refuse(node)
        text = self._translation(node)
        return self._between(*self._span(node), _children(node)) if text is None else text

    def _refuse(self, node: ast.AST) -> None:
        match node:
            case ast.Name(id=name) if name in REFUSED:
                raise Untranslatable(REFUSED[name])
            case ast.Name(id=name, ctx=ast.Store() | ast.Del()) if name in self.own:
                raise Untranslatable(f"it gives `{name}` another value")
            case ast.FunctionDef(name=name) if name in self.own:
                raise Untranslatable(f"it defines `{name}` itself")
            case ast.Attribute(value=ast.Name(id=name)) if self.own.get(name, ")")[-1] != ")":
                raise Untranslatable(f"it looks into `{name}`; suites only call it")
            case ast.Attribute(value=ast.Name(id="np" | "numpy")) if node.attr not in NUMPY_IS_FINE:
                raise Untranslatable("students' code takes and gives tensors, not arrays of NumPy")
            case ast.With(items=items):
                named = [ast.unparse(each.context_expr) for each in items if each.optional_vars]
                if any(each.startswith(RAISES) for each in named):
                    raise Untranslatable("it reads the exception; suites know its name only")

    def _translation(self, node: ast.AST) -> str | None:
        """Return another text for a node; None if only its children may have another."""
        match node:
            case ast.Name(id=name):
                return self.own.get(name)
            case ast.JoinedStr():  # Python 3.11 does not say where the names in it stand
                theirs = [each for each in _names(node) if each.id in self.own]
                for each in theirs:
                    each.id = self.own[each.id]
                return ast.unparse(node) if theirs else self._source(node)
            case ast.Assert(msg=None, test=ast.Call() as call) if close := self._close(call):
                return close
            case ast.Assert(test=test, msg=message):
                return self._expect(node, self._text(test), message, test)
            case ast.Expr(value=ast.Call() as call):
                return self._statement(node, call)
            case ast.Call(args=[kind, *more]) if ast.unparse(node.func) in RAISES:
                if more or node.keywords:
                    raise Untranslatable("it reads the exception; suites know its name only")
                return self._raises(kind)
            case ast.Try():
                return self._try(node)
            case ast.Import() | ast.ImportFrom() if not node.col_offset:  # a suite has it on top
                end = self._span(node)[1]
                return "" if self._bytes[end : end + 1] in (b"", b"\n") else None
        return None

    def _statement(self, node: ast.Expr, call: ast.Call) -> str | None:
        indent = "\n" + " " * node.col_offset
        match ast.unparse(call.func), call.args:
            case "torch.testing.assert_close", _:
                return self._close(call) or None
            case "torch.manual_seed", [seed, *_]:
                self.calls.add("manual_seed")
                again = f"{indent}manual_seed(student, {self._text(seed)})"
                return self._text(call) + again
            case name, [kind, function, *given] if name in RAISES:
                arguments = ", ".join(map(self._text, [*given, *call.keywords]))
                called = f"{indent}    {self._text(function)}({arguments})"
                return f"with {self._raises(kind)}:{called}"
            case name, given if name in NOSE and name in self.asserting and not call.keywords:
                count = NOSE[name].count("{}")
                if len(given) not in (count, count + 1):
                    raise Untranslatable(f"`{name}` has other arguments than usual")
                condition = NOSE[name].format(*map(self._text, given[:count]))
                return self._expect(node, condition, next(iter(given[count:]), None), call)
        return None

    def _expect(
        self, node: ast.stmt, condition: str, message: ast.expr | None, test: ast.expr
    ) -> str:
        """Return a call of `expect`, on several lines if it is long."""
        self.calls.add("expect")
        said = self._text(message) if message else self._default(test)
        if message and not isinstance(getattr(message, "value", message), TEXT):
            said = f"str({said})"
        short = f"expect({condition}, {said})"
        if len(short) + node.col_offset + 4 <= WIDTH or "\n" in short:
            return short
        step = "\n" + " " * node.col_offset
        return f"expect({step}    {condition},{step}    {said},{step})"

    def _default(self, test: ast.expr) -> str:
        """Return a message in quotes for a check that has none."""
        shown = " ".join(self._source(test).split())
        says = self.message or f"this does not hold: {shown}"
        if not self.message and (self.hidden or len(shown) > MAX_SHOWN):
            called = {each.id for each in _names(test)} & self.own.keys() or self._asked
            says = f"the answer of {' and '.join(sorted(called))} is not right"
        return json.dumps(says, ensure_ascii=False)

    def _close(self, call: ast.Call) -> str:
        """Return a comparison of two tensors as `assert_close`, or nothing if it is none."""
        is_close = ast.unparse(call.func) in CLOSE and len(call.args) == 2
        if not is_close or not {each.arg for each in call.keywords} <= {"rtol", "atol"}:
            return ""
        self.calls.add("assert_close")
        first = ast.unparse(call.args[0])
        is_expected = first.startswith(("torch.tensor(", "expected", "target", "correct"))
        pair = call.args[::-1] if is_expected else call.args
        return f"assert_close({', '.join(map(self._text, [*pair, *call.keywords]))})"

    def _try(self, node: ast.Try) -> str | None:
        body, ends = list(node.body), [ast.unparse(each) for each in node.orelse]
        if FAILS.match(ast.unparse(body[-1])):
            body.pop()
        elif len(ends) != 1 or not FAILS.match(ends[0]):
            if {each.id for each in _names(node)} & self.own.keys():
                raise Untranslatable("it catches an exception and does not fail without one")
            return None
        idle = [IDLE.fullmatch(ast.unparse(each)) for each in node.handlers[0].body]
        if not body or len(node.handlers) != 1 or node.finalbody or not all(idle):
            raise Untranslatable("it does more with an exception than to expect it")
        start, end = self._span(node)[0] + len("try:"), self._span(body[-1])[1]
        kind = node.handlers[0].type or ast.Name("Exception")
        return f"with {self._raises(kind)}:{self._between(start, end, body)}"

    def _raises(self, kind: ast.expr) -> str:
        self.calls.add("raises")
        kinds = kind.elts if isinstance(kind, ast.Tuple) else [kind]
        names = [json.dumps(ast.unparse(each).rpartition(".")[2]) for each in kinds]
        return f"raises(student, {', '.join(names)})"


def _children(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the nearest nodes inside a node that know where they stand."""
    for each in ast.iter_child_nodes(node):
        yield from [each] if hasattr(each, "lineno") else _children(each)


def _names(node: ast.AST) -> list[ast.Name]:
    return [each for each in ast.walk(node) if isinstance(each, ast.Name)]
