"""The layers that confine a worker, applied after the fork and before it reads the submission.

No layer needs a privilege. A layer that the kernel does not offer is left out unless full
confinement is required. A report names the layers that were applied.
"""

from __future__ import annotations

import ctypes
import os
import resource
import signal
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal

import msgspec

from grader.sandbox.confinement import landlock, seccomp

Isolation = Literal["confined", "process"]
PROCESS = "separate process"

PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_SET_NO_NEW_PRIVS = 1, 4, 38
FOLDERS = ("HOME", "TMPDIR", "TORCHINDUCTOR_CACHE_DIR")  # set to the private folder
CAPABILITY_VERSION_3 = 0x20080522
CAP_DAC_READ_SEARCH = 1 << 2
MIB = 1 << 20
LIBC = ctypes.CDLL(None, use_errno=True)


class Confinement(msgspec.Struct, frozen=True):
    """The limits of a worker, and the isolation that it needs to start.

    With `isolation` `confined`, a worker starts only if every layer can be applied; with `process`,
    it starts with the layers that the machine offers.
    """

    isolation: Isolation = "process"
    memory_bytes: int = 1024 * MIB  # on top of what torch has mapped
    cpu_seconds: int = 900  # for a worker whose host no longer enforces deadlines
    file_bytes: int = 16 * MIB
    open_files: int = 128
    readable: tuple[bytes, ...] = ()  # files and folders, beside Python's own
    folder: bytes = b""  # a folder to write to, beside the private one
    makes_folders: bool = False  # in both, and then it really removes files


class Unconfined(Exception):
    """Full confinement is required, and this machine lacks a layer."""


@dataclass(frozen=True)
class Layer:
    """A layer of confinement; `apply` confines this process, given its private folder."""

    name: str
    missing: Callable[[], str]  # returns why this machine does not offer it, or an empty string
    apply: Callable[[Confinement, Path], None]
    remedy: str  # says how a machine gets it
    detail: Callable[[], str] = str  # returns what follows the name, such as a version


def confine(confinement: Confinement, private: Path, parent: int) -> list[str]:
    """Confine this process until it ends; return the names of the layers that were applied.

    `private` is the only folder it may write to, and is made here. `parent` is the process that it
    must not outlive. Raises `Unconfined` if a required layer is missing, and `OSError` if the
    kernel offers a layer and refuses it.
    """
    private.mkdir(mode=0o700)
    os.chdir(private)
    os.environ.update(dict.fromkeys(FOLDERS, str(private)))
    tempfile.tempdir = None  # makes tempfile read TMPDIR again
    die_with(parent)
    names = [PROCESS]
    for layer in LAYERS:
        if reason := layer.missing():
            if confinement.isolation == "confined":
                raise Unconfined(f"{layer.name}: {reason}")
        else:
            try:
                layer.apply(confinement, private)
            except OSError as error:
                message = f"{layer.name}: the kernel offers this layer but refused it: {error}"
                raise OSError(message) from error
            names.append(layer.name)
    return names


def confine_program(confinement: Confinement, folders: Sequence[Path]) -> None:
    """Confine this process before it runs a program of the system that reads `folders` alone.

    The layers are those that the machine offers. The program writes to no file.
    """
    if sys.platform == "linux":
        _limit_resources(confinement, Path())
        _drop_privileges(confinement, Path())
        if not landlock.missing():
            landlock.restrict_program(folders)


def prepare() -> None:
    """Measure in the zygote, once, what every worker would otherwise measure itself."""
    if sys.platform == "linux":
        _zygote_bytes()
        landlock.prepare()
        seccomp.prepare()


def die_with(parent: int) -> None:
    """Have the kernel kill this process when `parent`, the process that forked it, ends.

    Raises `ProcessLookupError` if it has ended already.
    """
    if sys.platform != "linux":
        return
    _prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        raise ProcessLookupError("the process that forked this one has ended")


def mapped_bytes() -> int:
    """Return how many bytes of address space this process has mapped."""
    with open("/proc/self/statm") as statm:
        return int(statm.read().split()[0]) * os.sysconf("SC_PAGE_SIZE")


_zygote_bytes = cache(mapped_bytes)  # first called in the zygote, of which a worker is a copy


def _limit_resources(confinement: Confinement, _: Path) -> None:
    limits = {
        resource.RLIMIT_AS: _zygote_bytes() + confinement.memory_bytes,
        resource.RLIMIT_CPU: confinement.cpu_seconds,
        resource.RLIMIT_FSIZE: confinement.file_bytes,
        resource.RLIMIT_NOFILE: confinement.open_files,
        resource.RLIMIT_CORE: 0,
    }
    for kind, wanted in limits.items():
        hard = resource.getrlimit(kind)[1]
        limit = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        # A second more: the signal of the soft limit says why, the hard one's could be anybody's.
        more = kind == resource.RLIMIT_CPU and limit != hard
        resource.setrlimit(kind, (limit, limit + more))


def _drop_privileges(confinement: Confinement, _: Path) -> None:
    """Give up all privileges, rule out new ones, and forbid other processes to inspect this one.

    A process with more to read keeps the privilege to read the files of other users, if it has it:
    what it may read at all is decided by Landlock.
    """
    _prctl(PR_SET_NO_NEW_PRIVS, 1)
    header = (ctypes.c_uint32 * 2)(CAPABILITY_VERSION_3, 0)
    kept = (ctypes.c_uint32 * 6)()  # low words of effective, permitted and inheritable, then high
    if confinement.readable and not landlock.missing():
        _checked(LIBC.capget(header, kept), "reading capabilities")
        may_read = kept[1] & CAP_DAC_READ_SEARCH
        kept = (ctypes.c_uint32 * 6)(may_read, may_read)
    _checked(LIBC.capset(header, kept), "giving up capabilities")
    _prctl(PR_SET_DUMPABLE, 0)


def _prctl(option: int, value: int) -> None:
    _checked(LIBC.prctl(option, ctypes.c_ulong(value), 0, 0, 0), f"prctl {option}")


def _checked(result: int, what: str) -> None:
    if result:
        raise OSError(ctypes.get_errno(), f"{what}: {os.strerror(ctypes.get_errno())}")


def _needs_linux() -> str:
    return "" if sys.platform == "linux" else "only Linux has it"


LINUX = "grade on Linux, in a virtual machine or a container"

LAYERS = (
    Layer("resource limits", _needs_linux, _limit_resources, LINUX),
    Layer("no privileges", _needs_linux, _drop_privileges, LINUX),
    Layer(
        "Landlock",
        landlock.missing,
        lambda confinement, private: landlock.restrict(
            private,
            may_remove=confinement.makes_folders or bool(seccomp.missing()),
            also_readable=confinement.readable,
            folder=confinement.folder,
            makes_folders=confinement.makes_folders,
        ),
        "boot a kernel of 5.13 or later with `landlock` in its `lsm=` list; "
        "in a container, allow the landlock_* system calls",
        lambda: f", version {landlock.version()}",
    ),
    Layer(
        "seccomp",
        seccomp.missing,
        lambda confinement, _: seccomp.restrict(confinement.makes_folders),
        "use a kernel with CONFIG_SECCOMP_FILTER, on x86-64 or aarch64",
    ),
)
