"""Changes of an `nn.Module` in one step, on either side of the boundary."""

from __future__ import annotations

from torch import Tensor, nn


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
