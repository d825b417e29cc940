"""The interface of a source of workers, which a zygote and spawned workers share.

Imports no torch: a command starts the source first, and both then import torch at the same time.
"""

from __future__ import annotations

import socket
from collections.abc import Callable
from typing import Protocol

from grader.errors import InternalError, RequestError
from grader.sandbox.control import Ended

CONTROL_SECONDS = 60.0  # seconds to start a worker, imports included


class WorkerSource(Protocol):
    """A source of workers: a zygote that forks them, or one that spawns each."""

    on_wait: Callable[[], None]  # called while a worker computes; may raise

    def start(self) -> None:
        """Start the process for the first worker; return while it still imports torch."""

    def prepare_training(self) -> None:
        """Let the next workers start with an optimizer's imports, where that saves time."""

    def start_worker(self) -> tuple[socket.socket, int]:
        """Start a worker; return its socket and pid. Raises `InternalError` if none starts."""

    def interrupt(self, pid: int) -> None:
        """Make worker `pid` send the place where its code is."""

    def reap(self, pid: int, grace: float) -> Ended | None:
        """End worker `pid` within `grace` seconds; return how it ended, or None if unknown."""


def does_not_start(why: str) -> InternalError:
    """Return the error for a machine on which no worker starts."""
    return InternalError(
        f"the process that runs student code does not start: {why}",
        "python -c 'import torch'   shows whether torch can be imported",
    )


def cannot_confine(why: str) -> RequestError:
    """Return the error for full confinement on a machine without a layer; `why` names the layer."""
    return RequestError(
        f"this machine cannot confine other people's code. {why}",
        "grader doctor   says what to do; --isolation process grades without the missing layer",
    )
