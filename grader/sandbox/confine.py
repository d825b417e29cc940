"""Confining a worker, after the fork and before it reads a byte of the submission.

Each layer that took hold is named, so that a report can say what a submission was graded under.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys

import msgspec

PROCESS = "separate process"
LIMITS = "resource limits"
PR_SET_PDEATHSIG = 1


class Confinement(msgspec.Struct, frozen=True):
    """What a worker may use. `memory_bytes` is head-room above what torch has mapped already."""

    memory_bytes: int = 2**30


def confine(confinement: Confinement) -> list[str]:
    """Confine this process for good; returns the layers that took hold."""
    layers = [PROCESS]
    if sys.platform == "linux":
        _die_with_parent()
        _limit_resources(confinement)
        layers.append(LIMITS)
    return layers


def _die_with_parent() -> None:
    """However the zygote ends, nothing that hangs stays behind."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def _limit_resources(confinement: Confinement) -> None:
    import resource

    with open("/proc/self/statm") as statm:
        mapped = int(statm.read().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    ceiling = mapped + confinement.memory_bytes
    resource.setrlimit(resource.RLIMIT_AS, (ceiling, ceiling))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
