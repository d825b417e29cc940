"""What a worker may read and write: Python's own folders, and one private folder (Landlock).

Reading covers the standard library, installed packages, the folders of shared libraries and the
little that torch asks of the system; writing covers the private folder and /dev/null. No TCP, no
signal and no abstract socket leaves the worker where the kernel can see to that.
"""

from __future__ import annotations

import functools
import os
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path

WHAT_TORCH_ASKS = ("/proc/cpuinfo", "/sys/devices/system/cpu", "/etc/ld.so.cache")


@functools.cache
def version() -> int:
    """The kernel's Landlock ABI; 0 where there is none."""
    if sys.platform != "linux":
        return 0
    import landlockpy

    try:
        return landlockpy.abi_version()
    except landlockpy.LandlockError:
        return 0


def missing() -> str:
    """Why file access cannot be confined here, or an empty string."""
    if sys.platform != "linux":
        return "only Linux has it"
    return "" if version() else "the kernel offers no Landlock (5.13 or later, and lsm=landlock)"


def restrict(private: Path, *, may_remove: bool) -> None:
    """Confine this thread, and those it starts, to the folders above, for good.

    What has no name and is held open, nobody could count: so files may not be removed, where
    somebody else pretends that they were. Without that, temporary files would not work at all.
    """
    from landlockpy import AccessFS, Ruleset, Scope

    read = AccessFS.READ_FILE | AccessFS.READ_DIR
    # No folder can be made, so that counting what lies in the private one is one short look.
    keep = read | AccessFS.WRITE_FILE | AccessFS.TRUNCATE | AccessFS.MAKE_REG
    if may_remove:
        keep |= AccessFS.REMOVE_FILE
    with Ruleset(scoped=Scope.SIGNAL | Scope.ABSTRACT_UNIX_SOCKET) as ruleset:
        for path in readable():
            ruleset.allow_path(path, read if os.path.isdir(path) else AccessFS.READ_FILE)
        ruleset.allow_path(os.devnull, AccessFS.READ_FILE | AccessFS.WRITE_FILE)
        ruleset.allow_path(private, keep)
        ruleset.restrict()


@functools.cache
def readable() -> tuple[str, ...]:
    """The files and folders that a worker may read, measured once, where torch is loaded."""
    wanted = {sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")}
    wanted.update(_folders_of_libraries())
    wanted.update(WHAT_TORCH_ASKS)
    paths = sorted({os.path.realpath(path) for path in wanted if os.path.exists(path)})
    return tuple(
        path
        for path in paths
        if not any(path.startswith(other + os.sep) for other in paths if other != path)
    )


def _folders_of_libraries() -> Iterator[str]:
    """The folders whose shared libraries this process has loaded: modules may load their peers."""
    for line in Path("/proc/self/maps").read_text().splitlines():
        path = line.partition("/")[1] + line.partition("/")[2]
        if ".so" in os.path.basename(path):
            yield os.path.dirname(path)
