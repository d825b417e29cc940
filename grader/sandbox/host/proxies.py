"""Proxies that let a test use the student's code in a worker as if it were local.

`Student` stands for the student's module, `Remote` for an object in the worker. A call sends plain
values and returns plain values. Autograd works across calls.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from typing import Any, Protocol

import torch
from torch import Tensor

from grader.errors import Mismatch, NothingRaised, StudentFailure
from grader.report import Frame
from grader.sandbox import wire
from grader.sandbox.host.connection import Subject, WorkerConnection
from grader.sandbox.host.operations import OperationCounts
from grader.sandbox.host.training import TrainingLog, Trainings

MAX_OUTPUTS = 256  # tensors with gradients in one answer
MAX_ARGUMENT = 40  # characters of an argument in a message
MAX_SHOWN = 8  # numbers shown of a tensor of whole numbers
ARRAY, METHOD = "ndarray", "method"  # names of types: NumPy's arrays, and bound methods


class Student:
    """The student's module: `student.masked_softmax(X, valid_lens)` calls across the boundary.

    Every attribute is a name of the exercise; `code_of(student)` is the code as a whole.
    """

    def __init__(self, code: StudentCode) -> None:
        self.__code__ = code

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name.startswith("__"):
            raise AttributeError(name)
        return self.__code__.function(name)


class StudentCode(Protocol):
    """The interface of the code behind a `Student`, in a worker or in this process."""

    @property
    def forbidden(self) -> tuple[str, ...]:
        """Patterns of the names that the exercise forbids."""

    def function(self, name: str) -> Callable[..., Any]:
        """Return the function or class `name` of the student's module."""

    def manual_seed(self, seed: int, *, only_torch: bool = False) -> None:
        """Seed torch's generator in the code's process, and all others that it may use."""

    def watched(self, watch: wire.Watch) -> AbstractContextManager[OperationCounts]:
        """Count the operations of every call in the block, as `wire.Call` describes."""

    @property
    def trainings(self) -> Trainings:
        """The finished trainings of the exercise."""

    def training(self, name: str) -> AbstractContextManager[tuple[Any, TrainingLog]]:
        """Let calls in the block train; yield what they take as `report`, and the log of it."""

    def sharing(self, *written: Tensor) -> AbstractContextManager[None]:
        """Let the code write into the tensors `written` in the block, and into no others."""

    def raises(self, *kinds: str) -> AbstractContextManager[None]:
        """Raise `NothingRaised` unless the code raises one of `kinds` (type names) in the block."""

    def forbidden_in_source(self) -> list[Frame]:
        """Return the places where the source names a forbidden call.

        Raises `StudentFailure` if the search gives up.
        """


def code_of(student: Student) -> StudentCode:
    """Return the code behind a `Student`."""
    return student.__code__


class RemoteCode:
    """The student's code in a worker: sends calls and unpacks answers."""

    def __init__(
        self, connection: WorkerConnection, subject: Subject, trainings: Trainings | None = None
    ) -> None:
        self.connection, self.subject, self.forbidden = connection, subject, subject.forbidden
        self.trainings = trainings or Trainings()
        self._counts: OperationCounts | None = None
        self._is_training = False  # not watched, because its many calls would take longer
        self._written: tuple[Tensor, ...] | None = None  # tensors that calls may write into
        self._last: Callable[[], str] = str  # returns the last call as text
        self.names: set[str] = set()  # of the functions and classes asked for

    def function(self, name: str) -> Callable[..., Any]:
        """Return a function that calls `name` of the student's module in the worker."""
        self.names.add(name)

        def call(*args: Any, **kwargs: Any) -> Any:
            made = self.call(self.connection.load(self.subject).id, name, args, kwargs)
            if isinstance(made, Remote) and type_name(made) == name:
                made.__made__ = functools.partial(_call_in_words, name, args, kwargs)
            return made

        call.__name__ = name
        return call

    def manual_seed(self, seed: int, *, only_torch: bool = False) -> None:
        """Seed torch's generator in the worker, and all others that the code may use."""
        self.connection.load(self.subject)
        self.connection.reseed(seed, only_torch=only_torch)

    @contextlib.contextmanager
    def watched(self, watch: wire.Watch) -> Iterator[OperationCounts]:
        """Count the operations of every call in the block, as `wire.Call` describes."""
        self._counts = counts = OperationCounts(watch)
        untold, exercise = self.connection.untold, self.subject.exercise
        sees_all = watch in ("all", "memory")
        if sees_all:  # a call that raises does not show the code's usual calls
            untold.add(exercise)
        try:
            yield counts
            if sees_all:
                untold.discard(exercise)
        finally:
            self._counts = None
        counts.check(self.forbidden)

    @property
    def _watch(self) -> wire.Watch:
        """The counts that a request asks for: at least names, if some calls are forbidden."""
        if self._counts is not None:
            return self._counts.watch
        if self._is_training or not self.forbidden:
            return ""
        return "all" if self.subject.exercise in self.connection.untold else "names"

    def _ask(self, request: Any, name: str = "") -> wire.Reply:
        """Return the reply to a request, which calls `name` and may be watched."""
        try:
            reply = self.connection.ask(self.subject, request, name)
        except StudentFailure as failure:
            self._note(failure.operations)
            raise
        self._note(reply.operations)
        return reply

    def _note(self, operations: Mapping[str, int]) -> None:
        """Add a watch's report to the counts; if there are none, only check it."""
        if self._counts is not None:
            self._counts.add(operations)
        elif operations:
            counts = OperationCounts()
            counts.add(operations)
            counts.check(self.forbidden)

    @contextlib.contextmanager
    def training(self, name: str) -> Iterator[tuple[Remote, TrainingLog]]:
        """Let calls in the block train; yield what they take as `report`, and the log of it."""
        heard = functools.partial(self.trainings.on_report, name)
        self._is_training = True
        try:
            with self.connection.training(self.subject, heard) as log:
                yield Remote(self, wire.REPORT), log
        finally:
            self._is_training = False

    @contextlib.contextmanager
    def sharing(self, *written: Tensor) -> Iterator[None]:
        """Let the code write into the tensors `written` in the block, and into no others."""
        self._written = written
        try:
            yield
        finally:
            self._written = None

    @contextlib.contextmanager
    def raises(self, *kinds: str) -> Iterator[None]:
        """Raise `NothingRaised` unless the code raises one of `kinds` (type names) in the block.

        A stub's `NotImplementedError` and a file that does not load never count.
        """
        self._last = str
        try:
            yield
            self.connection.ask(self.subject, wire.Sync(self.connection.next_id()))
        except StudentFailure as failure:
            stub = failure.kind == "NotImplementedError"
            if stub or failure.loading or not set(kinds) & set(failure.mro):
                raise
        else:
            call = f" by {words}" if (words := self._last()) else ""
            raise NothingRaised(f"nothing was raised{call}, where {kinds[0]} is expected")

    def forbidden_in_source(self) -> list[Frame]:
        """Return the places where the source names a forbidden call."""
        return self.connection.search(self.subject)

    def call_quietly(self, target: int, name: str, *args: Any) -> None:
        """Call the method `name` of a handle in the worker without waiting for an answer."""
        self.connection.send_quiet(self._request(target, name, args, {}, quiet=True)[0])

    def call(
        self,
        target: int,
        name: str | None,
        args: Any,
        kwargs: Any,
        callee: Callable[[], str] = str,
        kind: str = "",
    ) -> Any:
        """Call a handle in the worker, or its method `name`; return the unpacked result.

        `callee` names a call without `name` in messages, and `kind` is the type that is called.
        Raises `StudentFailure`, and `Mismatch` for an array of NumPy.
        """
        request, tensors = self._request(target, name, args, kwargs)
        self._last = lambda: _call_in_words(name or callee(), args, kwargs)
        try:
            reply = self._ask(request, name or kind)
        except StudentFailure as failure:
            failure.called = self._last()
            raise
        if self._written is not None:
            _write_back(reply.changed, tensors, self._written)
            _refuse_rewritten(reply.rewritten, [*args, *kwargs.values()])
        if isinstance(reply.value, wire.Handle) and reply.value.type_name == ARRAY:
            raise Mismatch("your code returned a NumPy array; return a torch tensor")
        return self._result(reply.value, request.id, tensors)

    def _request(
        self, target: int, name: str | None, args: Any, kwargs: Any, *, quiet: bool = False
    ) -> tuple[wire.Call, list[Tensor]]:
        """Return the message of a call, and the tensors among its arguments."""
        tensors: list[Tensor] = []

        def tensor(value: Tensor) -> wire.Value:
            tensors.append(value)
            return wire.pack_tensor(value, keep_layout=True)

        def pack(value: Any) -> wire.Value:
            return wire.pack(value, tensor, _packed_handle)

        number, grad = self.connection.next_id(), torch.is_grad_enabled()
        packed = [pack(value) for value in args]
        named = {key: pack(value) for key, value in kwargs.items()}
        watch: wire.Watch = "" if quiet else self._watch
        return wire.Call(number, target, name, packed, named, grad, watch, quiet), tensors

    def _result(self, value: wire.Value, call: int, inputs: list[Tensor]) -> Any:
        """Return a reply's value; the backward pass of its tensors runs in the worker."""
        if isinstance(value, wire.WireTensor) and not value.requires_grad:
            return _tensor(value)
        tensors: list[Tensor] = []
        places: list[int] = []  # the places, in `tensors`, of those with gradients

        def tensor(packed: wire.WireTensor) -> Tensor:
            plain = _tensor(packed)
            if packed.requires_grad and plain.is_floating_point():
                places.append(len(tensors))
            tensors.append(plain)
            return plain

        result = self._unpack(value, tensor)
        if not places:
            return result
        if len(places) > MAX_OUTPUTS:
            raise StudentFailure("Protocol", f"your code returned {len(places)} tensors at once")
        outputs = [tensors[place] for place in places]
        # Without this input, the outputs would have no backward if no input requires gradients.
        anchor = torch.zeros((), requires_grad=True)
        with torch.enable_grad():
            joined = _RemoteCall.apply(self, call, outputs, anchor, *inputs)  # type: ignore[no-untyped-call]
        for place, output in zip(places, joined):
            tensors[place] = output
        rebuilt = iter(tensors)
        return self._unpack(value, lambda _: next(rebuilt))

    def _unpack(self, value: wire.Value, tensor: Callable[[wire.WireTensor], Tensor]) -> Any:
        try:
            return wire.unpack(value, tensor, lambda handle: Remote(self, handle))
        except wire.Malformed as error:
            raise StudentFailure("Protocol", f"your code sent a broken value: {error}") from None

    def get(self, target: int, name: str) -> Any:
        """Return an attribute of an object in the worker."""
        request = wire.Get(self.connection.next_id(), target, name, self._watch)
        return self._unpack(self._ask(request, name).value, _tensor)

    def inspect(self, target: int) -> list[wire.StateEntry]:
        """Return the parameters and buffers of a module in the worker."""
        request = wire.Inspect(self.connection.next_id(), target, self._watch)
        return self._ask(request).entries

    def backward(self, call: int, grads: tuple[Tensor, ...]) -> list[Tensor | None]:
        """Return the gradients of the input tensors of call `call`, given those of its outputs."""
        packed = [wire.pack_tensor(grad) for grad in grads]
        request = wire.Backward(self.connection.next_id(), call, packed, self._watch)
        reply = self._ask(request, "backward")
        return [None if grad is None else _tensor(grad) for grad in reply.grads]


class _RemoteCall(torch.autograd.Function):
    """The autograd node of a finished call; its backward pass runs in the worker."""

    @staticmethod
    def forward(
        ctx: Any, code: RemoteCode, call: int, outputs: list[Tensor], *inputs: Tensor
    ) -> tuple[Tensor, ...]:
        ctx.code, ctx.call = code, call
        ctx.shapes = [None, *((t.shape, t.dtype) for t in inputs[1:])]
        return tuple(outputs)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        found = [None, *ctx.code.backward(ctx.call, grads)]
        if len(found) != len(ctx.shapes):
            raise StudentFailure("Protocol", "your code interfered with the grader")
        fitting = [
            grad if grad is not None and (grad.shape, grad.dtype) == shape else None
            for grad, shape in zip(found, ctx.shapes)
        ]
        return None, None, None, *fitting


class Remote:
    """An object that lives in the worker."""

    __made__: Callable[[], str] | None = None  # returns its origin as code
    __asked__: Mapping[str, str] = {}  # other names of its parameters, by their own names

    def __init__(self, code: RemoteCode, handle: wire.Handle) -> None:
        self.__code__, self.__handle__ = code, handle

    def __repr__(self) -> str:
        return f"<{self.__handle__.type_name} of the student>"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the object in the worker."""
        kind = self.__handle__.type_name
        return self.__code__.call(self.__handle__.id, None, args, kwargs, self.__callee__, kind)

    def __callee__(self) -> str:
        """Return, as code, the target of a call of this object: of a module, its `forward`."""
        if self.__made__ is None:
            return self.__handle__.type_name
        made = self.__made__()
        return made if self.__handle__.type_name == METHOD else f"{made}.forward"

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        value = self.__code__.get(self.__handle__.id, name)
        if isinstance(value, Remote):
            owner = self.__made__ or (lambda: self.__handle__.type_name)
            value.__made__ = lambda: f"{owner()}.{name}"
        return value

    def train(self, mode: bool = True) -> Remote:
        """Switch to training mode, or to evaluation mode with `mode=False`."""
        self.__code__.call_quietly(self.__handle__.id, "train", mode)
        return self

    def eval(self) -> Remote:
        """Switch to evaluation mode."""
        return self.train(False)

    def to(self, dtype: torch.dtype) -> Remote:
        """Convert parameters and buffers to the floating-point type `dtype`."""
        self.__code__.call_quietly(self.__handle__.id, _CONVERSIONS[dtype])
        return self

    def zero_grad(self) -> None:
        """Drop the gradients of the parameters."""
        self.__code__.call_quietly(self.__handle__.id, "zero_grad")

    def state_dict(self) -> dict[str, Tensor]:
        """Return copies of the parameters and buffers by name."""
        state = self.__code__.call(self.__handle__.id, "state_dict", (), {})
        if not isinstance(state, dict):  # a class may have a method of that name of its own
            raise Mismatch("`state_dict` of your module returned no dict of its parameters")
        return {self.__asked__.get(name, name): value for name, value in state.items()}

    def load_state_dict(self, state: Mapping[str, Tensor], strict: bool = True) -> None:
        """Copy parameters and buffers from `state` by name."""
        own = {asked: name for name, asked in self.__asked__.items()}
        state = {own.get(name, name): value for name, value in state.items()}
        self.__code__.call_quietly(self.__handle__.id, "load_state_dict", state, strict)

    def named_parameters(self) -> Iterator[tuple[str, Tensor]]:
        """Yield copies of the parameters by name, with their current gradients."""
        for entry in self.__code__.inspect(self.__handle__.id):
            if entry.is_parameter:
                yield self.__asked__.get(entry.name, entry.name), _parameter(entry)

    def parameters(self) -> Iterator[Tensor]:
        """Return copies of the parameters, with their current gradients."""
        return (parameter for _, parameter in self.named_parameters())

    def named_buffers(self) -> Iterator[tuple[str, Tensor]]:
        """Yield copies of the buffers by name."""
        for entry in self.__code__.inspect(self.__handle__.id):
            if not entry.is_parameter:
                yield entry.name, _tensor(entry.tensor)

    def buffers(self) -> Iterator[Tensor]:
        """Return copies of the buffers."""
        return (buffer for _, buffer in self.named_buffers())


def adopt_remote(module: Remote, values: Tensor) -> None:
    """Do to a module in the worker what `adopt` does to a local one."""
    connection, packed = module.__code__.connection, wire.pack_tensor(values)
    connection.send_quiet(wire.Adopt(connection.next_id(), module.__handle__.id, packed))


def move_remote(module: Remote) -> None:
    """Do to a module in the worker what `move` does to a local one."""
    connection = module.__code__.connection
    connection.send_quiet(wire.Move(connection.next_id(), module.__handle__.id))


def type_name(thing: Remote) -> str:
    """Return the name of an object's type in the worker."""
    return thing.__handle__.type_name


def parameter_shapes(module: Remote) -> dict[str, tuple[int, ...]]:
    """Return the shape of each parameter of the new module by name."""
    return {name: tuple(shape) for name, shape in module.__handle__.parameters.items()}


_CONVERSIONS = {
    torch.float64: "double",
    torch.float32: "float",
    torch.float16: "half",
    torch.bfloat16: "bfloat16",
}


def _write_back(
    changed: list[wire.Changed], tensors: list[Tensor], written: tuple[Tensor, ...]
) -> None:
    """Write a call's changes into the tensors `written`; raise `Mismatch` for other changes."""
    for change in changed:
        if not 0 <= change.place < len(tensors):
            raise StudentFailure("Protocol", "your code interfered with the grader")
        old, new = tensors[change.place], _tensor(change.tensor)
        if not any(old is tensor for tensor in written):
            which = "" if len(tensors) == 1 else f" {change.place + 1} of {len(tensors)}"
            raise Mismatch(f"your code wrote into its tensor argument{which}; work on a new tensor")
        if (old.shape, old.dtype) != (new.shape, new.dtype):
            raise Mismatch("your code changed the shape or the dtype of its argument")
        try:
            old.detach().copy_(new)
        except RuntimeError:  # an expanded view, into which no code can write
            raise StudentFailure("Protocol", "your code interfered with the grader") from None


def _refuse_rewritten(places: list[int], given: list[Any]) -> None:
    """Raise `Mismatch` for a list or dict that a call changed, if writes are checked."""
    for place in places:
        if not 0 <= place < len(given):
            raise StudentFailure("Protocol", "your code interfered with the grader")
        kind = type(given[place]).__name__
        raise Mismatch(f"your code changed the {kind} that it was called with; work on a copy")


def _call_in_words(name: str, args: Any, kwargs: Mapping[str, Any]) -> str:
    """Return a call in one line, with dtype and shape in place of each tensor."""

    def part(value: Any) -> str:
        if isinstance(value, Tensor):
            if value.numel() <= MAX_SHOWN and not value.is_floating_point():
                return str(value.tolist())
            return f"{str(value.dtype).removeprefix('torch.')} {tuple(value.shape)}"
        if isinstance(value, list | tuple) and any(isinstance(each, Tensor) for each in value):
            inner = ", ".join(map(part, value[:MAX_ARGUMENT]))  # each has at least one character
            text = f"[{inner}]" if isinstance(value, list) else f"({inner})"
        else:
            text = repr(value)
        return text if len(text) <= MAX_ARGUMENT else text[:MAX_ARGUMENT] + "…"

    parts = [part(value) for value in args]
    parts += [f"{key}={part(value)}" for key, value in kwargs.items()]
    return f"{name}({', '.join(parts)})"


def _packed_handle(value: Any) -> wire.Value:
    return value.__handle__ if isinstance(value, Remote) else wire.refuse(value)


def _tensor(packed: wire.WireTensor) -> Tensor:
    """Return a plain tensor from an answer, which may hold row-major bytes only."""
    try:
        if packed.stride is not None:
            raise wire.Malformed("it has strides")
        return wire.unpack_tensor(packed)
    except wire.Malformed as error:
        raise StudentFailure("Protocol", f"your code sent a broken tensor: {error}") from None


def _parameter(entry: wire.StateEntry) -> Tensor:
    parameter = _tensor(entry.tensor)
    grad = None if entry.grad is None else _tensor(entry.grad)
    try:
        parameter.requires_grad_(entry.tensor.requires_grad)
        parameter.grad = grad
    except RuntimeError as error:
        raise StudentFailure("Protocol", f"your code sent a broken parameter: {error}") from None
    return parameter
