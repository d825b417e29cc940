"""A simulated device besides the CPU, which tells on any machine if code works on other devices."""

from __future__ import annotations

import functools
import gc
from collections.abc import Callable, Iterator, MutableMapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode
from torch.utils.weak import WeakIdKeyDictionary

MAX_DEPTH = 8  # levels of nested containers, which may also contain themselves


class TwoDevices(RuntimeError):
    """An operation got tensors on two devices."""


def move(module: nn.Module) -> None:
    """Move a module to the simulated device; its `forward` runs as if there.

    `module.to` is called, and takes parameters and buffers along. All other existing tensors stay
    on the CPU, and so do tensors that `forward` makes without naming a device; its arguments are
    on the other device. If tensors on both meet, `forward` raises `TwoDevices`. All values are
    really computed: on `meta`, a device without values, right code such as `if mask.all()` cannot
    run.
    """
    mode = _OtherDevice()
    with mode:
        module.to(_ELSEWHERE)
    forward = module.forward

    @functools.wraps(forward)
    def on_other_device(*args: Any, **kwargs: Any) -> Any:
        mode.receive([*args, *kwargs.values()])
        with mode:
            return forward(*args, **kwargs)

    module.forward = on_other_device


class _OtherDevice(TorchFunctionMode):
    """Knows which tensors are on the CPU: at first, all existing tensors that were not moved.

    A later tensor that no call seen here made is on the CPU if its memory is NumPy's; otherwise it
    counts as one on the other device: better to miss a mistake than to find one in right code.
    """

    def __init__(self) -> None:
        super().__init__()
        # Frozen objects existed before any program, so they are none of its tensors.
        existing = (thing for thing in gc.get_objects() if issubclass(type(thing), Tensor))
        self._on_cpu = {  # the tensors are kept, so that no other object gets their ids
            id(tensor): tensor for tensor in existing if tensor not in _MOVED
        }

    def receive(self, arguments: list[Any]) -> None:
        """Place the tensors among these on the other device."""
        for tensor in _tensors(arguments):
            self._place(tensor, _ELSEWHERE)

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: Sequence[Any] = (), kwargs: Any = None
    ) -> Any:
        if func == _DEVICE_OF:
            return self._device_of(args[0])
        if func == _SET_DATA:
            self._place(args[0], self._device_of(args[1]))
        kwargs, name = kwargs or {}, getattr(func, "__name__", "")
        if name in _SPEAK_OF_DEVICES:
            return func(*args, **kwargs)
        tensors = list(_tensors([*args, *kwargs.values()]))
        target = self._named_device(name, args, kwargs)
        if target is None:
            self._refuse_mixture(name, args, tensors)
        result = func(*map(_really, args), **{key: _really(value) for key, value in kwargs.items()})
        changed = any(result is tensor for tensor in tensors)
        if target is not None and changed:
            result = result.clone()  # torch sees no move, so it returns the tensor itself
        elif changed:
            return result  # in place, so the tensor stays on its device
        decide = tensors[:1] if name in _COPIES else tensors
        is_here = target == _CPU or (target is None and all(map(self._is_here, decide)))
        for tensor in _tensors(result):
            self._place(tensor, _CPU if is_here else _ELSEWHERE)
        return result

    def _is_here(self, tensor: Tensor) -> bool:
        if id(tensor) in self._on_cpu or tensor in _MOVED:
            return id(tensor) in self._on_cpu
        return _is_memory_of_others(tensor)

    def _device_of(self, tensor: Tensor) -> torch.device:
        return _CPU if self._is_here(tensor) else _ELSEWHERE

    def _place(self, tensor: Tensor, device: torch.device) -> None:
        if device == _CPU:
            self._on_cpu[id(tensor)] = tensor
            _MOVED.pop(tensor, None)
        else:
            self._on_cpu.pop(id(tensor), None)
            _MOVED[tensor] = True

    def _named_device(
        self, name: str, args: Sequence[Any], kwargs: dict[str, Any]
    ) -> torch.device | None:
        """Return the device that a call asks for, None if it names none."""
        named = kwargs.get("device")
        if name == "cpu":
            named = _CPU
        elif name in ("to", "type_as"):
            given = (*args[1:], *kwargs.values())
            named = next((value for value in given if isinstance(value, _NAMES_DEVICE)), None)
        if isinstance(named, Tensor):
            return self._device_of(named)
        return None if named is None else torch.device(named)

    def _refuse_mixture(self, name: str, args: Sequence[Any], tensors: list[Tensor]) -> None:
        """Raise `TwoDevices` if torch would not take these tensors together.

        torch accepts a single number on the CPU, indices for a tensor elsewhere, and copies.
        """
        if name in _COPIES or (name == "__getitem__" and not self._is_here(args[0])):
            return
        here = [tensor for tensor in tensors if self._is_here(tensor)]
        arrays = [tensor for tensor in here if tensor.dim()]
        if arrays and len(here) < len(tensors):
            shape, dtype = tuple(arrays[0].shape), str(arrays[0].dtype).removeprefix("torch.")
            given = f"{name.strip('_')} is given a tensor {shape} of {dtype} on the CPU"
            raise TwoDevices(f"{given} together with one on the device of the module")


def _really(value: Any) -> Any:
    """Return the CPU in place of the simulated device."""
    is_elsewhere = isinstance(value, torch.device | str) and str(value) == _ELSEWHERE.type
    return _CPU if is_elsewhere else value


def _is_memory_of_others(tensor: Tensor) -> bool:
    """Return whether torch did not allocate a tensor's memory, as after `from_numpy`."""
    try:
        return not tensor.untyped_storage().resizable()
    except NotImplementedError:  # such as a tensor inside vmap
        return False


def _tensors(value: Any, depth: int = 0) -> Iterator[Tensor]:
    """Yield a tensor, or the tensors in lists, tuples and dicts."""
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, list | tuple | dict) and depth < MAX_DEPTH:
        for item in value.values() if isinstance(value, dict) else value:
            yield from _tensors(item, depth + 1)


_CPU, _ELSEWHERE = torch.device("cpu"), torch.device("meta")
# The tensors elsewhere, which may outlive their module: a mask cached for each device, for
# example.
_MOVED: MutableMapping[Tensor, bool] = WeakIdKeyDictionary()
_DEVICE_OF = Tensor.device.__get__
_SET_DATA = Tensor.data.__set__  # type: ignore[attr-defined]
_SPEAK_OF_DEVICES = frozenset({"device", "_parse_to"})  # `torch.device`; `Module.to` asks the other
_NAMES_DEVICE = Tensor | torch.device | str
_COPIES = frozenset(
    {"copy_", "__setitem__", "__set__", "_has_compatible_shallow_copy_type"}
    | {"expand_as", "view_as", "reshape_as"}
)
