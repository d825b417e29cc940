"""`grader check --watch`: whatever is saved is graded again, on one screen.

Listens for saved files and keys, and gives them to a `Session`. The suites stay collected and the
zygote warm, so that a verdict costs a fork and the tests of what changed.
"""

from __future__ import annotations

import contextlib
import os
import queue
import select
import shutil
import signal
import sys
import termios
import threading
import tty
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import click

from grader.commands.work import Request
from grader.reports import text
from grader.sandbox.cells import NOTEBOOK
from grader.sandbox.confinement.layers import Confinement, Isolation
from grader.sandbox.host.zygote import Zygote
from grader.commands.screen import KEYS, Session, head, screen

SETTLE_MS = 20  # an editor that writes in several steps is done by then
SAVED, REDRAW = "saved", "redraw"
OTHER_SCREEN, OWN_SCREEN = "\x1b[?1049h\x1b[?25l", "\x1b[?25h\x1b[?1049l"
HOME = "\x1b[H\x1b[2J"


def watch(request: Request, seed: int | None, isolation: Isolation, *, manual: bool) -> bool:
    """Grade on every save until the student quits; whether everything passes then.

    All of it with one seed, so that the numbers stay where they are while the code changes.
    """
    with Zygote(Confinement(isolation)) as zygote:
        from grader.grading.grader import with_slot
        from grader.grading.reporter import fresh_seed

        seed = fresh_seed() if seed is None else seed
        return with_slot(
            request.course,
            request.names,
            zygote,
            lambda slot: _loop(Session(request, slot, seed), manual=manual),
        )


def _loop(session: Session, *, manual: bool) -> bool:
    events: queue.SimpleQueue[str] = queue.SimpleQueue()
    keys = not manual and sys.stdin.isatty()
    with _terminal(events, keys=keys) as show, contextlib.suppress(KeyboardInterrupt):
        session.told = lambda _, name: show(
            f"{screen(session, _height() - 2)}\n\n  checking {name} …"
        )
        show("  checking …\n")
        session.refresh()
        with _listening(session, events, manual=manual, keys=keys):
            event = ""
            while event != "q":
                show(screen(session, _height()))
                event = events.get()
                if event == SAVED:
                    session.refresh()
                elif event in KEYS:
                    session.press(event)
                elif event != REDRAW:
                    session.problem = event
    click.echo("\n".join(head(session)))
    return session.passed


def _height() -> int:
    """Lines that a screen may take: one fewer than the terminal has."""
    return (shutil.get_terminal_size().lines if sys.stdout.isatty() else text.SCREEN) - 1


@contextlib.contextmanager
def _terminal(events: queue.SimpleQueue[str], *, keys: bool) -> Iterator[Callable[[str], None]]:
    """Takes the screen, and keys without Enter; gives both back whatever happens."""
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
        signal.SIGTERM: _interrupted,
        signal.SIGHUP: _interrupted,
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


def _interrupted(*_: object) -> None:
    raise KeyboardInterrupt


@contextlib.contextmanager
def _listening(
    session: Session, events: queue.SimpleQueue[str], *, manual: bool, keys: bool
) -> Iterator[None]:
    """Within, saved files and keys become events."""
    over = threading.Event()
    if manual:
        listeners = [threading.Thread(target=_lines, args=(events,), daemon=True)]
    else:
        folders = session.request.folders
        listeners = [threading.Thread(target=_saves, args=(folders, events, over), daemon=True)]
        if keys:
            listeners.append(threading.Thread(target=_keys, args=(events, over), daemon=True))
    for listener in listeners:
        listener.start()
    try:
        yield
    finally:
        over.set()
        if not manual:  # which waits for a line
            for listener in listeners:
                listener.join()


def _saves(folders: Sequence[Path], events: queue.SimpleQueue[str], over: threading.Event) -> None:
    try:
        while not over.is_set():
            _saves_while_they_stand(folders, events, over)
    except Exception as error:  # a folder that is gone, or the system's limit of watches
        events.put(f"saves are not seen any more ({error}): press r, or use --watch --manual")


def _saves_while_they_stand(
    folders: Sequence[Path], events: queue.SimpleQueue[str], over: threading.Event
) -> None:
    """Until a folder is replaced by another of its name: the old one is what was watched."""
    from watchfiles import watch as changes

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
        if seen or not listening:  # at first, for what was saved before anybody listened
            events.put(SAVED)
        listening = True
        if [folder.stat().st_ino for folder in folders] != places:
            return


def _keys(events: queue.SimpleQueue[str], over: threading.Event) -> None:
    while not over.is_set():
        ready, _, _ = select.select([sys.stdin], [], [], 0.1)
        if not ready:
            continue
        pressed = os.read(sys.stdin.fileno(), 1)
        key = "q" if pressed in (b"", b"\x04") else pressed.decode("ascii", "ignore").lower()
        if key in KEYS:
            events.put(key)


def _lines(events: queue.SimpleQueue[str]) -> None:
    """Without keys: a letter and Enter; Enter alone grades again."""
    for line in sys.stdin:
        key = line.strip()[:1].lower() or "r"
        if key in KEYS:
            events.put(key)
    events.put("q")
