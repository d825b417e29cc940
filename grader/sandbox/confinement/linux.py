"""The layers of confinement that Linux offers every process: limits, and no privileges."""

from __future__ import annotations

import ctypes
import os
import resource
import signal
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from grader.sandbox.confinement import landlock, seccomp
from grader.sandbox.confinement.limits import Confinement

PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_SET_NO_NEW_PRIVS = 1, 4, 38
CAPABILITY_VERSION_3 = 0x20080522
CAP_DAC_READ_SEARCH = 1 << 2
LIBC = ctypes.CDLL(None, use_errno=True)


def prepare() -> None:
    """Make measurements that every worker would otherwise make itself: once, or after imports."""
    _zygote_bytes.cache_clear()
    _zygote_bytes()
    landlock.prepare()
    seccomp.prepare()


def die_with(parent: int) -> None:
    """Make the kernel kill this process when `parent`, the process that started it, ends.

    Raises `ProcessLookupError` if it has ended already.
    """
    _prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        raise ProcessLookupError("the process that started this one has ended")


def mapped_bytes() -> int:
    """Return the bytes of address space that this process has mapped."""
    with open("/proc/self/statm") as statm:
        return int(statm.read().split()[0]) * os.sysconf("SC_PAGE_SIZE")


_zygote_bytes = cache(mapped_bytes)  # first called in the zygote; workers inherit it


def limit_resources(confinement: Confinement, _: Path) -> None:
    """Limit the memory, processor time, files and core dumps of this process."""
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
        # A second more: the soft limit has a signal of its own, while SIGKILL could come from
        # anybody.
        more = kind == resource.RLIMIT_CPU and limit != hard
        resource.setrlimit(kind, (limit, limit + more))


def drop_privileges(confinement: Confinement, _: Path) -> None:
    """Give up all privileges, rule out new ones, and forbid other processes to inspect this one.

    A process with other files to read keeps the privilege to read other users' files, if it has
    it: Landlock decides which files it may read at all.
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


def restrict_files(confinement: Confinement, private: Path) -> None:
    """Restrict what this process may read and write."""
    landlock.restrict(
        private,
        may_remove=confinement.makes_folders or bool(seccomp.missing()),
        also_readable=confinement.readable,
        folder=confinement.folder,
        makes_folders=confinement.makes_folders,
    )


def restrict_calls(confinement: Confinement, _: Path) -> None:
    """Restrict which system calls this process may make."""
    seccomp.restrict(confinement.makes_folders, confinement.hosts_workers)


def confine_program(confinement: Confinement, folders: Sequence[Path]) -> None:
    """Limit this process, and let it read only `folders` and write to no file."""
    limit_resources(confinement, Path())
    drop_privileges(confinement, Path())
    if not landlock.missing():
        landlock.restrict_program(folders)


def _prctl(option: int, value: int) -> None:
    _checked(LIBC.prctl(option, ctypes.c_ulong(value), 0, 0, 0), f"prctl {option}")


def _checked(result: int, what: str) -> None:
    if result:
        raise OSError(ctypes.get_errno(), f"{what}: {os.strerror(ctypes.get_errno())}")
