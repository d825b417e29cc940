"""A notebook's end of `grader standby`: the process for the next check, and what to order of it."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable

import msgspec

from grader.commands import STANDBY
from grader.commands.options import PROGRESS_VARIABLE

ENDED = (0, 1)  # the exit codes of a check that came to its end


class CheckOrder(msgspec.Struct, frozen=True):
    """What to check: an exercise of the course in `root`, in the notebook that is in `folder`."""

    root: str
    folder: str
    exercise: str
    page: str  # the file for the report as HTML; as text it is printed
    seed: int | None = None


class Standby:
    """A notebook's end: keeps a process ready for the next check."""

    def __init__(self) -> None:
        self._ready: _Waiting | None = None

    def prepare(self) -> None:
        """Start a process for the next check, unless one waits that is as it would be.

        If none can start, the check itself will say so.
        """
        if self._ready is not None and not self._ready.is_current:
            self._ready.end()
            self._ready = None
        if self._ready is None:
            with contextlib.suppress(OSError):
                self._ready = _Waiting()

    def check(
        self, order: CheckOrder, read_errors: Callable[[Iterable[str], str], str]
    ) -> tuple[int, str]:
        """Run a check; return its exit code and its output; prepare the next process.

        `read_errors` gets the lines of the error stream as they come, and the exercise. If the
        check does not finish, what it returns takes the place of the output.
        """
        code, said = self._next().carry_out(order, read_errors)
        if not said:  # it had just waited too long
            code, said = self._next().carry_out(order, read_errors)
        self.prepare()
        if not said:
            return 3, f"the check has ended with code {code}, without a verdict"
        return code, said

    def _next(self) -> _Waiting:
        self.prepare()
        ready, self._ready = self._ready or _Waiting(), None
        return ready


class _Waiting:
    """A process that is ready to check, and waits for its order."""

    def __init__(self) -> None:
        self._environment = dict(os.environ)
        self._output = tempfile.TemporaryFile()  # noqa: SIM115, closed with the process
        # What the kernel has changed in its environment, such as its path, is the student's.
        added = {"PYTHONSAFEPATH": "1", "PYTHONIOENCODING": "utf-8", PROGRESS_VARIABLE: "1"}
        self._process = subprocess.Popen(
            [sys.executable, "-m", "grader", STANDBY],
            stdin=subprocess.PIPE,
            stdout=self._output,
            stderr=subprocess.PIPE,
            encoding="utf-8",
            errors="replace",
            env={**os.environ, **added},
        )

    @property
    def is_current(self) -> bool:
        """Whether it still waits, in an environment as it is now."""
        return self._process.poll() is None and self._environment == dict(os.environ)

    def carry_out(
        self, order: CheckOrder, read_errors: Callable[[Iterable[str], str], str]
    ) -> tuple[int, str]:
        """Return the exit code of the check, and what it says."""
        with self._process as process, self._output as output:
            assert process.stdin is not None
            assert process.stderr is not None
            with contextlib.suppress(OSError), process.stdin as orders:  # it may have ended
                orders.write(f"{msgspec.json.encode(order).decode()}\n")
            try:
                errors = read_errors(process.stderr, order.exercise)
            except BaseException:
                process.terminate()
                raise
            code = process.wait()
            output.seek(0)
            return code, output.read().decode("utf-8", "replace") if code in ENDED else errors

    def end(self) -> None:
        """End it without an order."""
        with self._process as process, self._output:
            process.terminate()
