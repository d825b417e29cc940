"""A case as lines of code that a student can run in a debugger."""

from __future__ import annotations

import contextlib
import functools
import pprint
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from grader.grading.direct import DirectCode
from grader.sandbox.host.proxies import Student

MAX_NUMBERS = 150  # numbers printed of all tensors together
DIGITS = 4
WIDTH = 76  # characters of a line of numbers


class TooLong(Exception):
    """The calls of a case hold too many numbers to print; the rest of it need not run."""


class Recorder(DirectCode):
    """The reference's code, which writes down every call that a case makes."""

    def __init__(self, code: DirectCode) -> None:
        super().__init__(code._program, code.exercise, ())
        self.lines: list[str] = []
        self._names: set[str] = set()
        self._numbers = 0

    def function(self, name: str) -> Callable[..., Any]:
        """Return the function or class `name`, whose calls are noted."""
        original = super().function(name)

        @functools.wraps(original, updated=())
        def call(*args: Any, **kwargs: Any) -> Any:
            line = f"{name}({', '.join(self._arguments(args, kwargs))})"
            self._names.add(name)
            if not isinstance(original, type):
                self.lines.append(f"print({line})")
                return original(*args, **kwargs)
            self.lines.append(f"module = {line}")
            module = original(*args, **kwargs)
            if isinstance(module, nn.Module):
                module.register_forward_pre_hook(self._note_forward, with_kwargs=True)
            return module

        return call

    def manual_seed(self, seed: int, *, only_torch: bool = False) -> None:
        """Seed torch's generator, and note it if that is part of the calls."""
        super().manual_seed(seed)
        if self.lines:
            self.lines.append(f"torch.manual_seed({seed})")

    def _note_forward(self, module: nn.Module, args: Any, kwargs: Any) -> None:
        parameters = dict(module.named_parameters())
        first = next(iter(parameters.values()), None)
        if first is not None:
            self.lines.append(f"module.to({first.dtype})")
        self.lines.append("with torch.no_grad():")
        for name, value in parameters.items():
            self.lines.append(f"    module.{name}[:] = {self._shown(value.detach())}")
        self.lines.append(f"module.{'train' if module.training else 'eval'}()")
        self.lines.append(f"print(module({', '.join(self._arguments(args, kwargs))}))")

    def _arguments(self, args: Sequence[Any], kwargs: dict[str, Any]) -> Iterator[str]:
        yield from (self._shown(value) for value in args)
        yield from (f"{name}={self._shown(value)}" for name, value in kwargs.items())

    def _shown(self, value: Any) -> str:
        match value:
            case Tensor():
                return self._shown_tensor(value)
            case list():
                return f"[{', '.join(map(self._shown, value))}]"
            case tuple():
                return f"({''.join(f'{self._shown(each)}, ' for each in value).rstrip()})"
            case dict():
                entries = (f"{key!r}: {self._shown(each)}" for key, each in value.items())
                return f"{{{', '.join(entries)}}}"
        if callable(value):
            self._numbers += MAX_NUMBERS + 1  # an object that no text can describe
        return repr(value)

    def _shown_tensor(self, value: Tensor) -> str:
        self._numbers += value.numel()
        if self._numbers > MAX_NUMBERS:
            raise TooLong
        plain = value.detach()
        numbers = plain.double().round(decimals=DIGITS) if plain.is_floating_point() else plain
        listed = pprint.pformat(numbers.tolist(), width=WIDTH, compact=True)
        return f"torch.tensor({listed}, dtype={value.dtype})"

    @property
    def text(self) -> str:
        """The calls as a program; nothing if they hold too many numbers, or there are none."""
        if not self.lines or self._numbers > MAX_NUMBERS:
            return ""
        names = ", ".join(sorted(self._names))
        imports = f"from {self.exercise} import {names}"
        if len(imports) > WIDTH:
            listed = "".join(f"    {name},\n" for name in sorted(self._names))
            imports = f"from {self.exercise} import (\n{listed})"
        return "\n".join(["import torch", imports, *self.lines])


def repeat(ask: Callable[[Student], Any], code: DirectCode) -> str:
    """Return the calls that `ask` makes, as a program; nothing if that would be too long."""
    recorder = Recorder(code)
    with contextlib.suppress(Exception), torch.random.fork_rng(devices=[]):
        ask(Student(recorder))
    return recorder.text
