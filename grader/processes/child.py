"""A child process in Python, with a socket for orders, a file of errors and a scratch folder."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from typing import IO, Any, ClassVar

from grader.scratch import ScratchFolder

# A fork copies only the calling thread, so torch must not have started others before it.
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
NEEDED = ("SYSTEMROOT",)  # needed on Windows to start a process that uses sockets


def module_command(module: str) -> tuple[str, ...]:
    """Return the command that runs a module, isolated from the user's environment."""
    return sys.executable, "-I", "-X", "utf8", "-W", "ignore", "-m", module


def clean_environment(**more: str) -> dict[str, str]:
    """Return an environment with `more` and nothing of the user's."""
    needed = {name: os.environ[name] for name in NEEDED if name in os.environ}
    return {"PATH": os.defpath, "LANG": "C.UTF-8", **needed, **more}


def last_line(errors: IO[bytes]) -> str:
    """Return the last line of a file to which a process writes its errors."""
    errors.seek(0)
    lines = errors.read().decode("utf-8", "replace").strip().splitlines()
    return lines[-1] if lines else ""


class ChildProcess:
    """A process that starts at once, and that `close` ends.

    It runs the command with the number of its socket and, with a `purpose`, the path of a scratch
    folder, then `arguments`. `orders` is the other end of the socket; waiting for an answer there
    takes at most `seconds`. This process removes the folder, because the other one may be killed.
    """

    popen: ClassVar[type[subprocess.Popen[bytes]]] = subprocess.Popen  # starts it here

    def __init__(
        self,
        command: Sequence[str],
        *arguments: str,
        purpose: str = "",
        env: Mapping[str, str] | None = None,
        seconds: float | None = None,
    ) -> None:
        self._owner = os.getpid()
        self._process: subprocess.Popen[bytes] | None = None
        self._errors: Any = tempfile.TemporaryFile()  # noqa: SIM115, read when a start fails
        self._scratch = ScratchFolder(purpose) if purpose else None
        self.orders, theirs = socket.socketpair()
        self.orders.settimeout(seconds)
        folder = [self.folder] if purpose else []
        try:
            with theirs:
                self._process = self.popen(
                    [*command, str(theirs.fileno()), *folder, *arguments],
                    pass_fds=[theirs.fileno()],
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=self._errors,
                    env=env,
                    start_new_session=True,  # Ctrl-C is for this process, which then ends it
                )
        except BaseException:
            self.close()
            raise

    @property
    def pid(self) -> int:
        """The process id."""
        assert self._process is not None
        return self._process.pid

    @property
    def folder(self) -> str:
        """The scratch folder; empty if there is none."""
        return os.path.realpath(self._scratch.path) if self._scratch else ""

    @property
    def has_ended(self) -> bool:
        """Whether the process has ended; until then no other process has its pid."""
        return self._process is None or self._process.poll() is not None

    def last_error_line(self) -> str:
        """Return the last line of the process's error output."""
        return last_line(self._errors)

    def kill(self) -> None:
        """Kill the process, but leave its socket to the thread that waits for an answer."""
        if self._process is not None and self._owner == os.getpid():
            self._process.kill()
            self._process.wait()

    def close(self) -> None:
        """Close the socket, end the process and remove its folder.

        After a fork, only the process that started it ends it.
        """
        self.orders.close()
        self.kill()
        if self._scratch is not None and self._owner == os.getpid():
            self._scratch.close()
