"""The parameters of a module in a worker or in this process."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from grader.errors import Mismatch
from grader.grading.compare import describe
from grader.sandbox.host import proxies
from grader.sandbox.host.proxies import Remote
from grader.sandbox.worker.adopt import adopt


def parameter_shapes(module: Any) -> dict[str, tuple[int, ...]]:
    """Return the shapes of the parameters by name. Raises `Mismatch` for what is no module.

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

    One of another shape with as many numbers is filled in their order, one with fewer with the
    first, and the others keep their values. A buffer counts as a parameter. Raises `Mismatch` if
    parameters have other names, for then nothing that the module computes would say so.
    """
    shapes = parameter_shapes(module)
    _refuse_other_names(state, shapes)
    fitting = _fitting(state, shapes)
    if shapes and len(fitting) == len(shapes):
        _set_all(module, fitting, dtype)
        return
    module.to(dtype)
    shapes = {name: tuple(value.shape) for name, value in module.state_dict().items()}
    module.load_state_dict(_fitting(state, shapes), strict=False)
    module.eval()


def _refuse_other_names(state: Mapping[str, Tensor], shapes: Mapping[str, tuple[int, ...]]) -> None:
    missing = [name for name in state if name not in shapes]
    others = [name for name in shapes if name not in state]
    # A bias may be given to a module that rightly has none.
    given = {tuple(state[name].shape) for name in missing if not name.endswith("bias")}
    if given & {shapes[name] for name in others if not name.endswith("bias")}:
        has, asked = (", ".join(f"`{each}`" for each in names) for names in (others, missing))
        raise Mismatch(f"the module has the parameters {has}, where {asked} are expected")


def _fitting(
    state: Mapping[str, Tensor], shapes: Mapping[str, tuple[int, ...]]
) -> dict[str, Tensor]:
    """Return what of `state` can be given the shapes of that name."""
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
