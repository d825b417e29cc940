"""Modes of torch: a mode that sees the calls of code, on top of all others."""

from __future__ import annotations

from typing import Any

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._device import DeviceContext

from grader.sandbox import wire

globals()["__builtins__"] = wire.BUILTINS  # a mode starts after a call's arguments have come


class ModeOnTop:
    """A mode of torch on top of all others of this thread, from `start` to `stop`."""

    def __init__(self, mode: TorchFunctionMode) -> None:
        self._mode: Any = mode
        self._before: tuple[list[Any], list[Any]] = [], []

    def start(self) -> None:
        """Put the mode on top."""
        self._before = _stacks()
        _PUSH_FUNCTION(self._mode)

    def stop(self) -> bool:
        """Remove the mode; return False if it is gone, or if others were left above it."""
        functions, kernels = self._before
        found = _stacks()
        above, below = _without_devices(found[0]), _without_devices(functions)
        if _same(above, [*below, self._mode]) and _same(found[1], kernels):
            _POP_FUNCTION()
            return True
        for _ in above[len(below) :]:
            _POP_FUNCTION()
        for _ in found[1][len(kernels) :]:
            _POP_DISPATCH(None)
        return False


def _stacks() -> tuple[list[Any], list[Any]]:
    """Return this thread's modes for functions and for kernels."""
    functions = [_FUNCTION_AT(place) for place in range(_FUNCTIONS())]
    return functions, [_DISPATCH_AT(place) for place in range(_DISPATCHES())]


def _without_devices(modes: list[Any]) -> list[Any]:
    """Return the modes without the one of a default device, which lies beneath all others."""
    return [mode for mode in modes if not isinstance(mode, DeviceContext)]


def _same(found: list[Any], expected: list[Any]) -> bool:
    return len(found) == len(expected) and all(a is b for a, b in zip(found, expected))


# Kept from before student code runs, because it may replace names of torch's modules.
_FUNCTIONS, _FUNCTION_AT = torch._C._len_torch_function_stack, torch._C._get_function_stack_at
_DISPATCHES, _DISPATCH_AT = (
    torch._C._len_torch_dispatch_stack,
    torch._C._get_dispatch_stack_at,
)
_PUSH_FUNCTION = torch._C._push_on_torch_function_stack
_POP_FUNCTION = torch._C._pop_torch_function_stack
_POP_DISPATCH = torch._C._pop_torch_dispatch_stack
