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
import tempfile
import threading
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import msgspec

from grader.course.course import Course
from grader.errors import InternalError, RequestError
from grader.sandbox.confinement.layers import Confinement
from grader.sandbox.host.child import ChildProcess, module_command
from grader.submissions.reader import messages

MIB = 1 << 20
COMMAND = module_command("grader.submissions.reader_process")
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
    """A reader that has been ordered from a `template`; `connection` leads to it."""

    connection: socket.socket
    template: ChildProcess


class ReaderTemplate:
    """The template process, which forks a reader for each job; it is started when it is needed.

    Threads may ask at the same time. While a reader reads an attempt, the next one is forked.
    """

    def __init__(self) -> None:
        self._spares: list[_Reader] = []
        self._process: ChildProcess | None = None
        self._latest: ChildProcess | None = None  # says why it has ended
        self._owner = (-1, -1)  # the process and the user that started it
        self._lock = threading.RLock()

    def start(self) -> None:
        """Start the process if necessary; return while it still imports."""
        with self._lock:
            self._start()

    def _start(self) -> ChildProcess:
        owner = os.getpid(), os.geteuid()
        if self._process is not None and self._owner == owner:
            return self._process
        self.close()  # a reader must not read for one user what only another may read
        self._owner = owner
        # The libraries look up all their functions now, not each reader those that it calls.
        env = {"PATH": os.defpath, "LANG": "C.UTF-8", "LD_BIND_NOW": "1"}
        # Its folder holds the private folder of each reader.
        started = ChildProcess(COMMAND, purpose="reader", env=env, seconds=START_SECONDS)
        self._process = self._latest = started
        return started

    @property
    def pid(self) -> int | None:
        """The process id of the template; None if it does not run."""
        return self._process.pid if self._process else None

    @property
    def root(self) -> str:
        """The folder of the readers' private folders; empty if the template does not run."""
        return self._process.folder if self._process else ""

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
                why = (self._latest and self._latest.last_error_line()) or repr(error)
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
            template = self._start()
            if job != SPARED:
                return self._order_reader(job, template)
            reader = self._spares.pop() if self._spares else self._order_reader(job, template)
            self._spares.append(self._order_reader(job, template))
            return reader

    def _order_reader(self, job: str, template: ChildProcess) -> _Reader:
        ours, theirs = socket.socketpair()
        with theirs:
            try:
                self._order(messages.StartReader(job), template, theirs)
            except BaseException:
                ours.close()
                raise
        return _Reader(ours, template)

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
                allowed = _hand_over(connection, confinement, job)
                body = _answer_body(connection, limits)
            finally:
                stopped = self._stop(reader, started.pid, told=body is None)
        if stopped is not None:
            raise _how_it_ended(stopped, allowed)
        assert body is not None
        try:
            answer: messages.Answer = messages.decode_answer(body)
            return answer
        except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
            raise ReadingFailed(NONSENSE) from None

    def _stop(self, reader: _Reader, pid: int, *, told: bool) -> messages.ReaderStopped | None:
        """End a reader; return how it ended if that is to be `told`."""
        with self._lock:
            if reader.template is not self._process:
                raise EOFError("the template process has ended")
            self._order(messages.StopReader(pid, told), reader.template)
            if not told:
                return None
            with self._closed_if_broken():  # the next answer would be to this order
                if answer := reader.template.orders.recv(4096):
                    return messages.decode_stopped(answer)
                raise EOFError("the template process has ended")

    def _order(
        self,
        order: messages.StartReader | messages.StopReader,
        template: ChildProcess,
        passed: socket.socket | None = None,
    ) -> None:
        """Send an order to the template."""
        data, fds = messages.frame(order), [passed.fileno()] if passed else []
        with self._closed_if_broken():  # otherwise the next order would follow half of this one
            sent = socket.send_fds(template.orders, [data], fds)
            template.orders.sendall(data[sent:])

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
            if reader is None or reader.template is self._process:
                self.close()

    def _blame_disk(self, refused: messages.ReadingRefused) -> None:
        """Raise `RequestError` if a reader found the disk full, and this process does as well."""
        if refused.error not in FULL or not self.root:
            return
        try:
            with tempfile.TemporaryFile(dir=self.root) as probe:
                os.posix_fallocate(probe.fileno(), 0, PROBE_BYTES)
        except OSError as error:
            raise RequestError(
                f"{refused.message}: {error.strerror}", "fix that, and run the same command again"
            ) from None

    def close(self) -> None:
        """End the template and its readers."""
        with self._lock:
            for spare in self._spares:
                spare.connection.close()
            if self._process is not None:
                self._process.close()
            self._process = None
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


def _hand_over(connection: socket.socket, confinement: Confinement, job: messages.Job) -> int:
    """Give a reader its job; return how many seconds it may compute, once it is confined."""
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
    return confined.cpu_seconds


def _answer_body(connection: socket.socket, limits: ReadingLimits) -> bytes | None:
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


def _how_it_ended(stopped: messages.ReaderStopped, cpu_seconds: int) -> Exception:
    """Return the error for a reader that ended without an answer and could compute so long.

    If the system's hard limit is not above it, the kernel sends no SIGXCPU before its SIGKILL.
    """
    signals = (-signal.SIGKILL, -signal.SIGXCPU)
    if stopped.status in signals and stopped.cpu_seconds > cpu_seconds - 1:
        return ReadingFailed(f"reading it takes more than {cpu_seconds} seconds of computing")
    if stopped.status == -signal.SIGKILL:
        return _Lost("the process that read it was killed twice")
    if stopped.status < 0:
        with contextlib.suppress(ValueError):
            name = signal.Signals(-stopped.status).name
            return ReadingFailed(f"the process that read it crashed ({name})")
    return ReadingFailed("the process that read it ended without an answer")
