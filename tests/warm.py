"""Start `python -m …` as a fork of a process that has imported torch already.

An import of torch costs more processor time than most tests. `Warm` stands in for
`subprocess.Popen`: what it starts is in every other way a child of this process, with its own
environment, descriptors, session and command line, and starts its own children in the same way.
Where a test is about the start of Python itself (its options, what is imported), use `subprocess`.
"""

from __future__ import annotations

import array
import contextlib
import ctypes
import gc
import inspect
import json
import os
import runpy
import select
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    from commandline import Said

PR_SET_CHILD_SUBREAPER, PR_GET_CHILD_SUBREAPER = 36, 37
LENGTH = struct.Struct("!I")
ROOM = 4096  # bytes of the server's command line, in which its children write their own
FIRST_FREE = 200  # descriptors from here on are used for a moment only
ZYGOTE, SPAWNED = "grader.sandbox.worker.zygote", "grader.sandbox.worker.spawned"
Popen = subprocess.Popen  # itself, also where `Warm` has taken its place
QUIET = {"-I", "-W", "-X", "-u"}  # what the server has as well, or what makes no difference here


class _Starts(Popen[Any]):
    """What `Warm` and `_Forks` have in common: they read `Popen`'s own words for a start."""

    def _execute_child(self, *given: Any) -> None:
        real = super()._execute_child  # type: ignore[misc]
        words = inspect.signature(real).bind(*given).arguments
        args = words["args"]
        script = None if isinstance(args, str | bytes) else self._script([*map(os.fspath, args)])
        if script is None or words["preexec_fn"] is not None:
            real(*given)
            return
        kept = {number: number for number in words["pass_fds"]}
        for number, name in enumerate(("p2cread", "c2pwrite", "errwrite")):
            kept[number] = words[name] if words[name] != -1 else number
        environment = dict(os.environ) if words["env"] is None else words["env"]
        order = {
            "script": script,
            "command": [*map(os.fspath, args)],
            "environment": {os.fsdecode(k): os.fsdecode(v) for k, v in environment.items()},
            "folder": os.fspath(words["cwd"] or os.getcwd()),
            "session": bool(words["start_new_session"]),
        }
        self.pid = self._start(order, kept)
        self._child_created = True
        ends = ("p2cread", "p2cwrite", "c2pread", "c2pwrite", "errread", "errwrite")
        self._close_pipe_fds(*(words[end] for end in ends))  # type: ignore[attr-defined]

    def _script(self, args: list[str]) -> list[str] | None:
        """Return what Python is to run, with its arguments; None if a real start is needed."""
        rest = list(args)
        if rest.pop(0) != sys.executable:
            return None
        while rest and rest[0] in QUIET:
            del rest[: 2 if rest[0] in ("-W", "-X") else 1]
        if rest[:1] == ["-m"]:
            warm = rest[1].startswith("grader") or rest[1] == "pytest"
            return rest if warm and rest[1] != SPAWNED else None
        return rest if rest and not rest[0].startswith("-") else None

    def _start(self, order: dict[str, Any], kept: dict[int, int]) -> int:
        """Fork; `kept` says which descriptor of ours becomes which of the child's."""
        raise NotImplementedError


class _Forks(_Starts):
    """Forks this very process, which the server has forked.

    A second zygote is started from nothing: by then this process may have worked out gradients,
    after which a copy of it cannot. So is what another thread than the main one starts: a copy's
    only thread would be one that was not there from the beginning, which the watch refuses.
    """

    _has_zygote = False

    def _script(self, args: list[str]) -> list[str] | None:
        if threading.current_thread() is not threading.main_thread():
            return None
        if ZYGOTE in args:
            if _Forks._has_zygote:
                return None
            _Forks._has_zygote = True
        return super()._script(args)

    def _start(self, order: dict[str, Any], kept: dict[int, int]) -> int:
        gc.freeze()
        if pid := os.fork():
            return pid
        _become(order, kept)


class Warm(_Starts):
    """Has the server fork, and adopts what it has forked."""

    _server: socket.socket | None = None
    _lock = threading.Lock()

    def _start(self, order: dict[str, Any], kept: dict[int, int]) -> int:
        with self._lock:
            if Warm._server is None:
                Warm._server = _start_server()
            with _adopting():
                body = json.dumps({**order, "kept": [*kept], "parent": os.getpid()}).encode()
                fds = array.array("i", kept.values())
                rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, fds)]
                Warm._server.sendmsg([LENGTH.pack(len(body))], rights)
                Warm._server.sendall(body)
                (pid,) = LENGTH.unpack(_exactly(Warm._server, LENGTH.size))
                return int(pid)


def run_warm(command: list[str], given: str = "", **options: Any) -> Said:
    """Run a command to its end, with `given` to read; return what it said."""
    from commandline import Said  # not in the server: it looks for no modules of the tests

    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    with warm_popen()(command, **pipes, text=True, **options) as run:
        out, err = run.communicate(given)
        return Said(run.returncode, out, err)


def warm_popen() -> type[subprocess.Popen[Any]]:
    """Return `Warm` where a process can adopt others, else `subprocess.Popen`."""
    return Warm if sys.platform == "linux" else Popen


@contextlib.contextmanager
def _adopting() -> Iterator[None]:
    """Become the parent of those whose own parent ends meanwhile."""
    libc, before = ctypes.CDLL(None, use_errno=True), ctypes.c_int()
    libc.prctl(PR_GET_CHILD_SUBREAPER, ctypes.byref(before), 0, 0, 0)
    libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    try:
        yield
    finally:
        libc.prctl(PR_SET_CHILD_SUBREAPER, before.value, 0, 0, 0)


def _start_server() -> socket.socket:
    """Return the socket of a server that ends when it is closed, or when this process ends."""
    ours, theirs = socket.socketpair()
    command = [sys.executable, "-I", "-W", "ignore", __file__, str(theirs.fileno())]
    with theirs:
        Popen(
            [*command, "-" * ROOM],
            pass_fds=[theirs.fileno()],
            stdin=subprocess.DEVNULL,
            start_new_session=True,
        )
    return ours


def _exactly(connection: socket.socket, count: int) -> bytes:
    data = b""
    while len(data) < count:
        if not (piece := connection.recv(count - len(data))):
            raise EOFError("the server of warm processes has ended")
        data += piece
    return data


# --- in the server --------------------------------------------------------------------------------


def _serve(connection: socket.socket) -> None:
    """Import what tests start, and fork for every order until nobody gives any."""
    parent = os.getppid()
    _import_everything()
    gc.collect()
    gc.freeze()
    while True:
        # Forks of a process that was killed may still hold the socket's other end.
        while not select.select([connection], [], [], 1)[0]:
            if os.getppid() != parent:
                return
        data, fds, _, _ = socket.recv_fds(connection, LENGTH.size, 64)
        if not data:
            return
        order = json.loads(_exactly(connection, LENGTH.unpack(data)[0]))
        middle = os.fork()
        if middle == 0:
            if os.fork():
                os._exit(0)  # which leaves the other to its adopter
            while os.getppid() != order["parent"]:
                time.sleep(0.0005)
            connection.sendall(LENGTH.pack(os.getpid()))
            _become(order, dict(zip(order["kept"], fds, strict=True)))
        os.waitpid(middle, 0)
        for fd in fds:
            os.close(fd)


def _import_everything() -> None:
    import pytest_jsonreport.plugin  # noqa: F401
    import torch  # noqa: F401
    import watchfiles  # noqa: F401

    import grader.__main__
    import grader.classroom.run
    import grader.classroom.workers.pool
    import grader.commands.batch
    import grader.commands.check
    import grader.commands.doctor
    import grader.commands.screen
    import grader.grading.grader
    import grader.grading.plugin
    import grader.grading.session
    import grader.reports.pages
    import grader.sandbox.worker.quota
    import grader.sandbox.worker.server
    import grader.testing  # noqa: F401


def _become(order: dict[str, Any], kept: dict[int, int]) -> NoReturn:
    """Be what a fresh Python would be, run the script, and end."""
    code = 1
    try:
        _take_descriptors(kept)
        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGCHLD):
            signal.signal(number, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        if order["session"]:
            os.setsid()
        os.environ.clear()
        os.environ.update(order["environment"])
        os.chdir(order["folder"])
        tempfile.tempdir = None
        _rename(order["command"])
        _fork_from_now_on()
        code = _run(order["script"])
    finally:
        os._exit(code)


def _fork_from_now_on() -> None:
    """Have this process start its own children in the same way."""
    from grader.processes.child import ChildProcess

    _Forks._has_zygote = False
    subprocess.Popen = ChildProcess.popen = _Forks  # type: ignore[misc]


def _take_descriptors(kept: dict[int, int]) -> None:
    """Have these descriptors and no others; their owners in this process are never asked again."""
    aside = {}
    for place, fd in kept.items():
        with contextlib.suppress(OSError):  # one that the parent itself has closed
            aside[place] = os.dup(fd)
            os.dup2(aside[place], FIRST_FREE + place)
    os.closerange(0, FIRST_FREE)
    for place in aside:
        os.dup2(FIRST_FREE + place, place)
    os.closerange(FIRST_FREE, os.sysconf("SC_OPEN_MAX"))
    sys.stdin, sys.stdout, sys.stderr = (  # what the old ones still hold is the parent's to write
        open(number, mode, encoding="utf-8", closefd=False) if number in aside else None  # noqa: SIM115
        for number, mode in enumerate(("r", "w", "w"))
    )
    if sys.stderr is not None:
        sys.stderr.reconfigure(line_buffering=True, errors="backslashreplace")


def _rename(command: list[str]) -> None:
    """Write the command line where the system reads it."""
    numbers = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
    start, end = int(numbers[45]), int(numbers[46])
    text = b"\0".join(map(os.fsencode, command))[: end - start - 1]
    ctypes.memmove(start, text.ljust(end - start, b"\0"), end - start)


def _run(script: list[str]) -> int:
    """Run a module or a file as `__main__`; return the exit code."""
    try:
        if script[0] == "-m":
            sys.argv = script[1:]
            runpy.run_module(script[1], run_name="__main__", alter_sys=True)
        else:
            sys.argv = script
            sys.path.insert(0, os.path.dirname(os.path.abspath(script[0])))
            runpy.run_path(script[0], run_name="__main__")
        code: Any = 0
    except SystemExit as ended:
        code = ended.code
    except BaseException:
        traceback.print_exc()
        code = 1
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):
            stream.flush()
    return code if isinstance(code, int) else int(code is not None)


if __name__ == "__main__":
    _serve(socket.socket(fileno=int(sys.argv[1])))
