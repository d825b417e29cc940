"""Calls that can be repeated with other arguments: of a function, or of a module made for them."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from grader.grading.direct import DirectCode
from grader.grading.parameters import give_parameters
from grader.sandbox.host.proxies import Student, code_of

MAX_CALLS = 24  # that are recorded of a function
MAX_NUMBERS = 20_000  # of a result that is compared

Values = Mapping[str, Any]  # arguments by name


@dataclass(frozen=True)
class Call:
    """A call that can be repeated: of a function, or of a module that is made for it."""

    name: str
    inputs: Values
    seed: int
    options: Values | None = None  # of the class's constructor, if it is a module
    parameters: Mapping[str, Tensor] = field(default_factory=dict)
    dtype: torch.dtype = torch.float64
    training: bool = False

    @property
    def leaves(self) -> list[str]:
        """The names of what the result may depend on."""
        options = [
            n for n, value in (self.options or {}).items() if isinstance(value, bool | float)
        ]
        return [*self.inputs, *options, *self.parameters]

    def answer(self, student: Student) -> Tensor:
        """Return the numbers of the result as a vector; raises what the code raises."""
        code_of(student).manual_seed(self.seed)
        called = getattr(student, self.name)
        with torch.no_grad():
            if self.options is not None:
                called = called(**self.options)
                give_parameters(called, self.parameters, self.dtype)
                called.train(self.training)
                code_of(student).manual_seed(self.seed)
            return _numbers(called(**{name: copied(value) for name, value in self.inputs.items()}))


class RecordingCode(DirectCode):
    """The reference's code, which keeps the calls that can be repeated."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.calls: list[Call] = []
        self._counts: dict[str, int] = {}
        self._seed = 0  # that was set last

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
        options = _by_name(kind, args, kwargs)
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
        inputs = _by_name(called, args, kwargs)
        self._counts[name] = self._counts.get(name, 0) + 1
        if inputs is not None and self._counts[name] <= MAX_CALLS:
            self.calls.append(Call(name, inputs, self._seed, **more))


def _by_name(called: Any, args: Any, kwargs: Any) -> Values | None:
    """Return the arguments of a call by name, as copies; None if it cannot be repeated so."""
    try:
        bound = inspect.signature(called).bind(*args, **kwargs)
    except (TypeError, ValueError):
        return None
    kinds = {each.kind for each in bound.signature.parameters.values()}
    if kinds - {inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY}:
        return None
    bound.apply_defaults()
    found = {name: copied(value) for name, value in bound.arguments.items()}
    return None if any(value is copied for value in found.values()) else found


def copied(value: Any) -> Any:
    """Return a copy of a value of plain data, or this function itself for anything else."""
    if isinstance(value, Tensor):
        return value.detach().clone()
    if isinstance(value, dict):
        items = {key: copied(each) for key, each in value.items()}
        return copied if any(each is copied for each in items.values()) else items
    if isinstance(value, list | tuple):
        parts = [copied(each) for each in value]
        return copied if any(each is copied for each in parts) else type(value)(parts)
    return value if value is None or isinstance(value, bool | int | float | str) else copied


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
