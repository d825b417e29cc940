"""Generic mutants of a Python text: small changes that know nothing of what the code is for.

A mutant is the text with one edit, or with two. An edit replaces one node of the syntax tree. Each
operator below yields the replacements of a node. Docstrings, annotations and imports stay.
"""

from __future__ import annotations

import ast
import copy
import itertools
import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

Path = tuple[tuple[str, int | None], ...]  # fields from the module down to a node
Operator = Callable[[ast.AST, "Scope"], Iterator[ast.AST]]

BINARY = (ast.Add, ast.Sub, ast.Mult, ast.Div, ast.FloorDiv, ast.Mod, ast.Pow, ast.MatMult)
COMPARISONS = (ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.Eq, ast.NotEq)
AXES = (-3, -2, -1, 0, 1, 2, 3)
ERRORS = ("ValueError", "KeyError", "TypeError", "RuntimeError", "Warning")
# Names of functions and methods, each with others that take the same arguments or nearly so.
SWAPS = {
    "softmax": ("log_softmax", "softmin", "sigmoid", "relu", "exp", "cumsum", "argmax"),
    "relu": ("sigmoid", "tanh", "abs", "exp", "selu", "relu_", "square"),
    "mean": ("sum", "median", "amax", "amin", "var", "std"),
    "var": ("std", "sum", "amax", "mean"),
    "sqrt": ("abs", "square", "exp", "rsqrt", "log1p"),
    "transpose": ("reshape", "view", "flip", "movedim", "swapaxes", "roll"),
    "view": ("reshape", "expand", "repeat"),
    "flatten": ("squeeze", "unsqueeze", "unbind", "sum", "mean"),
    "squeeze": ("sum", "flatten", "mean", "unsqueeze"),
    "tril": ("triu", "clone", "fliplr"),
    "ones": ("zeros", "eye", "rand", "randn", "empty"),
    "zeros": ("ones", "rand", "empty"),
    "eye": ("ones", "zeros", "rand"),
    "any": ("all",),
    "bool": ("float", "int", "double"),
    "masked_fill": ("masked_fill_", "masked_scatter"),
    "values": ("keys", "items"),
    "Parameter": ("Buffer",),
    "Dropout": ("Dropout1d", "Dropout2d", "AlphaDropout", "Identity"),
    "inf": ("nan", "pi", "e"),
    "float32": ("float64", "float16", "bfloat16", "int64"),
}
# What is called on a value, as code that takes the value in the place of `_`.
WRAPPERS = (
    *("_.squeeze()", "_.detach()", "_.float()", "_.double()", "_.contiguous()", "_.clone()"),
    *("_.abs()", "_.mT", "_.flip(-1)", "_.flip(0)", "_.flip(1)", "_.unsqueeze(0)", "_.round()"),
    *("_.clamp(min=0)", "_.clamp(max=1)", "_.clamp(-1000.0, 1000.0)", "_.nan_to_num()"),
    *("_.mean(0, keepdim=True)", "_.cumsum(-1)", "_.sum()", "_[:1]", "_.flatten()", "_.bfloat16()"),
    *("_.detach().requires_grad_()", "_.squeeze(0)", "_.squeeze(-1)", "_.roll(1, 0)", "(_, _)"),
    *("_.clamp(-1e4, 1e4)", "_.half()", "_.data", "_.expand_as(_)", "_ + _.mean()", "_ - _.max()"),
)
NUMBER_WRAPPERS = ("-_", "_ + 1", "_ - 1", "2 * _", "1 - _", "_ / 2", "_ ** 2", "0 * _", "abs(_)")


@dataclass(frozen=True)
class Scope:
    """What a node can see: names of its function, attributes of `self`, and where it stands."""

    names: tuple[str, ...] = ()
    attributes: tuple[str, ...] = ()
    in_layer: bool = False  # within a method other than __init__ of a class


@dataclass(frozen=True)
class Edit:
    """One node replaced: where it is, and by what."""

    path: Path
    by: ast.AST


@dataclass(frozen=True)
class Mutant:
    """The text of a mutant, and its order: the number of its edits."""

    text: str
    order: int


def plain(text: str) -> str:
    """Return a text as the mutants are written: without comments and docstrings."""
    return ast.unparse(_without_docstrings(ast.parse(text)))


def mutants(text: str, pairs: int, seed: int = 0, every: int = 1) -> Iterator[Mutant]:
    """Yield all mutants with one edit, and `pairs` of those with two, drawn by `seed`.

    Each compiles, and differs as text from the original and from the others. `every` N yields the
    mutants of each N-th edit, and one pair for N.
    """
    tree = _without_docstrings(ast.parse(text))
    edits, seen = list(_edits(tree)), {ast.unparse(tree)}
    yield from _made(tree, ((edit,) for edit in edits[::every]), seen)
    drawn = random.Random(seed)
    twos = ((drawn.choice(edits), drawn.choice(edits)) for _ in range(20 * pairs))
    yield from itertools.islice(_made(tree, twos, seen), pairs // every)


def sample(text: str, count: int, seed: int = 0) -> list[Mutant]:
    """Return `count` mutants drawn by `seed`; each fifth has two edits."""
    tree = _without_docstrings(ast.parse(text))
    edits, seen = list(_edits(tree)), {ast.unparse(tree)}
    drawn = random.Random(seed)
    some = (drawn.choices(edits, k=2 if n % 5 == 4 else 1) for n in range(20 * count))
    return list(itertools.islice(_made(tree, some, seen), count))


def _made(tree: ast.Module, chosen: Iterable[Sequence[Edit]], seen: set[str]) -> Iterator[Mutant]:
    """Yield the mutants with each of the `chosen` edits that are not in `seen` yet."""
    for edits in chosen:
        text = _applied(tree, edits) if _are_apart(*edits) else ""
        if text and text not in seen:
            seen.add(text)
            yield Mutant(text, len(edits))


def _are_apart(first: Edit, *others: Edit) -> bool:
    """Return whether no node of the edits contains another."""
    for other in others:
        shorter = min(len(first.path), len(other.path))
        if first.path[:shorter] == other.path[:shorter]:
            return False
    return True


def _applied(tree: ast.Module, edits: Sequence[Edit]) -> str:
    """Return the text of the tree with edits; nothing if it is not Python."""
    before = [_exchanged(tree, edit.path, edit.by) for edit in edits]
    try:
        text = ast.unparse(tree)
        compile(text, "mutant", "exec")
    except (SyntaxError, ValueError):
        return ""
    finally:
        for edit, node in zip(edits, before):
            _exchanged(tree, edit.path, node)
    return text


def _exchanged(tree: ast.Module, path: Path, by: ast.AST) -> ast.AST:
    """Put a node in the place `path` of the tree; return the one that was there."""
    *above, (field, index) = path
    node: ast.AST = tree
    for name, place in above:
        node = getattr(node, name) if place is None else getattr(node, name)[place]
    found: ast.AST = getattr(node, field) if index is None else getattr(node, field)[index]
    if index is None:
        setattr(node, field, by)
    else:
        getattr(node, field)[index] = by
    return found


def _without_docstrings(tree: ast.Module) -> ast.Module:
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and (
            ast.get_docstring(node) is not None
        ):
            node.body = node.body[1:] or [ast.Pass()]
    return tree


# --- where edits are tried ------------------------------------------------------------------------


def _edits(tree: ast.Module) -> Iterator[Edit]:
    attributes = sorted(
        {
            node.attr
            for node in ast.walk(tree)
            if isinstance(node, ast.Attribute) and _is_name(node.value, "self")
        }
    )
    for path, node, scope in _nodes(tree, (), Scope(attributes=tuple(attributes))):
        for operator in OPERATORS:
            for by in operator(node, scope):
                yield Edit(path, ast.fix_missing_locations(by))


def _nodes(node: ast.AST, path: Path, scope: Scope) -> Iterator[tuple[Path, ast.AST, Scope]]:
    """Yield every node that may be changed, with its path and its scope."""
    if isinstance(node, ast.FunctionDef):
        names = {
            child.id
            for child in ast.walk(node)
            if isinstance(child, ast.Name) and isinstance(child.ctx, ast.Store)
        }
        arguments = {arg.arg for arg in node.args.args} - {"self"}
        in_layer = (
            node.name != "__init__" and bool(node.args.args) and (node.args.args[0].arg == "self")
        )
        scope = Scope(tuple(sorted(names | arguments)), scope.attributes, in_layer)
    if path:
        yield path, node, scope
    for field, value in ast.iter_fields(node):
        if field in ("annotation", "returns", "decorator_list", "bases", "ctx", "op", "ops"):
            continue
        if isinstance(value, list):
            for index, child in enumerate(value):
                if isinstance(child, ast.AST) and not _is_fixed(child):
                    yield from _nodes(child, (*path, (field, index)), scope)
        elif isinstance(value, ast.AST):
            yield from _nodes(value, (*path, (field, None)), scope)


def _is_fixed(node: ast.AST) -> bool:
    return isinstance(node, ast.Import | ast.ImportFrom)


def _is_name(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name


def _changed(node: ast.AST, **fields: object) -> ast.AST:
    """Return a copy of a node with other fields."""
    other = copy.deepcopy(node)
    for name, value in fields.items():
        setattr(other, name, copy.deepcopy(value))
    return other


def _wrapped(code: str, node: ast.expr) -> ast.expr:
    """Return the expression `code` with a node in the place of `_`."""

    class Filling(ast.NodeTransformer):
        def visit_Name(self, name: ast.Name) -> ast.AST:
            return copy.deepcopy(node) if name.id == "_" else name

    filled: ast.expr = Filling().visit(ast.parse(code, mode="eval").body)
    return filled


# --- operators ------------------------------------------------------------------------------------


def other_operations(node: ast.AST, scope: Scope) -> Iterator[ast.AST]:
    """Yield an expression with another operation, with swapped operands, and either operand."""
    if isinstance(node, ast.BinOp):
        for kind in BINARY:
            if not isinstance(node.op, kind):
                yield _changed(node, op=kind())
        yield _changed(node, left=node.right, right=node.left)
        yield node.left
        yield node.right
    if isinstance(node, ast.UnaryOp):
        yield node.operand


def other_comparisons(node: ast.AST, scope: Scope) -> Iterator[ast.AST]:
    """Yield a comparison with another sign, and negated."""
    if isinstance(node, ast.Compare):
        if isinstance(node.ops[0], COMPARISONS):
            for kind in COMPARISONS:
                if not isinstance(node.ops[0], kind):
                    yield _changed(node, ops=[kind()])
        yield ast.UnaryOp(ast.Not(), node)


def other_constants(node: ast.AST, scope: Scope) -> Iterator[ast.AST]:
    """Yield other numbers, axes and booleans."""
    if not isinstance(node, ast.Constant) or not isinstance(node.value, bool | int | float):
        return
    value = node.value
    if isinstance(value, bool):
        others: tuple[object, ...] = (not value, None)
    elif isinstance(value, int):
        others = (*AXES, value - 1, value + 1, 2 * value)
    else:
        others = (value + 1, value - 1, 2 * value, value / 2, value / 1000, 0.0, 1 - value, -value)
    for other in others:
        yield ast.parse(repr(other), mode="eval").body


def other_names(node: ast.AST, scope: Scope) -> Iterator[ast.AST]:
    """Yield other variables of the function, other attributes of `self`, similar functions."""
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id in scope.names:
        for name in scope.names:
            if name != node.id:
                yield _changed(node, id=name)
    if isinstance(node, ast.Attribute):
        for name in SWAPS.get(node.attr, ()):
            yield _changed(node, attr=name)
        if _is_name(node.value, "self"):
            for name in scope.attributes:
                if name != node.attr:
                    yield _changed(node, attr=name)


def other_calls(node: ast.AST, scope: Scope) -> Iterator[ast.AST]:
    """Yield a call with an argument less, with swapped arguments, and without its function."""
    if not isinstance(node, ast.Call):
        return
    for index in range(len(node.keywords)):
        rest = [keyword for place, keyword in enumerate(node.keywords) if place != index]
        yield _changed(node, keywords=rest)
    for index in range(len(node.args)):
        yield _changed(node, args=[*node.args[:index], *node.args[index + 1 :]])
    for one in range(len(node.args)):
        for two in range(one + 1, len(node.args)):
            args = list(node.args)
            args[one], args[two] = args[two], args[one]
            yield _changed(node, args=args)
    yield from node.args  # self.dropout(weights) becomes weights
    if isinstance(node.func, ast.Attribute):
        yield node.func.value  # x.transpose(1, 2) becomes x
        if node.func.attr == "register_buffer" and len(node.args) == 2:
            name, value = map(ast.unparse, node.args)
            for kept in (value, f"{value} * 1.0", f"nn.Parameter({value} * 1.0)"):
                yield ast.parse(f"setattr(self, {name}, {kept})", mode="eval").body


def wrapped_values(node: ast.AST, scope: Scope) -> Iterator[ast.AST]:
    """Yield a value with something done to it: squeezed, detached, doubled, …"""
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id in scope.names:
        for code in NUMBER_WRAPPERS:
            yield _wrapped(code, node)
    if isinstance(node, ast.Assign | ast.Return) and node.value is not None:
        for code in WRAPPERS:
            yield _changed(node, value=_wrapped(code, node.value))


def in_place(node: ast.AST, scope: Scope) -> Iterator[ast.AST]:
    """Yield an operation that writes into its first operand."""
    if isinstance(node, ast.BinOp):
        for kind, name in ((ast.Add, "add_"), (ast.Sub, "sub_"), (ast.Mult, "mul_")):
            if isinstance(node.op, kind):
                yield ast.Call(ast.Attribute(node.left, name, ast.Load()), [node.right], [])
                yield ast.Call(ast.Attribute(node.right, name, ast.Load()), [node.left], [])


def other_conditions(node: ast.AST, scope: Scope) -> Iterator[ast.AST]:
    """Yield a condition that is negated, always true, and never true; and either branch."""
    if isinstance(node, ast.If | ast.IfExp):
        for test in (ast.UnaryOp(ast.Not(), node.test), ast.Constant(True), ast.Constant(False)):
            yield _changed(node, test=test)
        if scope.in_layer:
            yield _changed(node, test=ast.parse("self.training", mode="eval").body)


def other_errors(node: ast.AST, scope: Scope) -> Iterator[ast.AST]:
    """Yield a `raise` of another exception, and what returns instead."""
    if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
        for name in ERRORS:
            yield _changed(node, exc=_changed(node.exc, func=ast.Name(name, ast.Load())))
        yield ast.Return(None)
        yield ast.Return(ast.Constant(0))


def other_statements(node: ast.AST, scope: Scope) -> Iterator[ast.AST]:
    """Yield nothing for a statement, and a statement in one mode of the layer only."""
    if isinstance(node, ast.Assign | ast.Expr | ast.Raise | ast.Return | ast.If):
        yield ast.Pass()
    if scope.in_layer and isinstance(node, ast.Assign):
        for test in ("self.training", "not self.training", "x.shape[0] > 1", "x.requires_grad"):
            yield ast.If(ast.parse(test, mode="eval").body, [node], [])
        yield ast.With([ast.withitem(ast.parse("torch.no_grad()", mode="eval").body)], [node])


def other_orders(node: ast.AST, scope: Scope) -> Iterator[ast.AST]:
    """Yield a function with two neighbouring statements swapped, and with one done twice."""
    if isinstance(node, ast.FunctionDef):
        for index, statement in enumerate(node.body):
            before, after = node.body[:index], node.body[index + 1 :]
            if after:
                yield _changed(node, body=[*before, after[0], statement, *after[1:]])
            yield _changed(node, body=[*before, statement, statement, *after])
        for index in range(len(node.args.defaults)):
            if index == 0:  # an argument that has no default any more
                args = _changed(node.args, defaults=node.args.defaults[1:])
                yield _changed(node, args=args)


def other_slices(node: ast.AST, scope: Scope) -> Iterator[ast.AST]:
    """Yield a slice without a bound, and with its bounds exchanged."""
    if isinstance(node, ast.Slice):
        yield ast.Slice(None, None, None)
        yield ast.Slice(node.upper, node.lower, None)
        yield ast.Slice(node.lower, None, None)
        yield ast.Slice(None, node.upper, None)
        yield _changed(node, step=ast.Constant(2))
    if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load):
        yield node.value
    if isinstance(node, ast.Tuple) and isinstance(node.ctx, ast.Load):
        for one in range(len(node.elts)):
            yield _changed(node, elts=[*node.elts[:one], *node.elts[one + 1 :]])
            if one:
                swapped = list(node.elts)
                swapped[one - 1], swapped[one] = swapped[one], swapped[one - 1]
                yield _changed(node, elts=swapped)


OPERATORS: tuple[Operator, ...] = (
    *(other_operations, other_comparisons, other_constants, other_names, other_calls),
    *(wrapped_values, in_place, other_conditions, other_errors, other_statements),
    *(other_orders, other_slices),
)
