"""The limits of a worker, and the isolation that it needs to start. The same on every system."""

from __future__ import annotations

from typing import Literal

import msgspec

Isolation = Literal["confined", "process"]
MIB = 1 << 20


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
    hosts_workers: bool = False  # talks to workers, whose sockets its own host hands over


class Unconfined(Exception):
    """Full confinement is required, and this machine lacks a layer."""
