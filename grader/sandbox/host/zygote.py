"""The host's handle on the zygote: starts it, and asks it to fork and end workers.

Imports no torch: a command starts the zygote first, and both then import torch at the same time.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import socket
from collections.abc import Callable
from typing import Any

from grader.errors import InternalError
from grader.processes import channel
from grader.processes.child import (
    ONE_THREAD,
    ChildProcess,
    clean_environment,
    module_command,
)
from grader.sandbox import control
from grader.sandbox.confinement.limits import Confinement
from grader.sandbox.host.source import CONTROL_SECONDS, does_not_start


class Zygote:
    """A zygote process. If it dies, a new one is started when the next worker is needed.

    With `control`, a socket from another host's `share`, it is that host's zygote, and no new one
    is started. With `core`, its workers run on that core alone. With `ahead`, a `with` block starts
    it before the first worker is needed.
    """

    def __init__(
        self,
        confinement: Confinement | None = None,
        control: socket.socket | None = None,
        core: int | None = None,
        *,
        ahead: bool = True,
    ) -> None:
        self._ahead = ahead
        self.confinement, self._core = confinement or Confinement(), core
        self._process: ChildProcess | None = None
        self._control = control
        self._is_shared = control is not None
        self._is_preparing = False  # for training; the answer comes when the imports are done
        self.has_died = False  # by itself, which makes the answers of its last workers invalid
        self.on_wait: Callable[[], None] = lambda: None  # called while a worker computes; may raise
        if control is not None:
            control.settimeout(CONTROL_SECONDS)

    def __enter__(self) -> Zygote:
        if self._ahead:
            self.start()
        return self

    def __exit__(self, *exc: Any) -> None:
        self.close()

    @property
    def pid(self) -> int | None:
        """The process id of the zygote; None if it is not running or belongs to another host."""
        return self._process.pid if self._process else None

    def start(self) -> None:
        """Start the process if necessary; return while it still imports torch."""
        if self._control is not None:
            return
        command = module_command("grader.sandbox.worker.zygote")
        # Its folder holds the private folder of each worker.
        self._process = ChildProcess(
            command,
            purpose="workers",
            env=clean_environment(**ONE_THREAD),
            seconds=CONTROL_SECONDS,
        )
        self._control = self._process.orders

    def prepare_training(self) -> None:
        """Let the zygote import an optimizer's modules; return while it still does."""
        self.start()
        assert self._control is not None
        with contextlib.suppress(OSError):  # a worker that trains imports it itself
            channel.send(self._control, control.encode(control.Prepare()))
            self._is_preparing = True

    def start_worker(self) -> tuple[socket.socket, int]:
        """Start a worker; return its socket and pid. Raises `InternalError` after two attempts."""
        try:
            return self._fork()
        except (OSError, EOFError) as error:
            self.close()
            self.has_died = True
            if self._is_shared:
                raise InternalError("the process that runs student code has ended") from error
        # The zygote may have died since the last worker, so a new one gets a second attempt.
        try:
            return self._fork()
        except (OSError, EOFError) as error:
            why = (self._process and self._process.last_error_line()) or repr(error)
            raise does_not_start(why) from error

    def _fork(self) -> tuple[socket.socket, int]:
        ours = self._send_socket(control.Fork(self.confinement, self._core))
        try:
            return ours, control.decode_pid(self._answer())
        except BaseException:
            ours.close()
            raise

    def share(self) -> socket.socket:
        """Return a second control socket of the zygote, for a host forked from this one."""
        return self._send_socket(control.Share())

    def _send_socket(self, order: control.Fork | control.Share) -> socket.socket:
        self.start()
        assert self._control is not None
        if self._is_preparing:
            self._is_preparing = False
            self._answer()
        ours, theirs = socket.socketpair()
        with theirs:
            channel.send(self._control, control.encode(order), theirs)
        return ours

    def interrupt(self, pid: int) -> None:
        """Make worker `pid` send the place where its code is."""
        if self._control is not None:
            with contextlib.suppress(OSError, EOFError):  # ending the worker will notice
                channel.send(self._control, control.encode(control.Interrupt(pid)))
                control.decode_pid(self._answer())

    def reap(self, pid: int, grace: float) -> control.Ended | None:
        """End worker `pid` within `grace` seconds; return how, or None if the zygote is gone."""
        if self._control is None:
            return None
        try:
            channel.send(self._control, control.encode(control.Reap(pid, grace)))
            return control.decode_ended(self._answer())
        except (OSError, EOFError):
            with contextlib.suppress(OSError):
                os.killpg(pid, signal.SIGKILL)
            self.close()
            self.has_died = True
            return None

    def await_readable(self, connection: Any) -> bool:
        """Wait until `connection` can be read; return False if the zygote ends before that."""
        assert self._control is not None
        return self._control not in select.select([connection, self._control], [], [])[0]

    def _answer(self) -> bytes:
        assert self._control is not None
        return channel.receive(self._control.recv)

    def close(self) -> None:
        """End the zygote and its workers."""
        if self._control is not None:
            self._control.close()
        if self._process is not None:
            self._process.close()
        self._control = self._process = None
        self._is_preparing = False
