"""Every error the grader raises on purpose.

GraderError                the command stops; the message says what, where and what mends it
├── RequestError           the request is wrong: bad path, unknown name, unreadable file (exit 2)
├── CourseError            the course's own content is wrong, named by file (exit 2)
└── InternalError          the grader itself failed (exit 3)
CheckFailure               a test's verdict on the student's code, raised inside a suite
├── Mismatch               a value is not what the contract says (with the difference)
└── StudentFailure         the student's code raised, hung, crashed or spoke nonsense
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from grader.report import Difference, Frame


class GraderError(Exception):
    """A failure the user should read; `remedy` is the command or edit that mends it."""

    exit_code = 3

    def __init__(self, message: str, remedy: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.remedy = remedy


class RequestError(GraderError):
    """What was asked for cannot be done: a bad path, an unknown name, an unreadable file."""

    exit_code = 2


class CourseError(GraderError):
    """The course's content breaks its own rules; the message names the file."""

    exit_code = 2


class InternalError(GraderError):
    """The grader itself failed: a zygote that does not start, a suite that does not collect."""

    exit_code = 3


class CheckFailure(AssertionError):
    """A verdict on the student's code, in words meant for the student."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class Mismatch(CheckFailure):
    """A value differs from what the contract says; `difference` says how, where there is one."""

    def __init__(self, message: str, difference: Difference | None = None) -> None:
        super().__init__(message)
        self.difference = difference


class StudentFailure(CheckFailure):
    """The student's code raised, hung, crashed or answered nonsense.

    The error crosses the boundary as text: `kind` is the name of the student's exception type (or
    `Timeout`, `Crash`, `Protocol`), `mro` the names of its base types, `frames` the places in the
    student's own files, innermost last. `called` says which call it was, in one line;
    `operations` what ran before it failed, where the call was watched.
    """

    loading = False  # whether the student's file could not even be loaded
    called = ""
    operations: Mapping[str, int] = {}

    def __init__(
        self,
        kind: str,
        message: str,
        frames: tuple[Frame, ...] = (),
        mro: tuple[str, ...] = (),
    ) -> None:
        super().__init__(message)
        self.kind = kind
        self.frames = frames
        self.mro = mro

    def again(self) -> StudentFailure:
        """The same failure, to be raised anew."""
        failure = StudentFailure(self.kind, self.message, self.frames, self.mro)
        failure.loading = self.loading
        return failure
