"""Readers that are forked: the template process that forks them, and the requests to it."""

from __future__ import annotations

import contextlib
import errno
import os
import socket
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

from grader.errors import RequestError
from grader.processes import channel
from grader.processes.child import ChildProcess, clean_environment, module_command
from grader.sandbox.confinement.limits import Confinement
from grader.submissions.reader import messages
from grader.submissions.reader.class_reader import AGAIN, ClassReader, ForkedReader
from grader.submissions.reader.exchange import (
    MIB,
    START_SECONDS,
    Readers,
    ReadingLimits,
    answer_body,
    decoded_answer,
    how_it_ended,
)

COMMAND = module_command("grader.submissions.reader_process.template")
PROBE_BYTES = 64 * MIB  # bytes; a disk with less space counts as full
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EROFS)


class ReaderTemplate(Readers):
    """The template process, which forks readers; it is started when it is needed.

    Threads may ask at the same time.
    """

    def __init__(self) -> None:
        self._class_readers: list[ClassReader] = []  # those that wait for an attempt
        self._process: ChildProcess | None = None
        self._latest: ChildProcess | None = None  # shows why it has ended
        self._owner = (-1, -1)  # the process and the user that started it
        self._lock = threading.RLock()

    def start(self) -> None:
        """Start the process if necessary; return while it still imports."""
        self._started()

    def _started(self) -> ChildProcess:
        with self._lock:
            owner = os.getpid(), os.geteuid()
            if self._process is not None and self._owner == owner:
                return self._process
            self.close()  # a reader must not read for one user what only another may read
            self._owner = owner
            # The libraries look up all their functions now, not each reader those that it calls.
            env = clean_environment(LD_BIND_NOW="1")
            # Its folder holds the private folder of each reader.
            self._process = self._latest = ChildProcess(
                COMMAND, purpose="reader", env=env, seconds=START_SECONDS
            )
            return self._process

    @property
    def pid(self) -> int | None:
        """The process id of the template; None if it does not run."""
        return self._process.pid if self._process else None

    @property
    def root(self) -> str:
        """The folder of the readers' private folders; empty if the template does not run."""
        return self._process.folder if self._process else ""

    def _why_none_starts(self) -> str:
        return self._latest.last_error_line() if self._latest else ""

    # --- a reader for a class ---------------------------------------------------------------------

    def _served(self, job: messages.Job, root: Path | None) -> messages.FilesRead | None:
        """Return what a class reader reads; None if a reader of its own has to decide."""
        if root is None or not isinstance(job, messages.ReadAttempt):
            return None
        files = None
        with contextlib.suppress(Exception):  # whatever it was, the other reader finds it again
            reader = self._class_reader(root.absolute())
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
            template = self._started()
            while self._class_readers:
                reader = self._class_readers.pop()
                if reader.reader.template is template and reader.may_serve(root):
                    return reader
                self._end(reader)
            return ClassReader(self._order_reader(messages.ReadPlainly), root)

    def _end(self, reader: ClassReader) -> None:
        reader.close()
        with contextlib.suppress(OSError, EOFError):
            self._stop(reader.reader)

    # --- a reader for each job --------------------------------------------------------------------

    def _answer(
        self, job: messages.Job, confined: Confinement, limits: ReadingLimits
    ) -> messages.Answer:
        reader = body = stopped = None
        try:
            reader = self._order_reader(type(job))
            with reader.connection as connection:
                try:
                    allowed = reader.begin(confined, job)
                    body = answer_body(connection, limits)
                finally:
                    stopped = self._stop(reader)
        except (OSError, EOFError):
            with self._lock:
                if reader is None or reader.template is self._process:
                    self.close()  # unless another thread has done so
            raise
        if body is not None:
            return decoded_answer(body)
        assert stopped is not None
        raise how_it_ended(stopped, allowed)

    def _order_reader(self, job: type[messages.Job | messages.ReadPlainly]) -> ForkedReader:
        ours, theirs = socket.socketpair()
        with theirs, contextlib.ExitStack() as stack:
            stack.callback(ours.close)
            with self._lock:
                template = self._started()
                self._order(messages.StartReader(job.__name__), theirs)
            stack.pop_all()
        return ForkedReader(ours, template)

    def _stop(self, reader: ForkedReader) -> messages.ReaderStopped | None:
        """End a reader; return how it ended, or None if it has not begun."""
        if reader.pid is None:
            return None
        with self._lock:
            if reader.template is not self._process:
                raise EOFError("the template process has ended")
            self._order(messages.StopReader(reader.pid))
            with self._closed_if_broken():  # the next answer would be to this order
                return messages.decode_stopped(channel.receive(reader.template.orders.recv))

    def _order(
        self,
        order: messages.StartReader | messages.StopReader,
        passed: socket.socket | None = None,
    ) -> None:
        """Send an order to the template, which runs."""
        assert self._process is not None
        with self._closed_if_broken():  # otherwise the next order would follow half of this one
            channel.send(self._process.orders, messages.encode(order), passed)

    @contextlib.contextmanager
    def _closed_if_broken(self) -> Iterator[None]:
        try:
            yield
        except BaseException:
            self.close()
            raise

    def _refusal(self, refused: messages.ReadingRefused) -> Exception:
        """Return the error for a refused job: this machine's, if here as well the disk is full."""
        if refused.error in FULL and self.root:
            try:
                with tempfile.TemporaryFile(dir=self.root) as probe:
                    os.posix_fallocate(probe.fileno(), 0, PROBE_BYTES)
            except OSError as error:
                return RequestError(f"{refused.message}: {error.strerror}", AGAIN)
        return super()._refusal(refused)

    def close(self) -> None:
        """End the template and its readers."""
        with self._lock:
            for reader in self._class_readers:
                reader.close()
            if self._process is not None:
                self._process.close()
            self._process, self._class_readers = None, []
