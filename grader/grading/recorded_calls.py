"""Calls that can be repeated, and the same calls with one part of an argument changed.

A call is a call of a function, or of a module that is made for it.
"""

from __future__ import annotations

import functools
import inspect
import itertools
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import torch
from torch import Tensor, nn

from grader.grading.direct import DirectCode
from grader.grading.parameters import BIAS, WEIGHT, give_parameters
from grader.sandbox.host.proxies import Student, code_of

MAX_CALLS = 24  # calls recorded of a function
MAX_NUMBERS = 20_000  # numbers of a result that is compared
MAX_ORDERS = 24  # of a module's layers
MAX_INDICES, MAX_ROWS = 6, 4  # slices that are changed: of an axis of an input, of a parameter

Values = Mapping[str, Any]  # arguments by name
Kind = Literal["input", "whole", "option", "layer", "seed"]
Place = Sequence[Any]  # keys and indices on the way to a part of a structure


@dataclass(frozen=True)
class RecordedCall:
    """A call that can be repeated: of a function, or of a module that is made for it."""

    name: str
    inputs: Values
    seed: int
    options: Values | None = None  # options of the class's constructor, if it is a module
    parameters: Mapping[str, Tensor] = field(default_factory=dict)
    dtype: torch.dtype = torch.float64
    training: bool = False
    by_name: frozenset[str] = frozenset()  # arguments that can only be given by name
    hides: bool = False  # whether only the places of infinite numbers in the result count

    @property
    def leaves(self) -> list[str]:
        """The names of the leaves on which the result may depend."""
        options = [
            n for n, value in (self.options or {}).items() if isinstance(value, bool | float)
        ]
        return [*self.inputs, *options, *self.parameters]

    @property
    def sizes(self) -> tuple[tuple[int, ...], ...]:
        """The shapes of the tensors among its arguments."""
        places = [(value, place) for value in self.inputs.values() for place in _places(value)]
        parts = [_at(value, place) for value, place in places]
        return tuple(tuple(part.shape) for part in parts if isinstance(part, Tensor))

    @property
    def in_float32(self) -> RecordedCall:
        """The same call with all floating-point numbers in float32."""
        inputs = {name: _in_float32(value) for name, value in self.inputs.items()}
        return replace(self, inputs=inputs, dtype=torch.float32)

    def answer(self, student: Student) -> Tensor:
        """Return the numbers of the result as a vector; raises the errors of the code.

        Arguments are given by place where possible, because code may have other names for them.
        """
        code_of(student).manual_seed(self.seed)
        called = getattr(student, self.name)
        with torch.no_grad():
            if self.options is not None:
                called = called(**self.options)
                give_parameters(called, self.parameters, self.dtype)
                called.train(self.training)
                code_of(student).manual_seed(self.seed)
            given = {name: copied(value) for name, value in self.inputs.items()}
            named = {name: given.pop(name) for name in self.by_name}
            numbers = _numbers(called(*given.values(), **named))
        return numbers.isinf().double() if self.hides else numbers


class RecordingCode(DirectCode):
    """The reference's code, which records the calls that can be repeated."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.calls: list[RecordedCall] = []
        self._counts: dict[str, int] = {}
        self._seed = 0  # the last seed

    def manual_seed(self, seed: int, *, only_torch: bool = False) -> None:
        """Seed torch's generator, and remember the seed."""
        self._seed = seed
        super().manual_seed(seed)

    def function(self, name: str) -> Callable[..., Any]:
        """Return the function or class `name`; each call of it is recorded."""
        original = super().function(name)

        @functools.wraps(original, updated=())
        def call(*args: Any, **kwargs: Any) -> Any:
            if isinstance(original, type):
                return self._made(name, original, args, kwargs)
            self._keep(name, original, args, kwargs)
            return original(*args, **kwargs)

        return call

    def _made(self, name: str, kind: type, args: Any, kwargs: Any) -> Any:
        options, _ = _by_name(kind, args, kwargs)
        made = kind(*args, **kwargs)
        if isinstance(made, nn.Module) and options is not None:

            def before(module: nn.Module, args: Any, kwargs: Any) -> None:
                state = {n: p.detach().clone() for n, p in module.named_parameters()}
                dtypes = [p.dtype for p in state.values()] or [torch.float64]
                more = {"options": options, "parameters": state, "dtype": dtypes[0]}
                self._keep(name, module.forward, args, kwargs, **more, training=module.training)

            made.register_forward_pre_hook(before, with_kwargs=True)
        return made

    def _keep(self, name: str, called: Any, args: Any, kwargs: Any, **more: Any) -> None:
        inputs, named = _by_name(called, args, kwargs)
        self._counts[name] = self._counts.get(name, 0) + 1
        if inputs is not None and self._counts[name] <= MAX_CALLS:
            self.calls.append(RecordedCall(name, inputs, self._seed, by_name=named, **more))


def _by_name(called: Any, args: Any, kwargs: Any) -> tuple[Values | None, frozenset[str]]:
    """Return the arguments of a call by name, as copies, and the names that have to be given.

    None if the call cannot be repeated that way.
    """
    try:
        bound = inspect.signature(called).bind(*args, **kwargs)
    except (TypeError, ValueError):
        return None, frozenset()
    kinds = {name: each.kind for name, each in bound.signature.parameters.items()}
    if {*kinds.values()} - {
        inspect.Parameter.POSITIONAL_OR_KEYWORD,
        inspect.Parameter.KEYWORD_ONLY,
    }:
        return None, frozenset()
    bound.apply_defaults()
    found = {name: copied(value) for name, value in bound.arguments.items()}
    if any(value is copied for value in found.values()):
        return None, frozenset()
    return found, frozenset(
        n for n, kind in kinds.items() if kind == inspect.Parameter.KEYWORD_ONLY
    )


def _in_float32(value: Any) -> Any:
    if isinstance(value, Tensor) and value.is_floating_point():
        return value.float()
    if isinstance(value, dict):
        return {key: _in_float32(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(map(_in_float32, value))
    return value


def copied(value: Any) -> Any:
    """Return a copy of plain data, or this function itself for anything else."""
    if isinstance(value, Tensor):
        return value.detach().clone()
    if isinstance(value, dict):
        items = {key: copied(each) for key, each in value.items()}
        return copied if any(each is copied for each in items.values()) else items
    if isinstance(value, list | tuple):
        parts = [copied(each) for each in value]
        return copied if any(each is copied for each in parts) else type(value)(parts)
    return value if value is None or isinstance(value, bool | int | float | str | bytes) else copied


def _numbers(result: Any) -> Tensor:
    """Return all numbers of a result as one vector of float64; texts count as their letters."""
    if isinstance(result, Tensor):
        return result.detach().flatten()[:MAX_NUMBERS].double()
    if isinstance(result, bool | int | float):
        return torch.tensor([float(result)], dtype=torch.float64)
    if isinstance(result, str | bytes):
        data = result.encode("utf-8", "replace") if isinstance(result, str) else result
        return torch.tensor(list(data[:MAX_NUMBERS]), dtype=torch.float64)
    if isinstance(result, Mapping):
        result = list(result.values())
    if isinstance(result, list | tuple):
        return torch.cat([torch.empty(0, dtype=torch.float64), *map(_numbers, result)])
    return torch.empty(0, dtype=torch.float64)


# --- a part changed -------------------------------------------------------------------------------


@dataclass(frozen=True)
class CallLeaf:
    """A part of the inputs of a result, and the calls in which a part of it is changed."""

    name: str
    kind: Kind
    changed: tuple[RecordedCall, ...]
    axes: tuple[int, ...] = ()  # for a tensor: the axis along which each call changes it


def leaves_of(call: RecordedCall, shaping: Collection[str]) -> Iterator[CallLeaf]:
    """Yield the leaves on which a call's result may depend, with the calls that change them.

    Options that are `shaping` are left out: they decide which parameters exist, which is no
    computation.
    """
    rng = torch.Generator().manual_seed(call.seed)
    for name, value in call.inputs.items():

        def with_input(new: Any, name: str = name) -> RecordedCall:
            return replace(call, inputs={**call.inputs, name: new})

        yield from _leaf(name, value, with_input, rng, is_option=False)
    for name, value in (call.options or {}).items():
        if isinstance(value, bool | float) and name not in shaping:

            def with_option(new: Any, name: str = name) -> RecordedCall:
                return replace(call, options={**(call.options or {}), name: new})

            yield from _leaf(name, value, with_option, rng, is_option=True)
    layers: dict[str, list[RecordedCall]] = {}
    for name, value in call.parameters.items():
        for row in range(min(len(value), MAX_ROWS)) if value.ndim else ():
            parameters = {**call.parameters, name: _noisy(value, 0, row, rng)}
            layers.setdefault(layer_of(name), []).append(replace(call, parameters=parameters))
    for name, changed in layers.items():
        yield CallLeaf(name, "layer", tuple(changed))
    seeds = tuple(replace(call, seed=call.seed + more) for more in (1, 2, 3))
    yield CallLeaf("the seed", "seed", seeds)


def with_both(call: RecordedCall, one: RecordedCall, other: RecordedCall) -> RecordedCall | None:
    """Return a call with two changes at once; None if both change the same structure."""
    found: dict[str, Any] = {}
    for part in ("inputs", "parameters"):
        values = dict(getattr(call, part))
        for name, value in values.items():
            first, second = getattr(one, part)[name], getattr(other, part)[name]
            if first is value or second is value:
                values[name] = second if first is value else first
            elif isinstance(value, Tensor):
                values[name] = first + second - value
            else:
                return None
        found[part] = values
    return replace(call, **found)


def layer_of(parameter: str) -> str:
    """Return the name of a parameter's layer, or of the parameter itself if it has none."""
    for end in (WEIGHT, BIAS):
        parameter = parameter.removesuffix(end)
    return parameter


def in_all_orders(call: RecordedCall, layers: Sequence[str]) -> Iterator[RecordedCall]:
    """Yield a call with the numbers of these layers in each order."""
    for order in itertools.islice(itertools.permutations(layers), MAX_ORDERS):
        taken = dict(zip(layers, order))
        parameters = {}
        for name, value in call.parameters.items():
            layer = layer_of(name)
            other = taken.get(layer, layer) + name.removeprefix(layer)
            parameters[name] = call.parameters.get(other, value)
        yield replace(call, parameters=parameters)


def _leaf(
    name: str,
    value: Any,
    changed: Callable[[Any], RecordedCall],
    rng: torch.Generator,
    *,
    is_option: bool,
) -> Iterator[CallLeaf]:
    """Yield an argument as a leaf, if it can be changed."""
    if isinstance(value, Tensor) and value.ndim and value.numel():
        places = [
            (axis, index)
            for axis, size in enumerate(value.shape)
            for index in range(min(size, MAX_INDICES))
        ]
        calls = tuple(changed(_noisy(value, axis, index, rng)) for axis, index in places)
        kind: Kind = "input" if value.is_floating_point() else "whole"
        yield CallLeaf(name, kind, calls, tuple(axis for axis, _ in places))
    elif isinstance(value, bool):
        yield CallLeaf(name, "option", (changed(not value),))
    elif isinstance(value, float):
        yield CallLeaf(name, "option", (changed(value * 1.5 + 0.1),))
    elif isinstance(value, int) and not is_option:
        yield CallLeaf(name, "whole", (changed(value + 1),))
    elif isinstance(value, dict | list | tuple):
        found = list(_places(value))
        for place in found:
            part = _at(value, place)
            if isinstance(part, Tensor):

                def with_part(new: Any, place: Place = place) -> RecordedCall:
                    return changed(_put(value, place, new))

                yield from _leaf(name, part, with_part, rng, is_option=is_option)
        numbers = [place for place in found if not isinstance(_at(value, place), Tensor)]
        calls = tuple(
            changed(_put(value, place, _at(value, place) + 1)) for place in numbers[:MAX_INDICES]
        )
        kind = "whole" if any(isinstance(_at(value, p), int) for p in numbers) else "input"
        if calls:
            yield CallLeaf(name, kind, calls)


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
    """Yield the places of the tensors and numbers in a structure."""
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
    """Return a structure with another value at a place."""
    if not place:
        return new
    key, *rest = place
    if isinstance(value, dict):
        return {**value, key: _put(value[key], rest, new)}
    return type(value)(_put(e, rest, new) if n == key else e for n, e in enumerate(value))
