"""The files that a worker may read and write (Landlock).

A worker may read the standard library, installed packages, the folders of shared libraries and a
few system files that torch needs. It may write to its private folder and /dev/null. Where the
kernel supports it, TCP, signals to other processes and abstract sockets are forbidden as well.
"""

from __future__ import annotations

import ctypes
import functools
import os
import sys
import sysconfig
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

# The folders of a system's programs and their libraries.
PROGRAMS = ("/usr", "/bin", "/lib", "/lib64", "/opt", "/nix/store", "/etc/ld.so.cache")
CREATE_RULESET, ADD_RULE, RESTRICT_SELF = 444, 445, 446  # the same numbers on every machine
PATH_BENEATH, PR_SET_NO_NEW_PRIVS = 1, 38
LIBC = ctypes.CDLL(None, use_errno=True)
READ_BY_TORCH = ("/proc/cpuinfo", "/sys/devices/system/cpu", "/etc/ld.so.cache", "/dev/urandom")


@functools.cache
def version() -> int:
    """Return the version of the kernel's Landlock ABI; 0 if it has none."""
    if sys.platform != "linux":
        return 0
    import landlockpy  # noqa: PLC0415, slow: only a command that starts workers pays for it

    try:
        return landlockpy.abi_version()
    except landlockpy.LandlockError:
        return 0


def missing() -> str:
    """Return why file access cannot be confined here, or an empty string."""
    if sys.platform != "linux":
        return "only Linux has it"
    return "" if version() else "the kernel offers no Landlock (5.13 or later, with lsm=landlock)"


def prepare() -> None:
    """Compute, once, the data that every restriction needs."""
    readable()
    if not missing():
        _rights()


def restrict(
    private: Path,
    *,
    may_remove: bool,
    also_readable: Sequence[bytes] = (),
    folder: bytes = b"",
    makes_folders: bool = False,
) -> None:
    """Confine this thread, and the threads it starts, to these files until the process ends.

    The process may also read `also_readable` and write to `folder`. With `makes_folders`, it may
    make, rename and remove folders where it may write. `may_remove` allows removing files. The
    seccomp layer only pretends to remove them, because nobody could count an open file without a
    name. Without that layer, temporary files need the permission.
    """
    rights = _rights()
    keep = rights.write
    if may_remove:
        keep |= rights.remove
    if makes_folders:
        keep |= rights.folders
    attributes = _Attributes(rights.handled, rights.handled_net, rights.scoped)
    size = ctypes.c_size_t(ctypes.sizeof(attributes))
    ruleset = _system_call(CREATE_RULESET, ctypes.byref(attributes), size, 0)
    try:
        also = map(os.fsdecode, filter(os.path.exists, also_readable))
        for path in (*readable(), *also):
            _allow(ruleset, path, rights.read if os.path.isdir(path) else rights.read_file)
        _allow(ruleset, os.devnull, rights.device)
        _allow(ruleset, private, keep & rights.handled)
        if folder:
            _allow(ruleset, os.fsdecode(folder), keep & rights.handled)
        LIBC.prctl(PR_SET_NO_NEW_PRIVS, ctypes.c_ulong(1), 0, 0, 0)
        _system_call(RESTRICT_SELF, ruleset, 0)
    finally:
        os.close(ruleset)


class _Rights(NamedTuple):
    """The access bits that a worker or a reader may have, and all bits that a ruleset decides."""

    read: int
    read_file: int
    device: int
    write: int
    remove: int
    folders: int
    handled: int
    handled_net: int
    scoped: int


@functools.cache
def _rights() -> _Rights:
    """Return the bits as plain numbers.

    As plain numbers, because computing with flags would touch, and so copy, more memory in each
    worker than the rest of its restriction.
    """
    from landlockpy import AccessFS, Ruleset, Scope  # noqa: PLC0415, slow, as above

    read = AccessFS.READ_FILE | AccessFS.READ_DIR
    scoped = Scope.SIGNAL | Scope.ABSTRACT_UNIX_SOCKET
    with Ruleset(scoped=scoped) as offered:  # without the bits that this kernel does not know
        return _Rights(
            int(read),
            int(AccessFS.READ_FILE),
            int(AccessFS.READ_FILE | AccessFS.WRITE_FILE),
            # No folders can be made, so that one listing of the private folder counts all files.
            int(read | AccessFS.WRITE_FILE | AccessFS.TRUNCATE | AccessFS.MAKE_REG),
            int(AccessFS.REMOVE_FILE),
            int(AccessFS.MAKE_DIR | AccessFS.REMOVE_DIR | AccessFS.REFER),
            int(offered.handled_fs),
            int(offered.handled_net),
            int(offered.scoped),
        )


class _Attributes(ctypes.Structure):
    _fields_ = tuple((name, ctypes.c_uint64) for name in ("files", "network", "scoped"))


class _PathBeneath(ctypes.Structure):
    _pack_ = 1
    _fields_ = (("allowed_access", ctypes.c_uint64), ("parent_fd", ctypes.c_int32))


def _allow(ruleset: int, path: str | Path, access: int) -> None:
    """Add a rule for a file, or for a folder and everything in it."""
    holder = os.open(path, os.O_PATH | os.O_CLOEXEC)
    try:
        rule = _PathBeneath(access, holder)
        _system_call(ADD_RULE, ruleset, PATH_BENEATH, ctypes.byref(rule), 0)
    finally:
        os.close(holder)


def _system_call(number: int, *values: Any) -> int:
    result = int(LIBC.syscall(ctypes.c_long(number), *values))
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result


def restrict_program(folders: Sequence[Path]) -> None:
    """Confine this process to run the system's programs, read `folders` and write nothing."""
    from landlockpy import AccessFS, Ruleset, Scope  # noqa: PLC0415, slow, as above

    read = AccessFS.READ_FILE | AccessFS.READ_DIR
    with Ruleset(scoped=Scope.SIGNAL | Scope.ABSTRACT_UNIX_SOCKET) as ruleset:
        for path in filter(os.path.exists, PROGRAMS):
            is_folder = os.path.isdir(path)
            ruleset.allow_path(path, read | AccessFS.EXECUTE if is_folder else AccessFS.READ_FILE)
        for folder in folders:
            ruleset.allow_path(folder, read)
        ruleset.allow_path(os.devnull, AccessFS.READ_FILE | AccessFS.WRITE_FILE)
        ruleset.restrict()


@functools.cache
def readable() -> tuple[str, ...]:
    """Return the files and folders that a worker may read, as seen from a process with torch."""
    wanted = {sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")}
    wanted.update(_folders_of_libraries())
    wanted.update(READ_BY_TORCH)
    paths = sorted({os.path.realpath(path) for path in wanted if os.path.exists(path)})
    folders = tuple(path + os.sep for path in paths)
    return tuple(path for path in paths if not path.startswith(folders))


def _folders_of_libraries() -> Iterator[str]:
    """Yield the folders of the loaded shared libraries, which may load their neighbours later."""
    for line in Path("/proc/self/maps").read_text().splitlines():
        path = line.partition("/")[1] + line.partition("/")[2]
        if ".so" in os.path.basename(path):
            yield os.path.dirname(path)
