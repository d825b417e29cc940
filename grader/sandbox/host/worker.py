"""The trusted end of a worker's socket: sends requests, reads answers, enforces time limits."""

from __future__ import annotations

import functools
import math
import signal
import socket
import struct
import sys
import time
from collections.abc import Callable
from typing import Any, Protocol, TypeVar

from grader.errors import InternalError, StudentFailure, WorkerLost
from grader.processes.channel import HEADER
from grader.report import Frame
from grader.sandbox import wire
from grader.sandbox.confinement.limits import Unconfined
from grader.sandbox.control import Ended
from grader.sandbox.host.processor import Starvation, waited_by
from grader.sandbox.host.source import CONTROL_SECONDS, WorkerSource, cannot_confine

MAX_LINE = 80  # characters of a line of code in a message
CHUNK = 1 << 18  # bytes for one send or receive
STEP = 0.1  # seconds; the socket's timeout is set again only when it changes by a step
BEAT = 0.5  # the most seconds of one wait for a worker
STANDSTILL = 1.0  # seconds beyond a beat that show that this process stood still
PLACE_SECONDS = 0.3  # seconds for a worker with a late answer to tell where its code is
IMPORT_SECONDS = 20.0  # extra seconds, once, for imports: torch loads some parts on first use
GRACE = 0.2  # seconds for a worker that hung up to end, so that its exit status is known
# Signals by which a system or a person ends processes. A program's own faults raise others.
FROM_OUTSIDE = ("SIGKILL", "SIGTERM", "SIGHUP", "SIGINT", "SIGQUIT")
# The smallest exit code of a process that Windows itself has ended.
FIRST_FAULT = 0xC0000000
FAULTS = {0xC0000005: "an access violation", 0xC00000FD: "a stack overflow"}
T = TypeVar("T")


class CallWatcher(Protocol):
    """The interface of a watcher of a long call."""

    def hear(self, progress: wire.TrainingStep) -> None:
        """Take note of the code's progress."""

    def check(self, pid: int) -> None:
        """Raise `StudentFailure` if the worker `pid` has used more than it may."""


class Transport(Protocol):
    """The interface of a worker for a connection: one request, one answer."""

    @property
    def layers(self) -> tuple[str, ...]:
        """The names of the confinement layers that the worker applied."""

    def post(self, request: wire.Quiet) -> None:
        """Queue a request without an answer, to be sent no later than the next `request`."""

    def discard(self) -> None:
        """Drop the requests that are queued and not sent."""

    def request(
        self, request: Any, seconds: float, watcher: CallWatcher | None = None
    ) -> wire.Answer:
        """Send a request and return its answer. Raises `StudentFailure` after `seconds`.

        The watcher gets the call's progress.
        """

    def waited(self) -> float:
        """Return the seconds that the worker has waited for a core."""

    def close(self) -> None:
        """End the worker."""


class Worker:
    """A worker process: sends it requests, returns its answers, kills it if it is late."""

    def __init__(self, source: WorkerSource) -> None:
        self._source = source
        self._socket, self.pid = source.start_worker()
        self._buffer = self._outbox = b""
        self._timeout_steps = 0
        self._layers: tuple[str, ...] | None = None
        self._has_imported = False
        self._seconds = 0.0  # seconds for the current call
        self._starvation: Starvation | None = None  # of that call, once it has taken a beat
        self._watcher: CallWatcher | None = None  # of the current call
        self._closed = False

    @property
    def layers(self) -> tuple[str, ...]:
        """The names of the confinement layers that the worker applied.

        The worker sends them before it reads the submission. Raises `RequestError` if a layer is
        missing, `WorkerLost` if the worker does not start.
        """
        if self._layers is None:
            try:
                hello = self._receive(time.monotonic() + CONTROL_SECONDS)
            except (EOFError, OSError, wire.Malformed) as error:
                raise WorkerLost(f"a worker did not start: {error!r}") from error
            self._layers = _layers_of(hello)
        return self._layers

    def post(self, request: wire.Quiet) -> None:
        """Queue a request without an answer; the next `request` sends it along."""
        self._outbox += wire.frame(request)

    def discard(self) -> None:
        """Drop the requests that are queued and not sent."""
        self._outbox = b""

    def request(
        self, request: Any, seconds: float, watcher: CallWatcher | None = None
    ) -> wire.Answer:
        """Send a request and return its answer; the watcher gets the progress until then.

        Raises `StudentFailure` if the answer does not come within `seconds` (`Timeout`), if the
        code ends the worker (`Crash`), or if it sends anything but the answer (`Protocol`). Raises
        `WorkerLost` if anything else ends the worker, or stops this process meanwhile.
        """
        assert self.layers
        self._outbox += wire.frame(request)
        if (size := len(self._outbox)) > wire.MAX_FRAME:
            self._outbox = b""
            message = f"a suite sends {size} bytes in one call; the limit is {wire.MAX_FRAME}"
            raise InternalError(message)
        self._watcher, self._starvation, self._seconds = watcher, None, seconds
        try:
            return self._exchange(request.id, seconds)
        finally:
            self._watcher = None
            self._seconds = 0.0

    def waited(self) -> float:
        """Return the seconds that the worker has waited for a core in its life."""
        return waited_by(self.pid)

    def _exchange(self, number: int, seconds: float) -> wire.Answer:
        """Send the queued requests and return the answer; wait longer, once, for an import."""
        end = time.monotonic() + seconds
        try:
            self._send(end)
            answer = self._receive_answer(number, end)
            if answer.id != number or self._buffer:
                raise wire.Malformed("an answer that no request asked for")
        except TimeoutError:
            place = self._place()
            if place and place.message == wire.IMPORTING and not self._has_imported:
                self._has_imported = True
                return self._exchange(number, IMPORT_SECONDS)
            self.close()
            raise late(seconds, place) from None
        except (EOFError, OSError) as error:
            raise self._failure_of(error) from None
        except StudentFailure:  # raised by the watcher
            self.close()
            raise
        except wire.Malformed as error:
            self.close()
            message = f"your code interfered with the grader's connection: {error}"
            raise StudentFailure("Protocol", message) from None
        return answer

    def _place(self) -> wire.Failure | None:
        """Return the place of a late worker's code, if the worker can still tell."""
        self._buffer, self._starvation, self._seconds = b"", None, 0.0
        try:
            self._source.interrupt(self.pid)
            answer = self._receive_answer(None, time.monotonic() + PLACE_SECONDS)
        except (OSError, EOFError, WorkerLost, wire.Malformed):
            return None
        return answer if isinstance(answer, wire.Failure) and answer.kind == "Timeout" else None

    def _send(self, end: float) -> None:
        """Send the queued requests; after a `TimeoutError`, the rest is still queued."""
        while self._outbox:
            part = self._outbox[:CHUNK]
            sent = self._until(end, functools.partial(self._socket.send, part))
            self._outbox = self._outbox[sent:]

    def _until(self, end: float, transfer: Callable[[], T]) -> T:
        """Return the result of a send or receive; wait for it in beats, at most until `end`.

        While the worker waits for a core, the end moves. After each beat, the source's `on_wait`
        may raise. A beat that takes much too long shows that this process stood still, and most
        likely the worker as well. Raises `TimeoutError` at the `end`, `WorkerLost` after a
        standstill.
        """
        while (left := self._left(end, begun := time.monotonic())) > 0:
            beat = self._set_timeout(left)
            try:
                return transfer()
            except (BlockingIOError, TimeoutError):
                self._source.on_wait()
                self._check()
                if self._starvation is None and self._seconds:
                    self._starvation = Starvation(self.pid, self._seconds)
            finally:
                if (late := time.monotonic() - begun - beat) > STANDSTILL:
                    raise WorkerLost(f"the machine stood still for {late:.0f} seconds")
        raise TimeoutError

    def _left(self, end: float, now: float) -> float:
        """Return the seconds until the end, with those owed for the wait for a core."""
        left = end - now
        return left if left > 0 or self._starvation is None else left + self._starvation.owed()

    def _check(self) -> None:
        """Raise `StudentFailure` if a watched call has used more than its limit."""
        if self._watcher is not None:
            self._watcher.check(self.pid)

    def _set_timeout(self, seconds: float) -> float:
        """Make the kernel end a send or receive after a beat, or after `seconds` if that is less.

        A timeout in the kernel saves a `poll` before each call, which a Python timeout needs.
        Return the timeout in seconds.
        """
        steps = math.ceil(min(seconds, BEAT) / STEP)
        if steps != self._timeout_steps:
            self._timeout_steps = steps
            if sys.platform == "linux":
                limit = struct.pack("ll", *divmod(int(steps * STEP * 1e6), 1_000_000))
                self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, limit)
                self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, limit)
            else:
                self._socket.settimeout(steps * STEP)
        return steps * STEP

    def _receive_answer(self, number: int | None, end: float) -> wire.Answer:
        """Return the next answer; pass on messages before it, about request `number`."""
        for _ in range(wire.MAX_PROGRESS):
            message = self._receive(end)
            if not isinstance(message, wire.TrainingStep):
                return message
            if number is not None:
                if message.id != number or self._watcher is None:
                    raise wire.Malformed("progress of no call")
                self._watcher.hear(message)
                self._check()
        raise wire.Malformed(f"progress was reported more than {wire.MAX_PROGRESS} times")

    def _receive(self, end: float) -> wire.Answer | wire.TrainingStep:
        size = HEADER.size
        self._fill(size, end)
        total = size + wire.body_length(self._buffer[:size])
        self._fill(total, end)
        body, self._buffer = self._buffer[size:total], self._buffer[total:]
        return wire.decode_answer(body)

    def _fill(self, count: int, end: float) -> None:
        if len(self._buffer) >= count:
            return
        parts, have = [self._buffer], len(self._buffer)
        while have < count:
            part = self._until(end, functools.partial(self._socket.recv, CHUNK))
            if not part:
                raise EOFError
            parts.append(part)
            have += len(part)
        self._buffer = b"".join(parts)

    def _failure_of(self, error: Exception) -> StudentFailure | WorkerLost:
        """Return why a worker hung up: a failure of the student only if their code ended it."""
        ended = self._end(GRACE)
        if ended is None:
            return WorkerLost(f"the process that runs student code has ended: {error!r}")
        if ended.reason:
            return StudentFailure("Crash", ended.reason)
        if ended.status >= FIRST_FAULT:
            return _crash(FAULTS.get(ended.status, f"fault {ended.status:#x}"))
        if ended.status >= 0:
            says = f"your code ended the process it ran in (exit code {ended.status})"
            return StudentFailure("Crash", says)
        names = {number.value: number.name for number in signal.Signals}
        name = names.get(-ended.status, f"signal {-ended.status}")
        if name in FROM_OUTSIDE:
            return WorkerLost(f"{name} ended the process that ran the code")
        return _crash({"SIGSEGV": "a segmentation fault", "SIGABRT": "an abort"}.get(name, name))

    def close(self) -> None:
        """End the worker immediately."""
        self._end(0.0)

    def _end(self, grace: float) -> Ended | None:
        if self._closed:
            return None
        self._closed = True
        self._socket.close()
        return self._source.reap(self.pid, grace)


def _crash(how: str) -> StudentFailure:
    return StudentFailure("Crash", f"your code crashed the Python interpreter ({how})")


def late(seconds: float, place: wire.Failure | None) -> StudentFailure:
    """Return the failure of code that did not finish, with its place."""
    message = f"your code did not finish within {seconds:g} seconds"
    failure = StudentFailure("Timeout", message)
    if place is not None and place.frames:
        frames = tuple(Frame(f.file, f.line, f.source, f.column, f.function) for f in place.frames)
        line = frames[-1].source.strip()
        line = line if len(line) <= MAX_LINE else line[:MAX_LINE] + "…"
        failure = StudentFailure("Timeout", f"{message}; it was at `{line}`", frames)
    failure.printed = place.printed if place else ""
    return failure


def _layers_of(hello: wire.Answer | wire.TrainingStep) -> tuple[str, ...]:
    """Return the layers in a worker's first message. Raises its refusal to start."""
    if isinstance(hello, wire.Failure) and hello.kind == Unconfined.__name__:
        raise cannot_confine(hello.message)
    value = hello.value if isinstance(hello, wire.Reply) else None
    if not isinstance(value, wire.WireList):
        reason = getattr(hello, "message", "it did not name its layers")
        message = f"a worker could not be confined: {reason}"
        raise InternalError(message, "grader doctor   tries each layer")
    return tuple(str(layer) for layer in value.items)
