"""Counting the Python code that runs: its lines, its calls, and what C functions call back.

It counts what runs, not what torch sees, so a loop over lists of numbers counts like any other.
This module knows nothing of torch. Like every watch it lives in the process of the code that it
watches: it notices the ways of Python to get around it, not code that rewrites it.
"""

from __future__ import annotations

import builtins
import functools
import itertools
import os
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType, ModuleType
from typing import Any

Place = tuple[str, int]  # a file and a line of it, or one of the names below and 0
CODE = ""  # how much code was called: it grows for code that is made for each size
CALLED_BACK = "in C"  # calls of C functions by C functions, such as `map(math.sin, xs)`
MAX_PLACES = 4096  # that are counted; code that runs in more of them is made in a loop

HOMES = (
    *(home + os.sep for home in (sys.prefix, sys.base_prefix)),
    *(os.path.realpath(home) + os.sep for home in (sys.prefix, sys.base_prefix)),
    *(str(Path(__file__).parents[2]) + os.sep, "<frozen "),
)
# What takes a function and calls it for each element, with the place and the name of the function.
CALLING_BACK: tuple[tuple[ModuleType, tuple[str, ...], int, str], ...] = (
    (builtins, ("map", "filter"), 0, ""),
    (itertools, ("starmap", "filterfalse", "takewhile", "dropwhile"), 0, ""),
    (itertools, ("accumulate",), 1, "func"),
    (itertools, ("groupby",), 1, "key"),
)
NUMPYS = ("frompyfunc", "apply_along_axis", "apply_over_axes")


class LineCount:
    """What one thread runs between `start` and `stop`, by place.

    Code of installed packages does not count, but what it calls does.
    """

    def __init__(self) -> None:
        self.counts: dict[Place, int] = {}
        self._tracer: Any = None
        self._open = 0  # frames whose lines are counted, and which have not ended
        self._is_whole = True

    def start(self) -> None:
        """Begin to count, unless somebody debugs: in a worker, no hook outlives a request."""
        if _GET_TRACE() is None:
            self._tracer = self._on_call()
            _SET_TRACE(self._tracer)

    def stop(self) -> bool:
        """Stop counting; return False if the code switched off the counting of some line."""
        if self._tracer is None:
            return True
        is_on = _GET_TRACE() is self._tracer
        _SET_TRACE(None)
        return is_on and self._is_whole and not self._open

    def _on_call(self) -> Callable[[FrameType, str, Any], Any]:
        """Return the function that Python calls for each frame."""
        counts = self.counts
        known = counts.get

        def on_line(frame: FrameType, event: str, _: Any) -> Any:
            if event == "line":
                place = frame.f_code.co_filename, frame.f_lineno
                if (count := known(place)) is not None or len(counts) < MAX_PLACES:
                    counts[place] = (count or 0) + 1
            elif event == "return":
                self._open -= 1
                self._is_whole = self._is_whole and frame.f_trace_lines
            return on_line

        def on_call(frame: FrameType, event: str, _: Any) -> Any:
            code = frame.f_code
            # Only code that a program has loaded or made has builtins of its own.
            if _IS_INSTALLED[code.co_filename] and frame.f_builtins is _BUILTINS:
                if code is _CALLED:
                    counts[CALLED_BACK, 0] = known((CALLED_BACK, 0), 0) + 1
                return None
            counts[CODE, 0] = known((CODE, 0), 0) + len(code.co_code)
            self._open += 1
            return on_line

        return on_call


class _Installed(dict[str, bool]):
    """Whether a file is one of Python, of an installed package or of the grader."""

    def __missing__(self, file: str) -> bool:
        found = file.startswith(HOMES)
        if len(self) < MAX_PLACES:
            self[file] = found
        return found


def _seen(function: Any) -> Any:
    """Return a function whose calls are counted, whatever calls it."""
    if not callable(function):
        return function

    def called(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    return called


_CALLED = _seen(len).__code__


def count_callbacks() -> None:
    """Let the C functions that call a function for each element be seen; before any student code.

    Python tells of no call that one C function makes of another.
    """
    for module, names, place, keyword in CALLING_BACK:
        for name in names:
            setattr(module, name, _calling_back(getattr(module, name), place, keyword))
    reduce: Any = functools.reduce
    # torch compares the signature with its own unless it is this one.
    functools.reduce = lambda *args, **kwargs: reduce(*map(_seen, args[:1]), *args[1:], **kwargs)
    for name, module in list(sys.modules.items()):
        for function in NUMPYS if name.partition(".")[0] == "numpy" else ():
            if function in vars(module):
                setattr(module, function, _taking(getattr(module, function)))


def _calling_back(kind: type, place: int, keyword: str) -> type:
    """Return a type of iterators whose function is seen."""

    def new(cls: type, *args: Any, **kwargs: Any) -> Any:
        given = list(args)
        given[place : place + 1] = [_seen(each) for each in given[place : place + 1]]
        if keyword in kwargs:
            kwargs[keyword] = _seen(kwargs[keyword])
        return kind.__new__(cls, *given, **kwargs)

    return type(kind.__name__, (kind,), {"__new__": new, "__module__": kind.__module__})


def _taking(function: Any) -> Any:
    """Return a function whose first argument is seen when it is called."""
    return lambda called, *args, **kwargs: function(_seen(called), *args, **kwargs)


_GET_TRACE, _SET_TRACE = sys.gettrace, sys.settrace
_BUILTINS = vars(builtins)
_IS_INSTALLED = _Installed()
