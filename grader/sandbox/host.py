"""The trusted side of the boundary: start the zygote, have workers forked, exchange messages.

Everything a worker can do wrong comes out of `Worker.request` as a `StudentFailure`; everything
the zygote can do wrong as an `InternalError`, after one try with a fresh zygote.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from typing import Any, Protocol

import msgspec

from grader.errors import InternalError, StudentFailure
from grader.sandbox import wire
from grader.sandbox.confine import Confinement
from grader.sandbox.worker import GRACE, Fork, Reap

CONTROL_SECONDS = 60.0  # a zygote that says nothing for so long (importing torch included) is gone
CHUNK = 1 << 18


class Connection(Protocol):
    """The narrow seam to a worker: one request in, one answer out."""

    layers: tuple[str, ...]

    def post(self, request: wire.Begin | wire.Seed) -> None:
        """Send a request that has no answer."""

    def request(self, request: Any, seconds: float) -> wire.Answer:
        """Send a request and wait for its answer, for `seconds` at most."""

    def close(self) -> None:
        """End the worker."""


class Sandbox:
    """One zygote, and the workers forked from it."""

    def __init__(self, confinement: Confinement | None = None) -> None:
        self._confinement = confinement or Confinement()
        self._process: subprocess.Popen[bytes] | None = None
        self._control: socket.socket | None = None
        self._errors: Any = None

    def __enter__(self) -> Sandbox:
        self.start()
        return self

    def __exit__(self, *exc: Any) -> None:
        self.close()

    @property
    def pid(self) -> int | None:
        """The zygote's process, while it runs."""
        return self._process.pid if self._process else None

    def start(self) -> None:
        """Start the zygote; returns at once, torch is imported over there meanwhile."""
        if self._process is not None:
            return
        self._control, theirs = socket.socketpair()
        self._control.settimeout(CONTROL_SECONDS)
        self._errors = tempfile.TemporaryFile()
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-W", "ignore", "-m", "grader.sandbox.worker"]
                + [str(theirs.fileno())],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=self._errors,
                env=_clean_environment(),
                start_new_session=True,
            )

    def worker(self) -> Worker:
        """A fresh worker. A zygote that has died is started again once."""
        try:
            return self._fork()
        except (OSError, EOFError):
            self.close()
        try:
            return self._fork()
        except (OSError, EOFError) as error:
            said = self._last_words()
            raise InternalError(
                f"the process that runs student code does not start: {said or error!r}",
                "run `python -c 'import torch'` to see whether torch itself imports",
            ) from error

    def _fork(self) -> Worker:
        self.start()
        assert self._control is not None
        ours, theirs = socket.socketpair()
        with theirs:
            request = msgspec.msgpack.encode(Fork(self._confinement))
            try:
                socket.send_fds(self._control, [request], [theirs.fileno()])
                pid = self._answer()
            except BaseException:
                ours.close()
                raise
        return Worker(self, ours, pid)

    def reap(self, pid: int, grace: float) -> int | None:
        """End worker `pid`; its exit status, or None if the zygote is gone and cannot tell."""
        if self._control is None:
            return None
        try:
            self._control.sendall(msgspec.msgpack.encode(Reap(pid, grace)))
            return self._answer()
        except (OSError, EOFError):
            with contextlib.suppress(OSError):
                os.killpg(pid, signal.SIGKILL)
            self.close()
            return None

    def _answer(self) -> int:
        assert self._control is not None
        data = self._control.recv(4096)
        if not data:
            raise EOFError("the zygote has ended")
        return msgspec.msgpack.decode(data, type=int)

    def _last_words(self) -> str:
        if self._errors is None:
            return ""
        self._errors.seek(0)
        lines = self._errors.read().decode("utf-8", "replace").strip().splitlines()
        return lines[-1] if lines else ""

    def close(self) -> None:
        """End the zygote; its workers end with it."""
        if self._control is not None:
            self._control.close()
        if self._process is not None:
            self._process.kill()
            self._process.wait()
        self._control = self._process = None


class Worker:
    """One worker process: `request` in, answer out, killed when it is late."""

    def __init__(self, sandbox: Sandbox, connection: socket.socket, pid: int) -> None:
        self.pid = pid
        self._sandbox = sandbox
        self._socket = connection
        self._buffer = b""
        self._layers: tuple[str, ...] | None = None
        self._closed = False

    @property
    def layers(self) -> tuple[str, ...]:
        """The confinement that took hold; the worker says so before it reads the submission."""
        if self._layers is None:
            hello = self._receive(time.monotonic() + CONTROL_SECONDS)
            value = hello.value if isinstance(hello, wire.Reply) else None
            assert isinstance(value, wire.WireList)
            self._layers = tuple(str(layer) for layer in value.items)
        return self._layers

    def post(self, request: wire.Begin | wire.Seed) -> None:
        """Send a request that has no answer."""
        with contextlib.suppress(OSError):  # a dead worker shows at the next answer
            self._socket.settimeout(CONTROL_SECONDS)
            self._socket.sendall(wire.frame(request))

    def request(self, request: Any, seconds: float) -> wire.Answer:
        """The answer to `request`; a late, dead or babbling worker is a `StudentFailure`."""
        assert self.layers
        end = time.monotonic() + seconds
        framed = wire.frame(request)
        if len(framed) > wire.MAX_FRAME:
            raise InternalError(f"a suite sends {len(framed)} bytes in one call; that is too much")
        try:
            self._socket.settimeout(seconds)
            self._socket.sendall(framed)
            answer = self._receive(end)
            if answer.id != request.id or self._buffer:
                raise wire.Malformed("an answer that was not asked for")
        except TimeoutError:
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
            left = end - time.monotonic()
            if left <= 0:
                raise TimeoutError
            self._socket.settimeout(left)
            part = self._socket.recv(CHUNK)
            if not part:
                raise EOFError
            parts.append(part)
            have += len(part)
        self._buffer = b"".join(parts)

    def _how_it_ended(self) -> str:
        status = self._end(GRACE)
        if status is None or status == -signal.SIGKILL:
            return "your code ended the process it ran in"
        if status < 0:
            name = signal.Signals(-status).name
            reason = {"SIGSEGV": "a segmentation fault", "SIGABRT": "an abort"}.get(name, name)
            return f"your code crashed the Python interpreter ({reason})"
        return f"your code ended the process it ran in (exit code {status})"

    def close(self) -> None:
        """End the worker, now."""
        self._end(0.0)

    def _end(self, grace: float) -> int | None:
        if self._closed:
            return None
        self._closed = True
        self._socket.close()
        return self._sandbox.reap(self.pid, grace)


def _clean_environment() -> dict[str, str]:
    """Nothing of the teacher's environment, and one thread: a fork must not lose others."""
    return {
        "PATH": os.defpath,
        "LANG": "C.UTF-8",
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
        "MKL_NUM_THREADS": "1",
    }
