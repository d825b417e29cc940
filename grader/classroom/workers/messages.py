"""The messages to and from grading processes; no student's code has access to either end."""

from __future__ import annotations

import socket
from collections.abc import Callable
from pathlib import Path

import msgspec

from grader.errors import GraderError, InternalError, RequestError
from grader.processes import channel
from grader.report import ExerciseResult
from grader.sandbox.confinement.limits import Isolation
from grader.submissions.submission import Submission


class Setup(msgspec.Struct, frozen=True):
    """An order to warm up for a course, or a list of it, with this hash."""

    course: Path
    chosen: str
    hash: str
    isolation: Isolation


class ForkOrder(msgspec.Struct, frozen=True):
    """An order to fork a grading process, which keeps to `core`; its socket comes along."""

    core: int | None = None


class Job(msgspec.Struct, frozen=True):
    """An order to grade exercises of a submission; `tries` counts the processes lost over it.

    `seed` is the seed of the submission's epoch, `naming_seed` that of the cases that compare
    unnamed mistakes.
    """

    submission: Submission
    names: tuple[str, ...]
    seed: int
    tries: int = 0
    naming_seed: int | None = None


class GradedJob(msgspec.Struct, frozen=True, tag="graded"):
    """The results of a job's exercises as JSON, and the seconds that they took."""

    results: dict[str, bytes]
    confinement: tuple[str, ...]
    seconds: float


class Failed(msgspec.Struct, frozen=True, tag="failed"):
    """The grader cannot grade, whatever the submission: the message and remedy of its error."""

    exit_code: int
    message: str
    remedy: str

    @classmethod
    def of(cls, error: GraderError) -> Failed:
        """Return an error as a message."""
        return cls(error.exit_code, error.message, error.remedy)

    def to_error(self) -> GraderError:
        """Return the message as an error."""
        kind = RequestError if self.exit_code == RequestError.exit_code else InternalError
        return kind(self.message, self.remedy)


class Ready(msgspec.Struct, frozen=True, tag="ready"):
    """The template process is warm, or a grading process has been forked: its pid."""

    pid: int


class Lost(msgspec.Struct, frozen=True, tag="lost"):
    """The grading process ended before it had graded a job."""

    why: str


Answer = GradedJob | Lost
encode_result = msgspec.json.Encoder().encode
_decode_any_result = msgspec.json.Decoder(ExerciseResult).decode
encode = msgspec.msgpack.Encoder(enc_hook=str).encode
decode_setup = msgspec.msgpack.Decoder(Setup, dec_hook=lambda kind, text: kind(text)).decode
decode_order = msgspec.msgpack.Decoder(ForkOrder).decode
decode_job = msgspec.msgpack.Decoder(Job).decode
decode_answer: Callable[[bytes], Answer | Failed] = msgspec.msgpack.Decoder(Answer | Failed).decode
decode_ready: Callable[[bytes], Ready | Failed] = msgspec.msgpack.Decoder(Ready | Failed).decode


def decode_result(name: str, data: bytes) -> ExerciseResult:
    """Return the result of the exercise `name`.

    Raises `ValueError` if it is another exercise's, and `msgspec.DecodeError` if it is none.
    """
    result = _decode_any_result(data)
    if result.name != name:
        raise ValueError(f"the result of {name} is that of {result.name}")
    return result


def send(
    connection: socket.socket, message: msgspec.Struct, passed: socket.socket | None = None
) -> None:
    """Send one message."""
    channel.send(connection, encode(message), passed)
