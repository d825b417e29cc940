"""The exchange between the host and one reader, and the meaning of a reader's end."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import time
from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import msgspec

from grader.errors import InternalError
from grader.processes import channel
from grader.sandbox.confinement.limits import Confinement
from grader.submissions.reader import messages

MIB = 1 << 20
START_SECONDS = 60.0  # seconds without an answer after which a template process counts as dead
OVERSLEPT = 2.0  # seconds; if this process wakes up that late, the whole machine was stopped
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


def hand_over(
    connection: socket.socket, confinement: Confinement, job: messages.Job | None = None
) -> int:
    """Confine a reader and give it its job; return the seconds that it may compute."""
    try:
        messages.send(connection, confinement)
        if job is not None:
            messages.send(connection, job)
        confined = messages.decode_confined(hello(connection))
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
        return _receive(connection, limits.answer, deadline)
    except channel.MessageTooLarge:
        raise ReadingFailed(f"what was read exceeds {limits.answer // MIB} MiB") from None
    except TimeoutError:
        if time.monotonic() - deadline > OVERSLEPT:
            raise LostReader("this machine was stopped while it was read") from None
        raise ReadingFailed(f"reading it takes longer than {limits.seconds:.0f} seconds") from None
    except (ConnectionError, EOFError):
        return None


def decoded_answer(body: bytes) -> messages.Answer:
    """Return a reader's answer; raise `ReadingFailed` if it is invalid."""
    try:
        answer: messages.Answer = messages.decode_answer(body)
        return answer
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
        raise ReadingFailed(NONSENSE) from None


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


def hello(connection: socket.socket) -> bytes:
    """Return a message that a reader sends before it has read its job."""
    try:
        return _receive(connection, MAX_HELLO, time.monotonic() + START_SECONDS)
    except channel.MessageTooLarge:
        raise EOFError("the process that should read says too much at its start") from None


def _receive(connection: socket.socket, most: int, deadline: float) -> bytes:
    """Return the next message. Raises `EOFError`, `TimeoutError` and `channel.MessageTooLarge`."""

    def wait() -> None:
        left = deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError
        connection.settimeout(left)

    return channel.receive(connection.recv, most, wait)


class Readers(ABC):
    """Where readers come from: forked by a template process, or spawned one by one."""

    @abstractmethod
    def start(self) -> None:
        """Start what the first reader needs; return while it still imports."""

    @abstractmethod
    def close(self) -> None:
        """End all readers."""

    @abstractmethod
    def _answer(
        self, job: messages.Job, confined: Confinement, limits: ReadingLimits
    ) -> messages.Answer:
        """Ask a new reader. Raises `LostReader`, and `OSError` or `EOFError` if none starts."""

    def _served(self, job: messages.Job, root: Path | None) -> messages.Answer | None:
        """Return the answer of a reader that serves the class in `root`, if one can do the job."""
        return None

    def _refusal(self, refused: messages.ReadingRefused) -> Exception:
        """Return the error for a job that a reader has refused."""
        return ReadingImpossible(refused)

    def _why_none_starts(self) -> str:
        """Return what the process said that should have started a reader."""
        return ""

    def ask(
        self,
        job: messages.Job,
        expected: type[T],
        readable: Iterable[Path],
        folder: Path | None = None,
        limits: ReadingLimits = ORDINARY,
        *,
        root: Path | None = None,
    ) -> T:
        """Have a job done by a reader that may read `readable`, and write to `folder`.

        If the job is to read an attempt of the class in `root`, a reader that has read others may
        do it, as long as that takes no parser. Raises `ReadingFailed`, `ReadingImpossible`, and
        `RequestError` if this machine is the reason.
        """
        answer = self._served(job, root)
        if answer is None:
            answer = self._ask_twice(job, confinement(limits, readable, folder), limits)
        if isinstance(answer, messages.ReadingRefused):
            raise self._refusal(answer)
        if not isinstance(answer, expected):
            raise ReadingFailed(NONSENSE)
        return answer

    def _ask_twice(
        self, job: messages.Job, confined: Confinement, limits: ReadingLimits
    ) -> messages.Answer:
        """Ask a new reader, and another one if the first is lost or none has started."""
        for is_last in (False, True):
            try:
                return self._answer(job, confined, limits)
            except LostReader as error:
                if is_last:
                    raise ReadingFailed(str(error)) from None
            except (OSError, EOFError) as error:
                if is_last:
                    raise InternalError(
                        "the process that reads submissions does not start: "
                        f"{self._why_none_starts() or error or repr(error)}",
                        "grader doctor   checks this machine",
                    ) from error
        raise AssertionError("unreachable")
