"""A reader that serves a class: one attempt after the other, while all files are plain.

Such a reader never runs a parser on a student's text, so no attempt can change the process. It
returns only attempts without problems. Any other attempt is read again by a reader of its own,
which alone decides what the student is told.
"""

from __future__ import annotations

import os
import socket
from dataclasses import dataclass
from pathlib import Path

from grader.errors import InternalError, RequestError
from grader.processes.child import ChildProcess
from grader.sandbox.confinement.limits import Confinement
from grader.submissions.reader import messages
from grader.submissions.reader.exchange import (
    ReadingLimits,
    answer_body,
    confinement,
    hand_over,
    hello,
)

MAX_SERVED = 200  # attempts; then a new reader starts, with fresh memory
LIMITS = ReadingLimits(seconds=2.0)  # the time is for each attempt, the CPU time for all together
_FOLDER = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_CLOEXEC


AGAIN = "fix that, and run the same command again"


@dataclass
class ForkedReader:
    """A reader that was ordered from a `template`; its pid is known once it has begun."""

    connection: socket.socket
    template: ChildProcess
    pid: int | None = None

    def begin(self, confinement: Confinement, job: messages.Job | None = None) -> int:
        """Confine it and give it its first job; return how many seconds it may compute."""
        started = messages.decode_started(hello(self.connection))
        if started.fault:
            why = f"this machine cannot start a process that reads submissions: {started.fault}"
            raise RequestError(why, AGAIN)
        self.pid = started.pid
        return hand_over(self.connection, confinement, job)


class ClassReader:
    """A reader that may read all that is in `root`, the folder of a class."""

    def __init__(self, reader: ForkedReader, root: Path) -> None:
        self.reader, self._root = reader, root
        self._served = 0
        # Held open, so that no other folder can be taken for the one that it may read.
        try:
            self._held = os.open(root, _FOLDER)
        except OSError:
            reader.connection.close()
            raise

    def may_serve(self, root: Path) -> bool:
        """Return whether it may read one more attempt of the class in `root`."""
        if root != self._root or self._served >= MAX_SERVED:
            return False
        try:
            return os.path.samestat(os.stat(root), os.fstat(self._held))
        except OSError:
            return False

    def read(self, attempt: messages.ReadAttempt) -> messages.FilesRead | None:
        """Return the content of the attempt, or None if it needs a reader of its own.

        Raises any error if this reader cannot be used any more.
        """
        if not self._served:
            self.reader.begin(confinement(LIMITS, [self._root]))
        self._served += 1
        job = messages.ReadPlainly(self._served, os.fsencode(self._root), attempt)
        connection = self.reader.connection
        connection.settimeout(LIMITS.seconds)
        messages.send(connection, job)
        if (body := answer_body(connection, LIMITS)) is None:
            raise EOFError("the reader has ended")
        answer = messages.decode_plainly_read(body)
        if answer.number != self._served:
            raise InternalError("a reader has answered another request", "run the command again")
        return answer.files

    def close(self) -> None:
        """Close this process's end; the template ends the reader."""
        self.reader.connection.close()
        os.close(self._held)
