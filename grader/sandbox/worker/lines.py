"""Counts the Python code that runs: lines, calls, and functions of packages.

It counts running code, not torch's operations, so a loop over lists of numbers counts like any
other. Like every watch, it lives in the process of the code that it watches: it notices Python's
own ways around it, but not code that rewrites it.
"""

from __future__ import annotations

import builtins
import os
import sys
from collections.abc import Callable
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

from grader.sandbox import wire
from grader.sandbox.program import is_stand_in
from grader.sandbox.worker.callbacks import CALLED

Place = tuple[str, int]  # a file and a line, or one of the names below and 0
CODE = ""  # bytes of called code: they grow if code is generated for each size
CALLED_BACK = "in C"  # calls by C functions of C functions, such as `map(math.sin, xs)`
MAX_PLACES = 4096  # places that are counted; code with more of them is generated in a loop
MAX_CODES = 4096  # remembered functions of packages
MAX_NAME = 200  # characters of the name of a function
# Modules that call functions of a package to load another one, or on tensors without numbers, as
# torch's compiler does.
NOT_RUN_FOR_ITSELF = {"importlib._bootstrap", "_frozen_importlib", "torch._subclasses.fake_tensor"}

HOMES = (
    *(home + os.sep for home in (sys.prefix, sys.base_prefix)),
    *(os.path.realpath(home) + os.sep for home in (sys.prefix, sys.base_prefix)),
    *(str(Path(__file__).parents[2]) + os.sep, "<frozen "),
)


class LineCount:
    """The code that one thread runs between `start` and `stop`, by place.

    Code of installed packages does not count, but the code that it calls does; `entered` has the
    names of package functions that the student's own code led to, if they start with `package`.
    Without `lines`, only these are noted.
    """

    def __init__(self, package: str, *, lines: bool = True) -> None:
        self.counts: dict[Place, int] = {}
        self.entered: set[str] = set()
        self._package, self._has_lines = package, lines
        self._known: dict[int, CodeType] = {}  # by id, which is valid as long as the code is kept
        self._tracer: Any = None
        self._open = 0  # running frames whose lines are counted
        self._is_whole = True

    def start(self) -> None:
        """Begin to count, unless a debugger is active; in a worker, no hook outlives a request."""
        if _GET_TRACE() is None:
            self._tracer = self._on_call()
            _SET_TRACE(self._tracer)

    def stop(self) -> bool:
        """Stop counting; return False if the code switched off some of the counting."""
        if self._tracer is None:
            return True
        is_on = _GET_TRACE() is self._tracer
        _SET_TRACE(None)
        return is_on and self._is_whole and not self._open

    def _on_call(self) -> Callable[[FrameType, str, Any], Any]:
        """Return the function that Python calls for each frame."""
        counts, has_lines, entered = self.counts, self._has_lines, self._known
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
            # Only code that a program has loaded or generated has its own builtins.
            if _IS_INSTALLED[code.co_filename] and _IS_OURS(id(frame.f_builtins)):
                if code is CALLED:
                    counts[CALLED_BACK, 0] = known((CALLED_BACK, 0), 0) + 1
                elif id(code) not in entered:
                    self._enter(frame, code)
                return None
            if not has_lines:
                return None
            counts[CODE, 0] = known((CODE, 0), 0) + len(code.co_code)
            self._open += 1
            return on_line

        return on_call

    def _enter(self, frame: FrameType, code: CodeType) -> None:
        """Note a function of a package, unless it runs for a stand-in, or while a module loads."""
        module = frame.f_globals.get("__name__")
        if type(module) is str and module.partition(".")[0] == self._package:
            caller = frame.f_back
            while caller is not None and _IS_INSTALLED[caller.f_code.co_filename]:
                if caller.f_globals.get("__name__") in NOT_RUN_FOR_ITSELF:
                    return
                caller = caller.f_back
            if caller is not None and is_stand_in(caller.f_code):
                return
            self.entered.add(f"{module}.{code.co_qualname}"[:MAX_NAME])
        if len(self._known) < MAX_CODES:
            self._known[id(code)] = code


class _Installed(dict[str, bool]):
    """Whether a file belongs to Python, to an installed package or to the grader."""

    def __missing__(self, file: str) -> bool:
        found = file.startswith(HOMES)
        if len(self) < MAX_PLACES:
            self[file] = found
        return found


_GET_TRACE, _SET_TRACE = sys.gettrace, sys.settrace
_IS_OURS = {id(vars(builtins)), id(wire.BUILTINS)}.__contains__
_IS_INSTALLED = _Installed()
