"""The exchange between the host and one reader, and the meaning of a reader's end."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import msgspec

from grader.errors import InternalError
from grader.sandbox.confinement.limits import Confinement
from grader.sandbox.host.child import ChildProcess
from grader.submissions.reader import messages

MIB = 1 << 20
START_SECONDS = 60.0  # seconds without an answer after which a template process counts as dead
OVERSLEPT = 2.0  # seconds; if this process wakes up that late, the whole machine was stopped
PIECE = MIB  # bytes received at once
MAX_HELLO = 65_536  # bytes of a message that a reader sends before it has read anything
NONSENSE = "the process that read it gave no usable answer"
T = TypeVar("T", bound=messages.Result)


@dataclass(frozen=True)
class ReadingLimits:
    """The limits of one reader. `seconds` is wall time for a job, `answer` bytes of its answer.

    The limit of CPU time ends a reader that is kept busy, on a busy machine as well as on a quiet
    one; the wall time is for a reader that waits.
    """

    seconds: float = 40.0
    cpu_seconds: int = 8
    memory: int = 512 * MIB
    file: int = 32 * MIB
    answer: int = messages.MAX_ANSWER


ORDINARY = ReadingLimits()


class ReadingFailed(Exception):
    """No reader gave a usable answer; the message says why, in words for a student."""


class ReadingImpossible(Exception):
    """A reader refused the job; the message says why and `remedy` what to do."""

    def __init__(self, refused: messages.ReadingRefused) -> None:
        super().__init__(refused.message)
        self.remedy = refused.remedy


class LostReader(Exception):
    """A reader ended, and its files need not be the reason; the message says how."""


@dataclass(frozen=True)
class Reader:
    """A reader that has been ordered from a `template`; `connection` leads to it."""

    connection: socket.socket
    template: ChildProcess


def confinement(
    limits: ReadingLimits, readable: Iterable[Path], folder: Path | None = None
) -> Confinement:
    """Return the confinement of a reader that may read `readable`, and write to `folder`."""
    return Confinement(
        memory_bytes=limits.memory,
        cpu_seconds=limits.cpu_seconds,
        file_bytes=limits.file,
        readable=tuple(os.fsencode(path.absolute()) for path in readable),
        folder=os.fsencode(folder.absolute()) if folder else b"",
        makes_folders=True,
    )


def started(connection: socket.socket) -> messages.ReaderStarted:
    """Wait until a reader has started; return its message."""
    connection.settimeout(START_SECONDS)
    return messages.decode_started(_hello(connection))


def hand_over(
    connection: socket.socket, confinement: Confinement, job: messages.Job | None = None
) -> int:
    """Confine a reader and give it its job; return the seconds that it may compute."""
    try:
        first = messages.frame(job) if job else b""
        connection.sendall(messages.frame(confinement) + first)
        confined = messages.decode_confined(_hello(connection))
    except (ConnectionError, EOFError):
        raise LostReader("the process that should read it ended at its start") from None
    if confined.fault:
        raise InternalError(
            f"a process that reads submissions cannot be confined: {confined.fault}",
            "grader doctor   says what this machine lacks",
        )
    return confined.cpu_seconds


def answer_body(connection: socket.socket, limits: ReadingLimits) -> bytes | None:
    """Return the body of a reader's answer, or None if it ends before that."""
    deadline = time.monotonic() + limits.seconds
    try:
        header = _receive(connection, messages.HEADER.size, deadline)
        if header is None:
            return None
        (length,) = messages.HEADER.unpack(header)
        if length > limits.answer:
            raise ReadingFailed(f"what was read exceeds {limits.answer // MIB} MiB")
        return _receive(connection, length, deadline)
    except TimeoutError:
        if time.monotonic() - deadline > OVERSLEPT:
            raise LostReader("this machine was stopped while it was read") from None
        raise ReadingFailed(f"reading it takes longer than {limits.seconds:.0f} seconds") from None
    except ConnectionError:
        return None


def decoded_answer(body: bytes) -> messages.Answer:
    """Return a reader's answer; raise `ReadingFailed` if it is invalid."""
    try:
        answer: messages.Answer = messages.decode_answer(body)
        return answer
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
        raise ReadingFailed(NONSENSE) from None


def expected_answer(answer: messages.Answer, expected: type[T]) -> T:
    """Return the answer to a job; raise `ReadingImpossible` or `ReadingFailed` if it is none."""
    if isinstance(answer, messages.ReadingRefused):
        raise ReadingImpossible(answer)
    if not isinstance(answer, expected):
        raise ReadingFailed(NONSENSE)
    return answer


def does_not_start(why: str) -> InternalError:
    """Return the error for a machine on which no reader starts."""
    return InternalError(
        f"the process that reads submissions does not start: {why}",
        "grader doctor   checks this machine",
    )


def how_it_ended(stopped: messages.ReaderStopped, cpu_seconds: int) -> Exception:
    """Return the error for a reader that ended without an answer, given its CPU limit.

    If the system's hard limit is not above it, the kernel sends no SIGXCPU before its SIGKILL.
    """
    name = ""
    with contextlib.suppress(ValueError):
        name = signal.Signals(-stopped.status).name
    if name in ("SIGKILL", "SIGXCPU") and stopped.cpu_seconds > cpu_seconds - 1:
        return ReadingFailed(f"reading it takes more than {cpu_seconds} seconds of computing")
    if name == "SIGKILL":
        return LostReader("the process that read it was killed twice")
    if name:
        return ReadingFailed(f"the process that read it crashed ({name})")
    return ReadingFailed("the process that read it ended without an answer")


def _hello(connection: socket.socket) -> bytes:
    """Return a message that a reader sends before it has read its job."""
    until = time.monotonic() + START_SECONDS
    if header := _receive(connection, messages.HEADER.size, until):
        (length,) = messages.HEADER.unpack(header)
        if length <= MAX_HELLO and (body := _receive(connection, length, until)):
            return body
    raise EOFError("the process that should read ended at its start")


def _receive(connection: socket.socket, count: int, deadline: float) -> bytes | None:
    """Return `count` bytes, or None if the reader ends first. Raises `TimeoutError`."""
    data = bytearray()
    while len(data) < count:
        left = deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError
        connection.settimeout(left)
        piece = connection.recv(min(count - len(data), PIECE))
        if not piece:
            return None
        data += piece
    return bytes(data)
