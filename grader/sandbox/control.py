"""What the host says to the zygote. Knows no torch, so that both can start before it is there."""

from __future__ import annotations

import msgspec

from grader.sandbox.confinement.layers import Confinement


class Fork(msgspec.Struct, tag="fork", frozen=True):
    """Fork a worker; its socket comes along. Answered with the worker's pid.

    With a `core`, it keeps to that one: its host does too, and they take turns.
    """

    confinement: Confinement
    core: int | None = None


class Reap(msgspec.Struct, tag="reap", frozen=True):
    """End worker `pid`, after `grace` seconds at most. Answered with `Ended`."""

    pid: int
    grace: float = 0.0


class Share(msgspec.Struct, tag="share", frozen=True):
    """Take orders from one host more; its socket comes along. Not answered."""


class Ended(msgspec.Struct, frozen=True):
    """How a worker ended: its exit status and, if it took more than its share, of what."""

    status: int
    reason: str = ""


encode = msgspec.msgpack.Encoder().encode
decode_order = msgspec.msgpack.Decoder(Fork | Reap | Share).decode
decode_pid = msgspec.msgpack.Decoder(int).decode
decode_ended = msgspec.msgpack.Decoder(Ended).decode
