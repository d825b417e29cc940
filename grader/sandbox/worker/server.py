"""Answering a host's requests with the student's code: programs, handles, errors as text."""

from __future__ import annotations

import contextlib
import ctypes
import difflib
import sys
from collections.abc import Iterator, Mapping, Sequence
from types import ModuleType, TracebackType
from typing import Any

import msgspec
import torch
from torch import Tensor, nn

from grader.sandbox import wire
from grader.sandbox.cells import BROKEN
from grader.sandbox.worker.adopt import adopt
from grader.sandbox.program import Program
from grader.sandbox.worker.operations import Watch

MAX_PRINTED = 4000  # characters of a test's print output that cross
MAX_FRAMES = 6  # innermost frames of an error that cross


class Missing(Exception):
    """The file defines no such name."""


class Server:
    """Answers one host's requests: holds programs, handles, and the graphs of recorded calls."""

    def __init__(self, lets_out: tuple[type[BaseException], ...] = ()) -> None:
        self._lets_out = lets_out  # errors that are none of the code's, and no answer
        self._printed = Printed()
        self._programs: dict[str, Program] = {}
        self._modules: dict[int, tuple[Any, Program]] = {}  # handles that outlive a test
        self._handles: dict[int, tuple[Any, Program]] = {}
        self._graphs: dict[int, tuple[list[Tensor], list[Tensor]]] = {}
        self._next = 1
        self._active: Program | None = None
        self._watch: Watch | None = None
        self._owed: wire.Failure | None = None  # of a quiet call, due with the next answer

    def answer(self, request: wire.Request) -> wire.Answer | None:
        """The answer to one request; an exception of the student's becomes a `Failure`."""
        if isinstance(request, wire.Begin):
            self._begin(request.seed)
            return None
        if isinstance(request, wire.Seed):
            torch.default_generator.manual_seed(request.seed)
            return None
        quiet = isinstance(request, wire.Call | wire.Adopt) and request.quiet
        if self._owed is not None:
            if quiet:
                return None  # still owed, to the next request that is answered
            owed, self._owed = self._owed, None
            return msgspec.structs.replace(owed, id=request.id)
        stdout, sys.stdout = sys.stdout, self._printed
        try:
            reply = self._reply(request)
            return None if quiet else reply
        except self._lets_out:
            raise
        except BaseException as error:
            failure = self._failure(request.id, error)
            if not quiet:
                return failure
            self._owed = failure
            return None
        finally:
            sys.stdout = stdout

    def _reply(self, request: Any) -> wire.Reply:
        match request:
            case wire.Call():
                return self._call(request)
            case wire.Adopt():
                target, _ = self._resolve(request.target)
                adopt(target, wire.unpack_tensor(request.values))
                return wire.Reply(id=request.id)
            case wire.Load():
                return self._load(request)
            case wire.Get():
                target, program = self._resolve(request.target)
                self._activate(program)
                return self._answer(request.id, getattr(target, request.name), program, [])
            case wire.Backward():
                return self._backward(request)
            case wire.Inspect():
                target, _ = self._resolve(request.target)
                return wire.Reply(id=request.id, entries=list(_entries(target)))
            case wire.Sync():
                return wire.Reply(id=request.id)
        raise wire.Malformed(f"no request {request!r}")

    def held(self, number: int) -> Any:
        """The object behind a handle."""
        return self._resolve(number)[0]

    def hold(self, thing: Any, module: int) -> int:
        """The handle of an object that belongs to the program of `module`, from here on."""
        return self._keep(thing, self._resolve(module)[1]).id

    def leave(self) -> None:
        """Let `import` find the modules of no program."""
        if self._active is not None:
            self._active.leave()
            self._active = None

    def _begin(self, seed: int) -> None:
        self._handles.clear()
        self._graphs.clear()
        self._printed.clear()
        self._owed = None
        torch.default_generator.manual_seed(seed)

    def _load(self, request: wire.Load) -> wire.Reply:
        program = self._programs.get(request.program)
        if program is None:
            program = self._programs[request.program] = Program(request.sources)
        self._activate(program)
        module = program.load(request.main)
        self._modules[self._next] = (module, program)
        handle = wire.Handle(self._next, "module")
        self._next += 1
        return wire.Reply(id=request.id, value=handle, printed=self._printed.take())

    def _activate(self, program: Program) -> None:
        """Have `import`, late ones included, find the modules of this program alone."""
        if self._active is not program:
            self.leave()
            program.enter()
            self._active = program

    def _resolve(self, number: int) -> tuple[Any, Program]:
        return self._modules.get(number) or self._handles[number]

    def _call(self, request: wire.Call) -> wire.Reply:
        target, program = self._resolve(request.target)
        sent: list[wire.WireTensor] = []
        leaves: list[Tensor] = []
        inputs: list[Tensor] = []

        def tensor(packed: wire.WireTensor) -> Tensor:
            sent.append(packed)
            leaf = wire.unpack_tensor(packed)
            if packed.requires_grad:
                leaf = leaf.clone().requires_grad_()  # a leaf of its own, not a view of the bytes
            leaves.append(leaf)
            # A non-leaf in the test is a non-leaf here: writing into it in place is as possible.
            inputs.append(leaf if packed.leaf else leaf.clone())
            return inputs[-1]

        def handle(packed: wire.Handle) -> Any:
            return self._resolve(packed.id)[0]

        args = [wire.unpack(value, tensor, handle) for value in request.args]
        kwargs = {k: wire.unpack(value, tensor, handle) for k, value in request.kwargs.items()}
        self._activate(program)
        function = _method(target, request.name)
        # A constructor computes no answer, and draws its weights with many an operation.
        self._watch = watch = None
        if request.watch and not isinstance(function, type):
            self._watch = watch = Watch(kernels=request.watch == "all")
        with torch.set_grad_enabled(request.grad), watch or contextlib.nullcontext():
            value = function(*args, **kwargs)
        if request.quiet:
            return wire.Reply(id=request.id)
        outputs: list[Tensor] = []
        changed = [
            wire.Changed(place, now)
            for place, (before, after) in enumerate(zip(sent, inputs))
            if (now := _changed(before, after)) is not None
        ]
        counts = dict(watch.counts) if watch else {}
        reply = self._answer(request.id, value, program, outputs, changed, counts)
        if outputs:
            self._graphs[request.id] = (leaves, outputs)
        return reply

    def _answer(
        self,
        number: int,
        value: Any,
        program: Program,
        outputs: list[Tensor],
        changed: Sequence[wire.Changed] = (),
        counts: Mapping[str, int] = {},
    ) -> wire.Reply:
        def tensor(out: Tensor) -> wire.Value:
            try:
                packed = wire.pack_tensor(out)
            except wire.Malformed:
                return self._keep(out, program)
            if out.requires_grad:
                outputs.append(out)
            return packed

        packed = wire.pack(value, tensor, lambda thing: self._keep(thing, program))
        return wire.Reply(
            id=number,
            value=packed,
            changed=list(changed),
            operations=dict(counts),
            printed=self._printed.take(),
        )

    def _keep(self, thing: Any, program: Program) -> wire.Handle:
        number, self._next = self._next, self._next + 1
        self._handles[number] = (thing, program)
        shapes = {}
        if isinstance(thing, nn.Module):
            shapes = {name: list(p.shape) for name, p in thing.named_parameters()}
        name = type(thing).__name__[:80]
        if isinstance(thing, Tensor):
            dtype = str(thing.dtype).removeprefix("torch.")
            name = f"{dtype if thing.layout is torch.strided else 'sparse'} tensor"
        return wire.Handle(number, name, shapes)

    def _backward(self, request: wire.Backward) -> wire.Reply:
        leaves, outputs = self._graphs[request.call]
        for leaf in leaves:
            leaf.grad = None
        # The gradient of sum(output * grad) is grad. Handing grads to torch.autograd.backward
        # would do the same, and import a symbolic algebra package first.
        grads = [wire.unpack_tensor(grad) for grad in request.grads]
        with torch.enable_grad():
            sums = [(out * grad).sum().double() for out, grad in zip(outputs, grads, strict=True)]
            torch.stack(sums).sum().backward(retain_graph=True)  # type: ignore[no-untyped-call]
        return wire.Reply(
            id=request.id,
            grads=[None if t.grad is None else wire.pack_tensor(t.grad) for t in leaves],
            printed=self._printed.take(),
        )

    def _failure(self, number: int, error: BaseException) -> wire.Failure:
        own = {
            source.file: source.text
            for program in self._programs.values()
            for source in program.sources.values()
            if source.own
        }
        return wire.Failure(
            id=number,
            kind=type(error).__name__[:80],
            mro=[base.__name__[:80] for base in type(error).__mro__],
            message=_text(error),
            frames=_frames(error, own),
            operations=dict(self._watch.counts) if self._watch else {},
            printed=self._printed.take(),
        )


def _method(target: Any, name: str | None) -> Any:
    if name is None:
        return target
    if isinstance(target, ModuleType) and name not in vars(target):
        names = [n for n, v in vars(target).items() if callable(v) and not n.startswith("_")]
        close = difflib.get_close_matches(name, names, 1, cutoff=0.5)
        meant = f"; did you mean `{close[0]}`?" if close else ""
        broken = "".join(f"; {cell}" for cell in vars(target).get(BROKEN, ())[:3])
        raise Missing(f"{target.__file__} defines no `{name}`{meant}{broken}")
    return getattr(target, name)


def _changed(before: wire.WireTensor, after: Tensor) -> wire.WireTensor | None:
    """The argument as the call left it, if the call wrote into it, `.data` included."""
    same_kind = after.dtype == wire.DTYPES[before.dtype] and list(after.shape) == before.shape
    if before.stride is None and same_kind and after.is_contiguous():
        size = len(before.data)
        if not size or ctypes.string_at(after.data_ptr(), size) == before.data:
            return None
    now = wire.pack_tensor(after)
    original = wire.unpack_tensor(before)
    same_type = original.shape == after.shape and original.dtype == after.dtype
    same = same_type and wire.pack_tensor(original).data == now.data
    return None if same else now


def _entries(module: nn.Module) -> Iterator[wire.Entry]:
    for name, parameter in module.named_parameters():
        grad = None if parameter.grad is None else wire.pack_tensor(parameter.grad)
        yield wire.Entry(name, True, wire.pack_tensor(parameter), grad)
    for name, buffer in module.named_buffers():
        yield wire.Entry(name, False, wire.pack_tensor(buffer))


# --- a student's error, as text -----------------------------------------------------------------


def _text(error: BaseException) -> str:
    try:
        if isinstance(error, SyntaxError):  # its place crosses as a frame
            return str(error.msg)[: wire.MAX_TEXT]
        if isinstance(error, ModuleNotFoundError):
            return f"{error}; only installed packages and the course's exercises can be imported"
        if isinstance(error, PermissionError | FileNotFoundError):
            return f"{error}; graded code may use no other file, process or connection"
        return str(error)[: wire.MAX_TEXT]
    except BaseException:
        return "(its message cannot be shown)"


def _frames(error: BaseException, own: Mapping[str, str]) -> list[wire.WireFrame]:
    """The places in the files of `own` that the error passed through, innermost last."""
    frames = []
    trace: TracebackType | None = error.__traceback__
    while trace is not None:
        code, line = trace.tb_frame.f_code, trace.tb_lineno
        if code.co_filename in own:
            source = _line(own[code.co_filename], line)
            frames.append(wire.WireFrame(code.co_filename, line, source, 0, code.co_name[:80]))
        trace = trace.tb_next
    if isinstance(error, SyntaxError) and error.filename is not None and error.filename in own:
        line, column = error.lineno or 1, error.offset or 0
        frames.append(
            wire.WireFrame(error.filename, line, _line(own[error.filename], line), column)
        )
    return frames[-MAX_FRAMES:]


def _line(text: str, line: int) -> str:
    lines = text.split("\n", line)
    return lines[line - 1].rstrip()[: wire.MAX_TEXT] if 0 < line <= len(lines) else ""


class Printed:
    """What the student's code printed since it was last taken; beyond a cap it is dropped."""

    encoding = "utf-8"

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        """Forget everything; a new test starts."""
        self._parts: list[str] = []
        self._room = MAX_PRINTED

    def write(self, text: str) -> int:
        """Keep `text` as far as there is room."""
        if self._room > 0:
            self._parts.append(text[: self._room])
            self._room -= len(text)
            if self._room <= 0:
                self._parts.append("\n[more output was cut]\n")
        return len(text)

    def flush(self) -> None:
        """Nothing is buffered."""

    def isatty(self) -> bool:
        """It never is."""
        return False

    def take(self) -> str:
        """What was printed since the last `take`."""
        if not self._parts:
            return ""
        text = "".join(self._parts)
        self._parts.clear()
        return text
