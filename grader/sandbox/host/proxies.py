"""The student's code as a test sees it: functions and modules that happen to live elsewhere.

`Student` stands for the student's file, `Remote` for an object in the worker. A call sends plain
values and gets plain values back; autograd crosses; an argument that the student's code wrote into
is written into here as well. A test reads as if the code were local.
"""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from grader.errors import Mismatch, StudentFailure
from grader.report import Frame
from grader.sandbox import wire
from grader.sandbox.host.connection import Desk, Subject
from grader.sandbox.source import forbidden_calls

MAX_OUTPUTS = 256  # tensors that need gradients, in one answer
MAX_ARGUMENT = 40  # characters of an argument in a message


@dataclass
class Seen:
    """Which operations ran while the student was watched."""

    counts: Counter[str] = field(default_factory=Counter)
    kernels: bool = True

    @property
    def operations(self) -> int:
        """How many tensor operations the code asked for (calls of torch's functions)."""
        return sum(n for name, n in self.counts.items() if name.startswith("torch."))


class Student:
    """The student's module: `student.masked_softmax(X, valid_lens)` calls across the boundary."""

    def __init__(self, desk: Desk, subject: Subject) -> None:
        self.desk, self.subject = desk, subject
        self._seen: Seen | None = None
        self._sharing = False

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name.startswith("__"):
            raise AttributeError(name)

        def call(*args: Any, **kwargs: Any) -> Any:
            return self.call(self.desk.load(self.subject).id, name, args, kwargs)

        call.__name__ = name
        return call

    def manual_seed(self, seed: int) -> None:
        """Seed torch's generator in the worker."""
        self.desk.load(self.subject)
        self.desk.reseed(seed)

    @contextlib.contextmanager
    def watched(self, *, kernels: bool = True) -> Iterator[Seen]:
        """Within, every call notes the functions it calls and, with `kernels`, what they run."""
        self._seen = Seen(kernels=kernels)
        try:
            yield self._seen
        finally:
            self._seen = None

    @contextlib.contextmanager
    def sharing(self) -> Iterator[None]:
        """Within, what the code writes into an argument is written into the test's own tensor.

        Without, a test's tensors are out of reach: a right answer to spoilt inputs is no answer.
        """
        self._sharing = True
        try:
            yield
        finally:
            self._sharing = False

    @contextlib.contextmanager
    def raises(self, *kinds: str) -> Iterator[None]:
        """The student's code must raise one of `kinds` (names of exception types) within."""
        wanted = " or ".join(kinds)
        try:
            yield
            self.desk.ask(self.subject, wire.Sync(self.desk.number()))
        except StudentFailure as failure:
            stub = failure.kind == "NotImplementedError"
            if stub or failure.loading or not set(kinds) & set(failure.mro):
                raise
        else:
            raise Mismatch(f"nothing was raised, where {wanted} is expected")

    @property
    def forbidden(self) -> tuple[str, ...]:
        """Patterns of the names that the exercise forbids."""
        return self.subject.forbidden

    def forbidden_in_source(self) -> list[Frame]:
        """Where the student's source names a forbidden call."""
        source = self.subject.sources[self.subject.exercise]
        return forbidden_calls(source.text, source.file, self.forbidden)

    def tell(self, target: int, name: str, *args: Any) -> None:
        """Call the method `name` of a handle in the worker, without waiting for an answer."""
        self.desk.tell(self._request(target, name, args, {}, [], quiet=True))

    def call(self, target: int, name: str | None, args: Any, kwargs: Any, label: str = "") -> Any:
        """Call a handle in the worker, or its method `name`; `label` names it in messages."""
        tensors: list[Tensor] = []
        request = self._request(target, name, args, kwargs, tensors)
        try:
            reply = self.desk.ask(self.subject, request)
        except StudentFailure as failure:
            failure.called = _described(name or label, args, kwargs)
            if self._seen is not None:
                self._seen.counts.update(failure.operations)
            raise
        if self._sharing:
            _write_back(reply.changed, tensors)
        if self._seen is not None:
            self._seen.counts.update(reply.operations)
        return self._value(reply.value, request.id, tensors)

    def _request(
        self,
        target: int,
        name: str | None,
        args: Any,
        kwargs: Any,
        tensors: list[Tensor],
        *,
        quiet: bool = False,
    ) -> wire.Call:
        """A call's message; the tensors among its arguments join `tensors`."""

        def tensor(value: Tensor) -> wire.Value:
            tensors.append(value)
            return wire.pack_tensor(value, keep_layout=True)

        def pack(value: Any) -> wire.Value:
            return wire.pack(value, tensor, _packed_handle)

        return wire.Call(
            id=self.desk.number(),
            target=target,
            name=name,
            args=[pack(value) for value in args],
            kwargs={key: pack(value) for key, value in kwargs.items()},
            grad=torch.is_grad_enabled(),
            watch="" if self._seen is None else "all" if self._seen.kernels else "functions",
            quiet=quiet,
        )

    def _value(self, value: wire.Value, call: int, inputs: list[Tensor]) -> Any:
        """A reply's value; tensors that need gradients get a backward that runs in the worker."""
        if isinstance(value, wire.WireTensor) and not value.requires_grad:
            return _tensor(value)
        outputs: list[Tensor] = []

        def tensor(packed: wire.WireTensor) -> Tensor:
            plain = _tensor(packed)
            if packed.requires_grad and plain.is_floating_point():
                outputs.append(plain)
            return plain

        result = self._unpack(value, tensor)
        if not outputs:
            return result
        if len(outputs) > MAX_OUTPUTS:
            raise StudentFailure("Protocol", f"your code returned {len(outputs)} tensors at once")
        anchor = torch.zeros((), requires_grad=True)
        with torch.enable_grad():
            crossed = _Crossing.apply(self, call, outputs, anchor, *inputs)  # type: ignore[no-untyped-call]
        swap = {id(plain): joined for plain, joined in zip(outputs, crossed)}
        return _swapped(result, swap)

    def _unpack(self, value: wire.Value, tensor: Callable[[wire.WireTensor], Tensor]) -> Any:
        try:
            return wire.unpack(value, tensor, lambda handle: Remote(self, handle))
        except wire.Malformed as error:
            raise StudentFailure("Protocol", f"your code sent a broken value: {error}") from None

    def get(self, target: int, name: str) -> Any:
        """An attribute of an object in the worker."""
        reply = self.desk.ask(self.subject, wire.Get(self.desk.number(), target, name))
        return self._unpack(reply.value, _tensor)

    def inspect(self, target: int) -> list[wire.Entry]:
        """The parameters and buffers of a module in the worker."""
        return self.desk.ask(self.subject, wire.Inspect(self.desk.number(), target)).entries

    def backward(self, call: int, grads: tuple[Tensor, ...]) -> list[Tensor | None]:
        """The gradients of call `call`'s input tensors, given those of its outputs."""
        packed = [wire.pack_tensor(grad) for grad in grads]
        reply = self.desk.ask(self.subject, wire.Backward(self.desk.number(), call, packed))
        return [None if grad is None else _tensor(grad) for grad in reply.grads]


class _Crossing(torch.autograd.Function):
    """Joins the worker's graph to the local one: forward is done, backward asks the worker."""

    @staticmethod
    def forward(
        ctx: Any, student: Student, call: int, outputs: list[Tensor], *inputs: Tensor
    ) -> tuple[Tensor, ...]:
        ctx.student, ctx.call = student, call
        ctx.shapes = [None, *((t.shape, t.dtype) for t in inputs[1:])]
        return tuple(outputs)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        found = [None, *ctx.student.backward(ctx.call, grads)]
        if len(found) != len(ctx.shapes):
            raise StudentFailure("Protocol", "your code interfered with the grader")
        fitting = [
            grad if grad is not None and (grad.shape, grad.dtype) == shape else None
            for grad, shape in zip(found, ctx.shapes)
        ]
        return None, None, None, *fitting


class Remote:
    """An object that lives in the worker."""

    def __init__(self, student: Student, handle: wire.Handle) -> None:
        self.student = student
        self.handle = handle

    @property
    def type_name(self) -> str:
        """The name of its type over there."""
        return self.handle.type_name

    def __repr__(self) -> str:
        return f"<{self.type_name} of the student>"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call it over there."""
        return self.student.call(self.handle.id, None, args, kwargs, self.type_name)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return self.student.get(self.handle.id, name)

    def train(self, mode: bool = True) -> Remote:
        """Switch to training, as `nn.Module.train`."""
        self.student.tell(self.handle.id, "train", mode)
        return self

    def eval(self) -> Remote:
        """Switch to evaluation, as `nn.Module.eval`."""
        return self.train(False)

    def to(self, dtype: torch.dtype) -> Remote:
        """Convert parameters and buffers to `dtype`."""
        self.student.tell(self.handle.id, _CONVERSIONS[dtype])
        return self

    def zero_grad(self) -> None:
        """Forget the gradients of the parameters."""
        self.student.tell(self.handle.id, "zero_grad")

    def adopt(self, values: Tensor) -> None:
        """Fill the parameters, in the order of their names, from a vector, and take its dtype."""
        desk = self.student.desk
        desk.tell(wire.Adopt(desk.number(), self.handle.id, wire.pack_tensor(values)))

    def parameter_shapes(self) -> dict[str, tuple[int, ...]]:
        """The shape of each parameter by name, as the module was made."""
        return {name: tuple(shape) for name, shape in self.handle.parameters.items()}

    def state_dict(self) -> dict[str, Tensor]:
        """Parameters and buffers by name."""
        return self.student.call(self.handle.id, "state_dict", (), {})  # type: ignore[no-any-return]

    def load_state_dict(self, state: Mapping[str, Tensor], strict: bool = True) -> None:
        """Take over parameters and buffers by name."""
        self.student.tell(self.handle.id, "load_state_dict", dict(state), strict)

    def named_parameters(self) -> Iterator[tuple[str, Tensor]]:
        """Copies of the parameters by name, with the gradients they have now."""
        for entry in self.student.inspect(self.handle.id):
            if entry.is_parameter:
                yield entry.name, _parameter(entry)

    def parameters(self) -> Iterator[Tensor]:
        """Copies of the parameters, with the gradients they have now."""
        return (parameter for _, parameter in self.named_parameters())

    def named_buffers(self) -> Iterator[tuple[str, Tensor]]:
        """Copies of the buffers by name."""
        for entry in self.student.inspect(self.handle.id):
            if not entry.is_parameter:
                yield entry.name, _tensor(entry.tensor)

    def buffers(self) -> Iterator[Tensor]:
        """Copies of the buffers."""
        return (buffer for _, buffer in self.named_buffers())


_CONVERSIONS = {
    torch.float64: "double",
    torch.float32: "float",
    torch.float16: "half",
    torch.bfloat16: "bfloat16",
}


def _write_back(changed: list[wire.Changed], tensors: list[Tensor]) -> None:
    for change in changed:
        if not 0 <= change.place < len(tensors):
            raise StudentFailure("Protocol", "your code interfered with the grader")
        old, new = tensors[change.place], _tensor(change.tensor)
        if (old.shape, old.dtype) != (new.shape, new.dtype):
            raise Mismatch("your code changed the shape or the dtype of its argument")
        try:
            old.detach().copy_(new)
        except RuntimeError:  # an expanded view: no code can write into it
            raise StudentFailure("Protocol", "your code interfered with the grader") from None


def _described(name: str, args: Any, kwargs: Mapping[str, Any]) -> str:
    """A call in one line; a tensor is its dtype and shape."""

    def part(value: Any) -> str:
        if isinstance(value, Tensor):
            return f"{str(value.dtype).removeprefix('torch.')} {tuple(value.shape)}"
        text = repr(value)
        return text if len(text) <= MAX_ARGUMENT else text[:MAX_ARGUMENT] + "…"

    parts = [part(value) for value in args]
    parts += [f"{key}={part(value)}" for key, value in kwargs.items()]
    return f"{name}({', '.join(parts)})"


def _packed_handle(value: Any) -> wire.Value:
    return value.handle if isinstance(value, Remote) else wire.refuse(value)


def _tensor(packed: wire.WireTensor) -> Tensor:
    """A plain tensor out of an answer; only row-major bytes are taken from there."""
    try:
        if packed.stride is not None:
            raise wire.Malformed("strides in an answer")
        return wire.unpack_tensor(packed)
    except wire.Malformed as error:
        raise StudentFailure("Protocol", f"your code sent a broken tensor: {error}") from None


def _parameter(entry: wire.Entry) -> Tensor:
    parameter = _tensor(entry.tensor)
    grad = None if entry.grad is None else _tensor(entry.grad)
    try:
        parameter.requires_grad_(entry.tensor.requires_grad)
        parameter.grad = grad
    except RuntimeError as error:
        raise StudentFailure("Protocol", f"your code sent a broken parameter: {error}") from None
    return parameter


def _swapped(value: Any, swap: Mapping[int, Tensor]) -> Any:
    if isinstance(value, Tensor):
        return swap.get(id(value), value)
    if isinstance(value, list):
        return [_swapped(item, swap) for item in value]
    if isinstance(value, tuple):
        return tuple(_swapped(item, swap) for item in value)
    if isinstance(value, dict):
        return {key: _swapped(item, swap) for key, item in value.items()}
    return value
