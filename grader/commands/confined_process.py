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
from grader.processes import channel
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
        channel.send(self._orders, messages.encode(message))

    def receive(self) -> messages.ToProcess:
        """Return the next message; raises `EOFError` if there will be none."""
        message: messages.ToProcess = messages.decode_order(channel.receive(self._orders.recv))
        return message

    def start(self) -> None:
        """Do nothing: the host has started the source of workers."""

    def prepare_training(self) -> None:
        """Make the next workers start with the imports of an optimizer."""
        self.send(messages.PrepareTraining())

    def start_worker(self) -> tuple[socket.socket, int]:
        """Return the socket and the pid of a new worker."""
        self.send(messages.StartWorker())
        body, descriptor = channel.receive_passed(self._orders)
        started = messages.decode_order(body)
        assert isinstance(started, messages.WorkerStarted)
        # All that Python would otherwise have to ask the kernel for, which is not allowed here.
        worker = socket.socket(started.family, socket.SOCK_STREAM, 0, fileno=descriptor)
        return worker, started.pid

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


def serve(orders: socket.socket) -> None:
    """Confine this process, then grade what the host orders until it orders no more."""
    setup = messages.decode_setup(channel.receive(orders.recv))
    import grader.grading.grader  # noqa: F401, PLC0415, torch and pytest, before it is confined

    prepare()
    confine(setup.confinement, Path(setup.private), os.getppid())
    os.chdir(setup.course)  # the host removes the private folder: nothing can be written
    host = Host(orders)
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
    serve(socket.socket(fileno=int(sys.argv[1])))
    os._exit(0)
