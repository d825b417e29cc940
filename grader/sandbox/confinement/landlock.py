"""The files that a worker may read and write (Landlock).

A worker may read the standard library, installed packages, the folders of shared libraries and a
few system files that torch needs. It may write to its private folder and /dev/null. Where the
kernel supports it, TCP, signals to other processes and abstract sockets are forbidden as well.
"""

from __future__ import annotations

import functools
import os
import sys
import sysconfig
from collections.abc import Iterator, Sequence
from pathlib import Path

# Where a system keeps its programs and their libraries.
PROGRAMS = ("/usr", "/bin", "/lib", "/lib64", "/opt", "/nix/store", "/etc/ld.so.cache")
READ_BY_TORCH = ("/proc/cpuinfo", "/sys/devices/system/cpu", "/etc/ld.so.cache")


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
    make, rename and remove folders where it may write. `may_remove` allows to remove files. The
    seccomp layer only pretends to, because an open file without a name cannot be counted. Without
    that layer, temporary files need the permission.
    """
    from landlockpy import AccessFS, Ruleset, Scope  # noqa: PLC0415, slow, as above

    read = AccessFS.READ_FILE | AccessFS.READ_DIR
    # Folders cannot be made, so one listing of the private folder counts all files.
    keep = read | AccessFS.WRITE_FILE | AccessFS.TRUNCATE | AccessFS.MAKE_REG
    if may_remove:
        keep |= AccessFS.REMOVE_FILE
    if makes_folders:
        keep |= AccessFS.MAKE_DIR | AccessFS.REMOVE_DIR | AccessFS.REFER
    with Ruleset(scoped=Scope.SIGNAL | Scope.ABSTRACT_UNIX_SOCKET) as ruleset:
        also = map(os.fsdecode, filter(os.path.exists, also_readable))
        for path in (*readable(), *also):
            ruleset.allow_path(path, read if os.path.isdir(path) else AccessFS.READ_FILE)
        ruleset.allow_path(os.devnull, AccessFS.READ_FILE | AccessFS.WRITE_FILE)
        ruleset.allow_path(private, keep)
        if folder:
            ruleset.allow_path(os.fsdecode(folder), keep)
        ruleset.restrict()


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
