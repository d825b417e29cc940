"""What the host says to the zygote. Knows no torch, so that both can start before it is there."""

from __future__ import annotations

import msgspec

from grader.sandbox.confine import Confinement


class Fork(msgspec.Struct, tag="fork", frozen=True):
    """Fork a worker; its socket comes along. Answered with the worker's pid."""

    confinement: Confinement


class Reap(msgspec.Struct, tag="reap", frozen=True):
    """End worker `pid`, after `grace` seconds at most. Answered with its exit status."""

    pid: int
    grace: float = 0.0


encode = msgspec.msgpack.Encoder().encode
decode_order = msgspec.msgpack.Decoder(Fork | Reap).decode
decode_number = msgspec.msgpack.Decoder(int).decode
