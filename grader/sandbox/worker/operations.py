"""Counting the operations that code runs, and noticing code that hides some of them.

A mode of torch counts what code calls by name, and torch's own record of operations, which lies
beneath such modes, is compared with what it saw. Both live in the process of the code that they
watch: they notice every way of torch itself to get around them, not code that rewrites them.
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

# What a watch tells besides `torch.*`, as names of counts.
KERNELS = "aten."  # torch's own name of an operation that ran, also within another
MADE = "made."  # with its shape: the largest tensor that a function returned
PEAK = "peak.bytes"  # of tensors, the most at once beyond those from before the call
ENTERED = "entered."  # with the full name in torch: a function written in Python that ran
RAN = "ran."  # with a place as in `lines`: how often it ran
UNSEEN = "unseen.operations"  # operations that ran where the modes were switched off
CALLED_BACK = "unseen.callbacks"  # operations in code that a torch function called
SWITCHED_OFF = "unseen.watch"  # the modes, the record or the count of lines were taken away
THREADS = "unseen.threads"  # threads that are older than the call, outlive it, or are hidden

# The functions that start threads. `threading` uses the last one since Python 3.13. They have other
# names as well.
THREAD_STARTERS = ("start_new_thread", "start_joinable_thread")
HIDDEN_NS = 20_000  # of processor time that the threads of a call need not account for
IS_EXACT = sys.platform == "linux"  # elsewhere processor time is counted in long ticks
THREAD_NS = 500_000  # of it, at most, that Python takes to start and end a thread
# The functions that switch on what Python calls for lines and calls.
TRACE_SWITCHES = ("settrace", "setprofile")
# Methods that call a function for each number of a tensor.
FOR_EACH_NUMBER = {"apply_", "map_", "map2_"}
# Functions that run code which no argument shows: hooks, or the backward of somebody's function.
CALLS_BACK = {"backward", "grad"}
# Arguments that run no code of their own while torch looks at them, and what holds such arguments.
PLAIN_TYPES = {
    *(Tensor, torch.nn.Parameter, torch.nn.Buffer, torch.Size, torch.dtype, torch.device),
    *(torch.layout, torch.memory_format, torch.Generator),
    *(int, float, bool, complex, str, type(None), type(...)),
}
PLAIN_CONTAINERS = {list, tuple}
MAX_FILE = 200  # characters of the name of a file that are told
KERNEL_WATCHES = ("all", "memory")  # those that count operations as well as functions

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
    leaves out the operations, "memory", which adds the peak of memory to them, "work", which counts
    the lines and calls of Python beside the functions, or "", which counts nothing.

    Threads started in the block count as well. `settle` ends the counting; until the block ends,
    torch's record still names what runs, so that an answer can be packed in the block. What is
    reported holds the largest tensor that a function returned, too: "made.2x3" is the number of
    bytes of each of its numbers. A view that holds a number in several places, such as an expanded
    one, does not count.
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
        self.is_overflow = False  # whether the call ended because it called too deep
        self._hidden_ns = self._excused_ns = 0  # of processor time that other threads took
        self._draws = False
        self._counting: _Counting | None = None
        self._largest, self._made = 1, dict[str, int]()

    @property
    def reported(self) -> dict[str, int]:
        """The counts; of a call that made a module, all but those of drawing its weights."""
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
        _SET_THREADS(1)  # of torch's own, which would take time of the processor as well
        self._threads = _other_threads()
        self._excused_ns = HIDDEN_NS
        self._hidden_ns = _thread_ns() - _process_ns()  # in this order, never too much in the end
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

    def __exit__(self, kind: type[BaseException] | None, *exc: Any) -> None:
        if self._is_off:
            return
        # Python drops a trace that cannot be called for lack of stack.
        self.is_overflow = kind is not None and issubclass(kind, RecursionError)
        _active.remove(self)
        counting, self._counting = self._counting, None
        if counting is not None:
            counting.stop()
        self._hidden_ns += _process_ns() - _thread_ns()
        is_hidden = self._hidden_ns > self._excused_ns and IS_EXACT and not _own_threads
        if self._threads or _other_threads() or is_hidden:
            self.counts[THREADS] += 1

    def note(self, name: str) -> None:
        """Count something of this name."""
        self.counts[name] += 1

    def in_thread(self) -> _Counting:
        """Return what counts the operations of another thread in the block."""
        return _Counting(self)

    def end_thread(self) -> None:
        """Note the processor time of the present thread, which ends."""
        self._excused_ns += _thread_ns() + THREAD_NS


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
        self._mode: ModeOnTop | None = None

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

    def in_thread(self) -> ModeOnTop:
        """Return what notes the calls of a thread in the block."""
        return ModeOnTop(_Names(self._called))

    def end_thread(self) -> None:
        """Note nothing of a thread that ends."""


class _Counting:
    """The mode and the record of one thread; they report to a watch."""

    def __init__(self, watch: OperationWatch) -> None:
        self._watch, self._record = watch, TorchRecord(memory=watch.memory)
        self._mode: ModeOnTop | None = None
        is_read = watch.lines or watch.kernels
        self._lines = LineCount("torch", lines=watch.lines) if is_read else None

    def start(self) -> None:
        if not self._record.start():
            self._watch.counts[SWITCHED_OFF] += 1
        self._mode = ModeOnTop(_Functions(self._watch, self._record.marks))
        self._mode.start()
        if self._lines is not None:
            self._lines.start()

    def settle(self) -> None:
        """Take the mode off; note whether somebody else did, or left modes of their own."""
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
        """End the record and add what it shows beyond the mode."""
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
            # Where only numbers count, one that torch's modes did not see counts like any other.
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
    """Counts the functions that are called, and marks in torch's record what they run."""

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
            _RECORD(False)  # what a function runs is of no interest, and recording it costs time
            try:
                result = func(*args, **(kwargs or {}))
            finally:
                _RECORD(True)
        self._note_made(result)
        return result


def _are_plain(values: Collection[Any]) -> bool:
    """Return whether no code of the student runs while torch looks at the arguments of a call."""
    return _IS_PLAIN([type(value) for value in values]) or all(_is_plain(v) for v in values)


def _is_plain(value: Any) -> bool:
    kind = type(value)
    if kind is slice:
        return _are_plain((value.start, value.stop, value.step))
    return kind in PLAIN_TYPES or (kind in PLAIN_CONTAINERS and _are_plain(value))


@functools.cache
def _prepare() -> None:
    """Put counting functions where torch leads past its record; once, before any student code.

    The process that workers are forked from watches calls of its own, so that nobody can keep a
    reference to what was there before.
    """
    torch.jit._state.disable()
    os.environ["PYTORCH_JIT"] = "0"  # torch asks both; forward derivatives compile without it
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
    """Let the threads that Python starts count, under whatever name a module has the starter."""
    starts = [start for name in THREAD_STARTERS if (start := getattr(_thread, name, None))]
    counting = [_counting_start(start) for start in starts]
    for module in (_thread, threading):
        for name, value in [*vars(module).items()]:
            if type(value) is type(starts[0]) and value in starts:
                setattr(module, name, counting[starts.index(value)])


def _counting_start(start: Callable[..., Any]) -> Callable[..., Any]:
    """Return `start`, a function that starts a thread, so that the thread counts too."""

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
_MARK = torch._C._profiler._RecordFunctionFast
_IS_PLAIN = PLAIN_TYPES.issuperset
_SET_THREADS = torch.set_num_threads
_process_ns, _thread_ns = time.process_time_ns, time.thread_time_ns
_PLAINLY = torch._C.DisableTorchFunctionSubclass
_NUMEL, _SIZE, _ITEM_BYTES = Tensor.numel, Tensor.size, Tensor.element_size
_STORAGE = Tensor.untyped_storage
_IS_WRAPPED = torch._C._functorch.is_functorch_wrapped_tensor
_UNWRAPPED = torch._C._functorch.get_unwrapped
