"""The messages between the grader and a process that runs the code of an untrusted course.

Messages from that process are limited in bytes and decoded into these types only.
Imports no torch.
"""

from __future__ import annotations

import msgspec

from grader.errors import CourseError, GraderError, RequestError
from grader.sandbox.confinement.limits import Confinement
from grader.sandbox.control import Ended
from grader.submissions.submission import Submission

MAX_MESSAGE = 4 * 1024**2  # bytes of one that the process sends, and 25 times that as objects

# --- to the process -------------------------------------------------------------------------------


class ConfinedSetup(msgspec.Struct, frozen=True):
    """The confinement, the private folder to make for it, and the course to grade with."""

    confinement: Confinement
    private: str
    course: str
    chosen: str
    names: tuple[str, ...]  # of the exercises


class Grade(msgspec.Struct, tag="grade", frozen=True):
    """An order to grade exercises of a submission."""

    submission: Submission
    names: tuple[str, ...]
    seed: int


class WorkerStarted(msgspec.Struct, tag="started", frozen=True):
    """A worker has been started; its socket follows."""

    pid: int
    family: int


class WorkerEnded(msgspec.Struct, tag="ended", frozen=True):
    """How a worker ended, if known."""

    how: Ended | None


class Done(msgspec.Struct, tag="done", frozen=True):
    """The request is done."""


# --- from the process -----------------------------------------------------------------------------


class Confined(msgspec.Struct, tag="confined", frozen=True):
    """The process is confined, and waits for a `Done` before it reads the course."""


class StartWorker(msgspec.Struct, tag="worker", frozen=True):
    """Start a worker. The answer is a `WorkerStarted`."""


class InterruptWorker(msgspec.Struct, tag="interrupt", frozen=True):
    """Make a worker report where its code is. The answer is a `Done`."""

    pid: int


class ReapWorker(msgspec.Struct, tag="reap", frozen=True):
    """End a worker. The answer is a `WorkerEnded`."""

    pid: int
    grace: float


class PrepareTraining(msgspec.Struct, tag="prepare", frozen=True):
    """The next workers train. No answer."""


class Note(msgspec.Struct, tag="note", frozen=True):
    """The exercise that is graded now, or its progress. No answer."""

    name: str
    text: str


class Graded(msgspec.Struct, tag="graded", frozen=True):
    """The report that was ordered, as JSON."""

    report: bytes


class CourseFailed(msgspec.Struct, tag="failed", frozen=True):
    """Grading with the course is impossible: the message and the remedy of the error."""

    kind: str
    message: str
    remedy: str

    @classmethod
    def of(cls, error: GraderError) -> CourseFailed:
        """Return an error as a message."""
        return cls(type(error).__name__, error.message, error.remedy)

    def to_error(self) -> GraderError:
        """Return the message as an error."""
        kind = RequestError if self.kind == RequestError.__name__ else CourseError
        return kind(self.message, self.remedy)


Request = StartWorker | InterruptWorker | ReapWorker | PrepareTraining | Note
FromProcess = Request | Confined | Graded | CourseFailed
ToProcess = Grade | WorkerStarted | WorkerEnded | Done

encode = msgspec.msgpack.Encoder().encode
decode_setup = msgspec.msgpack.Decoder(ConfinedSetup).decode
decode_order = msgspec.msgpack.Decoder(ToProcess).decode
decode_message = msgspec.msgpack.Decoder(FromProcess).decode
