"""Whether a module works on another device than the CPU."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from grader.errors import Mismatch
from grader.sandbox.host.proxies import Remote, move_remote
from grader.sandbox.worker.other_device import TwoDevices, move


def assert_moves(make: Callable[[], Any], *inputs: Any) -> None:
    """Raise `Mismatch` if the module from `make` works here but not on another device.

    The module is called in both modes, before the move and after it. A move takes parameters and
    buffers along, and leaves other tensors behind; tensors that `forward` makes are on the CPU
    unless it names the device. Any machine will do: see `other_device`.

    Example::

        def test_moves(student, rng):
            \"\"\"No tensor is a plain attribute.\"\"\"
            assert_moves(lambda: student.Norm(5), rng.randn(2, 5).float())
    """
    module = make()
    _called(module, *inputs)  # a failure here has nothing to do with devices
    (move_remote if isinstance(module, Remote) else move)(module)
    try:
        _called(module, *inputs)
    except Exception as failure:  # any other failure there has other causes
        if getattr(failure, "kind", type(failure).__name__) == TwoDevices.__name__:
            says = f"after a move to another device, the module cannot be called: {failure}"
            raise Mismatch(says) from None


def _called(module: Any, *inputs: Any) -> None:
    for is_training in (True, False):
        module.train(is_training)
        with torch.no_grad():
            module(*inputs)
