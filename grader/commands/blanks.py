"""Blanks: programs that keep every promise of an exercise but compute nothing of it.

Each is the reference solution with what its functions return replaced: by zeros, by the input, by
uniform weights, by one of its layers alone … Refusals, dtypes, parameters and everything else stay
as they are, so a blank earns what the checks of edges and properties give away for nothing.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from grader.course.course import Exercise

# What a function returns in place of `out`; `x` is its first input with floating-point numbers.
VALUES = {
    "zeros": "torch.zeros_like(out)",
    "ones": "torch.ones_like(out)",
    "a constant": "torch.full_like(out, 0.3)",
    "a ramp": "torch.linspace(0, 1, out.numel()).to(out.dtype).view_as(out)",
    "uniform weights": "torch.full_like(out, 1 / max(1, out.shape[-1] if out.ndim else 1))",
    "the input": "_blank_fit(x, out)",
    "the input, with its gradient": "_blank_fit(x, out) * 0.3 + 0.1",
    "the input, and 0 times the result": "_blank_fit(x, out) + 0 * out.nan_to_num(0, 0, 0)",
    "ones, and 0 times the result": "torch.ones_like(out) + 0 * out.nan_to_num(0, 0, 0)",
}
LAYERS = "the layer {}"  # of a module, applied to the input
FIT = '''

def _blank_fit(value, out):
    """Return a value in the shape of a result: cut, or repeated."""
    numbers = value.flatten()
    if numbers.numel() == 0:
        return torch.zeros_like(out)
    times = -(-out.numel() // numbers.numel())
    return numbers.repeat(times)[: out.numel()].view_as(out).to(out.dtype)


def _blank_input(values):
    """Return the first input with floating-point numbers; a number if there is none."""
    for value in values:
        if isinstance(value, torch.Tensor) and value.is_floating_point() and value.ndim:
            return value
    for value in values:
        if isinstance(value, torch.Tensor):
            return value.double() if value.ndim else value.double().view(1)
    return torch.ones(1)


def _blank(out, x, make):
    """Return a result with every floating-point tensor in it replaced."""
    if isinstance(out, torch.Tensor):
        return make(out, x) if out.is_floating_point() else out
    if isinstance(out, (list, tuple)):
        return type(out)([_blank(each, x, make) for each in out])
    return out
'''
FUNCTION = '''

_right_{name} = {name}


def {name}(*args, **kwargs):
    """Compute nothing."""
    values = [*args, *kwargs.values()]
    out = _right_{name}(*args, **kwargs)
    return _blank(out, _blank_input(values), lambda out, x: {value})
'''
MODULE = '''

_right_{name} = {name}


class {name}(_right_{name}):
    """Compute nothing."""

    def forward(self, *args, **kwargs):
        values = [*args, *kwargs.values()]
        out = super().forward(*args, **kwargs)
        return _blank(out, _blank_input(values), lambda out, x: {value})
'''


def blanks(exercise: Exercise) -> Iterator[tuple[str, str]]:
    """Yield the blanks of an exercise: what each returns, and its text."""
    solution = exercise.read("solution.py")
    kinds = {
        node.name: node
        for node in ast.parse(solution).body
        if isinstance(node, ast.ClassDef | ast.FunctionDef) and node.name in exercise.implements
    }
    layers = {
        layer
        for node in kinds.values()
        if isinstance(node, ast.ClassDef)
        for layer in _layers(node)
    }
    values = dict(VALUES)
    for layer in sorted(layers):
        applied = (
            f"_blank_fit(getattr(self, {layer!r})(x), out) if hasattr(self, {layer!r}) else out"
        )
        values[LAYERS.format(layer)] = applied
    for says, value in values.items():
        text = solution + FIT
        for name, node in kinds.items():
            if isinstance(node, ast.ClassDef):
                text += MODULE.format(name=name, value=value)
            else:  # it has no layers
                made = VALUES["zeros"] if "self" in value else value
                text += FUNCTION.format(name=name, value=made)
        yield says, text


def _layers(node: ast.ClassDef) -> Iterator[str]:
    """Yield the names of the linear layers that a class makes."""
    for each in ast.walk(node):
        if isinstance(each, ast.Assign) and "Linear" in ast.unparse(each.value):
            for target in each.targets:
                if isinstance(target, ast.Attribute):
                    yield target.attr
