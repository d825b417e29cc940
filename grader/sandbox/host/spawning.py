"""Processes that are started anew, on systems without fork or descriptors to pass on."""

from __future__ import annotations

import contextlib
import hmac
import os
import secrets
import selectors
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from typing import Any

from grader.processes.child import last_line, module_command
from grader.sandbox.invitation import LOOPBACK, ORDER, TOKEN_BYTES, Invitation
from grader.scratch import ScratchFolder

BEAT = 0.2  # seconds between two checks whether an awaited process has ended
ENDING_SECONDS = 0.5  # seconds for a process without a host to end by itself
GREETING_SECONDS = 5.0  # seconds for a caller to send the token
MAX_CALLERS = 100  # callers heard at once
# On Windows, else a window would open, and Ctrl-C would end the process before the grader does.
NO_WINDOW = getattr(subprocess, "CREATE_NO_WINDOW", 0)


class SpawnedProcess:
    """A Python process that runs one of our modules and meets this one as a `Guest`.

    It starts at once, and `close` ends it. This process removes its scratch folder.
    """

    def __init__(self, module: str, purpose: str, env: Mapping[str, str]) -> None:
        self._errors: Any = tempfile.TemporaryFile()  # noqa: SIM115, read when a start fails
        self._scratch = ScratchFolder(purpose)
        self._token = secrets.token_bytes(TOKEN_BYTES)
        self._listener = socket.create_server((LOOPBACK, 0))
        self._process: subprocess.Popen[bytes] | None = None
        try:
            self._process = subprocess.Popen(
                module_command(module),
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=self._errors,
                env=dict(env),
                start_new_session=True,  # Ctrl-C is for this process, which then ends it
                creationflags=NO_WINDOW,
            )
            folder = os.path.realpath(self._scratch.path)
            port = self._listener.getsockname()[1]
            assert self._process.stdin is not None
            Invitation(port, self._token, folder, os.getpid()).send(self._process.stdin)
        except BaseException:
            self.close()
            raise

    @property
    def pid(self) -> int:
        """The process id."""
        assert self._process is not None
        return self._process.pid

    @property
    def has_folder(self) -> bool:
        """Whether the scratch folder is still there."""
        return self._scratch.path.is_dir()

    def meet(self, seconds: float) -> socket.socket:
        """Return a connection to the process, once it is ready.

        Raises `EOFError` if it ends before that, and `TimeoutError` after `seconds`.
        """
        end = time.monotonic() + seconds
        with Callers(self._listener, self._token) as callers:
            while time.monotonic() < end:
                if (caller := callers.greet(BEAT)) is not None:
                    self._listener.close()
                    caller.setblocking(True)
                    caller.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                    return caller
                if self._process is None or self._process.poll() is not None:
                    raise EOFError(last_line(self._errors) or "it ended at its start")
        raise TimeoutError(f"it was not ready after {seconds:.0f} seconds")

    def order(self) -> None:
        """Send the process an order."""
        assert self._process is not None
        assert self._process.stdin is not None
        with contextlib.suppress(OSError, ValueError):  # the waiting code will notice
            self._process.stdin.write(ORDER)
            self._process.stdin.flush()

    def wait(self, seconds: float) -> int | None:
        """Return the exit status of the process; None if it still runs after `seconds`."""
        assert self._process is not None
        with contextlib.suppress(subprocess.TimeoutExpired):
            return self._process.wait(seconds)
        return None

    def close(self) -> None:
        """End the process and remove its folder."""
        self._listener.close()
        if self._process is not None:
            if self._process.stdin is not None:
                with contextlib.suppress(OSError):
                    self._process.stdin.close()
            if sys.platform == "win32":
                # In a venv, Python is a child of the ended process, and ends by itself.
                self.wait(ENDING_SECONDS)
            self._process.kill()
            self._process.wait()
        self._errors.close()
        self._scratch.close()


class Callers:
    """The callers of a listener, all of which are asked for the token at the same time.

    Any program on this machine may connect. A silent caller delays nobody: each has a few seconds,
    and if there are many, the oldest one makes room for the next.
    """

    def __init__(self, listener: socket.socket, token: bytes) -> None:
        self._listener, self._token = listener, token
        self._said: dict[socket.socket, bytes] = {}  # by caller, the oldest first
        self._until: dict[socket.socket, float] = {}
        self._selector = selectors.DefaultSelector()
        listener.setblocking(False)
        self._selector.register(listener, selectors.EVENT_READ)

    def greet(self, seconds: float) -> socket.socket | None:
        """Listen to all callers for some seconds; return the one with the token."""
        for key, _ in self._selector.select(seconds):
            caller = key.fileobj
            assert isinstance(caller, socket.socket)
            if caller is self._listener:
                self._accept()
            elif caller in self._said and self._hears_token(caller):
                self._forget(caller)
                return caller
        now = time.monotonic()
        for caller in [each for each, until in self._until.items() if until < now]:
            self._dismiss(caller)
        return None

    def _accept(self) -> None:
        with contextlib.suppress(OSError):  # no caller is left
            caller, _ = self._listener.accept()
            caller.setblocking(False)
            if len(self._said) == MAX_CALLERS:
                self._dismiss(next(iter(self._said)))
            self._said[caller] = b""
            self._until[caller] = time.monotonic() + GREETING_SECONDS
            self._selector.register(caller, selectors.EVENT_READ)

    def _hears_token(self, caller: socket.socket) -> bool:
        """Read a caller's bytes; dismiss a caller with a wrong token."""
        said = self._said[caller]
        try:
            piece = caller.recv(TOKEN_BYTES - len(said))
        except BlockingIOError:
            return False
        except OSError:
            piece = b""
        self._said[caller] = said = said + piece
        if len(said) == TOKEN_BYTES and hmac.compare_digest(said, self._token):
            return True
        if not piece or len(said) == TOKEN_BYTES:
            self._dismiss(caller)
        return False

    def _dismiss(self, caller: socket.socket) -> None:
        self._forget(caller)
        caller.close()

    def _forget(self, caller: socket.socket) -> None:
        self._selector.unregister(caller)
        del self._said[caller], self._until[caller]

    def __enter__(self) -> Callers:
        return self

    def __exit__(self, *exc: Any) -> None:
        for caller in list(self._said):
            self._dismiss(caller)
        self._selector.close()


class Spawner:
    """Starts processes of one module; can start the next one before it is needed."""

    def __init__(self, module: str, purpose: str, env: Mapping[str, str]) -> None:
        self._module, self._purpose, self._env = module, purpose, env
        self._next: SpawnedProcess | None = None

    def start(self) -> None:
        """Start the next process if necessary; return while it still imports."""
        if self._next is None:
            self._next = SpawnedProcess(self._module, self._purpose, self._env)

    def take(self) -> SpawnedProcess:
        """Return the next process, which the caller ends."""
        if self._next is not None and not self._next.has_folder:
            self.close()  # it has waited for days, and its folder was removed as a leftover
        self.start()
        assert self._next is not None
        taken, self._next = self._next, None
        return taken

    def close(self) -> None:
        """End the process that was not taken."""
        if self._next is not None:
            self._next.close()
            self._next = None
