"""The screen of `grader validate --watch`: the exercises' open tasks, after every save.

Knows nothing of proofs: `validate` passes a function that finds an exercise's problems.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from click import echo, style, wrap_text

from grader.commands.options import terminal_height
from grader.commands.terminal import (
    QUIT,
    REDRAW,
    SAVED,
    Events,
    Interrupted,
    listening,
    whole_screen,
)
from grader.course.course import MISTAKES_FILE, SETTINGS, Course
from grader.errors import GraderError
from grader.reports.text import WIDTH

KEYS = {"r": "run again", QUIT: "quit"}
ENDINGS = (".py", ".toml", ".md")  # the suffixes of files that an author writes
FindProblems = Callable[[str, Callable[[], None]], list[str]]


@dataclass
class ToDoList:
    """The open tasks of each exercise, and the files that decide them.

    `find_problems` gets an exercise's name and a function that it calls while it waits, which may
    raise.
    """

    course: Course
    names: tuple[str, ...]
    find_problems: FindProblems
    problems: dict[str, list[str]] = field(default_factory=dict)
    notice: str = ""
    _files: dict[str, dict[Path, bytes]] = field(default_factory=dict)

    def refresh(self, on_exercise: Callable[[str], None], on_wait: Callable[[], None]) -> None:
        """Find the problems of every exercise whose files have changed.

        If `on_exercise` or `on_wait` raises, the exercise counts as changed the next time.
        """
        for name in self.names:
            files = self._files_of(name)
            if files != self._files.get(name):
                on_exercise(name)
                self._files.pop(name, None)
                self.problems[name] = self._problems_of(name, on_wait)
                self._files[name] = files

    def forget(self) -> None:
        """Make every exercise count as changed."""
        self._files.clear()

    @property
    def is_done(self) -> bool:
        """Whether every exercise is proven in its current state, and nothing is left to do."""
        return len(self._files) == len(self.names) and not any(self.problems.values())

    @property
    def folders(self) -> list[Path]:
        """The folders whose files count."""
        names = set(self.names).union(*map(self.course.needed, self.names))
        return [self.course.reference, *(self.course[name].folder for name in sorted(names))]

    def _problems_of(self, name: str, on_wait: Callable[[], None]) -> list[str]:
        try:
            return self.find_problems(name, on_wait)
        except GraderError as error:
            return [error.message]
        except Exception as error:  # an author may save a file that is half written
            return [f"{name}: {type(error).__name__}: {error}"]

    def _files_of(self, name: str) -> dict[Path, bytes]:
        """Return the files that decide an exercise's problems."""
        folders = [self.course[each].folder for each in (name, *self.course.needed(name))]
        found = {}
        own = (path for folder in folders for path in folder.glob("*.*"))
        for path in (self.course.root / SETTINGS, self.course.reference / MISTAKES_FILE, *own):
            with contextlib.suppress(OSError):  # an editor's temporary file, removed by now
                found[path] = path.read_bytes()
        return found


def watch_to_do(to_do: ToDoList) -> bool:
    """Find problems on every save until the author quits; return whether none is left."""
    events, keys = Events(), sys.stdin.isatty()
    with whole_screen(events, keys=keys) as show, contextlib.suppress(KeyboardInterrupt):

        def on_exercise(name: str) -> None:
            events.check()
            show(f"{screen(to_do, terminal_height() - 3)}\n\n  proving {name} …")

        with listening(events, to_do.folders, ENDINGS, KEYS, keys=keys):
            for event in events.until_quit():
                with contextlib.suppress(Interrupted):
                    _handle(event, to_do)
                    if event in (SAVED, "r"):
                        to_do.refresh(on_exercise, events.check)
                    show(screen(to_do, terminal_height() - 1))
    echo(_head(to_do))
    return to_do.is_done


def _handle(event: str, to_do: ToDoList) -> None:
    if event == "r":
        to_do.forget()
    elif event not in (SAVED, REDRAW):
        to_do.notice = event


def screen(to_do: ToDoList, height: int) -> str:
    """Return the whole screen: the number of finished exercises, the open tasks, and the keys."""
    foot = ["", "  " + "   ".join(f"{style(key, bold=True)} {word}" for key, word in KEYS.items())]
    body, room = list(_body(to_do)), max(1, height - 2 - len(foot))
    if len(body) > room:
        body = [*body[: room - 1], f"  … {len(body) - room + 1} more lines: grader validate"]
    return "\n".join([_head(to_do), "", *body, *foot])


def _head(to_do: ToDoList) -> str:
    done = sum(not problems for problems in to_do.problems.values())
    left = sum(map(len, to_do.problems.values()))
    says = style(f"{done} of {len(to_do.names)} exercises have nothing left to do", bold=True)
    return f"  {says}; {left} problem{'s' * (left != 1)}"


def _body(to_do: ToDoList) -> Iterator[str]:
    if to_do.notice:
        yield from wrap_text(to_do.notice, WIDTH, "  ", "  ").splitlines()
    for name in to_do.names:
        if name in to_do.problems and not to_do.problems[name]:
            yield style(f"  ✓ {name}", fg="green")
    for name in to_do.names:
        for problem in to_do.problems.get(name, ()):
            first, *more = wrap_text(f"✗ {problem}", WIDTH, "  ", "    ").splitlines()
            yield first.replace("✗", style("✗", fg="red"), 1)
            yield from more
