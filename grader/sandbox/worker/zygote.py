"""The untrusted side: a zygote that imported torch once, and the workers forked from it.

A worker confines itself, then loads the student's files and answers requests. It knows the wire
and nothing else of the project: no suite, no expected value, no other student's work ever was in
this process, so there is nothing here to steal.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import linecache
import os
import select
import socket
import sys
from pathlib import Path

import torch

from grader.sandbox import control, wire
from grader.sandbox.confinement.layers import Confinement, confine, prepare
from grader.sandbox.worker.quota import Keeper
from grader.sandbox.worker.server import Server

HUGE_PAGE = 2 * 1024 * 1024
MADV_HUGEPAGE, MADV_COLLAPSE = 14, 25
CONNECTION = 3  # a worker's descriptor for its connection to the host; no other is open


def serve(connection: socket.socket) -> None:
    """Answer requests until the host hangs up."""
    server = Server()
    reader = connection.makefile("rb")
    while header := reader.read(wire.HEADER.size):
        request = wire.decode_request(reader.read(wire.body_length(header)))
        answer = server.answer(request)
        if answer is not None:
            connection.sendall(_bounded(answer))


def _bounded(answer: wire.Answer) -> bytes:
    try:
        framed = wire.frame(answer)
    except (UnicodeEncodeError, RecursionError) as error:
        framed = _too_odd(answer.id, f"the result cannot be sent: {error}")
    if len(framed) > wire.MAX_FRAME:
        framed = _too_odd(answer.id, f"the result is larger than {wire.MAX_FRAME >> 20} MiB")
    return framed


def _too_odd(number: int, message: str) -> bytes:
    return wire.frame(wire.Failure(number, "ValueError", ["ValueError"], message, []))


def zygote(control_socket: socket.socket, root: Path) -> None:
    """Fork a worker for every `Fork`, end one for every `Reap`, until the last host hangs up.

    Beneath `root` each worker gets its private folder. A worker does not outlive its host.
    """
    torch.set_num_threads(1)
    _forget_the_project()
    _warm()
    gc.collect()
    gc.freeze()  # the collector would otherwise touch, and so copy, every page in every worker
    if sys.platform == "linux":
        _use_huge_pages()
    prepare()
    keeper = Keeper(root)
    hosts: dict[socket.socket, set[int]] = {control_socket: set()}  # each with its workers
    while hosts:
        asking = select.select(list(hosts), [], [], keeper.pause)[0]
        keeper.look()
        for host in asking:
            if not _obey(host, hosts, keeper):
                for pid in hosts.pop(host):
                    keeper.end(pid, 0.0)
                host.close()
    keeper.close()


def _obey(host: socket.socket, hosts: dict[socket.socket, set[int]], keeper: Keeper) -> bool:
    """Take one order from a host; false if it has hung up."""
    try:
        data, fds, _, _ = socket.recv_fds(host, 4096, 1)
        if not data:
            return False
        match control.decode_order(data):
            case control.Fork(confinement, core):
                parent, pid = os.getpid(), os.fork()
                if pid == 0:
                    _keep_to(core)
                    _become_worker(fds[0], confinement, keeper.folder(os.getpid()), parent)
                os.close(fds[0])
                keeper.add(pid)
                hosts[host].add(pid)
                host.sendall(control.encode(pid))
            case control.Reap(pid, grace):
                ended = control.Ended(0)
                if pid in hosts[host]:  # an earlier zygote's has ended with it
                    hosts[host].remove(pid)
                    ended = control.Ended(*keeper.end(pid, grace))
                host.sendall(control.encode(ended))
            case control.Share():
                hosts[socket.socket(fileno=fds[0])] = set()
    except ConnectionError:
        return False
    return True


def _keep_to(core: int | None) -> None:
    """Run on one core, where there is one to keep to, and it is still there."""
    if core is not None:
        with contextlib.suppress(OSError):
            os.sched_setaffinity(0, {core})


def _become_worker(fd: int, confinement: Confinement, private: Path, parent: int) -> None:
    """Keep one connection and nothing else of the zygote's, say what confines us, and serve."""
    code = 1
    try:
        os.setsid()
        os.dup2(fd, CONNECTION)
        null = os.open(os.devnull, os.O_RDWR)
        for standard in range(3):
            os.dup2(null, standard)
        os.closerange(CONNECTION + 1, os.sysconf("SC_OPEN_MAX"))
        with socket.socket(fileno=CONNECTION) as connection:
            if _confined(connection, confinement, private, parent):
                serve(connection)
                code = 0
    finally:
        os._exit(code)


def _confined(
    connection: socket.socket, confinement: Confinement, private: Path, parent: int
) -> bool:
    """Whether confinement took hold; the host is told of which layers, or why not."""
    try:
        layers = confine(confinement, private, parent)
    except Exception as error:
        kind = type(error).__name__
        connection.sendall(wire.frame(wire.Failure(0, kind, [kind], str(error), [])))
        return False
    connection.sendall(wire.frame(wire.Reply(id=0, value=wire.WireList(list(layers)))))
    return True


def _forget_the_project() -> None:
    """Keep only Python's own folders on the path: an editable install adds the course's root."""
    homes = [os.path.realpath(home) for home in (sys.prefix, sys.base_prefix)]
    sys.path[:] = [
        entry
        for entry in sys.path
        if any(os.path.realpath(entry).startswith(home + os.sep) for home in homes)
    ]
    linecache.clearcache()


def _use_huge_pages() -> None:
    """Gather this process's memory in huge pages: a fork copies fewer table entries.

    Torch leaves some 100 MB behind; in huge pages a worker's fork and end cost about half. Where
    the kernel does not offer it, nothing happens.
    """
    libc = ctypes.CDLL(None)
    for line in Path("/proc/self/maps").read_text().splitlines():
        span, access = line.split()[:2]
        if access != "rw-p":
            continue
        low, high = (int(end, 16) for end in span.split("-"))
        low = -(-low // HUGE_PAGE) * HUGE_PAGE
        if size := max(0, high // HUGE_PAGE * HUGE_PAGE - low):
            where = ctypes.c_void_p(low), ctypes.c_size_t(size)
            libc.madvise(*where, MADV_HUGEPAGE)
            libc.madvise(*where, MADV_COLLAPSE)


def _warm() -> None:
    """Run what torch sets up on first use, once here instead of once in every worker.

    Forward only: a backward pass before the fork would leave autograd's engine unusable after it.
    """
    server = Server()
    server.answer(wire.Begin(0))
    server.answer(wire.Load(1, "warm", "warm", {"warm": wire.Source("warm.py", WARM)}))
    for number, dtype in enumerate((torch.float32, torch.float64, torch.bfloat16), start=2):
        x = wire.pack_tensor(torch.ones(2, 3, 4, dtype=dtype, requires_grad=True))
        for watch in ("", "functions", "all"):
            server.answer(wire.Call(number, 1, "warm", [x], {}, watch=watch))
    server.answer(wire.Call(9, 1, "no_such_name", [], {}))
    server.leave()


WARM = """
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


if __name__ == "__main__":
    zygote(socket.socket(fileno=int(sys.argv[1])), Path(sys.argv[2]))
