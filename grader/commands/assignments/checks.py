"""Statements of a notebook's test cell → statements of a suite.

The text stays as it is, with comments, except where the student's code is called from outside:
`f(x)` becomes `student.f(x)`, and an `assert` a check with a message that students can read.
"""

from __future__ import annotations

import ast
import json
from dataclasses import dataclass, field
from typing import Any

WIDTH = 99  # characters of a line
MAX_SHOWN = 76  # characters quoted of a check
NOSE = {"assert_equal": "{} == {}", "assert_true": "{}", "assert_false": "not ({})"}
REFUSES = "assert_raises"
TRANSLATED = {*NOSE, REFUSES}  # names that need no definition
RAISES = ("pytest.raises", REFUSES)
TOLERANCES = {"rtol", "atol"}
CLOSE = ("torch.allclose", "torch.testing.assert_close")
NUMPY_IS_FINE = {"allclose", "isclose", "pi", "inf", "nan", "e"}


class Untranslatable(Exception):
    """A test cannot be converted faithfully; the message says why."""


@dataclass
class Checks:
    """Code of a suite, and the functions of `grader.testing` that it calls."""

    text: str
    calls: set[str] = field(default_factory=set)
    asks_student: bool = False


def checks_of(
    code: str,
    own: set[str],
    asserting: set[str],
    message: str = "",
    *,
    hidden: bool = False,
) -> Checks:
    """Return a test's code in the form of a suite. Raises `Untranslatable`.

    `own` are the functions and classes that students write, `asserting` those of nose that the code
    calls. A check without a message of its own
    gets `message`; without one it quotes the check itself, unless that is `hidden`.
    """
    return _Translator(code, own, asserting, message, hidden).translated()


class _Translator(ast.NodeVisitor):
    def __init__(
        self, code: str, own: set[str], asserting: set[str], message: str, hidden: bool
    ) -> None:
        self._own, self._message, self._hidden = own, message, hidden
        self._asserting = asserting
        self._tree = ast.parse(code)
        lines = code.encode().split(b"\n")
        self._code, self._starts = code.encode(), [0]
        for line in lines:
            self._starts.append(self._starts[-1] + len(line) + 1)
        self._edits: list[tuple[int, int, bytes]] = []
        self._made = Checks("")
        self._theirs = own | _made_by(self._tree, own)  # names with values from students' code

    def translated(self) -> Checks:
        self.visit(self._tree)
        self._made.text = self._text(0, len(self._code))
        return self._made

    # Places in the text, and the text there after the edits so far.

    def _span(self, node: Any) -> tuple[int, int]:
        start = self._starts[node.lineno - 1] + node.col_offset
        return start, self._starts[node.end_lineno - 1] + node.end_col_offset

    def _text(self, start: int, end: int) -> str:
        made, at = b"", start
        for first, last, new in sorted(self._edits, key=lambda edit: edit[:2]):
            if start <= first and last <= end:
                made += self._code[at:first] + new
                at = last
        return (made + self._code[at:end]).decode()

    def _of(self, node: Any) -> str:
        return self._text(*self._span(node))

    def _source(self, node: Any) -> str:
        start, end = self._span(node)
        return self._code[start:end].decode()

    def _replace(self, start: int, end: int, new: str) -> None:
        kept = [edit for edit in self._edits if edit[0] < start or edit[1] > end]
        self._edits = [*kept, (start, end, new.encode())]

    # Names.

    def visit_Name(self, node: ast.Name) -> None:
        if node.id == "get_ipython":
            raise Untranslatable("it uses a command of IPython")
        if node.id not in self._own:
            return
        if not isinstance(node.ctx, ast.Load):
            raise Untranslatable(f"it gives `{node.id}` another value")
        start, _ = self._span(node)
        self._edits.append((start, start, b"student."))
        self._made.asks_student = True

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        """Write an f-string again, because Python 3.11 does not give the places of names in it."""
        if _mentions(node, self._own):
            self._made.asks_student = True
            self._replace(*self._span(node), ast.unparse(_Prefixed(self._own).visit(node)))

    def visit_Attribute(self, node: ast.Attribute) -> None:
        value = node.value
        if isinstance(value, ast.Name):
            if value.id in self._own:
                raise Untranslatable(f"it looks into `{value.id}`; suites only call it")
            if value.id in ("np", "numpy") and node.attr not in NUMPY_IS_FINE:
                raise Untranslatable("students' code takes and gives tensors, not arrays of NumPy")
            if value.id == "inspect":
                raise Untranslatable("suites do not see the student's source")
        self.generic_visit(node)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        if node.name in self._own:
            raise Untranslatable(f"it defines `{node.name}` itself")
        self.generic_visit(node)

    # Checks.

    def visit_Assert(self, node: ast.Assert) -> None:
        self.generic_visit(node)
        close = node.msg is None and isinstance(node.test, ast.Call) and self._close(node.test)
        self._replace(*self._span(node), close or self._expect(self._of(node.test), node))

    def visit_Expr(self, node: ast.Expr) -> None:
        self.generic_visit(node)
        call = node.value
        if not isinstance(call, ast.Call):
            return
        name = ast.unparse(call.func)
        if name == "torch.testing.assert_close" and (close := self._close(call)):
            self._replace(*self._span(node), close)
        elif name in NOSE and name in self._asserting and not call.keywords:
            self._replace(*self._span(node), self._nose(call, NOSE[name]))
        elif name == REFUSES and len(call.args) > 1:
            self._replace(*self._span(node), self._raising_call(call, node))
        elif name == "torch.manual_seed" and call.args:
            self._made.calls.add("manual_seed")
            again = f"\n{' ' * node.col_offset}manual_seed(student, {self._of(call.args[0])})"
            self._replace(*self._span(node), self._of(node) + again)

    def _expect(self, condition: str, node: ast.Assert) -> str:
        self._made.calls.add("expect")
        message = node.msg
        if message is None:
            return _call(node, condition, self._default(node.test))
        is_text = isinstance(message, ast.JoinedStr) or (
            isinstance(message, ast.Constant) and isinstance(message.value, str)
        )
        said = self._of(message)
        return _call(node, condition, said if is_text else f"str({said})")

    def _default(self, test: ast.expr) -> str:
        """Return a message in quotes for a check that has none."""
        if self._message:
            return _quoted(self._message)
        shown = " ".join(self._source(test).split())
        if self._hidden or len(shown) > MAX_SHOWN:
            called = _names(test) & self._own or _names(self._tree) & self._own
            return _quoted(f"the answer of {' and '.join(sorted(called))} is not right")
        return _quoted(f"this does not hold: {shown}")

    def _close(self, call: ast.Call) -> str:
        """Return a comparison of two tensors as `assert_close`; nothing for any other code."""
        keywords = {keyword.arg: self._of(keyword.value) for keyword in call.keywords}
        is_close = ast.unparse(call.func) in CLOSE and len(call.args) == 2
        if not is_close or not keywords.keys() <= TOLERANCES:
            return ""
        self._made.calls.add("assert_close")
        pair = call.args[::-1] if self._is_expected(call.args[0]) else call.args
        tolerances = [f"{name}={value}" for name, value in keywords.items()]
        return f"assert_close({', '.join([*map(self._of, pair), *tolerances])})"

    def _is_expected(self, first: ast.expr) -> bool:
        """Return whether the first of two tensors is the expected one, which is written out."""
        name = first.id if isinstance(first, ast.Name) else ""
        made = isinstance(first, ast.Call) and ast.unparse(first.func) == "torch.tensor"
        return made or name.startswith(("expected", "target", "correct"))

    def _nose(self, call: ast.Call, form: str) -> str:
        count = form.count("{}")
        if len(call.args) not in (count, count + 1):
            raise Untranslatable(f"`{ast.unparse(call.func)}` has other arguments than usual")
        condition = form.format(*map(self._of, call.args[:count]))
        self._made.calls.add("expect")
        message = self._of(call.args[count]) if len(call.args) > count else self._default(call)
        return _call(call, condition, message)

    # Exceptions.

    def visit_With(self, node: ast.With) -> None:
        self.generic_visit(node)
        for item in node.items:
            call = item.context_expr
            if isinstance(call, ast.Call) and ast.unparse(call.func) in RAISES:
                if item.optional_vars or call.keywords or len(call.args) != 1:
                    raise Untranslatable("it reads the exception; suites know its name only")
                self._replace(*self._span(call), self._raises(call.args[0]))

    def visit_Try(self, node: ast.Try) -> None:
        if not _mentions(node, self._theirs):
            self.generic_visit(node)
            return
        body = list(node.body)
        if _fails(body[-1]):
            body.pop()
        elif len(node.orelse) != 1 or not _fails(node.orelse[0]):
            raise Untranslatable("it catches an exception and does not fail without one")
        if not body or len(node.handlers) != 1 or node.finalbody or not _passes(node.handlers[0]):
            raise Untranslatable("it does more with an exception than to expect it")
        for each in body:
            self.visit(each)
        (start, end), (first, _), (_, last) = map(self._span, (node, body[0], body[-1]))
        between = self._code[start + len(b"try:") : first].decode()
        kind = node.handlers[0].type or ast.Name("Exception")
        self._replace(start, end, f"with {self._raises(kind)}:{between}{self._text(first, last)}")

    def _raising_call(self, call: ast.Call, node: ast.Expr) -> str:
        kind, function, *given = call.args
        arguments = [self._of(each) for each in (*given, *call.keywords)]
        called = f"{self._of(function)}({', '.join(arguments)})"
        return f"with {self._raises(kind)}:\n{' ' * (node.col_offset + 4)}{called}"

    def _raises(self, kind: ast.expr) -> str:
        self._made.calls.add("raises")
        kinds = kind.elts if isinstance(kind, ast.Tuple) else [kind]
        names = [_quoted(ast.unparse(each).rpartition(".")[2]) for each in kinds]
        return f"raises(student, {', '.join(names)})"


class _Prefixed(ast.NodeTransformer):
    """Puts `student.` before names."""

    def __init__(self, names: set[str]) -> None:
        self._names = names

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return ast.Attribute(ast.Name("student"), node.id) if node.id in self._names else node


def _made_by(tree: ast.AST, own: set[str]) -> set[str]:
    """Return the names that get values from the student's code."""
    theirs = set(own)
    for node in ast.walk(tree):
        value = getattr(node, "value", None) or getattr(node, "iter", None)
        targets = getattr(node, "targets", None) or [getattr(node, "target", None)]
        if isinstance(value, ast.AST) and isinstance(node, ast.stmt) and _mentions(value, theirs):
            theirs |= {name for each in targets if each is not None for name in _names(each)}
    return theirs - own


def _mentions(node: ast.AST, names: set[str]) -> bool:
    return not names.isdisjoint(_names(node))


def _names(node: ast.AST) -> set[str]:
    return {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}


def _call(node: ast.stmt | ast.expr, condition: str, message: str) -> str:
    """Return a call of `expect`, on several lines if it is long."""
    short = f"expect({condition}, {message})"
    if len(short) + node.col_offset + 4 <= WIDTH or "\n" in short:
        return short
    step = " " * node.col_offset
    return f"expect(\n{step}    {condition},\n{step}    {message},\n{step})"


def _fails(node: ast.stmt) -> bool:
    """Return whether a statement always fails: `assert False`, `raise AssertionError(…)`."""
    if isinstance(node, ast.Assert):
        return isinstance(node.test, ast.Constant) and not node.test.value
    raised = node.exc if isinstance(node, ast.Raise) else None
    return raised is not None and ast.unparse(raised).startswith("AssertionError")


def _passes(handler: ast.ExceptHandler) -> bool:
    """Return whether a handler does nothing."""
    return all(_is_idle(node) for node in handler.body)


def _is_idle(node: ast.stmt) -> bool:
    if isinstance(node, ast.Assert):
        return isinstance(node.test, ast.Constant) and bool(node.test.value)
    return isinstance(node, ast.Pass) or (
        isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    )


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)
