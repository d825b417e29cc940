"""What a forked child does first: it lets go of what is its parent's."""

from __future__ import annotations

import contextlib
import os
import socket

CONNECTION = 3  # the descriptor of a child's socket; all above it are closed


def keep_only(descriptor: int) -> socket.socket:
    """Leave this process one descriptor, that of a socket; return the socket.

    The process leads a session of its own, and its standard streams lead nowhere.
    """
    os.setsid()
    os.dup2(descriptor, CONNECTION)
    null = os.open(os.devnull, os.O_RDWR)
    for standard in range(3):
        os.dup2(null, standard)
    os.closerange(CONNECTION + 1, os.sysconf("SC_OPEN_MAX"))
    return socket.socket(fileno=CONNECTION)


def keep_to(core: int | None) -> None:
    """Run this process on one core alone, if one is given and still there."""
    if core is not None:
        with contextlib.suppress(OSError):
            os.sched_setaffinity(0, {core})
