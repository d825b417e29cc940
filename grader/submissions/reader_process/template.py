"""The template process of readers: it forks a reader when it is told to.

    python -I -m grader.submissions.reader_process.template FD ROOT

Orders come through the socket FD. ROOT holds the readers' private folders. A reader waits for its
confinement, confines itself, does one job, sends one message and ends; a class reader does the same
job for one attempt after the other, and runs no parser. The template reads nothing that a student
wrote, and imports no torch.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import gc
import os
import shutil
import signal
import socket
import sys
from pathlib import Path
from typing import NoReturn

from grader.processes import channel
from grader.processes.forking import keep_only
from grader.sandbox.confinement.layers import die_with, prepare
from grader.submissions.reader import messages
from grader.submissions.reader.sharing import OwnReaderRequired, share_this_process
from grader.submissions.reader_process.jobs import (
    answer,
    confine_reader,
    path_of,
)
from grader.trees import follow_no_link_below

LIBC = ctypes.PyDLL(None, use_errno=True)
WARM_UPS = 10  # calls after which Python no longer changes a function's code


def serve(orders: socket.socket, root: Path) -> None:
    """Take orders until the host has closed its socket."""
    gc.disable()  # else garbage collection would write to, and so copy, every page in every reader
    prepare()
    with contextlib.suppress(ConnectionError, EOFError):
        while True:
            order, descriptor = channel.receive_passed(orders)
            match messages.decode_order(order):
                case messages.StartReader(job):
                    get_ready(job, root)
                    _start(descriptor, root)
                    os.close(descriptor)
                case messages.StopReader(pid):
                    messages.send(orders, _stop(pid, root))
    shutil.rmtree(root, ignore_errors=True)


@functools.cache
def get_ready(job: str, root: Path) -> None:
    """Import a job's modules, because a confined reader cannot read the project's files.

    Python changes a function's code in its first calls. It does so here, where all readers share
    the result; each page of memory that a reader changes would be copied for it alone.
    """
    if job != "ReadPaths":
        import grader.submissions.layouts  # noqa: F401, PLC0415, slow: `grader check` needs none
    if job == "ReadAttempt":  # a class reader has left it to a reader that parses, as of notebooks
        import IPython.core.inputtransformer2  # noqa: F401, PLC0415, slow, and rarely needed
    if job == "ReadPlainly":
        folder = root / "sample"
        folder.mkdir()
        (folder / "sample.py").write_text("sample = 1\n")
        part = messages.PartToRead(os.fsencode(folder), b"sample")
        exercises = messages.ExerciseNames("sample", ()), messages.ExerciseNames("other", ())
        sample = messages.encode(messages.ReadAttempt(exercises, b"sample", (part,), ()))
        for _ in range(WARM_UPS):
            messages.encode(answer(messages.decode_job(sample)))
        shutil.rmtree(folder)


def _start(descriptor: int, root: Path) -> None:
    parent = os.getpid()
    try:
        pid = _fork()
    except OSError as error:
        fault = messages.ReaderStarted(fault=error.strerror or str(error))
        os.write(descriptor, channel.framed(messages.encode(fault)))
        return
    if pid == 0:
        _run_reader(descriptor, root / str(os.getpid()), parent)


def _fork() -> int:
    """Fork this process, whose only thread is this one; raise `OSError` if that is impossible.

    After `os.fork`, Python prepares its threads and its random numbers for life in a new process.
    That copies a hundred pages of memory, and a reader uses neither.
    """
    pid = int(LIBC.fork())
    if pid < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return pid


def _stop(pid: int, root: Path) -> messages.ReaderStopped:
    """End a reader and its process group, and remove its folder."""
    for kill in (os.killpg, os.kill):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            kill(pid, signal.SIGKILL)
    _, status, usage = os.wait4(pid, 0)
    with contextlib.suppress(RecursionError):
        shutil.rmtree(root / str(pid), ignore_errors=True)
    code = os.waitstatus_to_exitcode(status)
    return messages.ReaderStopped(code, usage.ru_utime + usage.ru_stime)


def _run_reader(descriptor: int, private: Path, parent: int) -> NoReturn:
    """Confine this process, do one job, and exit."""
    code = 1
    try:
        die_with(parent)
        with keep_only(descriptor) as connection:
            messages.send(connection, messages.ReaderStarted(os.getpid()))
            confinement = messages.decode_confinement(channel.receive(connection.recv))
            confined = confine_reader(confinement, private, parent)
            messages.send(connection, confined)
            if not confined.fault:
                _do_jobs(connection)
                code = 0
    finally:
        os._exit(code)


def _do_jobs(connection: socket.socket) -> None:
    """Do one job or, if it is to read plainly, one after the other of that kind."""
    job = messages.decode_job(channel.receive(connection.recv))
    if not isinstance(job, messages.ReadPlainly):
        messages.send(connection, answer(job))
        return
    follow_no_link_below(path_of(job.root))
    share_this_process()
    while True:
        messages.send(connection, _read_plainly(job))
        job = messages.decode_plain_job(channel.receive(connection.recv))


def _read_plainly(job: messages.ReadPlainly) -> messages.PlainlyRead:
    """Read an attempt without a parser; answer without files if it needs one or has a problem."""
    with contextlib.suppress(OwnReaderRequired):
        read = answer(job.attempt)
        if isinstance(read, messages.FilesRead) and not read.problems:
            return messages.PlainlyRead(job.number, read)
    return messages.PlainlyRead(job.number)


if __name__ == "__main__":
    serve(socket.socket(fileno=int(sys.argv[1])), Path(sys.argv[2]))
