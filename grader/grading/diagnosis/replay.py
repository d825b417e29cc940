"""Replay of a test's recorded calls on one of the course's own solutions, in this process.

A `Variant` gets the requests and the seed that the student's code got, from the same server as in
the worker, so that their answers can be compared. Nothing of the student's runs here.
"""

from __future__ import annotations

import copy
import itertools
import sys
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from types import FrameType
from typing import Any

import msgspec
import torch
from torch import Tensor, nn

from grader.grading.diagnosis.comparison import SEQUENCES
from grader.sandbox import wire
from grader.sandbox.host.connection import CallLog
from grader.sandbox.worker.server import Server

OUTPUT = "output"  # the stage for a call's return value, unless a variable has that name


@dataclass(frozen=True)
class PausedCall:
    """A recorded call on a module of the reference, and the state just before that call."""

    module: nn.Module
    request: wire.Call
    generator: Tensor  # the state of torch's generator
    text: str  # the reference's source text


class Variant:
    """The reference, maybe with a mistake in it, on which recorded calls are replayed."""

    def __init__(self, sources: Mapping[str, wire.Source], main: str) -> None:
        self._server = Server(lets_out=(KeyboardInterrupt,))
        self._file, self._text = sources[main].file, sources[main].text
        answer = self._server.answer(wire.Load(0, main, main, dict(sources)))
        handle = answer.value if isinstance(answer, wire.Reply) else None
        self._module = handle.id if isinstance(handle, wire.Handle) else 0  # 0: did not load
        self._handles: dict[int, int] = {}  # the student's handles to those of the last replay
        self._resumable: dict[str, bool] = {}  # by class name
        self._server.leave()

    def replay(
        self, log: CallLog, upto: int | None = None
    ) -> Generator[wire.Answer | None, None, None]:
        """Yield this solution's answers to the calls of `log`, to `log.calls[:upto]` if given.

        The last is None at a call on an object that this solution did not return.
        """
        self._handles = handles = {log.module: self._module}
        try:
            self._server.answer(wire.Begin(log.seed))
            for entry in log.calls[:upto]:
                if isinstance(entry.request, wire.Load):
                    yield entry.answer
                    continue
                try:
                    request = _translated(entry.request, handles)
                except KeyError:
                    yield None
                    return
                answer = self._server.answer(request)
                student_value = getattr(entry.answer, "value", None)
                _match_handles(student_value, getattr(answer, "value", None), handles)
                yield answer
        finally:
            self._server.leave()

    def paused(self, log: CallLog, index: int) -> PausedCall | None:
        """Return the state of this solution just before `log.calls[index]`.

        None unless that call is on a module, and the calls before only made it and set it up.
        """
        calls = [entry.request for entry in log.calls]
        request = calls[index]
        answered = [call for call in calls[:index] if not getattr(call, "quiet", True)]
        if not isinstance(request, wire.Call) or len(answered) != 1:
            return None
        answers = list(self.replay(log, index))
        handle = self._handles.get(request.target)
        if len(answers) < index or handle is None:
            return None
        module = self._server.held(handle)
        if not isinstance(module, nn.Module):
            return None
        return PausedCall(module, request, torch.default_generator.get_state(), self._text)

    def resume(self, paused: PausedCall) -> wire.Answer | None:
        """Return this solution's answer to a paused call of the reference.

        None unless this solution constructs the module as the reference does. It makes no layers,
        and so takes a third of the time of a whole replay.
        """
        if not self._module:
            return None
        kind = type(paused.module).__name__
        own_class = vars(self._server.held(self._module)).get(kind)
        if not isinstance(own_class, type):
            return None
        if kind not in self._resumable:
            self._resumable[kind] = _differ_in_one_method(own_class, self._text, paused.text)
        if not self._resumable[kind]:
            return None
        module: nn.Module = object.__new__(own_class)
        for name, value in vars(paused.module).items():
            vars(module)[name] = copy.copy(value) if isinstance(value, dict) else value
        buffers = vars(paused.module)["_buffers"].items()
        vars(module)["_buffers"] = {k: None if b is None else b.clone() for k, b in buffers}
        self._server.answer(wire.Begin(0))
        torch.default_generator.set_state(paused.generator)
        handle = self._server.hold(module, self._module)
        try:
            return self._server.answer(msgspec.structs.replace(paused.request, target=handle))
        finally:
            self._server.leave()

    def stages(self, log: CallLog, index: int, names: Sequence[str]) -> dict[str, Tensor]:
        """Return the values of the stages `names`, by name, during `log.calls[index]`.

        A stage is the final value of a local variable of this exercise's code, the output of a
        layer of that name, or `output`, the return value of the call.
        """
        values: dict[str, Tensor] = {}
        with closing(self.replay(log, index + 1)) as answers:
            for _ in range(index):
                next(answers, None)
            with _collecting_stages(self._file, names, values):
                answer = next(answers, None)
        value = getattr(answer, "value", None)
        if OUTPUT in names and OUTPUT not in values and isinstance(value, wire.WireTensor):
            values[OUTPUT] = wire.unpack_tensor(value)
        return values


def _differ_in_one_method(kind: type, text: str, other: str) -> bool:
    """Return whether two texts differ only within one method of class `kind`, not `__init__`."""
    ours, theirs = text.splitlines(), other.splitlines()
    head = sum(1 for _ in itertools.takewhile(lambda pair: pair[0] == pair[1], zip(ours, theirs)))
    pairs = zip(reversed(ours[head:]), reversed(theirs[head:]))
    tail = sum(1 for _ in itertools.takewhile(lambda pair: pair[0] == pair[1], pairs))
    first, last = head + 1, max(head + 1, len(ours) - tail)
    return any(
        code.co_firstlineno < first and last <= max(line or 0 for *_, line in code.co_lines())
        for name, method in vars(kind).items()
        if name != "__init__" and (code := getattr(method, "__code__", None)) is not None
    )


@contextmanager
def _collecting_stages(
    file: str, names: Sequence[str], values: dict[str, Tensor]
) -> Iterator[None]:
    """Add to `values` what the code in `file` computes under one of `names` in the block."""
    outputs: dict[int, Any] = {}

    def keep(name: str, value: Any) -> None:
        if isinstance(value, Tensor):
            values.setdefault(name, value.detach().clone())

    def after_layer(layer: nn.Module, inputs: Any, output: Any) -> None:
        outputs.setdefault(id(layer), output)

    def after_function(frame: FrameType, event: str, result: Any) -> None:
        if event != "return" or frame.f_code.co_filename != file:
            return
        owner = frame.f_locals.get("self")
        for name in names:
            keep(name, frame.f_locals.get(name))
            layer = getattr(owner, name, None) if isinstance(owner, nn.Module) else None
            keep(name, outputs.get(id(layer)))

    hook = nn.modules.module.register_module_forward_hook(after_layer)
    before = sys.getprofile()
    sys.setprofile(after_function)
    try:
        yield
    finally:
        sys.setprofile(before)
        hook.remove()


def _translated(request: Any, handles: Mapping[int, int]) -> Any:
    """Return a request with our handles in place of the student's; `KeyError` if we lack one."""
    if isinstance(request, wire.Seed | wire.Backward | wire.Sync):
        return request
    changes: dict[str, Any] = {"target": handles[request.target]}
    if isinstance(request, wire.Call):
        changes["args"] = [_translated_value(value, handles) for value in request.args]
        changes["kwargs"] = {k: _translated_value(v, handles) for k, v in request.kwargs.items()}
    return msgspec.structs.replace(request, **changes)


def _translated_value(value: wire.Value, handles: Mapping[int, int]) -> wire.Value:
    if isinstance(value, wire.Handle):
        return msgspec.structs.replace(value, id=handles[value.id])
    if isinstance(value, SEQUENCES):
        return type(value)([_translated_value(item, handles) for item in value.items])
    if isinstance(value, wire.WireDict):
        return wire.WireDict([(k, _translated_value(v, handles)) for k, v in value.pairs])
    return value


def _match_handles(theirs: wire.Value, ours: wire.Value, handles: dict[int, int]) -> None:
    """Add to `handles` the student's handles in a value, with ours in the same places."""
    if isinstance(theirs, wire.Handle) and isinstance(ours, wire.Handle):
        handles[theirs.id] = ours.id
    elif isinstance(theirs, SEQUENCES) and isinstance(ours, SEQUENCES):
        for first, second in zip(theirs.items, ours.items):
            _match_handles(first, second, handles)
    elif isinstance(theirs, wire.WireDict) and isinstance(ours, wire.WireDict):
        for (_, first), (_, second) in zip(theirs.pairs, ours.pairs):
            _match_handles(first, second, handles)
