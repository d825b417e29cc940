"""What the result of a call may depend on, and the same call with one part of that changed."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import torch
from torch import Tensor

from grader.grading.parameters import BIAS, WEIGHT
from grader.grading.recorded_calls import Call

MAX_INDICES, MAX_ROWS = 6, 4  # that are changed: of an axis of an input, of a parameter

Kind = Literal["input", "whole", "option", "layer", "seed"]
Place = Sequence[Any]  # keys and indices that lead to a part of a structure


@dataclass(frozen=True)
class Leaf:
    """Something that a result is computed from, and the calls with a part of it changed."""

    name: str
    kind: Kind
    changed: tuple[Call, ...]
    axes: tuple[int, ...] = ()  # of a tensor: the axis along which each of the calls changes it


def leaves_of(call: Call, shaping: Collection[str]) -> Iterator[Leaf]:
    """Yield what a call's result may depend on, each with the calls that change a part of it.

    Options that are `shaping` decide which parameters there are, which is no computation.
    """
    rng = torch.Generator().manual_seed(call.seed)
    for name, value in call.inputs.items():

        def with_input(new: Any, name: str = name) -> Call:
            return replace(call, inputs={**call.inputs, name: new})

        yield from _leaf(name, value, with_input, rng, is_option=False)
    for name, value in (call.options or {}).items():
        if isinstance(value, bool | float) and name not in shaping:

            def with_option(new: Any, name: str = name) -> Call:
                return replace(call, options={**(call.options or {}), name: new})

            yield from _leaf(name, value, with_option, rng, is_option=True)
    layers: dict[str, list[Call]] = {}
    for name, value in call.parameters.items():
        for row in range(min(len(value), MAX_ROWS)) if value.ndim else ():
            parameters = {**call.parameters, name: _noisy(value, 0, row, rng)}
            layers.setdefault(layer_of(name), []).append(replace(call, parameters=parameters))
    for name, changed in layers.items():
        yield Leaf(name, "layer", tuple(changed))
    seeds = tuple(replace(call, seed=call.seed + more) for more in (1, 2, 3))
    yield Leaf("the seed", "seed", seeds)


def layer_of(parameter: str) -> str:
    """Return the name of the layer that a parameter belongs to; of a lone parameter its own."""
    for end in (WEIGHT, BIAS):
        parameter = parameter.removesuffix(end)
    return parameter


def _leaf(
    name: str, value: Any, changed: Callable[[Any], Call], rng: torch.Generator, *, is_option: bool
) -> Iterator[Leaf]:
    """Yield the leaf that an argument is, if it is one that can be changed."""
    if isinstance(value, Tensor) and value.ndim and value.numel():
        places = [
            (axis, index)
            for axis, size in enumerate(value.shape)
            for index in range(min(size, MAX_INDICES))
        ]
        calls = tuple(changed(_noisy(value, axis, index, rng)) for axis, index in places)
        kind: Kind = "input" if value.is_floating_point() else "whole"
        yield Leaf(name, kind, calls, tuple(axis for axis, _ in places))
    elif isinstance(value, bool):
        yield Leaf(name, "option", (changed(not value),))
    elif isinstance(value, float):
        yield Leaf(name, "option", (changed(value * 1.5 + 0.1),))
    elif isinstance(value, int) and not is_option:
        yield Leaf(name, "whole", (changed(value + 1),))
    elif isinstance(value, dict | list | tuple):
        found = list(_places(value))
        for place in found:
            part = _at(value, place)
            if isinstance(part, Tensor):

                def with_part(new: Any, place: Place = place) -> Call:
                    return changed(_put(value, place, new))

                yield from _leaf(name, part, with_part, rng, is_option=is_option)
        numbers = [place for place in found if not isinstance(_at(value, place), Tensor)]
        calls = tuple(
            changed(_put(value, place, _at(value, place) + 1)) for place in numbers[:MAX_INDICES]
        )
        kind = "whole" if any(isinstance(_at(value, p), int) for p in numbers) else "input"
        if calls:
            yield Leaf(name, kind, calls)


def _noisy(value: Tensor, axis: int, index: int, rng: torch.Generator) -> Tensor:
    """Return a tensor with other numbers at an index of an axis."""
    new = value.clone()
    part = new.select(axis, index)
    if value.dtype == torch.bool:
        part.logical_not_()
    elif value.is_floating_point():
        part.add_(torch.randn(part.shape, generator=rng, dtype=torch.float64).to(value.dtype))
    else:
        low, high = int(value.min()), int(value.max())
        part.copy_((part - low + 1) % max(high - low + 1, 2) + low)
    return new


def _places(value: Any) -> Iterator[Place]:
    """Yield where the tensors and numbers of a structure are."""
    if isinstance(value, Tensor | bool | int | float):
        yield ()
    elif isinstance(value, dict | list | tuple):
        items = value.items() if isinstance(value, dict) else enumerate(value)
        for key, each in items:
            for rest in _places(each):
                yield (key, *rest)


def _at(value: Any, place: Place) -> Any:
    for key in place:
        value = value[key]
    return value


def _put(value: Any, place: Place, new: Any) -> Any:
    """Return a structure with another part at a place."""
    if not place:
        return new
    key, *rest = place
    if isinstance(value, dict):
        return {**value, key: _put(value[key], rest, new)}
    return type(value)(_put(e, rest, new) if n == key else e for n, e in enumerate(value))
