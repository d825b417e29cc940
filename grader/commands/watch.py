"""`grader check --watch`: grade again on every save, on one screen.

The suites stay collected and the source of workers stays warm, so a verdict costs one worker and
the tests of the changed exercises.
"""

from __future__ import annotations

import contextlib
import sys
from typing import TYPE_CHECKING

import click

from grader.commands.options import terminal_height
from grader.commands.screen import KEYS, Session, head, screen
from grader.commands.terminal import REDRAW, SAVED, Events, Interrupted, listening, whole_screen
from grader.commands.work import CheckRequest, graded_by, keeps_of
from grader.grading.seeds import fresh_seed
from grader.sandbox.cells import NOTEBOOK
from grader.sandbox.host.source import WorkerSource

if TYPE_CHECKING:
    from grader.commands.work import AnyGrader


def watch(request: CheckRequest, source: WorkerSource, seed: int | None, *, manual: bool) -> bool:
    """Grade on every save until the student quits; return whether everything passes then.

    All runs use one seed, so that the inputs stay the same while the code changes.
    """
    trainings = keeps_of(seed)
    session = Session(request, None, fresh_seed() if seed is None else seed)
    events, keys = Events(), not manual and sys.stdin.isatty()
    with whole_screen(events, keys=keys) as show, contextlib.suppress(KeyboardInterrupt):

        def loop(grader: AnyGrader) -> None:
            session.grader = grader
            assert grader.workers is not None
            grader.workers.on_wait = events.check
            folders, endings = request.folders, (".py", NOTEBOOK)
            with listening(events, folders, endings, KEYS, manual=manual, keys=keys):
                for event in events.until_quit():
                    with contextlib.suppress(Interrupted):
                        _handle(event, session)
                        show(screen(session, terminal_height() - 1))

        def on_exercise(name: str, note: str = "") -> None:
            events.check()
            doing = f"checking {name} … {note}".strip()
            show(f"{screen(session, terminal_height() - 3)}\n\n  {doing}")

        session.on_exercise = on_exercise
        session.begin()
        # While the student reads this, the grader imports torch.
        show(screen(session, terminal_height() - 1) if session.results else "  checking …\n")
        graded_by(request.course, request.names, source, loop, trainings)
    click.echo("\n".join(head(session)))
    return session.passed


def _handle(event: str, session: Session) -> None:
    if event == SAVED:
        session.refresh()
    elif event in KEYS:
        session.press(event)
    elif event != REDRAW:
        session.problem = f"{event}, or use --watch --manual"
