"""The parameters of a module in a worker or in this process."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from typing import Any

import torch
from torch import Tensor, nn

from grader.errors import Mismatch
from grader.grading.compare import describe
from grader.grading.words import pairs_of_names
from grader.sandbox.host import proxies
from grader.sandbox.host.proxies import Remote
from grader.sandbox.worker.adopt import adopt

WEIGHT, BIAS = ".weight", ".bias"  # the names of a layer's parameters


def parameter_shapes(module: Any) -> dict[str, tuple[int, ...]]:
    """Return the shapes of the parameters by name. Raises `Mismatch` if it is not a module.

    Example::

        def test_parameters(student):
            \"\"\"gamma is the only parameter.\"\"\"
            found = parameter_shapes(student.Norm(5))
            expect(found == {"gamma": (5,)}, f"the parameters are {found}")
    """
    if isinstance(module, Remote):
        return proxies.parameter_shapes(module)
    if isinstance(module, nn.Module):
        return {name: tuple(p.shape) for name, p in module.named_parameters()}
    raise Mismatch(f"the class gives {describe(module)}, where an nn.Module is expected")


def give_parameters(module: Any, state: Mapping[str, Tensor], dtype: torch.dtype) -> None:
    """Give a module those parameters of `state` that it has, in `dtype` and evaluation mode.

    A parameter of another shape is filled with the numbers in their order, as far as it has room;
    if the state has too few, it keeps its values. A buffer counts as a parameter. A parameter of
    another name gets the values for the most similar name and the same shape, because another
    check asks for names.
    """
    shapes = parameter_shapes(module)
    state = _with_other_names(state, shapes)
    fitting = _fitting(state, shapes)
    if shapes and len(fitting) == len(shapes):
        _set_all(module, fitting, dtype)
        return
    module.to(dtype)
    shapes = {name: tuple(value.shape) for name, value in module.state_dict().items()}
    module.load_state_dict(_fitting(state, shapes), strict=False)
    module.eval()


def names_asked_for(layers: Collection[str], names: Collection[str]) -> dict[str, str]:
    """Return the exercise's names of parameters, by the module's names for them.

    Only parameters with other names are listed. Either each missing one of the `layers` has
    another name in the module, or none has.
    """
    own = dict.fromkeys(name.partition(".")[0] for name in names)
    missing = [layer for layer in layers if layer not in own]
    others = [layer for layer in own if layer not in layers]
    if len(missing) > len(others):
        return {}
    called = {other: layer for layer, other in pairs_of_names(missing, others).items()}
    parts = (name.partition(".") for name in names)
    return {f"{a}{dot}{b}": f"{called[a]}{dot}{b}" for a, dot, b in parts if a in called}


def call_by_names(module: Any, asked: Mapping[str, str]) -> None:
    """Let a student's module answer to other names of its parameters.

    `asked` are the exercise's names, by those of the module.
    """
    if asked and isinstance(module, Remote):
        module.__asked__ = dict(asked)


def _with_other_names(
    state: Mapping[str, Tensor], shapes: Mapping[str, tuple[int, ...]]
) -> Mapping[str, Tensor]:
    """Return the values by name, and some of them also by a module's other names.

    A layer's bias follows its weight, because a module may rightly have no bias.
    """
    missing = [name for name in state if name not in shapes and not name.endswith(BIAS)]
    others = [name for name in shapes if name not in state and not name.endswith(BIAS)]
    found = pairs_of_names(
        missing, others, lambda asked, other: tuple(state[asked].shape) == shapes[other]
    )
    biases = {
        asked.removesuffix(WEIGHT) + BIAS: other.removesuffix(WEIGHT) + BIAS
        for asked, other in found.items()
    }
    called = {**found, **{a: b for a, b in biases.items() if a in state and b in shapes}}
    return {**state, **{other: state[asked] for asked, other in called.items()}}


def _fitting(
    state: Mapping[str, Tensor], shapes: Mapping[str, tuple[int, ...]]
) -> dict[str, Tensor]:
    """Return the parts of `state` that can take the shapes of the same name."""
    return {
        name: state[name].flatten()[: math.prod(shape)].view(shape)
        for name, shape in shapes.items()
        if name in state and math.prod(shape) <= state[name].numel()
    }


def _set_all(module: Any, values: Mapping[str, Tensor], dtype: torch.dtype) -> None:
    """Set all parameters of a module in one step, which is much faster."""
    parts = [values[name].to(dtype).flatten() for name in sorted(values)]
    vector = torch.cat([torch.empty(0, dtype=dtype), *parts])
    if isinstance(module, Remote):
        proxies.adopt_remote(module, vector)
    else:
        adopt(module, vector)
