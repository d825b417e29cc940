"""Readers that are forked: the template process that forks them, and the requests to it."""

from __future__ import annotations

import contextlib
import errno
import os
import socket
import tempfile
import threading
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TypeVar

from grader.errors import RequestError
from grader.sandbox.confinement.limits import Confinement
from grader.sandbox.host.child import ChildProcess, clean_environment, module_command
from grader.submissions.reader import messages
from grader.submissions.reader.class_reader import ClassReader
from grader.submissions.reader.exchange import (
    MIB,
    ORDINARY,
    START_SECONDS,
    LostReader,
    Reader,
    ReadingFailed,
    ReadingLimits,
    answer_body,
    confinement,
    decoded_answer,
    does_not_start,
    expected_answer,
    hand_over,
    how_it_ended,
    started,
)

COMMAND = module_command("grader.submissions.reader_process.template")
PROBE_BYTES = 64 * MIB  # bytes; a disk with less space counts as full
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EROFS)
SPARED = "ReadAttempt"  # the job for which a spare reader is kept: a class has many of them
T = TypeVar("T", bound=messages.Result)


class ReaderTemplate:
    """The template process, which forks readers; it starts when it is needed.

    Threads may ask at the same time. While one reader reads an attempt, the next one is forked.
    """

    def __init__(self) -> None:
        self._spares: list[Reader] = []
        self._class_readers: list[ClassReader] = []  # readers that wait for an attempt
        self._process: ChildProcess | None = None
        self._latest: ChildProcess | None = None  # shows why it has ended
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
        self.close()  # a reader must not read one user's files for another user
        self._owner = owner
        # So that the libraries look up all their functions now, and not again in each reader.
        env = clean_environment(LD_BIND_NOW="1")
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
        *,
        root: Path | None = None,
    ) -> T:
        """Have a job done by a new reader that may read `readable`, and write to `folder`.

        If the job is to read an attempt of the class in `root`, a reader that has read others may
        do it, as long as that takes no parser. Raises `ReadingFailed`, `ReadingImpossible`, and
        `RequestError` if this machine is the reason.
        """
        answer: messages.Answer | None = None
        if root is not None and isinstance(job, messages.ReadAttempt):
            answer = self._read_plainly(job, root.absolute())
        if answer is None:
            answer = self._answer(job, confinement(limits, readable, folder), limits)
        if isinstance(answer, messages.ReadingRefused):
            self._blame_disk(answer)
        return expected_answer(answer, expected)

    def _read_plainly(self, job: messages.ReadAttempt, root: Path) -> messages.FilesRead | None:
        """Return the answer of a class reader; None if a reader of its own has to decide."""
        reader = files = None
        with contextlib.suppress(Exception):  # the other reader meets the same problem again
            reader = self._class_reader(root)
            try:
                files = reader.read(job)
            except BaseException:
                self._end(reader)
                raise
            with self._lock:
                self._class_readers.append(reader)
        return files

    def _class_reader(self, root: Path) -> ClassReader:
        """Return a reader for the class in `root`; end readers that wait for another class."""
        with self._lock:
            template = self._start()
            while self._class_readers:
                reader = self._class_readers.pop()
                if reader.reader.template is template and reader.may_serve(root):
                    return reader
                self._end(reader)
            return ClassReader(self._order_reader(SPARED, template), root)

    def _end(self, reader: ClassReader) -> None:
        reader.close()
        if reader.pid is not None:
            with contextlib.suppress(OSError, EOFError):
                self._stop(reader.reader, reader.pid, told=False)

    def _answer(
        self, job: messages.Job, confined: Confinement, limits: ReadingLimits
    ) -> messages.Answer:
        """Ask a new reader, and another one if the first is lost or the template has died."""
        lost = why = ""
        for _ in range(2):
            reader = None
            try:
                reader = self._reader(type(job).__name__)
                return self._exchange(reader, job, confined, limits)
            except LostReader as error:
                lost = str(error)
            except (OSError, EOFError) as error:
                why = (self._latest and self._latest.last_error_line()) or repr(error)
                self._give_up(reader)
        if lost:
            raise ReadingFailed(lost)
        raise does_not_start(why)

    def _reader(self, job: str) -> Reader:
        """Return a reader for a kind of job, forked ahead if there is one."""
        with self._lock:
            template = self._start()
            if job != SPARED:
                return self._order_reader(job, template)
            reader = self._spares.pop() if self._spares else self._order_reader(job, template)
            self._spares.append(self._order_reader(job, template))
            return reader

    def _order_reader(self, job: str, template: ChildProcess) -> Reader:
        ours, theirs = socket.socketpair()
        with theirs:
            try:
                self._order(messages.StartReader(job), template, theirs)
            except BaseException:
                ours.close()
                raise
        return Reader(ours, template)

    def _exchange(
        self,
        reader: Reader,
        job: messages.Job,
        confined: Confinement,
        limits: ReadingLimits,
    ) -> messages.Answer:
        body: bytes | None = None
        with reader.connection as connection:
            hello = started(connection)
            if hello.fault:
                raise RequestError(
                    f"this machine cannot start a process that reads submissions: {hello.fault}",
                    "fix that, and run the same command again",
                )
            try:
                allowed = hand_over(connection, confined, job)
                body = answer_body(connection, limits)
            finally:
                stopped = self._stop(reader, hello.pid, told=body is None)
        if stopped is not None:
            raise how_it_ended(stopped, allowed)
        assert body is not None
        return decoded_answer(body)

    def _stop(self, reader: Reader, pid: int, *, told: bool) -> messages.ReaderStopped | None:
        """End a reader; return how it ended if `told`."""
        with self._lock:
            if reader.template is not self._process:
                raise EOFError("the template process has ended")
            self._order(messages.StopReader(pid, told), reader.template)
            if not told:
                return None
            with self._closed_if_broken():  # else the next answer would be the one to this order
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
        with self._closed_if_broken():  # else the next order would follow half of this one
            sent = socket.send_fds(template.orders, [data], fds)
            template.orders.sendall(data[sent:])

    @contextlib.contextmanager
    def _closed_if_broken(self) -> Iterator[None]:
        try:
            yield
        except BaseException:
            self.close()
            raise

    def _give_up(self, reader: Reader | None) -> None:
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
            for reader in self._class_readers:
                reader.close()
            if self._process is not None:
                self._process.close()
            self._process = None
            self._spares, self._class_readers = [], []
