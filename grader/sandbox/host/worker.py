"""The trusted end of a worker's socket: messages out, answers in, and never a moment too long.

Everything a worker can do wrong comes out of `Worker.request` as a `StudentFailure`.
"""

from __future__ import annotations

import math
import signal
import socket
import struct
import time
from typing import Any, Protocol

from grader.errors import InternalError, StudentFailure
from grader.sandbox import wire
from grader.sandbox.confinement.layers import Unconfined
from grader.sandbox.control import Ended
from grader.sandbox.host.zygote import CONTROL_SECONDS, Zygote, cannot_confine

CHUNK = 1 << 18
STEP = 0.1  # seconds; the kernel's time limits are set anew only when they change by a step
GRACE = 0.2  # seconds a worker that hung up has to end by itself, so that its status can be told


class Connection(Protocol):
    """The narrow seam to a worker: one request in, one answer out."""

    @property
    def layers(self) -> tuple[str, ...]:
        """The confinement that took hold."""

    def post(self, request: wire.Quiet) -> None:
        """Send a request that has no answer; at the latest with the next `request`."""

    def discard(self) -> None:
        """Forget what was posted and not sent yet."""

    def request(self, request: Any, seconds: float) -> wire.Answer:
        """Send a request and wait for its answer, for `seconds` at most."""

    def close(self) -> None:
        """End the worker."""


class Worker:
    """One worker process: `request` in, answer out, killed when it is late."""

    def __init__(self, zygote: Zygote) -> None:
        self._zygote = zygote
        self._socket, self.pid = zygote.fork()
        self._buffer = self._outbox = b""
        self._allowed = 0
        self._layers: tuple[str, ...] | None = None
        self._closed = False

    @property
    def layers(self) -> tuple[str, ...]:
        """The confinement that took hold; the worker says so before it reads the submission."""
        if self._layers is None:
            try:
                hello = self._receive(time.monotonic() + CONTROL_SECONDS)
            except (EOFError, OSError, wire.Malformed) as error:
                raise InternalError(f"a worker does not come up: {error!r}") from error
            self._layers = _layers_of(hello)
        return self._layers

    def post(self, request: wire.Quiet) -> None:
        """Send a request that has no answer, together with the next one that has."""
        self._outbox += wire.frame(request)

    def discard(self) -> None:
        """Forget what was posted and not sent yet."""
        self._outbox = b""

    def request(self, request: Any, seconds: float) -> wire.Answer:
        """The answer to `request`; a late, dead or babbling worker is a `StudentFailure`."""
        assert self.layers
        end = time.monotonic() + seconds
        framed = self._outbox + wire.frame(request)
        self._outbox = b""
        if len(framed) > wire.MAX_FRAME:
            raise InternalError(f"a suite sends {len(framed)} bytes in one call; that is too much")
        try:
            self._send(framed, end)
            answer = self._receive(end)
            if answer.id != request.id or self._buffer:
                raise wire.Malformed("an answer that was not asked for")
        except (TimeoutError, BlockingIOError):
            self.close()
            raise StudentFailure(
                "Timeout", f"your code did not finish within {seconds:g} seconds"
            ) from None
        except (EOFError, OSError):
            raise StudentFailure("Crash", self._how_it_ended()) from None
        except wire.Malformed as error:
            self.close()
            raise StudentFailure(
                "Protocol", f"your code interfered with the grader's connection: {error}"
            ) from None
        return answer

    def _send(self, data: bytes, end: float) -> None:
        self._allow(end - time.monotonic())
        sent = self._socket.send(data)
        while sent < len(data):
            self._allow(end - time.monotonic())
            sent += self._socket.send(data[sent : sent + CHUNK])

    def _allow(self, seconds: float) -> None:
        """Let the kernel end a send or a receive after `seconds`: no system call of our own."""
        if seconds <= 0:
            raise TimeoutError
        steps = math.ceil(seconds / STEP)
        if steps != self._allowed:
            self._allowed = steps
            limit = struct.pack("ll", *divmod(int(steps * STEP * 1e6), 1_000_000))
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, limit)
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, limit)

    def _receive(self, end: float) -> wire.Answer:
        size = wire.HEADER.size
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
            self._allow(end - time.monotonic())
            part = self._socket.recv(CHUNK)
            if not part:
                raise EOFError
            parts.append(part)
            have += len(part)
        self._buffer = b"".join(parts)

    def _how_it_ended(self) -> str:
        ended = self._end(GRACE)
        if ended is None:
            return "your code ended the process it ran in"
        if ended.reason:
            return ended.reason
        status = ended.status
        if status == -signal.SIGKILL:
            return "your code ended the process it ran in"
        if status < 0:
            known = {number.value: number.name for number in signal.Signals}
            name = known.get(-status, f"signal {-status}")
            reason = {"SIGSEGV": "a segmentation fault", "SIGABRT": "an abort"}.get(name, name)
            return f"your code crashed the Python interpreter ({reason})"
        return f"your code ended the process it ran in (exit code {status})"

    def close(self) -> None:
        """End the worker, now."""
        self._end(0.0)

    def _end(self, grace: float) -> Ended | None:
        if self._closed:
            return None
        self._closed = True
        self._socket.close()
        return self._zygote.reap(self.pid, grace)


def _layers_of(hello: wire.Answer) -> tuple[str, ...]:
    """The layers a worker says it is confined by; its refusal to start is raised."""
    if isinstance(hello, wire.Failure) and hello.kind == Unconfined.__name__:
        raise cannot_confine(hello.message)
    value = hello.value if isinstance(hello, wire.Reply) else None
    if not isinstance(value, wire.WireList):
        raise InternalError(
            f"a worker cannot be confined: {getattr(hello, 'message', 'it says nothing')}",
            "grader doctor   tries each layer",
        )
    return tuple(str(layer) for layer in value.items)
