"""What is done to an `nn.Module` in one step, on either side of the boundary."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from torch import Tensor, nn

MAX_DEPTH = 8  # of containers within containers, which may also hold themselves


def adopt(module: nn.Module, values: Tensor) -> None:
    """Fill the parameters, in the order of their names, from the vector `values`.

    Parameters and floating-point buffers take its dtype, and the module switches to evaluation
    mode: `.to(dtype)`, `load_state_dict(…)` and `eval()` in a fifth of their time.
    """
    dtype, start = values.dtype, 0
    for _, parameter in sorted(module.named_parameters()):
        end = start + parameter.numel()
        parameter.data = values[start:end].view(parameter.shape)
        parameter.grad = None
        start = end
    for buffer in module.buffers():
        if buffer.is_floating_point():
            buffer.data = buffer.data.to(dtype)
    module.eval()


def strand(module: nn.Module) -> None:
    """Make the tensors unusable that a module holds as plain attributes.

    A move to another device would leave them behind, while parameters and buffers move.
    """
    for part in module.modules():
        registered = (part._parameters, part._buffers, part._modules)
        for value in vars(part).values():
            for tensor in () if any(value is each for each in registered) else _tensors(value):
                tensor.data = tensor.new_empty(0)


def _tensors(value: Any, depth: int = 0) -> Iterator[Tensor]:
    """Yield a tensor, or those that lists, tuples and dicts hold."""
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, list | tuple | dict) and depth < MAX_DEPTH:
        for item in value.values() if isinstance(value, dict) else value:
            yield from _tensors(item, depth + 1)
