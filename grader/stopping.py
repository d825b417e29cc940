"""Stopping a command: Ctrl-C, SIGTERM and SIGHUP all raise `KeyboardInterrupt` in the main thread.

So, however a command is stopped, marks are written, processes end and temporary folders are
removed.
"""

from __future__ import annotations

import contextlib
import signal
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from types import FrameType

if sys.platform == "win32":
    SIGNALS = [signal.SIGINT, signal.SIGTERM]
else:
    SIGNALS = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP]


@dataclass
class _State:
    steps: int = 0  # steps under way that may not be cut in two
    is_waiting: bool = False  # a signal that waits for the end of the step


_state = _State()


def stop_on_signals() -> None:
    """Make each of `SIGNALS` stop this process as Ctrl-C does, unless it is ignored (`nohup`)."""
    for number in SIGNALS:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _stop)


def _stop(number: int, frame: FrameType | None) -> None:
    if _state.steps and not _state.is_waiting:  # a second signal does not wait
        _state.is_waiting = True
        return
    for other in SIGNALS[1:]:  # such signals often come several times
        signal.signal(other, signal.SIG_IGN)
    raise KeyboardInterrupt


@contextlib.contextmanager
def whole_step() -> Iterator[None]:
    """Let a signal wait until the block is done, then stop; a second signal does not wait."""
    _state.steps += 1
    try:
        yield
    except BaseException:
        _state.is_waiting = False
        raise
    finally:
        _state.steps -= 1
    if _state.is_waiting and not _state.steps:
        _state.is_waiting = False
        raise KeyboardInterrupt
