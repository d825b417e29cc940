"""Keys that are read without Enter, and the signals of a terminal, on Unix and on Windows."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

if sys.platform == "win32":
    import msvcrt
else:
    import select
    import termios
    import tty

KEYS = 0  # not sys.stdin, because a program that runs here may replace that
STEP = 0.05  # seconds between two looks at the keyboard, on systems that cannot wait for a key
BEGIN_TWO = ("\x00", "\xe0")  # on Windows, the first half of a key without a character
ESCAPE = "\x1b"  # on Unix, the first byte of such a key
ENDS = ("", "\x04", "\x1a")  # marks the end of the input


class Keyboard:
    """The terminal's keyboard; while it is taken, keys count without Enter.

    On Windows they always do, because they are read one by one.
    """

    def __init__(self, *, is_read: bool) -> None:
        self._before: list[Any] | None = None
        if sys.platform != "win32" and is_read:
            self._before = termios.tcgetattr(KEYS)

    def take(self) -> None:
        """Make keys count without Enter, if the terminal can be read."""
        if sys.platform != "win32" and self._before is not None:
            tty.setcbreak(KEYS)

    def give_back(self) -> None:
        """Restore the keyboard."""
        if sys.platform != "win32" and self._before is not None:
            termios.tcsetattr(KEYS, termios.TCSADRAIN, self._before)


def read_key(seconds: float) -> str | None:
    """Return the next key; None if none is pressed within `seconds`, empty at the end."""
    if sys.platform == "win32":
        end = time.monotonic() + seconds
        while not msvcrt.kbhit():
            if time.monotonic() > end:
                return None
            time.sleep(STEP)
        key = msvcrt.getwch()
        if key in BEGIN_TWO:  # such as an arrow; its second half could be another key's letter
            msvcrt.getwch()
            return None
    else:
        if not select.select([KEYS], [], [], seconds)[0]:
            return None
        key = os.read(KEYS, 1).decode("ascii", "replace")
        if key == ESCAPE:  # such as an arrow; its last byte could be another key's letter
            while select.select([KEYS], [], [], 0)[0]:
                os.read(KEYS, 16)
            return None
    return "" if key in ENDS else key


@contextlib.contextmanager
def terminal_signals(on_stop: Callable[[], None], on_resize: Callable[[], None]) -> Iterator[None]:
    """Call these functions after Ctrl-Z and when the size changes; end as after Ctrl-C if told to.

    Windows sends a process neither a signal to stop nor one for a changed size.
    """
    handlers: dict[signal.Signals, Callable[..., object]] = {
        signal.SIGTERM: signal.default_int_handler
    }
    if sys.platform != "win32":
        handlers[signal.SIGHUP] = signal.default_int_handler
        handlers[signal.SIGWINCH] = lambda *_: on_resize()
        handlers[signal.SIGTSTP] = lambda *_: on_stop()
    known = {number: signal.signal(number, handler) for number, handler in handlers.items()}
    try:
        yield
    finally:
        for number, before in known.items():
            signal.signal(number, before)


def stop_here() -> None:
    """Stop this process until the shell continues it."""
    if sys.platform != "win32":
        os.kill(os.getpid(), signal.SIGSTOP)
