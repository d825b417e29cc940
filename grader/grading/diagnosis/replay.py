"""Replaying the recorded calls of a test on a solution of our own, in this process.

A `Variant` is a program of the course's: the reference, or the reference with a mistake in it. It
is run by the very server that runs students' code in the worker, from the same requests and the
same seed, so that what it answers can be compared with what the student's code answered.
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

from grader.grading.diagnosis.answers import SEQUENCES
from grader.sandbox import wire
from grader.sandbox.host.connection import Record
from grader.sandbox.worker.server import Server

OUTPUT = "output"  # the stage that is what a call returns, where no variable has that name


@dataclass(frozen=True)
class Paused:
    """An object of the reference's just before a call on it, and torch's generator then."""

    thing: nn.Module
    request: wire.Call
    generator: Tensor
    text: str  # of the reference


class Variant:
    """A solution of the course's own, loaded once, on which records are replayed."""

    def __init__(self, sources: Mapping[str, wire.Source], main: str) -> None:
        self._server = Server(lets_out=(KeyboardInterrupt,))
        self._file, self._text = sources[main].file, sources[main].text
        answer = self._server.answer(wire.Load(0, main, main, dict(sources)))
        handle = answer.value if isinstance(answer, wire.Reply) else None
        self.module = handle.id if isinstance(handle, wire.Handle) else 0
        self._handles: dict[int, int] = {}  # the student's, to those of the last replay
        self._made_alike: dict[str, bool] = {}  # of each class, whether as the reference makes it
        self._server.leave()

    def replay(
        self, record: Record, upto: int | None = None
    ) -> Generator[wire.Answer | None, None, None]:
        """What this solution answers to each call of `record`, up to the one numbered `upto`.

        Ends early, with None, at a call on an object that this solution did not give.
        """
        self._handles = handles = {record.module: self.module}
        try:
            self._server.answer(wire.Begin(record.seed))
            for entry in record.calls[:upto]:
                if isinstance(entry.request, wire.Load):
                    yield entry.answer
                    continue
                try:
                    request = _translated(entry.request, handles)
                except KeyError:
                    yield None
                    return
                answer = self._server.answer(request)
                _join(getattr(entry.answer, "value", None), getattr(answer, "value", None), handles)
                yield answer
        finally:
            self._server.leave()

    def paused(self, record: Record, place: int) -> Paused | None:
        """This solution just before call number `place` of `record`.

        None unless that call is on a module, and the calls before only made it and set it up.
        """
        calls = [entry.request for entry in record.calls]
        request = calls[place]
        asked = [call for call in calls[:place] if not getattr(call, "quiet", True)]
        if not isinstance(request, wire.Call) or len(asked) != 1:
            return None
        given = list(self.replay(record, place))
        number = self._handles.get(request.target)
        if len(given) < place or number is None:
            return None
        thing = self._server.held(number)
        if not isinstance(thing, nn.Module):
            return None
        return Paused(thing, request, torch.default_generator.get_state(), self._text)

    def resume(self, paused: Paused) -> wire.Answer | None:
        """What this solution answers to the call; None unless it makes and sets up the same object.

        A third of the time of a whole replay, most of which goes into making layers.
        """
        if not self.module:
            return None
        kind = type(paused.thing).__name__
        ours = vars(self._server.held(self.module)).get(kind)
        if not isinstance(ours, type):
            return None
        if kind not in self._made_alike:
            self._made_alike[kind] = _differ_in_a_method(ours, self._text, paused.text)
        if not self._made_alike[kind]:
            return None
        thing: nn.Module = object.__new__(ours)
        for name, value in vars(paused.thing).items():
            vars(thing)[name] = copy.copy(value) if isinstance(value, dict) else value
        buffers = vars(paused.thing)["_buffers"]
        vars(thing)["_buffers"] = {
            name: None if buffer is None else buffer.clone() for name, buffer in buffers.items()
        }
        self._server.answer(wire.Begin(0))
        torch.default_generator.set_state(paused.generator)
        number = self._server.hold(thing, self.module)
        try:
            return self._server.answer(msgspec.structs.replace(paused.request, target=number))
        finally:
            self._server.leave()

    def stages(self, record: Record, place: int, names: Sequence[str]) -> dict[str, Tensor]:
        """The values of the stages `names` during call number `place` of `record`.

        A stage is a local variable of this exercise's code, as it was last set; the output of a
        layer of that name; or `output`, what the call returns.
        """
        seen: dict[str, Tensor] = {}
        with closing(self.replay(record, place + 1)) as answers:
            for _ in range(place):
                next(answers, None)
            with _observed(self._file, names, seen):
                answer = next(answers, None)
        value = getattr(answer, "value", None)
        if OUTPUT in names and OUTPUT not in seen and isinstance(value, wire.WireTensor):
            seen[OUTPUT] = wire.unpack_tensor(value)
        return seen


def _differ_in_a_method(kind: type, text: str, other: str) -> bool:
    """Whether two modules' texts differ within one method of a class, and not in its making."""
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
def _observed(file: str, names: Sequence[str], seen: dict[str, Tensor]) -> Iterator[None]:
    """Within, what the code in `file` computes under one of `names` joins `seen`."""
    outputs: dict[int, Any] = {}

    def keep(name: str, value: Any) -> None:
        if isinstance(value, Tensor):
            seen.setdefault(name, value.detach().clone())

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
    """A request with this side's handles for the student's; raises `KeyError` for a lost one."""
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
    if isinstance(value, wire.WireList | wire.WireTuple):
        return type(value)([_translated_value(item, handles) for item in value.items])
    if isinstance(value, wire.WireDict):
        return wire.WireDict([(k, _translated_value(v, handles)) for k, v in value.pairs])
    return value


def _join(theirs: wire.Value, ours: wire.Value, handles: dict[int, int]) -> None:
    """Have the student's handles in a value stand for ours in the same places."""
    if isinstance(theirs, wire.Handle) and isinstance(ours, wire.Handle):
        handles[theirs.id] = ours.id
    elif isinstance(theirs, SEQUENCES) and isinstance(ours, SEQUENCES):
        for first, second in zip(theirs.items, ours.items):
            _join(first, second, handles)
    elif isinstance(theirs, wire.WireDict) and isinstance(ours, wire.WireDict):
        for (_, first), (_, second) in zip(theirs.pairs, ours.pairs):
            _join(first, second, handles)
