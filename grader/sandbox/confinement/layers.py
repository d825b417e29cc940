"""The layers that confine a worker, applied before it reads a byte of the submission.

No layer needs a privilege. A layer that the machine does not offer is left out unless full
confinement is required. A report names the layers that were applied. Only Linux has layers besides
the separate process.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from grader.sandbox.confinement.limits import Confinement, Unconfined

if sys.platform == "linux":
    from grader.sandbox.confinement import landlock, linux, seccomp

PROCESS = "separate process"
FOLDERS = ["HOME", "TMPDIR", "TORCHINDUCTOR_CACHE_DIR"]  # variables set to the private folder
if sys.platform == "win32":
    FOLDERS += ["TEMP", "USERPROFILE"]


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


def prepare() -> None:
    """Make measurements in the zygote, once, that every worker would otherwise make itself."""
    if sys.platform == "linux":
        linux.prepare()


def die_with(parent: int) -> None:
    """Make the kernel kill this process when `parent`, the process that started it, ends.

    Raises `ProcessLookupError` if it has ended already.
    """
    if sys.platform == "linux":
        linux.die_with(parent)


def confine_program(confinement: Confinement, folders: Sequence[Path]) -> None:
    """Confine this process before it runs a program of the system that reads `folders` alone.

    The layers are those that the machine offers. The program writes to no file.
    """
    if sys.platform == "linux":
        linux.confine_program(confinement, folders)


LINUX = "grade on Linux, in a virtual machine or a container"
LAYERS: tuple[Layer, ...]

if sys.platform == "linux":
    LAYERS = (
        Layer("resource limits", str, linux.limit_resources, LINUX),
        Layer("no privileges", str, linux.drop_privileges, LINUX),
        Layer(
            "Landlock",
            landlock.missing,
            linux.restrict_files,
            "boot a kernel of 5.13 or later with `landlock` in its `lsm=` list; "
            "in a container, allow the landlock_* system calls",
            lambda: f", version {landlock.version()}",
        ),
        Layer(
            "seccomp",
            seccomp.missing,
            linux.restrict_calls,
            "use a kernel with CONFIG_SECCOMP_FILTER, on x86-64 or aarch64",
        ),
    )
else:
    LAYERS = (
        Layer("confinement", lambda: "only Linux has it", lambda confinement, private: None, LINUX),
    )
