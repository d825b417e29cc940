"""The parameters of a module in a worker or in this process."""

from __future__ import annotations

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


def set_parameters(
    module: Any, values: Mapping[str, Tensor], dtype: torch.dtype = torch.float64
) -> None:
    """Set all parameters of a module in one step; it is in `dtype` and evaluation mode then."""
    parts = [values[name].to(dtype).flatten() for name in sorted(values)]
    vector = torch.cat([torch.empty(0, dtype=dtype), *parts])
    if isinstance(module, Remote):
        proxies.adopt_remote(module, vector)
    else:
        adopt(module, vector)
