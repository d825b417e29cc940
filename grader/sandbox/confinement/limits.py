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
    memory_bytes: int = 1024 * MIB  # bytes of memory above those that torch has mapped
    cpu_seconds: int = 900  # seconds of CPU, for a worker whose host no longer enforces deadlines
    file_bytes: int = 16 * MIB
    open_files: int = 128
    readable: tuple[bytes, ...] = ()  # files and folders to read, besides Python's own
    folder: bytes = b""  # a folder to write to, besides the private one
    makes_folders: bool = False  # whether it may make folders in both, and then also remove files
    hosts_workers: bool = False  # talks to workers, through sockets that its host passes on


class Unconfined(Exception):
    """Full confinement is required, and this machine lacks a layer."""
