"""A terminal that a command takes over: the whole screen, keys without Enter, and saved files.

Knows nothing of the drawings or of the reaction to a save; its callers do.
"""

from __future__ import annotations

import contextlib
import queue
import sys
import threading
from collections.abc import Callable, Collection, Iterator, Sequence
from functools import partial
from pathlib import Path

import click
from watchfiles import watch as changes

from grader.commands.keyboard import Keyboard, read_key, stop_here, terminal_signals

SETTLE_MS = 20  # by then, an editor that saves in several steps is done
SAVED, REDRAW = "saved", "redraw"
OTHER_SCREEN, OWN_SCREEN = "\x1b[?1049h\x1b[?25l", "\x1b[?25h\x1b[?1049l"
WAIT = 0.2  # the most seconds of one wait for an event
HOME = "\x1b[H\x1b[2J"
QUIT = "q"


class Interrupted(KeyboardInterrupt):
    """A file was saved again or the user quits, so nobody waits for the current results."""


class Events(queue.SimpleQueue[str]):
    """Saves and keys for the loop; `urgent` is set by one that must not wait for results."""

    def __init__(self) -> None:
        self.urgent = self._over = False

    def quit(self) -> None:
        """End the loop before any remaining event."""
        self._over = self.urgent = True
        self.put(QUIT)

    def check(self) -> None:
        """Raise `Interrupted` after an urgent event."""
        if self.urgent:
            self.urgent = False
            raise Interrupted

    def until_quit(self) -> Iterator[str]:
        """Yield a save to begin with, then every event until the user quits."""
        event = SAVED
        while event != QUIT and not self._over:
            yield event
            event = self._next()
            self.urgent = False  # the event that is handled now interrupts nothing

    def _next(self) -> str:
        """Return the next event; short waits, because Windows notices Ctrl-C only between them."""
        while True:
            with contextlib.suppress(queue.Empty):
                return self.get(timeout=WAIT)


@contextlib.contextmanager
def whole_screen(events: Events, *, keys: bool) -> Iterator[Callable[[str], None]]:
    """Use the whole screen, and read keys without Enter; restore the terminal at the end."""
    whole = sys.stdout.isatty()

    def control(codes: str) -> None:
        if whole:
            sys.stdout.write(codes)
            sys.stdout.flush()

    def show(page: str) -> None:
        control(HOME)
        click.echo(page)

    def take() -> None:
        keyboard.take()
        control(OTHER_SCREEN)

    def give_back() -> None:
        control(OWN_SCREEN)
        keyboard.give_back()

    def stop() -> None:  # Ctrl-Z; the shell sends SIGCONT on the way back
        give_back()
        stop_here()
        take()
        events.put(REDRAW)

    keyboard = Keyboard(is_read=keys)
    with terminal_signals(on_stop=stop, on_resize=lambda: events.put(REDRAW)):
        try:
            take()
            yield show
        finally:
            give_back()


@contextlib.contextmanager
def listening(
    events: Events,
    folders: Sequence[Path],
    endings: tuple[str, ...],
    known: Collection[str],
    *,
    manual: bool = False,
    keys: bool,
) -> Iterator[None]:
    """Turn saved files with these endings and `known` keys into events in the block.

    With `manual`, lines of standard input replace saves.
    """
    over = threading.Event()
    targets = [
        partial(_lines, events, known)
        if manual
        else partial(_saves, folders, endings, events, over)
    ]
    if keys:
        targets.append(partial(_keys, events, known, over))
    listeners = [threading.Thread(target=target, daemon=True) for target in targets]
    for listener in listeners:
        listener.start()
    try:
        yield
    finally:
        over.set()
        if not manual:  # the thread waits for a line, and ends only with the process
            for listener in listeners:
                listener.join()


def _saves(
    folders: Sequence[Path], endings: tuple[str, ...], events: Events, over: threading.Event
) -> None:
    """Report saves; start again when a folder is replaced by another one of the same name."""
    try:
        while not over.is_set():
            is_listening = False
            places = [folder.stat().st_ino for folder in folders]
            for seen in changes(
                *folders,
                watch_filter=lambda _, path: path.endswith(endings),
                step=SETTLE_MS,
                stop_event=over,
                rust_timeout=200,
                yield_on_timeout=True,
                raise_interrupt=False,
                recursive=False,
            ):
                # The first time, for files that were saved before we listened.
                if seen or not is_listening:
                    events.put(SAVED)
                events.urgent = events.urgent or bool(seen)
                is_listening = True
                if [folder.stat().st_ino for folder in folders] != places:
                    break
    except Exception as error:  # a folder that was deleted, or the system's limit of watches
        events.put(f"saves are no longer noticed ({error}): press r")


def _keys(events: Events, known: Collection[str], over: threading.Event) -> None:
    while not over.is_set():
        pressed = read_key(0.1)
        key = QUIT if pressed == "" else (pressed or "").lower()
        if key == QUIT:
            events.quit()
        elif key in known:
            events.put(key)


def _lines(events: Events, known: Collection[str]) -> None:
    for line in sys.stdin:
        key = line.strip()[:1].lower() or "r"
        if key in known:
            events.put(key)
    events.put(QUIT)
