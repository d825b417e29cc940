"""Confining a worker, after the fork and before it reads a byte of the submission.

Layer upon layer, none of which needs a privilege. What the kernel does not offer is left out, or,
where confinement is asked for, nothing is run at all; what it offers and then refuses is an error.
Each layer that took hold is named, so that a report can say what a submission was graded under.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal

import msgspec

from grader.sandbox.confinement import landlock

from grader.sandbox.confinement import seccomp

Isolation = Literal["confined", "process"]
PROCESS = "separate process"

PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_SET_NO_NEW_PRIVS = 1, 4, 38
FOLDERS = ("HOME", "TMPDIR", "TORCHINDUCTOR_CACHE_DIR")  # all of them the private folder
CAPABILITY_VERSION_3 = 0x20080522
MIB = 1 << 20


class Confinement(msgspec.Struct, frozen=True):
    """What a worker may use, and what must hold for it to start.

    `memory_bytes` is head-room above what torch has mapped already; `cpu_seconds` a backstop for
    the day when nobody is left to keep the deadlines. With `isolation` `confined` it is every
    layer or no worker; with `process` the layers there are, if only the separate process.
    """

    isolation: Isolation = "process"
    memory_bytes: int = 1024 * MIB
    cpu_seconds: int = 900
    file_bytes: int = 16 * MIB
    open_files: int = 128


class Unconfined(Exception):
    """Confinement was asked for, and this machine does not offer it."""


@dataclass(frozen=True)
class Layer:
    """One layer: why this machine does not offer it (or nothing), and how a worker puts it on."""

    name: str
    missing: Callable[[], str]
    put_on: Callable[[Confinement, Path], None]
    remedy: str
    detail: Callable[[], str] = str  # what more there is to say of it, where it is there


def confine(confinement: Confinement, private: Path, parent: int) -> list[str]:
    """Confine this process for good; returns the layers that took hold.

    `private` is the one folder it may write to, made here; `parent` the process it must not
    outlive. Raises `Unconfined` where a layer is missing that was asked for.
    """
    private.mkdir(mode=0o700)
    os.chdir(private)
    os.environ.update(dict.fromkeys(FOLDERS, str(private)))
    tempfile.tempdir = None  # found out anew when it is next asked for
    die_with(parent)
    names = [PROCESS]
    for layer in LAYERS:
        if reason := layer.missing():
            if confinement.isolation == "confined":
                raise Unconfined(f"{layer.name}: {reason}")
        else:
            try:
                layer.put_on(confinement, private)
            except OSError as error:
                raise OSError(f"{layer.name} is offered, and was refused: {error}") from error
            names.append(layer.name)
    return names


def prepare() -> None:
    """Measure once, in the zygote, what every worker would measure anew."""
    if sys.platform == "linux":
        import resource  # noqa: F401, so that no worker has to

        _mapped_bytes()
        landlock.readable()
        landlock.version()
        seccomp.prepare()


def die_with(parent: int) -> None:
    """However the process that forked this one ends, nothing that hangs stays behind."""
    if sys.platform != "linux":
        return
    _prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        raise ProcessLookupError("the process that forked this one has ended")


# --- resource limits ------------------------------------------------------------------------------


def _limit_resources(confinement: Confinement, _: Path) -> None:
    import resource

    limits = {
        resource.RLIMIT_AS: _mapped_bytes() + confinement.memory_bytes,
        resource.RLIMIT_CPU: confinement.cpu_seconds,
        resource.RLIMIT_FSIZE: confinement.file_bytes,
        resource.RLIMIT_NOFILE: confinement.open_files,
        resource.RLIMIT_CORE: 0,
    }
    for kind, wanted in limits.items():
        hard = resource.getrlimit(kind)[1]
        limit = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(kind, (limit, limit))


@cache
def _mapped_bytes() -> int:
    """As measured once, in the zygote: a worker starts as its copy."""
    return mapped_bytes()


def mapped_bytes() -> int:
    """Bytes of address space this process uses now."""
    with open("/proc/self/statm") as statm:
        return int(statm.read().split()[0]) * os.sysconf("SC_PAGE_SIZE")


# --- privileges -----------------------------------------------------------------------------------


def _drop_privileges(_: Confinement, __: Path) -> None:
    """No privilege now, none to be gained, and no look into this process from beside it."""
    _prctl(PR_SET_NO_NEW_PRIVS, 1)
    header = (ctypes.c_uint32 * 2)(CAPABILITY_VERSION_3, 0)
    nothing = (ctypes.c_uint32 * 6)()  # effective, permitted, inheritable; twice 32 bits
    _checked(_libc().capset(header, nothing), "giving up capabilities")
    _prctl(PR_SET_DUMPABLE, 0)


@cache
def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def _prctl(option: int, value: int) -> None:
    _checked(_libc().prctl(option, ctypes.c_ulong(value), 0, 0, 0), f"prctl {option}")


def _checked(result: int, what: str) -> None:
    if result:
        raise OSError(ctypes.get_errno(), f"{what}: {os.strerror(ctypes.get_errno())}")


# --- all of them ----------------------------------------------------------------------------------


def _needs_linux() -> str:
    return "" if sys.platform == "linux" else "only Linux has it"


LINUX = "grade on Linux, in a virtual machine or a container"

LAYERS = (
    Layer("resource limits", _needs_linux, _limit_resources, LINUX),
    Layer("no privileges", _needs_linux, _drop_privileges, LINUX),
    Layer(
        "Landlock",
        landlock.missing,
        lambda _, private: landlock.restrict(private, may_remove=bool(seccomp.missing())),
        "boot a kernel of 5.13 or later with `landlock` in its `lsm=` list; "
        "in a container, allow the landlock_* system calls",
        lambda: f", version {landlock.version()}",
    ),
    Layer(
        "seccomp",
        seccomp.missing,
        lambda _, __: seccomp.restrict(),
        "use a kernel with CONFIG_SECCOMP_FILTER, on x86-64 or aarch64",
    ),
)
