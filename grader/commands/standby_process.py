"""A notebook's end of `grader standby`: keeps the process for the next check, and orders checks."""

from __future__ import annotations

import contextlib
import functools
import itertools
import os
import subprocess
import sys
from collections.abc import Callable, Iterable

import msgspec

from grader.commands import STANDBY
from grader.commands.options import PROGRESS_VARIABLE

END_OF_ERRORS = "\x04\n"  # the line that follows the answer of a check
MAX_LINE = 4096  # characters of one line of errors; a longer one is read as several
ReadErrors = Callable[[Iterable[str], str], str]


class CheckOrder(msgspec.Struct, frozen=True):
    """An order: check an exercise of the course in `root`, in a notebook with files beside it."""

    root: str
    notebook: str
    exercise: str
    page: str  # the file for the HTML report; the answer has the report as text
    seed: int | None = None
    tour: bool = False  # whether the page is to show the tour that the exercise leads


class CheckAnswer(msgspec.Struct, frozen=True):
    """The result of a check: the exit code that the command would have, and the report."""

    code: int
    text: str


class Standby:
    """A notebook's end: keeps a process ready that makes one check after the other."""

    def __init__(self) -> None:
        self._ready: _Waiting | None = None

    def prepare(self) -> None:
        """Start the process, unless a current one is waiting.

        If no process can start, the check itself reports it.
        """
        if self._ready is not None and not self._ready.is_current:
            self._end()
        if self._ready is None:
            with contextlib.suppress(OSError):
                self._ready = _Waiting()

    def check(self, order: CheckOrder, read_errors: ReadErrors) -> tuple[int, str]:
        """Run a check; return its exit code and its output.

        `read_errors` gets the lines of the error stream as they come, and the exercise. If the
        check does not finish, the result of `read_errors` replaces the output.
        """
        code, said = self._carry_out(order, read_errors)
        if not said:  # the process had just ended, because it had waited too long
            code, said = self._carry_out(order, read_errors)
        self.prepare()
        if not said:
            return 3, f"the check has ended with code {code}, without a verdict"
        return code, said

    def _carry_out(self, order: CheckOrder, read_errors: ReadErrors) -> tuple[int, str]:
        self.prepare()
        ready = self._ready = self._ready or _Waiting()
        try:
            return ready.carry_out(order, read_errors)
        except BaseException:
            self._end()  # else its answer would be taken for that of the next check
            raise

    def _end(self) -> None:
        if self._ready is not None:
            self._ready.end()
            self._ready = None


class _Waiting:
    """A process that is ready to check and waits for orders."""

    def __init__(self) -> None:
        self._environment = dict(os.environ)
        # The changes that the kernel made to its environment, such as its path, are the student's.
        added = {"PYTHONSAFEPATH": "1", "PYTHONIOENCODING": "utf-8", PROGRESS_VARIABLE: "1"}
        self._process = subprocess.Popen(
            [sys.executable, "-m", "grader", STANDBY],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            encoding="utf-8",
            errors="replace",
            env={**os.environ, **added},
        )

    @property
    def is_current(self) -> bool:
        """Whether it is still waiting, with the current environment."""
        return self._process.poll() is None and self._environment == dict(os.environ)

    def carry_out(self, order: CheckOrder, read_errors: ReadErrors) -> tuple[int, str]:
        """Return the exit code and output of the check; end the process if it has no answer."""
        process = self._process
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        with contextlib.suppress(OSError):  # the process may have ended
            process.stdin.write(f"{msgspec.json.encode(order).decode()}\n")
            process.stdin.flush()
        pieces = iter(functools.partial(process.stderr.readline, MAX_LINE), "")
        lines = itertools.takewhile(END_OF_ERRORS.__ne__, pieces)
        errors = read_errors(lines, order.exercise)
        if line := process.stdout.readline():
            answer = msgspec.json.decode(line, type=CheckAnswer)
            return answer.code, answer.text
        return process.wait(), errors

    def end(self) -> None:
        """End it, even in the middle of a check."""
        self._process.terminate()
        self._process.communicate()
