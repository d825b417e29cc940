"""The zygote's process: imports torch once, then forks a worker for every order.

    python -I -m grader.sandbox.worker.zygote FD ROOT

Orders come through the socket FD. ROOT holds the workers' private folders. No suite, no expected
value and no other student's work was ever in this process, so student code finds nothing to steal.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import importlib
import os
import select
import signal
import socket
import sys
from pathlib import Path
from typing import NoReturn

import torch

from grader.processes import channel
from grader.processes.forking import keep_only, keep_to
from grader.sandbox import control
from grader.sandbox.confinement.layers import prepare
from grader.sandbox.confinement.limits import Confinement
from grader.sandbox.worker.quota import QuotaMonitor
from grader.sandbox.worker.serving import Conversation, drop_project_paths, warm_up

HUGE_PAGE = 2 * 1024 * 1024
MADV_HUGEPAGE, MADV_COLLAPSE = 14, 25
INTERRUPT = signal.SIGUSR1  # tells a worker to send the place where its code is
Hosts = dict[socket.socket, set[int]]  # the pids of each host's workers


def run_zygote(control_socket: socket.socket, root: Path) -> None:
    """Take orders until the last host has closed its socket. A worker does not outlive its host."""
    torch.set_num_threads(1)
    drop_project_paths()
    warm_up()
    gc.collect()
    gc.freeze()  # else garbage collection would write to, and so copy, every page in every worker
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
        order, descriptor = channel.receive_passed(host)
        match control.decode_order(order):
            case control.Fork(confinement, core):
                parent, pid = os.getpid(), os.fork()
                if pid == 0:
                    keep_to(core)
                    _run_worker(descriptor, confinement, quota.folder(os.getpid()), parent)
                os.close(descriptor)
                quota.add(pid)
                hosts[host].add(pid)
                channel.send(host, control.encode(pid))
            case control.Reap(pid, grace):
                ended = control.Ended(-signal.SIGKILL)
                if pid in hosts[host]:  # else it was killed with an earlier zygote
                    hosts[host].remove(pid)
                    ended = control.Ended(*quota.end(pid, grace))
                channel.send(host, control.encode(ended))
            case control.Interrupt(pid):
                if pid in hosts[host]:
                    with contextlib.suppress(OSError):
                        os.kill(pid, INTERRUPT)
                channel.send(host, control.encode(pid))
            case control.Prepare():
                _prepare_training()
                channel.send(host, control.encode(0))
            case control.Share():
                hosts[socket.socket(fileno=descriptor)] = set()
    except (ConnectionError, EOFError):
        return False
    return True


def _prepare_training() -> None:
    """Import the 800 modules that `torch.optim` imports for the first optimizer."""
    importlib.import_module("torch._dynamo")
    gc.collect()
    gc.freeze()
    prepare()


def _run_worker(descriptor: int, confinement: Confinement, private: Path, parent: int) -> NoReturn:
    """Confine this process, answer requests, and exit."""
    code = 1
    try:
        with keep_only(descriptor) as connection:
            conversation = Conversation(connection)
            if conversation.begin(confinement, private, parent):
                signal.signal(INTERRUPT, lambda _, frame: conversation.tell_place(frame))
                conversation.serve()
                code = 0
    finally:
        os._exit(code)


def _use_huge_pages() -> None:
    """Move this process's memory to huge pages, which halves the cost of a worker's fork and end.

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


if __name__ == "__main__":
    run_zygote(socket.socket(fileno=int(sys.argv[1])), Path(sys.argv[2]))
