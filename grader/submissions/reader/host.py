"""Asking a reader: a confined process, one for each job, that is ended if it takes too long.

Whatever a reader does, it costs the submission that it reads and no other. What this machine is at
fault for, such as a full disk, is a `RequestError`.
"""

from __future__ import annotations

import contextlib
import errno
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from grader.course.course import Course
from grader.errors import InternalError, RequestError
from grader.sandbox.confinement.layers import Confinement
from grader.scratch import ScratchFolder
from grader.submissions.reader import messages

MIB = 1 << 20
COMMAND = (sys.executable, "-I", "-W", "ignore", "-m", "grader.submissions.reader_process")
START_SECONDS = 60.0  # without an answer for so long, a template process counts as dead
OVERSLEPT = 2.0  # seconds; if this process wakes up so late, everything was stopped
PROBE_BYTES = 64 * MIB  # a disk without so much space is full
PIECE = MIB  # bytes that are received at once
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EROFS)
MAX_HELLO = 65_536  # bytes of a message that a reader sends before it has read anything
SPARED = "ReadAttempt"  # the job for which a spare reader is kept: a class has many of them
NONSENSE = "the process that read it gave no usable answer"
T = TypeVar("T", bound=messages.Result)


@dataclass(frozen=True)
class ReadingLimits:
    """The limits of one reader. `seconds` is wall time, `answer` bytes of its only message."""

    seconds: float = 10.0
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


class _Lost(Exception):
    """A reader ended, and what it reads need not be the reason; the message says how."""


@dataclass(frozen=True)
class _Reader:
    """A reader that has been ordered: `connection` leads to it, `control` to its template."""

    connection: socket.socket
    control: socket.socket


class ReaderTemplate:
    """The template process, which forks a reader for each job; it is started when it is needed.

    Threads may ask at the same time. While a reader reads an attempt, the next one is forked.
    """

    def __init__(self) -> None:
        self._spares: list[_Reader] = []
        self._control: socket.socket | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._root: ScratchFolder | None = None
        self._errors: Any = None
        self._owner = (-1, -1)  # the process and the user that started it
        self._lock = threading.RLock()

    def start(self) -> None:
        """Start the process if necessary; return while it still imports."""
        with self._lock:
            self._start()

    def _start(self) -> None:
        owner = os.getpid(), os.geteuid()
        if self._control is not None and self._owner == owner:
            return
        self.close()  # a reader must not read for one user what only another may read
        self._owner = owner
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115, read when a start fails
        # Holds each reader's private folder. This process removes it if the template is killed.
        self._root = ScratchFolder("reader")
        self._control, theirs = socket.socketpair()
        self._control.settimeout(START_SECONDS)
        with theirs:
            self._process = subprocess.Popen(
                [*COMMAND, str(theirs.fileno()), os.path.realpath(self._root.path)],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=self._errors,
                env={"PATH": os.defpath, "LANG": "C.UTF-8"},
                start_new_session=True,  # Ctrl-C reaches this process only, which ends the template
            )

    @property
    def pid(self) -> int | None:
        """The process id of the template; None if it does not run."""
        return self._process.pid if self._process else None

    @property
    def root(self) -> str:
        """The folder of the readers' private folders; empty if the template does not run."""
        return str(self._root.path) if self._root else ""

    def ask(
        self,
        job: messages.Job,
        expected: type[T],
        readable: Iterable[Path],
        folder: Path | None = None,
        limits: ReadingLimits = ORDINARY,
    ) -> T:
        """Have a job done by a new reader that may read `readable`, and write to `folder`.

        Raises `ReadingFailed`, `ReadingImpossible`, and `RequestError` if this machine is the
        reason.
        """
        confinement = Confinement(
            memory_bytes=limits.memory,
            cpu_seconds=limits.cpu_seconds,
            file_bytes=limits.file,
            readable=tuple(os.fsencode(path.absolute()) for path in readable),
            folder=os.fsencode(folder.absolute()) if folder else b"",
            makes_folders=True,
        )
        answer = self._answer(job, confinement, limits)
        if isinstance(answer, messages.ReadingRefused):
            self._blame_disk(answer)
            raise ReadingImpossible(answer)
        if not isinstance(answer, expected):
            raise ReadingFailed(NONSENSE)
        return answer

    def _answer(
        self, job: messages.Job, confinement: Confinement, limits: ReadingLimits
    ) -> messages.Answer:
        """Ask a reader, and another one if the first is lost or the template has died."""
        lost = why = ""
        for _ in range(2):
            reader = None
            try:
                reader = self._reader(type(job).__name__)
                return self._exchange(reader, job, confinement, limits)
            except _Lost as error:
                lost = str(error)
            except (OSError, EOFError) as error:
                why = self._last_error_line() or repr(error)
                self._give_up(reader)
        if lost:
            raise ReadingFailed(lost)
        raise InternalError(
            f"the process that reads submissions does not start: {why}",
            "grader doctor   checks this machine",
        )

    def _reader(self, job: str) -> _Reader:
        """Return a reader for a kind of job, forked ahead if there is one."""
        with self._lock:
            self._start()
            if job != SPARED:
                return self._order_reader(job)
            reader = self._spares.pop() if self._spares else self._order_reader(job)
            self._spares.append(self._order_reader(job))
            return reader

    def _order_reader(self, job: str) -> _Reader:
        assert self._control is not None
        ours, theirs = socket.socketpair()
        with theirs:
            try:
                self._order(messages.StartReader(job), self._control, theirs)
            except BaseException:
                ours.close()
                raise
        return _Reader(ours, self._control)

    def _exchange(
        self,
        reader: _Reader,
        job: messages.Job,
        confinement: Confinement,
        limits: ReadingLimits,
    ) -> messages.Answer:
        body: bytes | None = None
        with reader.connection as connection:
            connection.settimeout(START_SECONDS)
            started = messages.decode_started(_hello(connection))
            if started.fault:
                raise RequestError(
                    f"this machine cannot start a process that reads submissions: {started.fault}",
                    "fix that, and run the same command again",
                )
            try:
                body = _converse(connection, confinement, job, limits)
            finally:
                stopped = self._stop(reader, started.pid, told=body is None)
        if stopped is not None:
            raise _how_it_ended(stopped, limits)
        assert body is not None
        try:
            answer: messages.Answer = messages.decode_answer(body)
            return answer
        except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
            raise ReadingFailed(NONSENSE) from None

    def _stop(self, reader: _Reader, pid: int, *, told: bool) -> messages.ReaderStopped | None:
        """End a reader; return how it ended if that is to be `told`."""
        with self._lock:
            if reader.control is not self._control:
                raise EOFError("the template process has ended")
            self._order(messages.StopReader(pid, told), reader.control)
            if not told:
                return None
            with self._closed_if_broken():  # the next answer would be to this order
                if answer := reader.control.recv(4096):
                    return messages.decode_stopped(answer)
                raise EOFError("the template process has ended")

    def _order(
        self,
        order: messages.StartReader | messages.StopReader,
        control: socket.socket,
        passed: socket.socket | None = None,
    ) -> None:
        """Send an order to the template."""
        data, fds = messages.frame(order), [passed.fileno()] if passed else []
        with self._closed_if_broken():  # otherwise the next order would follow half of this one
            sent = socket.send_fds(control, [data], fds)
            control.sendall(data[sent:])

    @contextlib.contextmanager
    def _closed_if_broken(self) -> Iterator[None]:
        try:
            yield
        except BaseException:
            self.close()
            raise

    def _give_up(self, reader: _Reader | None) -> None:
        """End a template that does not answer, unless another thread has done so."""
        with self._lock:
            if reader is None or reader.control is self._control:
                self.close()

    def _blame_disk(self, refused: messages.ReadingRefused) -> None:
        """Raise `RequestError` if a reader found the disk full, and this process does as well."""
        if refused.error not in FULL or self._root is None:
            return
        try:
            with tempfile.TemporaryFile(dir=self._root.path) as probe:
                os.posix_fallocate(probe.fileno(), 0, PROBE_BYTES)
        except OSError as error:
            raise RequestError(
                f"{refused.message}: {error.strerror}", "fix that, and run the same command again"
            ) from None

    def _last_error_line(self) -> str:
        if self._errors is None:
            return ""
        self._errors.seek(0)
        lines = self._errors.read().decode("utf-8", "replace").strip().splitlines()
        return lines[-1] if lines else ""

    def close(self) -> None:
        """End the template and its readers."""
        with self._lock:
            for spare in self._spares:
                spare.connection.close()
            if self._control is not None:
                self._control.close()
            if self._owner[0] == os.getpid():  # a fork leaves it to the process it was forked from
                if self._process is not None:
                    self._process.kill()
                    self._process.wait()
                if self._root is not None:
                    self._root.close()
            self._control = self._process = self._root = None
            self._spares = []


_template = ReaderTemplate()


def readers() -> ReaderTemplate:
    """Return the template process of this process, which is started when it is first asked."""
    return _template


def exercise_names(course: Course) -> tuple[messages.ExerciseNames, ...]:
    """Return what a reader must know of a course."""
    return tuple(messages.ExerciseNames(each.name, each.implements) for each in course.exercises)


def _hello(connection: socket.socket) -> bytes:
    """Return a message that a reader sends before it has read its job."""
    until = time.monotonic() + START_SECONDS
    if header := _receive(connection, messages.HEADER.size, until):
        (length,) = messages.HEADER.unpack(header)
        if length <= MAX_HELLO and (body := _receive(connection, length, until)):
            return body
    raise EOFError("the process that should read ended at its start")


def _converse(
    connection: socket.socket, confinement: Confinement, job: messages.Job, limits: ReadingLimits
) -> bytes | None:
    """Give a reader its job; return the body of its answer, or None if it ends before that."""
    try:
        connection.sendall(messages.frame(confinement) + messages.frame(job))
        confined = messages.decode_confined(_hello(connection))
    except (ConnectionError, EOFError):
        raise _Lost("the process that should read it ended at its start") from None
    if confined.fault:
        raise InternalError(
            f"a process that reads submissions cannot be confined: {confined.fault}",
            "grader doctor   says what this machine lacks",
        )
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
            raise _Lost("this machine was stopped while it was read") from None
        raise ReadingFailed(f"reading it takes longer than {limits.seconds:.0f} seconds") from None
    except ConnectionError:
        return None


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


def _how_it_ended(stopped: messages.ReaderStopped, limits: ReadingLimits) -> Exception:
    """Return the error for a reader that ended without an answer."""
    signals = (-signal.SIGKILL, -signal.SIGXCPU)
    if stopped.status in signals and stopped.cpu_seconds > limits.cpu_seconds - 1:
        return ReadingFailed(
            f"reading it takes more than {limits.cpu_seconds} seconds of computing"
        )
    if stopped.status == -signal.SIGKILL:
        return _Lost("the process that read it was killed twice")
    if stopped.status < 0:
        with contextlib.suppress(ValueError):
            name = signal.Signals(-stopped.status).name
            return ReadingFailed(f"the process that read it crashed ({name})")
    return ReadingFailed("the process that read it ended without an answer")
