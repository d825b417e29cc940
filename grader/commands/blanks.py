"""Blanks: programs that keep every promise of an exercise but compute nothing of it.

Most are the reference solution with other return values: zeros, the input, the output of a layer,
one of the first steps … Refusals, dtypes and parameters stay as they are, so a blank earns the
points that checks of edges and properties give for code without the computation.
"""

from __future__ import annotations

import ast
import itertools
from collections.abc import Collection, Iterator

from grader.course.course import OUTPUT, Exercise
from grader.course.stubs import make_stub

# The value that a function returns in place of `out`. `x` is its first floating-point input, with
# at least two axes, and `self` the module, if there is one; the value is cut or repeated to fit.
VALUES = {
    "zeros": "torch.zeros_like(out)",
    "ones": "torch.ones_like(out)",
    "a constant": "torch.full_like(out, 0.3)",
    "a ramp": "torch.linspace(0, 1, out.numel())",
    "a cumulative sum of ones": "torch.ones_like(out).cumsum(-1) if out.ndim else out * 0 + 1",
    "noise": "torch.randn_like(out)",
    "noise that depends on everything": "_blank_noise(_blank_sum(out), out)",
    "noise that depends on everything so far": (
        "_blank_noise(_blank_sum(out) if out.ndim < 2 else _blank_past(out).sum(-1, True), out)"
    ),
    "uniform weights": "torch.full_like(out, 1 / max(1, out.shape[-1] if out.ndim else 1))",
    "ones, and 0 times the result": "torch.ones_like(out) + 0 * out.nan_to_num(0, 0, 0)",
    "the input": "x",
    "the input, with its gradient": "x * 0.3 + 0.1",
    "the input, and 0 times the result": "_blank_fit(x, out) + 0 * out.nan_to_num(0, 0, 0)",
    "the input turned": "x.mT",
    "the input backwards": "x.flip(-2)",
    "the input sorted": "x.sort(-1).values",
    "the tokens sorted": "x.sort(-2).values",
    "the cumulative sum of the input": "x.cumsum(-1)",
    "the cumulative sum of the tokens": "x.cumsum(-2)",
    "the mean of the features": "x.mean(-1, keepdim=True).expand_as(x)",
    "the mean of the tokens": "x.mean(-2, keepdim=True).expand_as(x)",
    "the mean of the tokens so far": "_blank_past(x)",
    "the softmax of the input": "x.softmax(-1)",
    "the softmax of the tokens": "x.softmax(-2)",
    "the input normalised": (
        "(x - x.mean(-1, keepdim=True)) / (1e-5 + x.std(-1, keepdim=True, correction=0))"
    ),
    "the ReLU of the input": "x.relu()",
}
# For each layer of a module, and each of its parts that is a stage; functions return zeros
# instead.
PARTS = {
    "{part} of the input": "_blank_part(self, '{part}', x)",
    "{part} of the tokens so far": "_blank_past(_blank_part(self, '{part}', x))",
    "{part} of the input, then {last}": (
        "_blank_part(self, '{last}', _blank_part(self, '{part}', x))"
    ),
    "{part} of the tokens so far, then {last}": (
        "_blank_part(self, '{last}', _blank_past(_blank_part(self, '{part}', x)))"
    ),
}
STAGE = "the stage {} as the result"
STUB = {"the input": "{}", "the input turned": "{}.mT", "a number": "1.0"}
HELPERS = """

import copy as _blank_copy
import torch

_blank_calls, _blank_stage = [], []


def _blank_fit(value, out):
    numbers = value.flatten() if value.numel() else torch.zeros(1)
    times = -(-out.numel() // numbers.numel())
    return numbers.repeat(times)[: out.numel()].view_as(out).to(out.dtype)


def _blank_part(module, name, x):
    part = getattr(module, name, None)
    try:
        return x @ part if isinstance(part, torch.Tensor) else part(x)
    except (RuntimeError, TypeError, AttributeError):  # it is none of these, or does not fit
        return torch.zeros(1, 1)


def _blank_past(x):
    return x.cumsum(-2) / torch.arange(1, x.shape[-2] + 1).view(-1, 1)


def _blank_sum(out):
    return (out * torch.linspace(1, 2, out.numel(), dtype=out.dtype).view_as(out)).sum()


def _blank_noise(seed, out):
    return (seed.nan_to_num() * torch.linspace(30, 50, out.numel()).view_as(out)).sin()


def _blank_input(values):
    parts = [part for v in values for part in (v if isinstance(v, (list, tuple)) else [v])]
    tensors = [part for part in parts if isinstance(part, torch.Tensor)]
    tensors.sort(key=lambda value: not (value.is_floating_point() and value.ndim))
    return torch.atleast_2d(tensors[0] if tensors else torch.ones(1)) * 1.0


def _blank(right, args, kwargs, make, self=None):
    if _blank_calls:  # inside another function, which is replaced as a whole
        return right(*args, **kwargs)
    args = [_blank_copy.deepcopy(v) if isinstance(v, torch.nn.Module) else v for v in args]
    _blank_calls.append(_blank_stage.clear())
    try:
        out = right(*args, **kwargs)
    finally:
        _blank_calls.clear()
    x = _blank_input([*args, *kwargs.values()])
    return _blank_all(out, lambda out: _blank_fit(make(out, x, self), out))


def _blank_all(out, make):
    if isinstance(out, (list, tuple)):
        return type(out)([_blank_all(each, make) for each in out])
    if isinstance(out, bytes):
        return bytes(abs(each) % 256 for each in _blank_all(list(out), make))
    if type(out) in (int, float):  # True is no number here
        return type(out)(make(torch.tensor(float(out))).item())
    is_replaced = isinstance(out, torch.Tensor) and out.is_floating_point()
    return make(out) if is_replaced else out
"""
FUNCTION = """

_right_{name} = {name}


def {name}(*args, **kwargs):
    return _blank(_right_{name}, args, kwargs, lambda out, x, self: {value})
"""
MODULE = """

_right_{name} = {name}


class {name}(_right_{name}):
    def forward(self, *args, **kwargs):
        return _blank(super().forward, args, kwargs, lambda out, x, self: {value}, self)
"""


def blanks(exercise: Exercise) -> Iterator[tuple[str, str]]:
    """Yield the blanks of an exercise: a description of the result, and the program's text."""
    solution = exercise.read("solution.py")
    tree = ast.parse(solution)
    for says, value in VALUES.items():
        yield says, _replaced(exercise, solution, value, value)
    parts = list(dict.fromkeys(_parts(tree, exercise.stages)))
    for part, says in itertools.product(parts, PARTS):
        if part != parts[-1] or "{last}" not in says:
            value = PARTS[says].format(part=part, last=parts[-1])
            replaced = _replaced(exercise, solution, value, VALUES["zeros"])
            yield says.format(part=part, last=parts[-1]), replaced
    value = "_blank_stage[0] if _blank_stage else torch.zeros_like(out)"
    # Code that stops at a later stage is mostly right, so it may earn more.
    for stage in exercise.stages[: len(exercise.stages) // 2]:
        cut = ast.unparse(_Cut(stage).visit(ast.parse(solution)))
        if stage != OUTPUT and cut != ast.unparse(tree):
            yield STAGE.format(stage), _replaced(exercise, cut, value, value)
    for says, value in STUB.items():
        stub = _Filled(value).visit(ast.parse(make_stub(exercise)))
        yield f"the stub with {says}", ast.unparse(stub)


def _replaced(exercise: Exercise, solution: str, value: str, of_functions: str) -> str:
    """Return a solution whose modules return one value and whose functions return another."""
    text = solution + HELPERS
    for node in ast.parse(solution).body:
        if isinstance(node, ast.ClassDef) and node.name in exercise.implements:
            text += MODULE.format(name=node.name, value=value)
        elif isinstance(node, ast.FunctionDef) and node.name in exercise.implements:
            text += FUNCTION.format(name=node.name, value=of_functions)
    return text


def _parts(tree: ast.Module, stages: Collection[str]) -> Iterator[str]:
    """Yield the names of the linear layers that classes make, and of parts that are stages."""
    for each in ast.walk(tree):
        if isinstance(each, ast.Assign):
            for target in each.targets:
                if isinstance(target, ast.Attribute) and (
                    target.attr in stages or "Linear" in ast.unparse(each.value)
                ):
                    yield target.attr


class _Cut(ast.NodeTransformer):
    """Makes functions store a stage when they return, unless they return the stage itself."""

    def __init__(self, stage: str) -> None:
        self._stage = stage

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.FunctionDef:
        if any(isinstance(n, ast.Name) and n.id == self._stage for n in ast.walk(node)):
            self.generic_visit(node)
        return node

    def visit_Return(self, node: ast.Return) -> list[ast.stmt]:
        if isinstance(node.value, ast.Name) and node.value.id == self._stage:
            return [node]
        return [*ast.parse(f"_blank_stage[:] = [{self._stage}]").body, node]


class _Filled(ast.NodeTransformer):
    """Fills in a stub: constructors do nothing, and functions return a value."""

    def __init__(self, value: str) -> None:
        self._value = value

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.FunctionDef:
        if isinstance(node.body[-1], ast.Raise):
            given = [each.arg for each in node.args.args if each.arg != "self"] or ["None"]
            value = self._value.format(given[0])
            text = "pass" if node.name == "__init__" else f"return {value}"
            node.body[-1:] = ast.parse(text).body
        return node
