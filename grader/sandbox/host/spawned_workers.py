"""The source of workers on systems that cannot fork: each one is a process that imports torch."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Callable
from typing import Any

from grader.processes import channel
from grader.processes.child import ONE_THREAD, clean_environment
from grader.sandbox import control
from grader.sandbox.confinement.limits import Confinement
from grader.sandbox.host.source import CONTROL_SECONDS, does_not_start
from grader.sandbox.host.spawning import SpawnedProcess, Spawner

MODULE = "grader.sandbox.worker.spawned"


class SpawnedWorkers:
    """Workers that are spawned.

    With `ahead`, a `with` block starts the first one before it is needed; with `again`, the next
    one starts when one has ended.
    """

    def __init__(
        self, confinement: Confinement | None = None, *, ahead: bool = True, again: bool = False
    ) -> None:
        self.confinement = confinement or Confinement()
        self._ahead, self._again = ahead, again
        self.on_wait: Callable[[], None] = lambda: None  # called while a worker computes; may raise
        self._spawner = Spawner(MODULE, "workers", clean_environment(**ONE_THREAD))
        self._running: dict[int, SpawnedProcess] = {}

    def __enter__(self) -> SpawnedWorkers:
        if self._ahead:
            self.start()
        return self

    def __exit__(self, *exc: Any) -> None:
        self.close()

    def start(self) -> None:
        """Start the first worker; return while it still imports torch."""
        if not self._running:
            self._spawner.start()

    def prepare_training(self) -> None:
        """Do nothing: each worker imports for itself, and only if it trains."""

    def start_worker(self) -> tuple[socket.socket, int]:
        """Return the socket and the pid of a new worker. Raises `InternalError` if none starts."""
        process = self._spawner.take()
        try:
            connection = process.meet(CONTROL_SECONDS)
            channel.send(connection, control.encode(self.confinement))
        except BaseException as error:
            process.close()
            if isinstance(error, OSError | EOFError):
                raise does_not_start(str(error)) from error
            raise
        self._running[process.pid] = process
        return connection, process.pid

    def interrupt(self, pid: int) -> None:
        """Make worker `pid` send the place where its code is."""
        if pid in self._running:
            self._running[pid].order()

    def reap(self, pid: int, grace: float) -> control.Ended | None:
        """End worker `pid` within `grace` seconds; return how it ended, or None if unknown."""
        process = self._running.pop(pid, None)
        if process is None:
            return None
        with contextlib.closing(process):
            status = process.wait(grace)
        if self._again:
            self._spawner.start()
        return control.Ended(1, control.HUNG_UP) if status is None else control.Ended(status)

    def close(self) -> None:
        """End all workers."""
        self._spawner.close()
        while self._running:
            self._running.popitem()[1].close()
