"""`grader` in a terminal of its own: what is pressed, and what is on the screen."""

from __future__ import annotations

import contextlib
import os
import pty
import select
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from warm import warm_popen

IN_TERMINAL = Path(__file__).parent / "in_terminal.py"


class Terminal:
    """`grader` in a terminal of its own."""

    def __init__(self, folder: Path, *arguments: str) -> None:
        self.fd, theirs = pty.openpty()
        streams = dict.fromkeys(("stdin", "stdout", "stderr"), theirs)
        self.run = warm_popen()(
            [sys.executable, str(IN_TERMINAL), *arguments],
            cwd=folder,
            env={**os.environ, "TERM": "xterm"},
            start_new_session=True,
            **streams,
        )
        os.close(theirs)
        self.seen = ""

    def until(self, wanted: str, seconds: float = 60) -> str:
        """What is on the screen once `wanted` is; the output before counts no more."""
        end = time.monotonic() + seconds
        while wanted not in self.seen:
            ready, _, _ = select.select([self.fd], [], [], max(0, end - time.monotonic()))
            assert ready, f"no {wanted!r} in {self.seen!r}"
            self.seen += os.read(self.fd, 65536).decode("utf-8", "replace")
        page, self.seen = self.seen, ""
        return page

    def press(self, keys: str) -> None:
        os.write(self.fd, keys.encode())

    def end(self) -> int:
        """The exit code."""
        try:
            while os.read(self.fd, 65536):
                pass
        except OSError:
            pass
        return self.run.wait()


Open = Callable[..., Terminal]


@contextlib.contextmanager
def terminals_in(folder: Path) -> Iterator[Open]:
    """Yield what opens terminals in a folder; close them all in the end."""
    opened: list[Terminal] = []

    def opening(*arguments: str) -> Terminal:
        opened.append(Terminal(folder, *arguments))
        return opened[-1]

    yield opening
    for one in opened:
        one.run.kill()
        one.run.wait()
        os.close(one.fd)
