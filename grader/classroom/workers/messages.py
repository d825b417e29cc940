"""What a batch asks of its slots, and what they answer: messages, and how they cross.

Both ends are the trusted side's: what crosses here was never in reach of a student's code.
"""

from __future__ import annotations

from multiprocessing.connection import Connection
from pathlib import Path

import msgspec

from grader.errors import GraderError, InternalError, RequestError
from grader.report import ExerciseResult
from grader.sandbox.confinement.layers import Isolation
from grader.submissions.submission import Submission


class Setup(msgspec.Struct, frozen=True):
    """What a nursery warms up: a course, as long as it has this hash, and how far student code is
    kept from the machine.
    """

    course: Path
    hash: str
    isolation: Isolation


class Order(msgspec.Struct, frozen=True):
    """Fork a slot; its socket comes along. With a `core`, it keeps to that one."""

    core: int | None = None


class Job(msgspec.Struct, frozen=True):
    """Grade the exercises `names` of a submission; `tries` that have cost a slot came before."""

    submission: Submission
    names: tuple[str, ...]
    seed: int
    tries: int = 0


class Graded(msgspec.Struct, frozen=True, tag="graded"):
    """What was found of each exercise of a job, as JSON, and how many seconds it took."""

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
        """The error as a message."""
        return cls(error.exit_code, error.message, error.remedy)

    def raised(self) -> GraderError:
        """The message as an error."""
        kind = RequestError if self.exit_code == RequestError.exit_code else InternalError
        return kind(self.message, self.remedy)


class Ready(msgspec.Struct, frozen=True, tag="ready"):
    """The nursery is warm, or a slot has been forked: its process."""

    pid: int


class Lost(msgspec.Struct, frozen=True, tag="lost"):
    """The slot ended before it had graded a job."""

    why: str


Answer = Graded | Lost
MAX_ORDER = 64  # bytes
encode_result = msgspec.json.Encoder().encode
decode_result = msgspec.json.Decoder(ExerciseResult).decode
encode = msgspec.msgpack.Encoder(enc_hook=str).encode
decode_setup = msgspec.msgpack.Decoder(Setup, dec_hook=lambda kind, text: kind(text)).decode
decode_order = msgspec.msgpack.Decoder(Order).decode
decode_job = msgspec.msgpack.Decoder(Job).decode
_told: msgspec.msgpack.Decoder[Graded | Failed] = msgspec.msgpack.Decoder(Graded | Failed)
_answer: msgspec.msgpack.Decoder[Graded | Failed | Lost] = msgspec.msgpack.Decoder(
    Graded | Failed | Lost
)
_ready: msgspec.msgpack.Decoder[Ready | Failed] = msgspec.msgpack.Decoder(Ready | Failed)


def send(connection: Connection, message: object) -> None:
    """Send one message."""
    connection.send_bytes(encode(message))


def receive_answer(connection: Connection) -> Graded | Failed:
    """What a slot has to say of a job."""
    return _told.decode(connection.recv_bytes())


def receive_ready(connection: Connection) -> Ready | Failed:
    """What a nursery has to say of itself, or of a slot that it was to fork."""
    return _ready.decode(connection.recv_bytes())


def decode_answer(data: bytes) -> Graded | Failed | Lost:
    """What a pool of slots somewhere else has to say of a job."""
    return _answer.decode(data)
