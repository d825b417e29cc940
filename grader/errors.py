"""Every error the grader raises on purpose.

GraderError                the command stops; the message says what, where and what fixes it
├── RequestError           the request is wrong: bad path, unknown name, unreadable file (exit 2)
├── CourseError            the course's own content is wrong, named by file (exit 2)
└── InternalError          the grader itself failed (exit 3)
    └── WorkerLost         a worker ended or stood still, and the student's code is not to blame
CheckFailure               a test's verdict on the student's code, raised inside a suite
├── Mismatch               a value breaks the contract (with the difference)
│   └── NothingRaised      a call succeeded that the contract says is refused
└── StudentFailure         the student's code raised, hung, crashed or broke the protocol
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from grader.report import Difference, Frame


class GraderError(Exception):
    """A failure for the user to read; `remedy` is the command or the edit that fixes it."""

    exit_code = 3

    def __init__(self, message: str, remedy: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.remedy = remedy


class RequestError(GraderError):
    """The request cannot be carried out: a bad path, an unknown name, an unreadable file."""

    exit_code = 2


class CourseError(GraderError):
    """The course's content breaks its own rules; the message names the file."""

    exit_code = 2


class InternalError(GraderError):
    """The grader itself failed: the zygote does not start, or pytest cannot collect a suite."""


class WorkerLost(InternalError):
    """A worker was ended or stopped from outside, by neither the grader nor the student's code."""


class CheckFailure(AssertionError):
    """A verdict on the student's code, in words for the student."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class Mismatch(CheckFailure):
    """A value differs from what the contract says; `difference`, if given, shows how."""

    def __init__(self, message: str, difference: Difference | None = None) -> None:
        super().__init__(message)
        self.difference = difference


class NothingRaised(Mismatch):
    """A call succeeded although the contract says that it raises an exception."""


class StudentFailure(CheckFailure):
    """The student's code raised, hung, crashed or broke the protocol.

    The error crosses the boundary as text: `kind` is the name of the student's exception type (or
    `Timeout`, `Crash`, `Protocol`), `mro` the names of the type and its bases, `frames` the places
    in the student's own files, innermost last. `called` is the failed call in one line. For a
    watched call, `operations` counts what ran before the failure.
    """

    loading = False  # whether the failure happened while the student's file was loaded
    called = ""
    printed = ""  # the output of code that did not finish
    operations: Mapping[str, int] = {}

    def __init__(
        self, kind: str, message: str, frames: tuple[Frame, ...] = (), mro: tuple[str, ...] = ()
    ) -> None:
        super().__init__(message)
        self.kind, self.frames, self.mro = kind, frames, mro

    def copy(self) -> StudentFailure:
        """Return a copy without traceback, to raise the same failure in another test."""
        failure = StudentFailure(self.kind, self.message, self.frames, self.mro)
        failure.loading = self.loading
        return failure


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return "; did you mean `x`?" for the closest known name, or nothing if none is close."""
    close = difflib.get_close_matches(name, list(known), 1, cutoff=0.5)
    return f"; did you mean `{close[0]}`?" if close else ""
