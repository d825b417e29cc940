"""The meeting of a spawned process and its host: an invitation on standard input, then a token.

This needs neither a fork nor descriptors to pass on, which Windows lacks. After the invitation,
the standard input has one byte for each order. Its end means that the host has ended.
"""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Callable
from io import RawIOBase
from pathlib import Path
from typing import IO

import msgspec

from grader.processes import channel

LOOPBACK = "127.0.0.1"
TOKEN_BYTES = 32
ORDER = b"?"


class Invitation(msgspec.Struct, frozen=True):
    """The host's address, the token that proves the caller, and the process's scratch folder."""

    port: int
    token: bytes
    folder: str
    host_pid: int

    def send(self, stream: IO[bytes]) -> None:
        """Write the invitation to the standard input of a process."""
        stream.write(channel.framed(msgspec.msgpack.encode(self)))
        stream.flush()


class Guest:
    """This process, as a guest of its host."""

    def __init__(self) -> None:
        self._orders: RawIOBase = open(os.dup(0), "rb", buffering=0)  # noqa: SIM115, till the end
        self._invited = msgspec.msgpack.decode(channel.receive(self._orders.read), type=Invitation)

    @property
    def folder(self) -> Path:
        """The scratch folder of this process, which its host removes."""
        return Path(self._invited.folder)

    @property
    def host_pid(self) -> int:
        """The process id of the host."""
        return self._invited.host_pid

    def connect(self) -> socket.socket:
        """Return a connection to the host; from then on, nothing can be printed or read."""
        connection = socket.create_connection((LOOPBACK, self._invited.port))
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection.sendall(self._invited.token)
        null = os.open(os.devnull, os.O_RDWR)
        for standard in range(3):
            os.dup2(null, standard)
        return connection

    def obey(self, on_order: Callable[[], None] = lambda: None) -> None:
        """In a thread, call `on_order` for each order, and end this process after its host."""
        threading.Thread(target=self._follow, args=(on_order,), daemon=True).start()

    def _follow(self, on_order: Callable[[], None]) -> None:
        while self._orders.read(1):
            on_order()
        os._exit(1)
