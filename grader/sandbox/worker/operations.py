"""Counts the operations that code runs, and notices code that hides some of them.

A torch mode counts the functions that code calls by name, and its counts are compared with torch's
own record of operations, which is taken beneath such modes. Both live in the process of the code
that they watch: they notice every way around them that torch itself offers, but not code that
rewrites them.
"""

from __future__ import annotations

import _thread
import contextlib
import functools
import os
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from typing import Any

import torch
from torch import Tensor
from torch._ops import OpOverload
from torch.overrides import TorchFunctionMode

from grader.sandbox.worker.callbacks import count_callbacks, opaque
from grader.sandbox.worker.lines import LineCount
from grader.sandbox.worker.torch_modes import ModeOnTop
from grader.sandbox.worker.torch_record import MARK, Marks, TorchRecord

# What a watch reports besides `torch.*`, as names of counts.
KERNELS = "aten."  # torch's own name of an operation that ran, possibly within another one
MADE = "made."  # with its shape: the largest tensor that a function returned
PEAK = "peak.bytes"  # of tensors: the most at once, without those from before the call
ENTERED = "entered."  # with its full name in torch: a Python function that ran
RAN = "ran."  # with a place as in `lines`: the runs of it
UNSEEN = "unseen.operations"  # operations that ran while the modes were off
CALLED_BACK = "unseen.callbacks"  # operations in code that a torch function called back
SWITCHED_OFF = "unseen.watch"  # the modes, the record or the count of lines were removed
THREADS = "unseen.threads"  # threads that are older than the call, outlive it, or are hidden

# The functions that start threads, which have other names as well. `threading` uses the last one
# since Python 3.13.
THREAD_STARTERS = ("start_new_thread", "start_joinable_thread")
HIDDEN_NS = 20_000  # seconds of processor time that no thread of a call has to account for
IS_EXACT = sys.platform == "linux"  # longer where processor time is counted in long ticks
THREAD_NS = 500_000  # the most seconds that Python takes to start and end a thread
# The functions that switch on Python's hooks for lines and calls.
TRACE_SWITCHES = ("settrace", "setprofile")
# Methods that call a function for each number of a tensor.
FOR_EACH_NUMBER = {"apply_", "map_", "map2_"}
# Functions that run code not seen in any argument: hooks, or a custom function's backward.
CALLS_BACK = {"backward", "grad"}
# Types of arguments that run no code while torch looks at them, and of containers for these.
PLAIN_TYPES = {
    *(Tensor, torch.nn.Parameter, torch.nn.Buffer, torch.Size, torch.dtype, torch.device),
    *(torch.layout, torch.memory_format, torch.Generator),
    *(int, float, bool, complex, str, type(None), type(...)),
}
PLAIN_CONTAINERS = {list, tuple}
MAX_FILE = 200  # characters reported of a file's name
KERNEL_WATCHES = ("all", "memory")  # watches that count operations as well as functions

_active: list[OperationWatch | NameWatch] = []  # innermost last; threads report to that one
_own_threads = 0  # threads of the worker itself, besides the main one


def count_own_threads() -> None:
    """Count the running threads as the worker's own, which compute nothing."""
    global _own_threads
    _own_threads = _thread._count()


def _other_threads() -> int:
    return _COUNT_THREADS() - _own_threads


class OperationWatch:
    """A context manager that counts `torch.*` functions and `aten.*` operations by name.

    `counts["torch.layer_norm"]` is how often the Python function was called, `counts["aten.bmm"]`
    how often the operation ran, also within another. A function written in Python such as
    `multi_head_attention_forward` has only its `torch.*` name. `watch` is "all", "functions", which
    leaves out the operations, "memory", which adds the peak of memory to them, "work", which counts
    the lines and calls of Python beside the functions, or "", which counts nothing.

    Threads started in the block count as well. `settle` ends the counting; torch's record goes on
    until the block ends, so that an answer can be packed in the block. The report also has the
    largest tensor that a function returned: "made.2x3" is the number of bytes of each of its
    numbers. A view that holds a number in several places, such as an expanded one, does not count.
    """

    def __init__(self, watch: str = "all") -> None:
        self.counts: Counter[str] = Counter()
        self.kernels, self.memory, self.lines, self._is_off = (
            watch in KERNEL_WATCHES,
            watch == "memory",
            watch == "work",
            not watch,
        )
        self._threads = 0
        self.is_overflow = False  # whether the call ended because of too deep recursion
        self._hidden_ns = 0  # processor time that other threads took
        self._ended_ns: list[int] = []  # what they account for, each when it ends
        self._draws = False
        # Made now: what starts after a call's arguments have come may look up no name of a module.
        self._counting = None if self._is_off else _Counting(self)
        self._largest, self._made = 1, dict[str, int]()

    @property
    def reported(self) -> dict[str, int]:
        """The counts, without those for the initial weights if the call made a module."""
        if not self._draws:
            return {**self.counts, **self._made}
        kept = (KERNELS, RAN, ENTERED, SWITCHED_OFF, THREADS)
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
            self._made = {MADE + "x".join([str(n) for n in _SIZE(tensor)]): item_bytes}

    def __enter__(self) -> OperationWatch:
        if self._is_off:
            return self
        _prepare()
        _SET_THREADS(1)  # torch's own threads would take processor time as well
        self._threads = _other_threads()
        self._hidden_ns = _thread_ns() - _process_ns()  # in this order, the sum is never too large
        if self._counting is not None:
            self._counting.start()
        _active.append(self)
        return self

    def settle(self, *, draws: bool = False) -> None:
        """Stop counting calls: all following ones are the grader's own.

        `draws` says that the call made a module: it drew weights, and computed no answer.
        """
        self._draws = draws
        if self._counting is not None:
            self._counting.settle()

    def __exit__(self, kind: type[BaseException] | None, *exc: Any) -> None:
        if self._is_off:
            return
        # Python removes a trace function that it cannot call because the stack is full.
        self.is_overflow = kind is not None and issubclass(kind, RecursionError)
        _active.remove(self)
        counting, self._counting = self._counting, None
        if counting is not None:
            counting.stop()
        self._hidden_ns += _process_ns() - _thread_ns()
        excused_ns = HIDDEN_NS + sum(self._ended_ns)
        is_hidden = self._hidden_ns > excused_ns and IS_EXACT and not _own_threads
        if self._threads or _other_threads() or is_hidden:
            self.counts[THREADS] += 1

    def note(self, name: str) -> None:
        """Count something of this name."""
        self.counts[name] += 1

    def in_thread(self) -> _Counting:
        """Return the counter for another thread in the block."""
        return _Counting(self)

    def end_thread(self) -> None:
        """Note the processor time of the current thread, which ends."""
        # Not a sum, which would lose a thread if two end at the same time.
        self._ended_ns.append(_thread_ns() + THREAD_NS)


class NameWatch:
    """A context manager, for one call after the other, that notes the names of called functions.

    `reported` has the new names of the last call, each once. It costs a fifth of an
    `OperationWatch`, so that every call of code with forbidden functions can be watched; but it
    does not see operations while torch's modes are switched off, in code that torch calls back, or
    in a thread that is older than the call.
    """

    def __init__(self) -> None:
        self.reported: dict[str, int] = {}
        self._called: set[Any] = set()
        self._known: set[str] = set()
        self._mode, self._is_on = self.in_thread(), False

    def __enter__(self) -> NameWatch:
        _prepare()
        self.reported, self._is_on = {}, True
        self._called.clear()
        self._mode.start()
        _active.append(self)
        return self

    def settle(self, *, draws: bool = False) -> None:
        """Stop noting calls; `draws` says that the call made a module and computed no answer."""
        if not self._is_on:
            return
        self._is_on = False
        if not self._mode.stop():
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

    def in_thread(self) -> ModeOnTop:
        """Return the notes for a thread in the block."""
        return ModeOnTop(_Names(self._called))

    def end_thread(self) -> None:
        """Do nothing when a thread ends."""


class _Counting:
    """The mode and the record of one thread; they report to a watch."""

    def __init__(self, watch: OperationWatch) -> None:
        self._watch, self._record = watch, TorchRecord(memory=watch.memory)
        self._mode: ModeOnTop | None = ModeOnTop(_Functions(watch, self._record.marks))
        is_read = watch.lines or watch.kernels
        self._lines = LineCount("torch", lines=watch.lines) if is_read else None

    def start(self) -> None:
        if not self._record.start():
            self._watch.counts[SWITCHED_OFF] += 1
        if self._mode is not None:
            self._mode.start()
        if self._lines is not None:
            self._lines.start()

    def settle(self) -> None:
        """Remove the mode; note whether the code removed it before, or left its own modes."""
        if self._mode is None:
            return
        mode, self._mode = self._mode, None
        if self._lines is not None:
            if not self._lines.stop() and not self._watch.is_overflow:
                self._watch.counts[SWITCHED_OFF] += 1
            for (where, line), count in self._lines.counts.items():
                self._watch.counts[f"{RAN}{where[-MAX_FILE:]}:{line}"] += count
            for name in self._lines.entered:
                self._watch.counts[ENTERED + name.partition(".")[2]] += 1
        if not mode.stop():
            self._watch.counts[SWITCHED_OFF] += 1
        self._record.end()

    def stop(self) -> None:
        """End the record, and add the operations that the mode did not see."""
        self.settle()
        record, counts = self._record, self._watch.counts
        if not record.stop():
            return
        if self._watch.memory:
            counts[PEAK] = max(counts[PEAK], record.peak)
        if self._watch.kernels:
            counts.update({KERNELS + name: n for name, n in record.operations().items()})
        unseen, is_whole = record.unseen()
        for mark, count in unseen.items():
            # Without kernels, an operation that torch's modes did not see counts like any other.
            is_hidden = mark == record.marks.none and self._watch.kernels
            if mark != record.marks.end:
                counts[UNSEEN if is_hidden else CALLED_BACK] += count
        if not is_whole:
            counts[SWITCHED_OFF] += 1


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
    """Counts called functions, and marks their operations in torch's record."""

    def __init__(self, watch: OperationWatch, marks: Marks) -> None:
        super().__init__()
        self._counts, self._kernels = watch.counts, watch.kernels
        self._note_made = watch.note_made
        self._seen, self._open = marks.seen, marks.open

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: Sequence[Any] = (), kwargs: Any = None
    ) -> Any:
        name = getattr(func, "__name__", func)
        self._counts[f"torch.{name}"] += args[0].numel() if name in FOR_EACH_NUMBER else 1
        is_plain = name not in CALLS_BACK and _are_plain(args)
        if kwargs:
            is_plain = is_plain and _are_plain(kwargs.values())
        if self._kernels or not is_plain:
            with MARK(self._seen if is_plain else self._open):
                result = func(*args, **(kwargs or {}))
        else:
            _RECORD(False)  # operations inside a function do not matter, and recording costs time
            try:
                result = func(*args, **(kwargs or {}))
            finally:
                _RECORD(True)
        self._note_made(result)
        return result


def _are_plain(values: Collection[Any]) -> bool:
    """Return whether torch can look at a call's arguments without running student code."""
    return _IS_PLAIN([type(value) for value in values]) or all(_is_plain(v) for v in values)


def _is_plain(value: Any) -> bool:
    kind = type(value)
    if kind is slice:
        return _are_plain((value.start, value.stop, value.step))
    return kind in PLAIN_TYPES or (kind in PLAIN_CONTAINERS and _are_plain(value))


@functools.cache
def _prepare() -> None:
    """Replace torch's ways past its record by counting functions, before any student code.

    The process that forks workers does this too, so that no code can keep a reference to the
    original functions.
    """
    torch.jit._state.disable()
    os.environ["PYTORCH_JIT"] = "0"  # torch asks both; forward derivatives compile only without it
    count_callbacks()
    for name in TRACE_SWITCHES:
        setattr(sys, name, _noticing(getattr(sys, name)))
    _count_starts()
    for owner in (torch._C._autograd, torch.autograd, torch.autograd.profiler_legacy):
        for name in ("_enable_record_function", "_disable_profiler_legacy"):
            if hasattr(owner, name):
                setattr(owner, name, _noticing(getattr(owner, name)))
    handle: Any = torch._C._DispatchOperatorHandle
    handle.redispatch_boxed = _naming_redispatch(handle.redispatch_boxed)
    overload: Any = OpOverload
    overload._op_dk = property(_direct_kernel, _set_direct_kernel)


def _count_starts() -> None:
    """Make new threads of Python count, under any name that a module has for the start function."""
    starts = [start for name in THREAD_STARTERS if (start := getattr(_thread, name, None))]
    counting = [_counting_start(start) for start in starts]
    for module in (_thread, threading):
        for name, value in [*vars(module).items()]:
            if type(value) is type(starts[0]) and value in starts:
                setattr(module, name, counting[starts.index(value)])


def _counting_start(start: Callable[..., Any]) -> Callable[..., Any]:
    """Return `start`, a function that starts a thread, changed so that the thread counts."""

    def counting_start(function: Callable[..., Any], *rest: Any, **options: Any) -> Any:
        if not _active:
            return start(function, *rest, **options)
        watch = _active[-1]
        counting = watch.in_thread()

        def counted(*args: Any, **kwargs: Any) -> Any:
            counting.start()
            try:
                return function(*args, **kwargs)
            finally:
                counting.stop()
                watch.end_thread()

        return start(counted, *rest, **options)

    return opaque(counting_start)


def _noticing(switch: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that notes each call, and calls `switch` only if nothing is watched."""

    def noticed(*args: Any, **kwargs: Any) -> Any:
        if not _active:
            return switch(*args, **kwargs)
        _active[-1].note(SWITCHED_OFF)
        return []

    return opaque(noticed)


def _naming_redispatch(redispatch: Callable[..., Any]) -> Callable[..., Any]:
    def redispatch_boxed(handle: Any, *args: Any, **kwargs: Any) -> Any:
        _note_inside(str(handle.schema().name))
        return redispatch(handle, *args, **kwargs)

    return opaque(redispatch_boxed)


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


_RECORD = torch._C._autograd._enable_record_function
_IS_PLAIN = PLAIN_TYPES.issuperset
_SET_THREADS, _COUNT_THREADS = torch.set_num_threads, _thread._count
_process_ns, _thread_ns = time.process_time_ns, time.thread_time_ns
_PLAINLY = torch._C.DisableTorchFunctionSubclass
_NUMEL, _SIZE, _ITEM_BYTES = Tensor.numel, Tensor.size, Tensor.element_size
_STORAGE = Tensor.untyped_storage
_IS_WRAPPED = torch._C._functorch.is_functorch_wrapped_tensor
_UNWRAPPED = torch._C._functorch.get_unwrapped
