"""Counting the operations that code runs, and noticing code that hides some of them.

A mode of torch counts what code calls by name, and torch's own record of operations, which lies
beneath such modes, is compared with what it saw. Both live in the process of the code that they
watch: they notice every way of torch itself to get around them, not code that rewrites them.
"""

from __future__ import annotations

import _thread
import contextlib
import functools
import itertools
import operator
import os
import secrets
import threading
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch._ops import OpOverload
from torch.overrides import TorchFunctionMode
from torch.utils._device import DeviceContext

# What a watch tells besides `torch.*`, as names of counts.
KERNELS = "aten."  # torch's own name of an operation that ran, also within another
MADE = "made."  # with its shape: the largest tensor that a function returned
PEAK = "peak.bytes"  # of tensors, the most at once beyond those from before the call
# Operations that make, copy, look at or view tensors. Constructors such as `torch.Tensor([1, 2])`
# and conversions run them where no mode sees a function, and they compute nothing.
# fmt: off
MAKES_OR_MOVES = frozenset((
    "_local_scalar_dense", "_to_copy", "_unsafe_view", "alias", "arange", "as_strided", "clone",
    "contiguous", "copy_", "detach", "empty", "empty_like", "empty_strided", "equal", "expand",
    "fill_", "full", "is_nonzero", "is_pinned", "item", "lift", "lift_fresh", "narrow",
    "new_empty", "new_empty_strided", "normal_", "ones", "permute", "pin_memory", "random_",
    "reshape", "resize_", "resolve_conj", "resolve_neg", "scalar_tensor", "select", "set_",
    "slice", "split", "squeeze", "t", "to", "transpose", "unbind", "uniform_", "unsqueeze",
    "view", "zero_", "zeros",
))
# fmt: on
UNSEEN = "unseen.operations"  # operations that ran where the modes were switched off
CALLED_BACK = "unseen.callbacks"  # operations in code that a torch function called
SWITCHED_OFF = "unseen.watch"  # the modes or the record were taken away
THREADS = "unseen.threads"  # threads that are older than the call, or outlive it

# The functions that start threads. `threading` uses the last one since Python 3.13.
THREAD_STARTERS = (
    (_thread, "start_new_thread"),
    (threading, "_start_new_thread"),
    (threading, "_start_joinable_thread"),
)
# Functions that run code which no argument shows: hooks, or the backward of somebody's function.
CALLS_BACK = {"backward", "grad"}
# Arguments that run no code of their own while torch looks at them, and what holds such arguments.
PLAIN_TYPES = {
    *(Tensor, torch.nn.Parameter, torch.nn.Buffer, torch.Size, torch.dtype, torch.device),
    *(torch.layout, torch.memory_format, torch.Generator),
    *(int, float, bool, complex, str, type(None), type(...)),
}
PLAIN_CONTAINERS = {list, tuple}
KERNEL_WATCHES = ("all", "memory")  # those that count operations as well as functions
OWN_OPERATIONS = ("aten", "prims", "prim", "profiler")  # all other namespaces run Python code
MAX_OPERATIONS = 4096  # names of operations that are remembered

_active: list[OperationWatch | NameWatch] = []  # innermost last; threads report to it
_own_threads = 0  # of the worker itself, beside the main one


def count_own_threads() -> None:
    """Take the threads that run now for the worker's own: they compute nothing."""
    global _own_threads
    _own_threads = _thread._count()


def _other_threads() -> int:
    return _thread._count() - _own_threads


class OperationWatch:
    """A context manager that counts `torch.*` functions and `aten.*` operations by name.

    `counts["torch.layer_norm"]` is how often the Python function was called, `counts["aten.bmm"]`
    how often the operation ran, also within another. A function written in Python such as
    `multi_head_attention_forward` has only its `torch.*` name. `watch` is "all", "functions", which
    leaves out the operations, "memory", which adds the peak of memory to them, or "", which counts
    nothing. Threads started in the block count as
    well. `settle` ends the counting; until the block ends, torch's record still names what runs, so
    that an answer can be packed in the block. What is reported holds the largest tensor that a
    function returned, too: "made.2x3" is the number of bytes of each of its numbers. A view that
    holds a number in several places, such as an expanded one, does not count.
    """

    def __init__(self, watch: str = "all") -> None:
        self.counts: Counter[str] = Counter()
        self.kernels, self.memory, self._is_off = (
            watch in KERNEL_WATCHES,
            watch == "memory",
            not watch,
        )
        self._threads = 0
        self._draws = False
        self._counting: _Counting | None = None
        self._largest, self._made = 1, dict[str, int]()

    @property
    def reported(self) -> dict[str, int]:
        """The counts; of a call that made a module, all but those of drawing its weights."""
        if not self._draws:
            return {**self.counts, **self._made}
        kept = (KERNELS, SWITCHED_OFF, THREADS)
        return {n: c for n, c in self.counts.items() if n.startswith(kept)}

    def note_made(self, result: Any) -> None:
        """Remember the largest tensor in a function's result."""
        for tensor in result if isinstance(result, (tuple, list)) else (result,):
            if isinstance(tensor, Tensor):
                with contextlib.suppress(RuntimeError), _PLAINLY():  # some have no storage
                    self._note_tensor(tensor)

    def _note_tensor(self, tensor: Tensor) -> None:
        while _IS_WRAPPED(tensor):  # within `torch.vmap`, which hides an axis
            tensor = _UNWRAPPED(tensor)
        numbers, item_bytes = _NUMEL(tensor), _ITEM_BYTES(tensor)
        if numbers > self._largest and numbers * item_bytes <= _STORAGE(tensor).nbytes():
            self._largest = numbers
            self._made = {MADE + "x".join(map(str, _SIZE(tensor))): item_bytes}

    def __enter__(self) -> OperationWatch:
        if self._is_off:
            return self
        _prepare()
        self._threads = _other_threads()
        self._counting = _Counting(self)
        self._counting.start()
        _active.append(self)
        return self

    def settle(self, *, draws: bool = False) -> None:
        """Stop counting calls: all that follows is the grader's own.

        `draws` says that the call made a module: it computed no answer, but drew weights.
        """
        self._draws = draws
        if self._counting is not None:
            self._counting.settle()

    def __exit__(self, *exc: Any) -> None:
        if self._is_off:
            return
        _active.remove(self)
        counting, self._counting = self._counting, None
        if counting is not None:
            counting.stop()
        if self._threads or _other_threads():
            self.counts[THREADS] += 1

    def note(self, name: str) -> None:
        """Count something of this name."""
        self.counts[name] += 1

    def in_thread(self) -> _Counting:
        """Return what counts the operations of another thread in the block."""
        return _Counting(self)


class NameWatch:
    """A context manager for one call after the other that notes the names of functions called.

    `reported` has those of the last call that no call before it had, each once. It costs a fifth of
    what an `OperationWatch` does, so that every call of code that may not call everything can be
    watched; but it does not see what runs where torch's modes are switched off for a while, in code
    that torch calls back, or in a thread that is older than the call.
    """

    def __init__(self) -> None:
        self.reported: dict[str, int] = {}
        self._called: set[Any] = set()
        self._known: set[str] = set()
        self._mode: _ModeOnTop | None = None

    def __enter__(self) -> NameWatch:
        _prepare()
        self.reported, self._called = {}, set()
        self._mode = self.in_thread()
        self._mode.start()
        _active.append(self)
        return self

    def settle(self, *, draws: bool = False) -> None:
        """Stop noting calls; `draws` says that the call made a module, and called no answer's."""
        if self._mode is None:
            return
        mode, self._mode = self._mode, None
        if not mode.stop():
            self.reported[SWITCHED_OFF] = 1
        called = () if draws else self._called
        names = {f"torch.{getattr(func, '__name__', func)}" for func in called}
        self.reported.update(dict.fromkeys(names - self._known, 1))
        self._known |= names

    def __exit__(self, *exc: Any) -> None:
        self.settle()
        _active.remove(self)

    def note(self, name: str) -> None:
        """Report this name."""
        self.reported[name] = 1

    def in_thread(self) -> _ModeOnTop:
        """Return what notes the calls of a thread in the block."""
        return _ModeOnTop(_Names(self._called))


class _ModeOnTop:
    """A mode of torch on top of all others of this thread, from `start` to `stop`."""

    def __init__(self, mode: TorchFunctionMode) -> None:
        self._mode: Any = mode
        self._before: tuple[list[Any], list[Any]] = [], []

    def start(self) -> None:
        self._before = _stacks()
        self._mode.__enter__()

    def stop(self) -> bool:
        """Take the mode off; return False if it is gone, or if others were left above it."""
        functions, kernels = self._before
        found = _stacks()
        above, below = _without_devices(found[0]), _without_devices(functions)
        if _same(above, [*below, self._mode]) and _same(found[1], kernels):
            self._mode.__exit__(None, None, None)
            return True
        for _ in above[len(below) :]:
            _POP_FUNCTION()
        for _ in found[1][len(kernels) :]:
            _POP_DISPATCH(None)
        return False


class _Counting:
    """The modes and the record of one thread; they report to a watch."""

    def __init__(self, watch: OperationWatch) -> None:
        self._watch = watch
        token = secrets.token_hex(8)
        self._marks = _Marks(f"seen {token}", f"open {token}", f"end {token}")
        self._end = _MARK(self._marks.end)  # entered, and never left within the record
        self._mode: _ModeOnTop | None = None
        self._is_recording = False

    def start(self) -> None:
        try:
            _ENABLE(_WITH_MEMORY if self._watch.memory else _WITHOUT_MEMORY)
        except RuntimeError:  # somebody else records already
            self._watch.counts[SWITCHED_OFF] += 1
        else:
            self._is_recording = True
        self._mode = _ModeOnTop(_Functions(self._watch, self._marks))
        self._mode.start()

    def settle(self) -> None:
        """Take the mode off; note whether somebody else did, or left modes of their own."""
        if self._mode is None:
            return
        mode, self._mode = self._mode, None
        if not mode.stop():
            self._watch.counts[SWITCHED_OFF] += 1
        self._end.__enter__()

    def stop(self) -> None:
        """End the record and add what it shows beyond the modes."""
        self.settle()
        if not self._is_recording:
            return
        try:
            events = list(itertools.chain.from_iterable(_DISABLE()))
        except RuntimeError:
            events = []
        if self._watch.memory:
            events = self._read_memory(events)
        self._read(list(map(_NAME, events)))

    def _read_memory(self, events: Sequence[Any]) -> list[Any]:
        """Note the peak of the memory that the code needed; return the events of operations."""
        operations, changes, is_over = [], [0], False
        for event in events:
            if _KIND(event) != "memory_alloc":
                operations.append(event)
                is_over = is_over or _NAME(event) == self._marks.end  # packing the answer follows
            elif not is_over:
                changes.append(_BYTES(event))
        peak = max(itertools.accumulate(changes))
        self._watch.counts[PEAK] = max(self._watch.counts[PEAK], peak)
        return operations

    def _read(self, names: Sequence[str]) -> None:
        """Add to the counts what torch's record shows: what ran, and under which of our marks."""
        marks, counts = self._marks, self._watch.counts
        if self._watch.kernels:
            for name, count in Counter(names).items():
                if operation := _OPERATIONS[name]:
                    counts[KERNELS + operation.name] += count
        # The mark over the operation that runs, and whether it is part of one that counts.
        mark, is_part = marks.none, False
        above: list[tuple[str, bool]] = []
        for name in _outside(names, marks.seen):
            if not name:  # the end of an operation
                if above:
                    mark, is_part = above.pop()
                continue
            above.append((mark, is_part))
            if name in marks:
                mark, is_part = name, False
            elif operation := _OPERATIONS[name]:
                if operation.computes and not is_part:
                    self._count_unseen(mark)
                    is_part = True
                if not operation.is_torchs:
                    mark, is_part = marks.open, False
        if mark != marks.end:
            counts[SWITCHED_OFF] += 1

    def _count_unseen(self, mark: str) -> None:
        """Count an operation that no function was seen to call."""
        if mark == self._marks.end:
            return
        # Where only numbers count, one that torch's modes did not see counts like any other.
        is_hidden = mark == self._marks.none and self._watch.kernels
        self._watch.counts[UNSEEN if is_hidden else CALLED_BACK] += 1


def _outside(names: Sequence[str], mark: str) -> Iterator[str]:
    """Yield the record without what ran under a mark, except where that is Python code."""
    if any(o and not o.is_torchs for o in map(_OPERATIONS.__getitem__, {*names})):
        yield from names
        return
    depths = list(itertools.accumulate(1 if name else -1 for name in names))
    place = 0
    with contextlib.suppress(ValueError):  # no more marks, or one that was never left
        while True:
            start = names.index(mark, place)
            end = depths.index(depths[start] - 1, start)
            yield from names[place:start]
            place = end + 1
    yield from names[place:]


class _Marks(NamedTuple):
    """The names of the marks that a watch leaves in torch's record."""

    seen: str  # around a function that the mode saw
    open: str  # the same, if the function can call code of the student
    end: str  # all that follows is the grader's
    none: str = ""


class _Operation(NamedTuple):
    """An operation in torch's record."""

    name: str
    computes: bool  # whether it does more than to call others or to make or move tensors
    is_torchs: bool


class _Operations(dict[str, "_Operation | None"]):
    """The operations that names in the record mean; None for all other events."""

    def __missing__(self, name: str) -> _Operation | None:
        found = _operation(name)
        if len(self) < MAX_OPERATIONS:
            self[name] = found
        return found


def _operation(name: str) -> _Operation | None:
    space, colons, operation = name.partition("::")
    if not colons or not operation or "::" in operation:  # a node of the autograd engine
        return None
    computes = name not in _composite() and operation not in MAKES_OR_MOVES
    return _Operation(operation, computes, space in OWN_OPERATIONS)


_OPERATIONS = _Operations()


class _Names(TorchFunctionMode):
    """Notes the functions that are called."""

    def __init__(self, called: set[Any]) -> None:
        super().__init__()
        self._note = called.add

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: Sequence[Any] = (), kwargs: Any = None
    ) -> Any:
        self._note(func)
        return func(*args, **(kwargs or {}))


class _Functions(TorchFunctionMode):
    """Counts the functions that are called, and marks in torch's record what they run."""

    def __init__(self, watch: OperationWatch, marks: _Marks) -> None:
        super().__init__()
        self._counts, self._kernels = watch.counts, watch.kernels
        self._note_made = watch.note_made
        self._seen, self._open = marks.seen, marks.open

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: Sequence[Any] = (), kwargs: Any = None
    ) -> Any:
        name = getattr(func, "__name__", func)
        self._counts[f"torch.{name}"] += 1
        is_plain = name not in CALLS_BACK and _are_plain(args)
        if kwargs:
            is_plain = is_plain and _are_plain(kwargs.values())
        if self._kernels or not is_plain:
            with _MARK(self._seen if is_plain else self._open):
                result = func(*args, **(kwargs or {}))
        else:
            _RECORD(False)  # what a function runs is of no interest, and recording it costs time
            try:
                result = func(*args, **(kwargs or {}))
            finally:
                _RECORD(True)
        self._note_made(result)
        return result


def _are_plain(values: Collection[Any]) -> bool:
    """Return whether no code of the student runs while torch looks at the arguments of a call."""
    return _IS_PLAIN(map(type, values)) or all(map(_is_plain, values))


def _is_plain(value: Any) -> bool:
    kind = type(value)
    if kind is slice:
        return _are_plain((value.start, value.stop, value.step))
    return kind in PLAIN_TYPES or (kind in PLAIN_CONTAINERS and _are_plain(value))


def _stacks() -> tuple[list[Any], list[Any]]:
    """Return this thread's modes for functions and for kernels."""
    functions = [_FUNCTION_AT(place) for place in range(_FUNCTIONS())]
    return functions, [_DISPATCH_AT(place) for place in range(_DISPATCHES())]


def _without_devices(modes: list[Any]) -> list[Any]:
    """Return the modes without a default device, which is one as well, beneath all others."""
    return [mode for mode in modes if not isinstance(mode, DeviceContext)]


def _same(found: list[Any], expected: list[Any]) -> bool:
    return len(found) == len(expected) and all(a is b for a, b in zip(found, expected))


@functools.cache
def _composite() -> frozenset[str]:
    """Return the operations that only call others; the others are what counts."""
    names = torch._C._dispatch_get_registrations_for_dispatch_key("CompositeImplicitAutograd")
    return frozenset(name.partition(".")[0] for name in names)


@functools.cache
def _prepare() -> None:
    """Put counting functions where torch leads past its record; once, before any student code.

    The process that workers are forked from watches calls of its own, so that nobody can keep a
    reference to what was there before.
    """
    _composite()
    torch.jit._state.disable()
    os.environ["PYTORCH_JIT"] = "0"  # torch asks both; forward derivatives compile without it
    for module, name in THREAD_STARTERS:
        if start := getattr(module, name, None):
            setattr(module, name, _counting_start(start))
    for owner in (torch._C._autograd, torch.autograd, torch.autograd.profiler_legacy):
        for name in ("_enable_record_function", "_disable_profiler_legacy"):
            if hasattr(owner, name):
                setattr(owner, name, _noticing(getattr(owner, name)))
    handle: Any = torch._C._DispatchOperatorHandle
    handle.redispatch_boxed = _naming_redispatch(handle.redispatch_boxed)
    overload: Any = OpOverload
    overload._op_dk = property(_direct_kernel, _set_direct_kernel)


def _counting_start(start: Callable[..., Any]) -> Callable[..., Any]:
    """Return `start`, a function that starts a thread, so that the thread counts too."""

    def counting_start(function: Callable[..., Any], *rest: Any, **options: Any) -> Any:
        if not _active:
            return start(function, *rest, **options)
        counting = _active[-1].in_thread()

        def counted(*args: Any, **kwargs: Any) -> Any:
            counting.start()
            try:
                return function(*args, **kwargs)
            finally:
                counting.stop()

        return start(counted, *rest, **options)

    return counting_start


def _noticing(switch: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that notes each call, and calls `switch` only if nothing is watched."""

    def noticed(*args: Any, **kwargs: Any) -> Any:
        if not _active:
            return switch(*args, **kwargs)
        _active[-1].note(SWITCHED_OFF)
        return []

    return noticed


def _naming_redispatch(redispatch: Callable[..., Any]) -> Callable[..., Any]:
    def redispatch_boxed(handle: Any, *args: Any, **kwargs: Any) -> Any:
        _note_inside(str(handle.schema().name))
        return redispatch(handle, *args, **kwargs)

    return redispatch_boxed


def _direct_kernel(operation: OpOverload[Any, Any]) -> Callable[..., Any]:
    """Return an operation's way to a kernel of a given kind, which no record shows."""
    kernel = vars(operation)["_op_dk"]

    def direct_kernel(*args: Any, **kwargs: Any) -> Any:
        _note_inside(operation._schema.name)
        return kernel(*args, **kwargs)

    return direct_kernel


def _set_direct_kernel(operation: OpOverload[Any, Any], kernel: Callable[..., Any]) -> None:
    vars(operation)["_op_dk"] = kernel


def _note_inside(name: str) -> None:
    if _active:
        _active[-1].note(KERNELS + name.partition("::")[2].partition(".")[0])


_WITHOUT_MEMORY, _WITH_MEMORY = (
    torch._C._profiler.ProfilerConfig(
        torch._C._profiler.ProfilerState.CPU,
        *(False, memory, False, False, False),
        torch._C._profiler._ExperimentalConfig(),
    )
    for memory in (False, True)
)
# What is used while student code may have replaced names of torch's modules.
_ENABLE = torch._C._autograd._enable_profiler_legacy
_DISABLE = torch._C._autograd._disable_profiler_legacy
_RECORD = torch._C._autograd._enable_record_function
_MARK = torch._C._profiler._RecordFunctionFast
_NAME, _KIND = operator.methodcaller("name"), operator.methodcaller("kind")
_BYTES = operator.methodcaller("cpu_memory_usage")  # of an allocation; negative when it is freed
_IS_PLAIN = PLAIN_TYPES.issuperset
_PLAINLY = torch._C.DisableTorchFunctionSubclass
_NUMEL, _SIZE, _ITEM_BYTES = Tensor.numel, Tensor.size, Tensor.element_size
_STORAGE = Tensor.untyped_storage
_IS_WRAPPED = torch._C._functorch.is_functorch_wrapped_tensor
_UNWRAPPED = torch._C._functorch.get_unwrapped
_FUNCTIONS, _FUNCTION_AT = torch._C._len_torch_function_stack, torch._C._get_function_stack_at
_DISPATCHES, _DISPATCH_AT = (
    torch._C._len_torch_dispatch_stack,
    torch._C._get_dispatch_stack_at,
)
_POP_FUNCTION = torch._C._pop_torch_function_stack
_POP_DISPATCH = torch._C._pop_torch_dispatch_stack
