"""The server that answers a host's requests by running the student's code."""

from __future__ import annotations

import ctypes
import difflib
import importlib
import itertools
import linecache
import random
import re
import sys
import traceback
from bdb import BdbQuit
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from types import FrameType, FunctionType, ModuleType
from typing import Any, NamedTuple

import msgspec
import torch
from torch import Tensor, nn

from grader.sandbox import wire
from grader.sandbox.cells import BROKEN
from grader.sandbox.program import Program
from grader.sandbox.source import forbidden_calls
from grader.sandbox.syntax import Unsearchable
from grader.sandbox.worker.adopt import adopt
from grader.sandbox.worker.nan_watch import NanWatch
from grader.sandbox.worker.operations import NameWatch, OperationWatch
from grader.sandbox.worker.other_device import move
from grader.sandbox.worker.output import CapturedOutput
from grader.sandbox.worker.progress import CallProgress

# Student code may replace names of Python's and torch's modules, so whatever runs while a call's
# arguments are there unwatched, or reports what a watch saw, uses what was there before.
globals()["__builtins__"] = wire.BUILTINS
_REPLACE = msgspec.structs.replace
_CLONE, _REQUIRES_GRAD = Tensor.clone, Tensor.requires_grad_
_TIMES, _SUM, _DOUBLE, _STACK = Tensor.mul, Tensor.sum, Tensor.double, torch.stack
_NO_FUNCTION_MODES, _NO_DISPATCH_MODES = (
    torch._C.DisableTorchFunction,
    torch._C._DisableTorchDispatch,
)
_HAS_GRADIENTS, _SET_GRADIENTS = torch.is_grad_enabled, torch._C._set_grad_enabled

MAX_FRAMES = 6  # frames sent of an error
GPU = re.compile(r"\bCUDA\b|NVIDIA|\bMPS\b")
# Beginnings of lines that are not Python, and a description of such a line.
STRAY = {
    "<<<<<<< ": "is a mark that git left where two versions conflict: keep one of them",
    ">>>>>>> ": "is a mark that git left where two versions conflict: keep one of them",
    "```": "is a mark of a chat or a page around the code: remove it",
    "!": "is a command for a notebook: remove it",
    "%": "is a command for a notebook: remove it",
}
LONG_LINE = 70  # characters of a line of code that a report shows uncut
TOO_MANY = re.compile(
    r"(\w+)\.(\w+)\(\) takes \d+ positional arguments? but \d+ (?:was|were) given"
)
UNINITIALISED = "uninitialized parameter"  # in torch's message on a lazy layer
MAX_USES = 20  # uses of forbidden names that are sent for one source


def _as_it_is(model: Any = None, **options: Any) -> Any:
    """Replace `torch.compile`: return a function or module uncompiled, or a decorator that does.

    The results are the same. A compiler would take seconds, and write files.
    """
    return (lambda given: given) if model is None else model


torch.compile = _as_it_is
IMPORT_SYSTEM = importlib.__import__.__code__.co_filename


class Missing(Exception):
    """The student's file does not define the name that a test calls."""


class Server:
    """The loaded programs, the objects behind handles, and the autograd graphs of earlier calls.

    The exceptions in `lets_out` propagate to the caller instead of becoming a `Failure`.
    """

    def __init__(
        self,
        lets_out: tuple[type[BaseException], ...] = (),
        tell: Callable[[wire.TrainingStep], None] = lambda progress: None,
        remove_hooks: Callable[[], None] = lambda: None,
    ) -> None:
        self._lets_out, self._tell, self._remove_hooks = lets_out, tell, remove_hooks
        self._printed = CapturedOutput()
        self._programs: dict[str, Program] = {}
        self._modules: dict[int, tuple[Any, Program]] = {}  # by handle; kept from test to test
        self._handles: dict[int, tuple[Any, Program]] = {}  # all other objects of this test
        self._graphs: dict[int, tuple[list[Tensor], list[Tensor]]] = {}  # leaves, outputs, by call
        self._next = 1
        self._last_seed = 0
        self._draws_elsewhere = False  # whether the code may use generators other than torch's
        self._active: Program | None = None
        self._watch: OperationWatch | NameWatch | NanWatch | None = None
        self._names = NameWatch()  # the watch of all calls of this test
        self._owed: wire.Failure | None = None  # of a quiet call; the next answer

    def answer(self, request: wire.Request) -> wire.Answer | None:
        """Return the answer to one request, or None if it has none; an exception is a `Failure`."""
        if isinstance(request, wire.Begin):
            self._begin(request.seed)
            return None
        if isinstance(request, wire.Seed):
            self._seed(request.seed, only_torch=request.only_torch)
            return None
        quiet = isinstance(request, wire.Call | wire.Adopt | wire.Move) and request.quiet
        if self._owed is not None:
            if quiet:
                return None  # still the answer to the next request with one
            owed, self._owed = self._owed, None
            return _REPLACE(owed, id=request.id)
        stdout, sys.stdout = sys.stdout, self._printed
        self._remove_hooks()
        self._watch = None
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
                adopt(self.held(request.target), wire.unpack_tensor(request.values))
                return wire.Reply(id=request.id)
            case wire.Move():
                move(self.held(request.target))
                return wire.Reply(id=request.id)
            case wire.Search():
                found = [
                    _uses(source, request.patterns[name], request.names.get(name, []))
                    for name, source in request.sources.items()
                ]
                return wire.Reply(request.id, wire.WireList(found))
            case wire.Load():
                return self._load(request)
            case wire.Get():
                return self._get(request)
            case wire.Backward():
                return self._backward(request)
            case wire.Inspect():
                module = self.held(request.target)
                with self._watching(request.watch) as watch:
                    parameters, buffers = module.named_parameters(), module.named_buffers()
                    named = list(parameters), list(buffers)
                    watch.settle()
                    entries = list(_state_entries(*named))
                return wire.Reply(request.id, entries=entries, operations=self._seen())
            case wire.Sync():
                return wire.Reply(id=request.id)
        raise wire.Malformed(f"not a request: {request!r}")

    def held(self, number: int) -> Any:
        """Return the object behind a handle."""
        return self._resolve(number)[0]

    def hold(self, thing: Any, module: int) -> int:
        """Return a new handle for an object, which belongs to the program of `module`."""
        return self._keep(thing, self._resolve(module)[1]).id

    def place_of(self, frame: FrameType | None) -> wire.Failure:
        """Return the place of `frame` in the student's files, and the output until then."""
        places = [_Place(each, line, each.f_lasti) for each, line in traceback.walk_stack(frame)]
        own = self._own_texts()
        files = [place.frame.f_code.co_filename for place in places]  # innermost first
        called = itertools.takewhile(lambda file: file not in own, files)
        says = wire.IMPORTING if IMPORT_SYSTEM in called else ""
        frames = _own_frames(places[::-1], own)
        return wire.Failure(0, "Timeout", [], says, frames, self._printed.take())

    def leave(self) -> None:
        """Stop `import` from finding the modules of the active program."""
        if self._active is not None:
            self._active.leave()
            self._active = None

    def _begin(self, seed: int) -> None:
        self._handles.clear()
        self._graphs.clear()
        self._printed.clear()
        self._owed = None
        self._names = NameWatch()
        self._last_seed = seed
        self._seed(seed)

    def _seed(self, seed: int, *, only_torch: bool = False) -> None:
        """Seed torch's generator, and the others that the student's code may use."""
        torch.default_generator.manual_seed(seed)
        if self._draws_elsewhere and not only_torch:
            random.seed(seed)
            importlib.import_module("numpy.random").seed(seed % 2**32)

    def _load(self, request: wire.Load) -> wire.Reply:
        program = self._programs.get(request.program)
        if program is None:
            program = self._programs[request.program] = Program(request.sources, request.muted)
        self._activate(program)
        # Python's and NumPy's generators take much longer to seed than torch's.
        if not self._draws_elsewhere and any(map(_names_random, request.sources.values())):
            self._draws_elsewhere = True
            self._seed(self._last_seed)
        module = program.load(request.main)
        self._modules[self._next] = (module, program)
        handle = wire.Handle(self._next, "module")
        self._next += 1
        return wire.Reply(id=request.id, value=handle, printed=self._printed.take())

    def _activate(self, program: Program) -> None:
        """Let `import`, also inside functions, find only the modules of this program."""
        if self._active is not program:
            self.leave()
            program.enter()
            self._active = program

    def _resolve(self, number: int) -> tuple[Any, Program]:
        return self._modules.get(number) or self._handles[number]

    def _call(self, request: wire.Call) -> wire.Reply:
        target, program = self._resolve(request.target)
        tensors, progress = _TensorArguments(), CallProgress(request.id, self._tell)

        def held(handle: wire.Handle) -> Any:
            return progress.report if handle.id == wire.REPORT.id else self.held(handle.id)

        def unpack(value: wire.Value) -> Any:
            return wire.unpack(value, tensors.unpack, held)

        self._activate(program)
        function = _method(target, request.name)
        outputs: list[Tensor] = []
        watching, gradients = self._watching(request.watch), _Gradients(request.grad)
        self._remove_hooks()
        # From here until the watch, no student code may run.
        with _NO_FUNCTION_MODES():
            guard = _NO_DISPATCH_MODES()
            args = [unpack(value) for value in request.args]
            kwargs = {name: unpack(value) for name, value in request.kwargs.items()}
            del guard
        with gradients, watching as watch:
            with progress:
                value = function(*args, **kwargs)
            watch.settle(draws=wire.is_a(value, nn.Module))
            if request.quiet:
                return wire.Reply(id=request.id)
            # Packing is watched, too, so that nothing is computed on the way out.
            fields = {"changed": tensors.changed(), "rewritten": _rewritten(request, args, kwargs)}
            reply = self._answer(request.id, value, program, outputs, **fields)
        if outputs:
            self._graphs[request.id] = (tensors.leaves, outputs)
        return self._with_operations(reply)

    def _get(self, request: wire.Get) -> wire.Reply:
        target, program = self._resolve(request.target)
        self._activate(program)
        with self._watching(request.watch) as watch:
            value = getattr(target, request.name)
            watch.settle()
            reply = self._answer(request.id, value, program, [])
        return self._with_operations(reply)

    def _watching(self, watch: wire.Watch) -> OperationWatch | NameWatch | NanWatch:
        """Return the context that counts the operations of a request, if it is watched."""
        if watch == "nan":
            self._watch = NanWatch(self._own_texts().keys())
        else:
            self._watch = self._names if watch == "names" else OperationWatch(watch)
        return self._watch

    def _with_operations(self, reply: wire.Reply) -> wire.Reply:
        seen = self._seen()
        return _REPLACE(reply, operations=seen) if seen else reply

    def _seen(self) -> dict[str, int]:
        return self._watch.reported if self._watch else {}

    def _answer(
        self, number: int, value: Any, program: Program, outputs: list[Tensor], **fields: Any
    ) -> wire.Reply:
        """Return the reply with `value`; add the tensors in it that have gradients to `outputs`."""

        def tensor(out: Tensor) -> wire.Value:
            try:
                out = wire.plain_tensor(out)
                packed = wire.pack_tensor(out)
            except wire.Malformed:
                return self._keep(out, program)
            if out.requires_grad:
                outputs.append(out)
            return packed

        packed = wire.pack(value, tensor, lambda thing: self._keep(thing, program))
        return wire.Reply(number, packed, printed=self._printed.take(), **fields)

    def _keep(self, thing: Any, program: Program) -> wire.Handle:
        number, self._next = self._next, self._next + 1
        self._handles[number] = (thing, program)
        shapes = {}
        if wire.is_a(thing, nn.Module):
            shapes = {name: list(p.shape) for name, p in thing.named_parameters()}
        name = type(thing).__name__[:80]
        if type(thing) in wire.PLAIN_TENSORS:
            dtype = str(thing.dtype).removeprefix("torch.")
            name = f"{dtype if thing.layout is torch.strided else 'sparse'} tensor"
        return wire.Handle(number, name, shapes)

    def _backward(self, request: wire.Backward) -> wire.Reply:
        leaves, outputs = self._graphs[request.call]
        for leaf in leaves:
            leaf.grad = None
        # The gradient of sum(output * grad) is grad. torch.autograd.backward would accept grads
        # directly, but it imports a symbolic algebra package first.
        grads = [wire.unpack_tensor(grad) for grad in request.grads]
        with _Gradients(True):
            watching = self._watching(request.watch)
            with _NO_FUNCTION_MODES():
                products = [_TIMES(*pair) for pair in zip(outputs, grads, strict=True)]
                total = _SUM(_STACK([_DOUBLE(_SUM(product)) for product in products]))
            with watching:
                total.backward(retain_graph=True)  # type: ignore[no-untyped-call]
        found = [None if leaf.grad is None else wire.pack_tensor(leaf.grad) for leaf in leaves]
        printed = self._printed.take()
        return wire.Reply(request.id, grads=found, operations=self._seen(), printed=printed)

    def _failure(self, number: int, error: BaseException) -> wire.Failure:
        kind, mro = type(error).__name__[:80], [base.__name__[:80] for base in type(error).__mro__]
        message, frames = _message(error), _frames_of(error, self._own_texts())
        message += self._without_self(message) if isinstance(error, TypeError) else ""
        return wire.Failure(number, kind, mro, message, frames, self._printed.take(), self._seen())

    def _without_self(self, message: str) -> str:
        """Return a note that a method lacks `self`, if that explains one argument too many."""
        if match := TOO_MANY.match(message):
            for module, _ in self._modules.values():
                owner = vars(module).get(match[1])
                method = vars(owner).get(match[2]) if type(owner) is type else None
                if isinstance(method, FunctionType) and "self" not in method.__code__.co_varnames:
                    return f"; is `self` missing in `def {match[2]}`?"
        return ""

    def _own_texts(self) -> dict[str, str]:
        """Return the texts of the student's own files by file."""
        sources = [s for program in self._programs.values() for s in program.sources.values()]
        return {source.file: source.text for source in sources if source.own}


def _names_random(source: wire.Source) -> bool:
    return "random" in source.text or b"random" in source.code


def _uses(source: wire.Source, patterns: list[str], names: list[str]) -> wire.Value:
    """Return the lines and names of a source that match a pattern, or why the search failed."""
    try:
        uses = forbidden_calls(source.text, source.file, patterns, names)
    except Unsearchable as error:
        return str(error)
    return wire.WireList([wire.WireTuple([use.line, use.name]) for use in uses[:MAX_USES]])


class _Gradients:
    """`torch.set_grad_enabled`, which looks up nothing that student code can replace."""

    def __init__(self, are_on: bool) -> None:
        self._are_on, self._were_on = are_on, True

    def __enter__(self) -> None:
        self._were_on = _HAS_GRADIENTS()
        _SET_GRADIENTS(self._are_on)

    def __exit__(self, *exc: object) -> None:
        _SET_GRADIENTS(self._were_on)


class _TensorArguments:
    """The tensors among a call's arguments: as sent, as autograd leaves, and as passed on."""

    def __init__(self) -> None:
        self.leaves: list[Tensor] = []
        self._passed: list[tuple[wire.WireTensor, Tensor]] = []

    def unpack(self, packed: wire.WireTensor) -> Tensor:
        """Return the tensor that is passed to the student's code."""
        leaf = wire.unpack_tensor(packed)
        if packed.requires_grad:
            leaf = _REQUIRES_GRAD(_CLONE(leaf))  # a real leaf, not a view of the bytes
        # torch refuses in-place writes to leaves, so a tensor is a leaf here only if it is one in
        # the test.
        passed = leaf if packed.leaf else _CLONE(leaf)
        self.leaves.append(leaf)
        self._passed.append((packed, passed))
        return passed

    def changed(self) -> list[wire.Changed]:
        """Return the tensors that the call wrote into, in their final state."""
        return [
            wire.Changed(place, now)
            for place, (before, after) in enumerate(self._passed)
            if (now := _changed(before, after)) is not None
        ]


def _method(target: Any, name: str | None) -> Any:
    """Return the target of a call. Raises `Missing`, with the closest name in the file."""
    if name is None:
        return target
    if isinstance(target, ModuleType) and name not in vars(target):
        names = [n for n, v in vars(target).items() if callable(v) and not n.startswith("_")]
        close = difflib.get_close_matches(name, names, 1, cutoff=0.5)
        meant = f"; did you mean `{close[0]}`?" if close else ""
        broken = "".join(f"; {cell}" for cell in vars(target).get(BROKEN, ())[:3])
        raise Missing(f"{target.__file__} defines no `{name}`{meant}{broken}")
    return getattr(target, name)


def _rewritten(request: wire.Call, args: list[Any], kwargs: dict[str, Any]) -> list[int]:
    """Return the places of the arguments whose lists and dicts a call has changed."""
    sent, passed = [*request.args, *request.kwargs.values()], [*args, *kwargs.values()]
    return [place for place, pair in enumerate(zip(sent, passed, strict=True)) if not _kept(*pair)]


def _kept(sent: wire.Value, passed: Any) -> bool:
    """Return whether lists and dicts are unchanged; writes into tensors are checked elsewhere.

    Only objects of the very type that was sent are compared, so no student code runs.
    """
    kind = type(passed)
    if isinstance(sent, wire.WireList | wire.WireTuple):
        same_kind = kind is (list if isinstance(sent, wire.WireList) else tuple)
        return same_kind and len(passed) == len(sent.items) and all(map(_kept, sent.items, passed))
    if isinstance(sent, wire.WireDict):
        pairs = list(dict.items(passed)) if kind is dict else []
        same_size = kind is dict and len(pairs) == len(sent.pairs)
        return same_size and all(
            _kept(key, now) and _kept(value, new)
            for (key, value), (now, new) in zip(sent.pairs, pairs, strict=True)
        )
    if isinstance(sent, wire.WireTensor | wire.Handle):
        return True
    plain = sent.data if isinstance(sent, wire.WireBytes) else sent
    return kind is type(plain) and (passed == plain or passed != passed)  # noqa: PLR0124 (nan)


def _changed(before: wire.WireTensor, after: Tensor) -> wire.WireTensor | None:
    """Return an argument after a call if the call wrote into it, even through `.data`."""
    after = wire.plain_tensor(after)  # a call can change the class of its arguments
    same_kind = after.dtype == wire.DTYPES[before.dtype] and list(after.shape) == before.shape
    if before.stride is None and same_kind and after.is_contiguous():
        size = len(before.data)
        if not size or ctypes.string_at(after.data_ptr(), size) == before.data:
            return None
    now = wire.pack_tensor(after)
    same = same_kind and wire.pack_tensor(wire.unpack_tensor(before)).data == now.data
    return None if same else now


def _state_entries(
    parameters: Iterable[tuple[str, Tensor]], buffers: Iterable[tuple[str, Tensor]]
) -> Iterator[wire.StateEntry]:
    for name, parameter in parameters:
        grad = None if parameter.grad is None else wire.pack_tensor(parameter.grad)
        yield wire.StateEntry(name, True, wire.pack_tensor(parameter), grad)
    for name, buffer in buffers:
        yield wire.StateEntry(name, False, wire.pack_tensor(buffer))


def _message(error: BaseException) -> str:
    try:
        if isinstance(error, SyntaxError):  # because its place is sent as a frame
            return f"{error.msg}{_stray_line(error)}"[: wire.MAX_TEXT]
        if isinstance(error, RecursionError):
            return f"{error}: the code calls itself again and again"
        if isinstance(error, BdbQuit):
            return "a breakpoint cannot stop graded code: remove it, or debug with pytest"
        if isinstance(error, EOFError):
            return f"{error}; graded code has no keyboard: do not call input()"
        if isinstance(error, ModuleNotFoundError):
            return f"{error}; only installed packages and the course's exercises can be imported"
        if isinstance(error, PermissionError | FileNotFoundError):
            return f"{error}; graded code may use no other file, process or connection"
        text = str(error)[: wire.MAX_TEXT]
        if UNINITIALISED in text:
            return "a layer without sizes (lazy) has no parameters yet: give it its sizes"
        if GPU.search(text):
            return f"{text}; graded code has no GPU: take the device of the inputs"
        return text
    except BaseException:
        return "(its message cannot be shown)"


def _stray_line(error: SyntaxError) -> str:
    """Return the line that does not belong in a Python file, if one of `STRAY` explains it."""
    lines = linecache.getlines(error.filename or "")
    for number, line in enumerate(lines[: error.lineno], start=1):
        for start, sentence in STRAY.items():
            # A notebook's command explains only an error in its own line; a text may have such
            # lines, too.
            if line.lstrip().startswith(start) and (len(start) > 1 or number == error.lineno):
                return f"; line {number} {sentence}"
    return ""


class _Place(NamedTuple):
    """The place of a frame: its line and its instruction."""

    frame: FrameType
    line: int
    instruction: int

    def in_source(self, text: str) -> wire.WireFrame:
        """Return this place in the text of its file; a long line gets a column."""
        code, source, column = self.frame.f_code, _line(text, self.line), 0
        if len(source) > LONG_LINE and self.instruction >= 0:
            positions = itertools.islice(code.co_positions(), self.instruction // 2, None)
            line, _, start, _ = next(positions, (None, None, None, None))
            if line == self.line and start is not None:  # `start` counts bytes
                column = len(source.encode("utf-8")[:start].decode("utf-8", "ignore")) + 1
        return wire.WireFrame(code.co_filename, self.line, source, column, code.co_name[:80])


def _own_frames(stack: Iterable[_Place], own: Mapping[str, str]) -> list[wire.WireFrame]:
    """Return the places in the files of `own`, innermost last: the first one and the last ones."""
    found = [place for place in stack if place.frame.f_code.co_filename in own]
    if len(found) > MAX_FRAMES:
        found = [found[0], *found[1 - MAX_FRAMES :]]
    return [place.in_source(own[place.frame.f_code.co_filename]) for place in found]


def _to_recursion(places: list[_Place], own: Mapping[str, str]) -> list[_Place]:
    """Return the places up to the call that repeats itself, not up to the end of the recursion."""
    lines = [(p.frame.f_code, p.line) for p in places if p.frame.f_code.co_filename in own]
    if not lines:
        return places
    repeated = Counter(lines).most_common(1)[0][0]
    last = max(n for n, p in enumerate(places) if (p.frame.f_code, p.line) == repeated)
    return places[: last + 1]


def _frames_of(error: BaseException, own: Mapping[str, str]) -> list[wire.WireFrame]:
    """Return the frames of an error, with the place of a syntax error as one more frame."""
    places, trace = [], error.__traceback__
    while trace is not None:
        places.append(_Place(trace.tb_frame, trace.tb_lineno, trace.tb_lasti))
        trace = trace.tb_next
    if isinstance(error, RecursionError):
        places = _to_recursion(places, own)
    frames = _own_frames(places, own)
    if isinstance(error, SyntaxError) and error.filename is not None and error.filename in own:
        line, column, file = error.lineno or 1, error.offset or 0, error.filename
        frames.append(wire.WireFrame(file, line, _line(own[file], line), column))
    return frames


def _line(text: str, line: int) -> str:
    lines = text.split("\n", line)
    return lines[line - 1].rstrip()[: wire.MAX_TEXT] if 0 < line <= len(lines) else ""
