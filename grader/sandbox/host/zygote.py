"""The host's handle on the zygote: start it, have workers forked, have them ended.

Imports no torch: a command starts the zygote first and imports torch while the zygote does.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
from typing import Any

from grader.errors import InternalError, RequestError
from grader.sandbox import control
from grader.sandbox.confinement.layers import Confinement

CONTROL_SECONDS = 60.0  # a zygote that says nothing for so long (importing torch included) is gone


class Zygote:
    """One zygote process. A zygote that has died is started again when it is next needed.

    With `control`, the other end of a `share`d zygote, it is that one, and none after it. With
    `core`, its workers keep to that core.
    `has_died` says that it ended by itself: what a worker answered just then means nothing.
    """

    def __init__(
        self,
        confinement: Confinement | None = None,
        control: socket.socket | None = None,
        core: int | None = None,
    ) -> None:
        self.confinement, self._core = confinement or Confinement(), core
        self._process: subprocess.Popen[bytes] | None = None
        self._control = control
        self._is_shared, self.has_died = control is not None, False
        if control is not None:
            control.settimeout(CONTROL_SECONDS)
        self._errors: Any = None
        self._root: tempfile.TemporaryDirectory[str] | None = None

    def __enter__(self) -> Zygote:
        self.start()
        return self

    def __exit__(self, *exc: Any) -> None:
        self.close()

    @property
    def pid(self) -> int | None:
        """The zygote's process, while it runs."""
        return self._process.pid if self._process else None

    def start(self) -> None:
        """Start the process; returns at once, torch is imported over there meanwhile."""
        if self._control is not None:
            return
        self._control, theirs = socket.socketpair()
        self._control.settimeout(CONTROL_SECONDS)
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115, read when a start fails
        # Beneath it each worker's private folder; removed with the zygote, however that ended.
        self._root = tempfile.TemporaryDirectory(prefix="grader-", ignore_cleanup_errors=True)
        command = [sys.executable, "-I", "-W", "ignore", "-m", "grader.sandbox.worker.zygote"]
        with theirs:
            self._process = subprocess.Popen(
                [*command, str(theirs.fileno()), os.path.realpath(self._root.name)],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=self._errors,
                env=_clean_environment(),
                start_new_session=True,  # Ctrl-C goes to the host, which ends its workers
            )

    def fork(self) -> tuple[socket.socket, int]:
        """The socket and pid of a fresh worker; tries a fresh zygote once."""
        try:
            return self._fork()
        except (OSError, EOFError) as error:
            self.close()
            self.has_died = True
            if self._is_shared:
                raise InternalError("the process that runs student code has ended") from error
        try:
            return self._fork()
        except (OSError, EOFError) as error:
            raise InternalError(
                "the process that runs student code does not start: "
                f"{self._last_words() or repr(error)}",
                "python -c 'import torch'   shows whether torch itself imports",
            ) from error

    def _fork(self) -> tuple[socket.socket, int]:
        self.start()
        assert self._control is not None
        ours, theirs = socket.socketpair()
        with theirs:
            order = control.encode(control.Fork(self.confinement, self._core))
            try:
                socket.send_fds(self._control, [order], [theirs.fileno()])
                return ours, control.decode_pid(self._answer())
            except BaseException:
                ours.close()
                raise

    def share(self) -> socket.socket:
        """A second way to the same process, for a host that is forked from this one."""
        self.start()
        assert self._control is not None
        ours, theirs = socket.socketpair()
        with theirs:
            socket.send_fds(self._control, [control.encode(control.Share())], [theirs.fileno()])
        return ours

    def reap(self, pid: int, grace: float) -> control.Ended | None:
        """End worker `pid`; how it ended, or None if the zygote is gone and cannot tell."""
        if self._control is None:
            return None
        try:
            self._control.sendall(control.encode(control.Reap(pid, grace)))
            return control.decode_ended(self._answer())
        except (OSError, EOFError):
            with contextlib.suppress(OSError):
                os.killpg(pid, signal.SIGKILL)
            self.close()
            self.has_died = True
            return None

    def outlasts(self, waiting: Any) -> bool:
        """Wait until something comes through the connection `waiting`; false if we end before."""
        assert self._control is not None
        return self._control not in select.select([waiting, self._control], [], [])[0]

    def _answer(self) -> bytes:
        assert self._control is not None
        data = self._control.recv(4096)
        if not data:
            raise EOFError("the zygote has ended")
        return data

    def _last_words(self) -> str:
        if self._errors is None:
            return ""
        self._errors.seek(0)
        lines = self._errors.read().decode("utf-8", "replace").strip().splitlines()
        return lines[-1] if lines else ""

    def close(self) -> None:
        """End the zygote; its workers end with it."""
        if self._control is not None:
            self._control.close()
        if self._process is not None:
            self._process.kill()
            self._process.wait()
        if self._root is not None:
            self._root.cleanup()
        self._control = self._process = self._root = None


def cannot_confine(why: str) -> RequestError:
    """What to say where confinement is asked for and a layer is missing."""
    return RequestError(
        f"this machine cannot confine other people's code. {why}",
        "grader doctor   says what to do; --isolation process grades without",
    )


def _clean_environment() -> dict[str, str]:
    """Nothing of the teacher's environment, and one thread: a fork must not lose others."""
    return {
        "PATH": os.defpath,
        "LANG": "C.UTF-8",
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
        "MKL_NUM_THREADS": "1",
    }
