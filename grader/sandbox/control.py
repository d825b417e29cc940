"""The orders that a host sends to the zygote. Imports no torch, so both can start without it."""

from __future__ import annotations

import msgspec

from grader.sandbox.confinement.limits import Confinement

HUNG_UP = "your code closed its connection to the grader"  # said of what had to be ended


class Fork(msgspec.Struct, tag="fork", frozen=True):
    """Fork a worker for the socket sent with this order. The answer is the worker's pid."""

    confinement: Confinement
    core: int | None = None  # the worker's only core; its host runs there too, in turns


class Reap(msgspec.Struct, tag="reap", frozen=True):
    """End worker `pid` after at most `grace` seconds. The answer is an `Ended`."""

    pid: int
    grace: float = 0.0


class Interrupt(msgspec.Struct, tag="interrupt", frozen=True):
    """Make worker `pid` tell its host where its code is. The answer is the pid."""

    pid: int


class Share(msgspec.Struct, tag="share", frozen=True):
    """Take orders from another host, too, through the socket sent with this order. No answer."""


class Prepare(msgspec.Struct, tag="prepare", frozen=True):
    """Import the modules that the first optimizer would import. The answer is 0."""


class Ended(msgspec.Struct, frozen=True):
    """How a worker ended."""

    status: int  # the exit status; negative: the signal that ended it
    reason: str = ""  # why the zygote ended it, in words for the student; or empty


encode = msgspec.msgpack.Encoder().encode
decode_order = msgspec.msgpack.Decoder(Fork | Reap | Interrupt | Share | Prepare).decode
decode_confinement = msgspec.msgpack.Decoder(Confinement).decode
decode_pid = msgspec.msgpack.Decoder(int).decode
decode_ended = msgspec.msgpack.Decoder(Ended).decode
