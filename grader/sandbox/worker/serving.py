"""A worker's conversation with its host, for both forked and spawned workers."""

from __future__ import annotations

import contextlib
import gc
import linecache
import os
import socket
import sys
import threading
from pathlib import Path
from types import FrameType

import torch

from grader.processes import channel
from grader.sandbox import wire
from grader.sandbox.confinement.layers import confine
from grader.sandbox.confinement.limits import Confinement
from grader.sandbox.worker.server import Server

MONITORING_TOOLS = (*range(6),)  # the ids for debuggers, profilers … in `sys.monitoring`
# Kept from before student code runs, because it may replace these functions.
_SET_PROFILE, _SET_TRACE, _CALLED_BY_COLLECTOR = sys.setprofile, sys.settrace, gc.callbacks
if sys.version_info >= (3, 12):
    _TOOL, _FREE_TOOL = sys.monitoring.get_tool, sys.monitoring.free_tool_id


class Conversation:
    """Answers the requests that come through `connection`, until the host closes it."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection, self._server = connection, Server((), self._tell, _remove_hooks)
        self._sending = threading.RLock()  # answers may come from a signal or another thread

    def begin(self, confinement: Confinement, private: Path, parent: int) -> bool:
        """Confine this process and tell the host the layers or the error; return if it worked."""
        hello = _confine(confinement, private, parent)
        self._send(hello)
        return isinstance(hello, wire.Reply)

    def serve(self) -> None:
        """Answer requests until the host has closed the connection."""
        reader = self._connection.makefile("rb")
        with contextlib.suppress(EOFError):
            while True:
                request = wire.decode_request(channel.receive(reader.read, wire.MAX_FRAME))
                if (answer := self._server.answer(request)) is not None:
                    self._send(answer)

    def tell_place(self, frame: FrameType | None) -> None:
        """Send the place of the code, which a host asks for if an answer is late.

        Like any other answer, it is not trusted.
        """
        self._send(self._server.place_of(frame))

    def _tell(self, progress: wire.TrainingStep) -> None:
        """Send the progress of a call before its answer."""
        with self._sending:
            self._connection.sendall(wire.frame(progress))

    def _send(self, answer: wire.Answer) -> None:
        with self._sending:
            self._connection.sendall(_framed(answer))


def _remove_hooks() -> None:
    """Remove the student's hooks, which would run unwatched in the grader's own code.

    A debugger in the process of the tests may need its own, so a `Server` there keeps them.
    """
    _CALLED_BY_COLLECTOR.clear()
    _SET_PROFILE(None)
    _SET_TRACE(None)
    if sys.version_info >= (3, 12):
        for tool in MONITORING_TOOLS:
            if _TOOL(tool) is not None:
                _FREE_TOOL(tool)


def _framed(answer: wire.Answer) -> bytes:
    """Return an answer ready to send; one that cannot be sent becomes a `ValueError`."""
    try:
        framed = wire.frame(answer)
    except (UnicodeEncodeError, RecursionError) as error:
        framed = _framed_error(answer.id, f"the result cannot be sent: {error}")
    if len(framed) > wire.MAX_FRAME:
        framed = _framed_error(answer.id, f"the result is larger than {wire.MAX_FRAME >> 20} MiB")
    return framed


def _framed_error(number: int, message: str) -> bytes:
    return wire.frame(wire.Failure(number, "ValueError", ["ValueError"], message, []))


def _confine(confinement: Confinement, private: Path, parent: int) -> wire.Answer:
    """Confine this process; return the worker's first message, the layers or the error."""
    try:
        return wire.Reply(0, wire.WireList([*confine(confinement, private, parent)]))
    except Exception as error:
        kind = type(error).__name__
        return wire.Failure(0, kind, [kind], str(error), [])


def drop_project_paths() -> None:
    """Keep only Python's own folders in `sys.path`: an editable install adds the project's root."""
    homes = tuple(os.path.realpath(home) + os.sep for home in (sys.prefix, sys.base_prefix))
    sys.path[:] = [entry for entry in sys.path if os.path.realpath(entry).startswith(homes)]
    linecache.clearcache()


def warm_up() -> None:
    """Run the operations that torch sets up on first use, before a worker's time counts.

    No backward pass runs here, because after one autograd's engine would not work in a fork.
    """
    server = Server()
    server.answer(wire.Begin(0))
    server.answer(wire.Load(1, "warm", "warm", {"warm": wire.Source("warm.py", WARM_UP)}))
    for number, dtype in enumerate((torch.float32, torch.float64, torch.bfloat16), start=2):
        x = wire.pack_tensor(torch.ones(2, 3, 4, dtype=dtype, requires_grad=True))
        for watch in ("", "functions", "all"):
            server.answer(wire.Call(number, 1, "warm", [x], {}, watch=watch))
    server.answer(wire.Call(9, 1, "no_such_name", [], {}))
    server.leave()


WARM_UP = """
import torch
from torch import nn
from torch.nn import functional as F

class Warm(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 4)
        self.drop = nn.Dropout(0.5)
        self.register_buffer("mask", torch.ones(3, 3).tril().bool())
    def forward(self, x):
        scores = self.linear(x) @ x.transpose(1, 2) / 2
        weights = torch.softmax(scores.masked_fill(~self.mask[:3, :3], -torch.inf), dim=-1)
        return torch.einsum("bij,bjd->bid", self.drop(weights), x)

def warm(x):
    model = Warm().to(x.dtype)
    model.load_state_dict(model.state_dict())
    h = torch.relu(model(x)) + model.eval()(x)
    h = (h - h.mean(-1, keepdim=True)) / torch.sqrt(h.var(-1, keepdim=True, unbiased=False) + 1)
    h = F.layer_norm(h.view(2, -1, 3, 4).flatten(2), (12,)).reshape(2, 3, 4)
    h = F.scaled_dot_product_attention(h, h, h) * (torch.arange(3) < 2)[:, None]
    return torch.where(h > 0, h, torch.zeros_like(h)).sum(dim=-1).clamp(0, 1)
"""
