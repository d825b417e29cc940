"""torch's own record of the operations that run, which lies beneath its modes."""

from __future__ import annotations

import contextlib
import gc
import itertools
import operator
import secrets
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import torch

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
# Operations that only call others, which count instead.
COMPOSITE = frozenset(
    name.partition(".")[0]
    for name in torch._C._dispatch_get_registrations_for_dispatch_key("CompositeImplicitAutograd")
)
OWN_OPERATIONS = ("aten", "prims", "prim", "profiler")  # other namespaces run Python code
MAX_OPERATIONS = 4096  # remembered names of operations


class Marks(NamedTuple):
    """The names of the marks that are left in torch's record."""

    seen: str  # around a function that the mode saw
    open: str  # the same, if the function can call code of the student
    end: str  # all following operations are the grader's
    none: str = ""


class TorchRecord:
    """What one thread runs between `start` and `stop`, with marks around parts of it."""

    def __init__(self, *, memory: bool) -> None:
        token = secrets.token_hex(8)
        self.marks = Marks(f"seen {token}", f"open {token}", f"end {token}")
        self.peak = 0  # the most bytes of tensors at once, without those from before
        self._end = MARK(self.marks.end)  # entered, and not left within the record
        self._memory, self._names, self._is_on = memory, list[str](), False
        self._collects_garbage = memory and _COLLECTS()

    def start(self) -> bool:
        """Start the record; return False if another one is running already."""
        try:
            _ENABLE(_WITH_MEMORY if self._memory else _WITHOUT_MEMORY)
        except RuntimeError:
            return False
        self._is_on = True
        if self._collects_garbage:  # else tensors of earlier calls are freed, as if of this one
            _STOP_COLLECTING()
        return True

    def end(self) -> None:
        """Mark all following operations as the grader's."""
        self._end.__enter__()

    def stop(self) -> bool:
        """Stop recording; return whether there is a record to read."""
        if not self._is_on:
            return False
        if self._collects_garbage:
            _COLLECT()
        try:
            events = list(itertools.chain.from_iterable(_DISABLE()))
        except RuntimeError:
            events = []
        if self._memory:
            events = self._without_memory(events)
        self._names = list(map(_NAME, events))
        return True

    def operations(self) -> Counter[str]:
        """Return how often each operation ran, possibly within another one."""
        found = Counter[str]()
        for name, count in Counter(self._names).items():
            if operation := _OPERATIONS[name]:
                found[operation.name] += count
        return found

    def unseen(self) -> tuple[Counter[str], bool]:
        """Return, for each mark, the number of computing operations that no seen function called.

        The second value says whether the record is whole, that is, ends after `end`.
        """
        marks, found = self.marks, Counter[str]()
        # The mark over the running operation, and whether it is part of one that counts.
        mark, is_part = marks.none, False
        above: list[tuple[str, bool]] = []
        for name in _outside(self._names, marks.seen):
            if not name:  # the end of an operation
                if above:
                    mark, is_part = above.pop()
                continue
            above.append((mark, is_part))
            if name in marks:
                mark, is_part = name, False
            elif operation := _OPERATIONS[name]:
                if operation.computes and not is_part:
                    found[mark] += 1
                    is_part = True
                if not operation.is_torchs:
                    mark, is_part = marks.open, False
        return found, mark == marks.end

    def _without_memory(self, events: Sequence[Any]) -> list[Any]:
        """Note the peak of the memory that the code needed; return the events of operations."""
        operations, changes, is_over = [], [0], False
        for event in events:
            if _KIND(event) != "memory_alloc":
                operations.append(event)
                is_over = is_over or _NAME(event) == self.marks.end  # packing the answer follows
            elif not is_over:
                changes.append(_BYTES(event))
        self.peak = max(itertools.accumulate(changes))
        return operations


def _outside(names: Sequence[str], mark: str) -> Iterator[str]:
    """Yield the record without the operations under a mark, except those of Python code."""
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


class _Operation(NamedTuple):
    """An operation in torch's record."""

    name: str
    computes: bool  # whether it does more than call others, or make or move tensors
    is_torchs: bool


class _Operations(dict[str, "_Operation | None"]):
    """The operations for names in the record; None for all other events."""

    def __missing__(self, name: str) -> _Operation | None:
        found = _operation(name)
        if len(self) < MAX_OPERATIONS:
            self[name] = found
        return found


def _operation(name: str) -> _Operation | None:
    space, colons, operation = name.partition("::")
    if not colons or not operation or "::" in operation:  # a node of the autograd engine
        return None
    computes = name not in COMPOSITE and operation not in MAKES_OR_MOVES
    return _Operation(operation, computes, space in OWN_OPERATIONS)


_OPERATIONS = _Operations()


_WITHOUT_MEMORY, _WITH_MEMORY = (
    torch._C._profiler.ProfilerConfig(
        torch._C._profiler.ProfilerState.CPU,
        *(False, memory, False, False, False),
        torch._C._profiler._ExperimentalConfig(),
    )
    for memory in (False, True)
)
# Kept from before student code runs, because it may replace names of torch's modules.
_COLLECTS, _STOP_COLLECTING, _COLLECT = gc.isenabled, gc.disable, gc.enable
_ENABLE = torch._C._autograd._enable_profiler_legacy
_DISABLE = torch._C._autograd._disable_profiler_legacy
MARK = torch._C._profiler._RecordFunctionFast
_NAME, _KIND = operator.methodcaller("name"), operator.methodcaller("kind")
_BYTES = operator.methodcaller("cpu_memory_usage")  # of an allocation; negative when freed
