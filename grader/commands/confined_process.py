"""The process that runs the code of an untrusted course: its suites, cases and drawings.

    python -I -m grader.commands.confined_process FD

It is confined like student code before it reads a byte of the course, and never holds any data of
its user. It starts no worker itself: it asks its host through the socket FD, and the host passes
it the worker's socket.
"""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from grader.course.course import load_course
from grader.errors import GraderError
from grader.grading import confined_messages as messages
from grader.grading.session import with_grader
from grader.sandbox.confinement.layers import confine, prepare
from grader.sandbox.control import Ended

if TYPE_CHECKING:
    from grader.grading.grader import Grader


class Host:
    """The host, as this process sees it: exchanges messages, and is a source of workers."""

    def __init__(self, orders: socket.socket) -> None:
        self._orders = orders
        self.on_wait: Callable[[], None] = lambda: None  # only the host is asked to stop

    def send(self, message: msgspec.Struct) -> None:
        """Send a message."""
        self._orders.sendall(messages.frame(message))

    def receive(self) -> messages.ToProcess:
        """Return the next message; raises `EOFError` if there will be none."""
        message: messages.ToProcess = messages.decode_order(self.receive_body())
        return message

    def receive_body(self) -> bytes:
        """Return the bytes of the next message, and read nothing after it."""
        (length,) = messages.HEADER.unpack(self._exactly(messages.HEADER.size))
        return self._exactly(length)

    def _exactly(self, count: int) -> bytes:
        data = b""
        while len(data) < count:
            if not (piece := self._orders.recv(count - len(data))):
                raise EOFError
            data += piece
        return data

    def start(self) -> None:
        """Do nothing: the host has started the source of workers."""

    def prepare_training(self) -> None:
        """Make the next workers start with the imports of an optimizer."""
        self.send(messages.PrepareTraining())

    def start_worker(self) -> tuple[socket.socket, int]:
        """Return the socket and the pid of a new worker."""
        self.send(messages.StartWorker())
        started = self.receive()
        assert isinstance(started, messages.WorkerStarted)
        _, (fd,), _, _ = socket.recv_fds(self._orders, len(messages.PASSED), 1)
        # Given in full, because Python would otherwise ask the kernel, which is not allowed here.
        return socket.socket(started.family, socket.SOCK_STREAM, 0, fileno=fd), started.pid

    def interrupt(self, pid: int) -> None:
        """Make worker `pid` send the line that its code is running."""
        self.send(messages.InterruptWorker(pid))
        self.receive()

    def reap(self, pid: int, grace: float) -> Ended | None:
        """End worker `pid` within `grace` seconds; return how, or None if that is not known."""
        self.send(messages.ReapWorker(pid, grace))
        ended = self.receive()
        assert isinstance(ended, messages.WorkerEnded)
        return ended.how


def serve(host: Host) -> None:
    """Confine this process, then carry out the host's orders until there are no more."""
    setup = messages.decode_setup(host.receive_body())
    import grader.grading.grader  # noqa: F401, PLC0415, torch and pytest, before it is confined

    prepare()
    confine(setup.confinement, Path(setup.private), os.getppid())
    os.chdir(setup.course)  # the host then removes the private folder: nothing can be written
    host.send(messages.Confined())
    host.receive()

    def grade_on_order(grader: Grader) -> None:
        while True:
            try:
                order = host.receive()
            except EOFError:
                return
            assert isinstance(order, messages.Grade)
            grading = grader.grade(order.submission, order.names, order.seed, on_exercise)
            host.send(messages.Graded(msgspec.json.encode(grading.report)))

    def on_exercise(name: str, note: str = "") -> None:
        host.send(messages.Note(name, note))

    try:
        course = load_course(Path(setup.course), setup.chosen).as_reviewed()
        with_grader(course, setup.names, host, grade_on_order)
    except GraderError as error:
        host.send(messages.CourseFailed.of(error))


if __name__ == "__main__":
    serve(Host(socket.socket(fileno=int(sys.argv[1]))))
    os._exit(0)
