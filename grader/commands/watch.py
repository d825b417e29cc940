"""`grader check --watch`: grade again on every save, on one screen.

The suites stay collected and the zygote warm, so a verdict costs a fork and the tests of what
changed.
"""

from __future__ import annotations

import contextlib
import os
import queue
import select
import signal
import sys
import termios
import threading
import tty
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

import click
from watchfiles import watch as changes

from grader.commands.options import terminal_height
from grader.commands.screen import KEYS, Session, head, screen
from grader.commands.work import CheckRequest
from grader.grading.seeds import fresh_seed
from grader.grading.session import with_grader
from grader.sandbox.cells import NOTEBOOK
from grader.sandbox.host.zygote import Zygote

SETTLE_MS = 20  # an editor that saves in several steps is done by then
SAVED, REDRAW = "saved", "redraw"
OTHER_SCREEN, OWN_SCREEN = "\x1b[?1049h\x1b[?25l", "\x1b[?25h\x1b[?1049l"
HOME = "\x1b[H\x1b[2J"
QUIT = "q"


class Interrupted(KeyboardInterrupt):
    """The student saved again or quits, so nobody waits for the present results any more."""


class _Events(queue.SimpleQueue[str]):
    """Saves and keys for the loop; `urgent` after one that need not wait for results."""

    def __init__(self) -> None:
        self.urgent = False

    def check(self) -> None:
        """Raise `Interrupted` after an urgent event."""
        if self.urgent:
            self.urgent = False
            raise Interrupted


def watch(request: CheckRequest, zygote: Zygote, seed: int | None, *, manual: bool) -> bool:
    """Grade on every save until the student quits; return whether everything passes then.

    All runs use one seed, so that the numbers stay the same while the code changes.
    """
    seed = fresh_seed() if seed is None else seed
    return with_grader(
        request.course,
        request.names,
        zygote,
        lambda grader: _loop(Session(request, grader, seed), manual=manual),
        keep_answers=True,
    )


def _loop(session: Session, *, manual: bool) -> bool:
    events = _Events()
    keys = not manual and sys.stdin.isatty()
    with _terminal(events, keys=keys) as show, contextlib.suppress(KeyboardInterrupt):

        def on_exercise(_: Session, name: str) -> None:
            events.check()
            show(f"{screen(session, terminal_height() - 3)}\n\n  checking {name} …")

        session.on_exercise = on_exercise
        session.grader.zygote.on_wait = events.check
        show("  checking …\n")
        with _listening(session, events, manual=manual, keys=keys):
            event = SAVED
            while event != QUIT:
                with contextlib.suppress(Interrupted):
                    _handle(event, session)
                    show(screen(session, terminal_height() - 1))
                event = events.get()
                events.urgent = False  # what is handled now interrupts nothing
    click.echo("\n".join(head(session)))
    return session.passed


def _handle(event: str, session: Session) -> None:
    if event == SAVED:
        session.refresh()
    elif event in KEYS:
        session.press(event)
    elif event != REDRAW:
        session.problem = event


@contextlib.contextmanager
def _terminal(events: _Events, *, keys: bool) -> Iterator[Callable[[str], None]]:
    """Use the whole screen, and read keys without Enter; restore the terminal at the end."""
    whole = sys.stdout.isatty()

    def control(codes: str) -> None:
        if whole:
            sys.stdout.write(codes)
            sys.stdout.flush()

    def show(page: str) -> None:
        control(HOME)
        click.echo(page)

    before = termios.tcgetattr(sys.stdin) if keys else None

    def take() -> None:
        if keys:
            tty.setcbreak(sys.stdin)
        control(OTHER_SCREEN)

    def give_back() -> None:
        control(OWN_SCREEN)
        if before is not None:
            termios.tcsetattr(sys.stdin, termios.TCSADRAIN, before)

    def stop(*_: object) -> None:  # Ctrl-Z; the shell sends SIGCONT on the way back
        give_back()
        os.kill(os.getpid(), signal.SIGSTOP)
        take()
        events.put(REDRAW)

    handlers = {
        signal.SIGTERM: signal.default_int_handler,
        signal.SIGHUP: signal.default_int_handler,
        signal.SIGWINCH: lambda *_: events.put(REDRAW),
        signal.SIGTSTP: stop,
    }
    known = {number: signal.signal(number, handler) for number, handler in handlers.items()}
    try:
        take()
        yield show
    finally:
        for number, handler in known.items():
            signal.signal(number, handler)
        give_back()


@contextlib.contextmanager
def _listening(session: Session, events: _Events, *, manual: bool, keys: bool) -> Iterator[None]:
    """Turn saved files and keys into events in the block."""
    over = threading.Event()
    saves = partial(_saves, session.request.folders, events, over)
    targets = [partial(_lines, events)] if manual else [saves]
    if keys:
        targets.append(partial(_keys, events, over))
    listeners = [threading.Thread(target=target, daemon=True) for target in targets]
    for listener in listeners:
        listener.start()
    try:
        yield
    finally:
        over.set()
        if not manual:  # that thread waits for a line and ends with the process
            for listener in listeners:
                listener.join()


def _saves(folders: Sequence[Path], events: _Events, over: threading.Event) -> None:
    """Report saves; begin anew when a folder is replaced by another of the same name."""
    try:
        while not over.is_set():
            listening = False
            places = [folder.stat().st_ino for folder in folders]
            for seen in changes(
                *folders,
                watch_filter=lambda _, path: path.endswith((".py", NOTEBOOK)),
                step=SETTLE_MS,
                stop_event=over,
                rust_timeout=200,
                yield_on_timeout=True,
                raise_interrupt=False,
                recursive=False,
            ):
                if seen or not listening:  # the first time, for what was saved before we listened
                    events.put(SAVED)
                events.urgent = events.urgent or bool(seen)
                listening = True
                if [folder.stat().st_ino for folder in folders] != places:
                    break
    except Exception as error:  # a folder that was deleted, or the system's limit of watches
        events.put(f"saves are no longer noticed ({error}): press r, or use --watch --manual")


def _keys(events: _Events, over: threading.Event) -> None:
    while not over.is_set():
        ready, _, _ = select.select([sys.stdin], [], [], 0.1)
        if not ready:
            continue
        pressed = os.read(sys.stdin.fileno(), 1)
        key = "q" if pressed in (b"", b"\x04") else pressed.decode("ascii", "ignore").lower()
        if key in KEYS:
            events.put(key)
            events.urgent = events.urgent or key == QUIT


def _lines(events: _Events) -> None:
    for line in sys.stdin:
        key = line.strip()[:1].lower() or "r"
        if key in KEYS:
            events.put(key)
    events.put(QUIT)
