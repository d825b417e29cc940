"""Messages between processes, over sockets or pipes: each has its length in front.

A message to a process that forks others may bring a descriptor along.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Callable

HEADER = struct.Struct(">I")  # the length of a message in bytes
PIECE = 1 << 20  # bytes to read at once
MOST = 1 << 31  # bytes of a message from a process that is trusted


class MessageTooLarge(Exception):
    """A message announces more bytes than it may have."""


def framed(body: bytes) -> bytes:
    """Return a message ready to send."""
    return HEADER.pack(len(body)) + body


def send(connection: socket.socket, body: bytes, passed: socket.socket | None = None) -> None:
    """Send a message and, if a socket is to be `passed`, its descriptor with it."""
    data = framed(body)
    sent = socket.send_fds(connection, [data], [passed.fileno()]) if passed else 0
    connection.sendall(data[sent:])


def receive(
    read: Callable[[int], bytes | None],
    most: int = MOST,
    wait: Callable[[], object] = lambda: None,
) -> bytes:
    """Return the next message, of at most `most` bytes, and read nothing of what comes after it.

    `read` is that of a stream or `recv` of a socket. `wait` is called before each piece is read;
    it may raise. Raises `EOFError` if the other end closes first, and `MessageTooLarge`.
    """
    return _body(_exactly(HEADER.size, read, wait), read, most, wait)


def receive_passed(connection: socket.socket) -> tuple[bytes, int]:
    """Return the next message and the descriptor that it brings; -1 if it brings none."""
    header, descriptors, _, _ = socket.recv_fds(connection, HEADER.size, 1)
    if not header:
        raise EOFError("the other process has closed the connection")
    header += _exactly(HEADER.size - len(header), connection.recv)
    return _body(header, connection.recv), next(iter(descriptors), -1)


def _body(
    header: bytes,
    read: Callable[[int], bytes | None],
    most: int = MOST,
    wait: Callable[[], object] = lambda: None,
) -> bytes:
    (length,) = HEADER.unpack(header)
    if length > most:
        raise MessageTooLarge(f"a message of {length} bytes; at most {most} may be sent")
    return _exactly(length, read, wait)


def _exactly(
    count: int, read: Callable[[int], bytes | None], wait: Callable[[], object] = lambda: None
) -> bytes:
    data = bytearray()
    while len(data) < count:
        wait()
        if not (piece := read(min(count - len(data), PIECE))):
            raise EOFError("the other process has closed the connection")
        data += piece
    return bytes(data)
