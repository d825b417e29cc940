"""The zygote's process: imports torch once, then forks a worker for every order.

    python -I -m grader.sandbox.worker.zygote FD ROOT

Orders come through the socket FD. ROOT holds the workers' private folders. No suite, no expected
value and no other student's work was ever in this process, so student code finds nothing to steal.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import linecache
import os
import select
import signal
import socket
import sys
from pathlib import Path
from typing import NoReturn

import torch

from grader.sandbox import control, wire
from grader.sandbox.confinement.layers import Confinement, confine, prepare
from grader.sandbox.worker.quota import QuotaMonitor
from grader.sandbox.worker.server import Server

HUGE_PAGE = 2 * 1024 * 1024
MADV_HUGEPAGE, MADV_COLLAPSE = 14, 25
INTERRUPT = signal.SIGUSR1  # tells a worker to send the place where its code is
CONNECTION = 3  # the descriptor of a worker's socket to its host; all above it are closed
Hosts = dict[socket.socket, set[int]]  # the pids of each host's workers


def _serve_requests(connection: socket.socket) -> None:
    server = Server()
    reader = connection.makefile("rb")
    # The host asks for it when an answer is late. It is an answer like any other: not trusted.
    signal.signal(INTERRUPT, lambda _, frame: connection.sendall(_framed(server.place_of(frame))))
    while header := reader.read(wire.HEADER.size):
        request = wire.decode_request(reader.read(wire.body_length(header)))
        if (answer := server.answer(request)) is not None:
            connection.sendall(_framed(answer))


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


def run_zygote(control_socket: socket.socket, root: Path) -> None:
    """Take orders until the last host has closed its socket. A worker does not outlive its host."""
    torch.set_num_threads(1)
    _drop_project_paths()
    _warm_up()
    gc.collect()
    gc.freeze()  # otherwise the collector would write to, and so copy, every page in every worker
    if sys.platform == "linux":
        _use_huge_pages()
    prepare()
    quota = QuotaMonitor(root)
    hosts: Hosts = {control_socket: set()}
    while hosts:
        readable = select.select(list(hosts), [], [], quota.pause)[0]
        quota.check()
        for host in readable:
            if not _take_order(host, hosts, quota):
                for pid in hosts.pop(host):
                    quota.end(pid, 0.0)
                host.close()
    quota.close()


def _take_order(host: socket.socket, hosts: Hosts, quota: QuotaMonitor) -> bool:
    """Carry out one order of a host; return False if the host has closed its socket."""
    try:
        data, fds, _, _ = socket.recv_fds(host, 4096, 1)
        if not data:
            return False
        match control.decode_order(data):
            case control.Fork(confinement, core):
                parent, pid = os.getpid(), os.fork()
                if pid == 0:
                    _pin_to(core)
                    _run_worker(fds[0], confinement, quota.folder(os.getpid()), parent)
                os.close(fds[0])
                quota.add(pid)
                hosts[host].add(pid)
                host.sendall(control.encode(pid))
            case control.Reap(pid, grace):
                ended = control.Ended(-signal.SIGKILL)
                if pid in hosts[host]:  # a worker of an earlier zygote was killed with that zygote
                    hosts[host].remove(pid)
                    ended = control.Ended(*quota.end(pid, grace))
                host.sendall(control.encode(ended))
            case control.Interrupt(pid):
                if pid in hosts[host]:
                    with contextlib.suppress(OSError):
                        os.kill(pid, INTERRUPT)
                host.sendall(control.encode(pid))
            case control.Share():
                hosts[socket.socket(fileno=fds[0])] = set()
    except ConnectionError:
        return False
    return True


def _pin_to(core: int | None) -> None:
    if core is not None:
        with contextlib.suppress(OSError):  # the core may be gone by now
            os.sched_setaffinity(0, {core})


def _run_worker(fd: int, confinement: Confinement, private: Path, parent: int) -> NoReturn:
    """Close all descriptors but `fd`, confine this process, answer requests, and exit."""
    code = 1
    try:
        os.setsid()
        os.dup2(fd, CONNECTION)
        null = os.open(os.devnull, os.O_RDWR)
        for standard in range(3):
            os.dup2(null, standard)
        os.closerange(CONNECTION + 1, os.sysconf("SC_OPEN_MAX"))
        with socket.socket(fileno=CONNECTION) as connection:
            hello = _confine(confinement, private, parent)
            connection.sendall(wire.frame(hello))
            if isinstance(hello, wire.Reply):
                _serve_requests(connection)
                code = 0
    finally:
        os._exit(code)


def _confine(confinement: Confinement, private: Path, parent: int) -> wire.Answer:
    """Confine this process; return the worker's first message, the layers or the error."""
    try:
        return wire.Reply(0, wire.WireList([*confine(confinement, private, parent)]))
    except Exception as error:
        kind = type(error).__name__
        return wire.Failure(0, kind, [kind], str(error), [])


def _drop_project_paths() -> None:
    """Keep only Python's own folders in `sys.path`: an editable install adds the project's root."""
    homes = tuple(os.path.realpath(home) + os.sep for home in (sys.prefix, sys.base_prefix))
    sys.path[:] = [entry for entry in sys.path if os.path.realpath(entry).startswith(homes)]
    linecache.clearcache()


def _use_huge_pages() -> None:
    """Move this process's memory to huge pages: a worker's fork and end then cost about half.

    A kernel without huge pages ignores the request.
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


def _warm_up() -> None:
    """Run what torch sets up on first use, once here instead of once in every worker.

    No backward pass runs here: after one, autograd's engine would not work in a forked process.
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


if __name__ == "__main__":
    run_zygote(socket.socket(fileno=int(sys.argv[1])), Path(sys.argv[2]))
