"""The screen of `grader check --watch`: a student's session, and its drawing.

Knows nothing of terminals, key presses and saved files; `watch` does.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from click import style, wrap_text

from grader.commands.work import CheckRequest, hints_for, memory_of, remember, reset_of, unbegun
from grader.course.visibility import for_student
from grader.errors import RequestError
from grader.report import ExerciseResult
from grader.reports import text
from grader.submissions.submission import Submission

if TYPE_CHECKING:
    from grader.commands.work import AnyGrader
    from grader.grading.grader import OnProgress

KEYS = {"n": "next", "h": "hint", "l": "list", "r": "rerun", "q": "quit"}


@dataclass
class Session:
    """A student at work: the results of each exercise, and the exercise on the screen."""

    request: CheckRequest
    grader: AnyGrader | None  # None until it is ready
    seed: int
    submission: Submission = field(default_factory=lambda: Submission("own work", {}))
    homes: dict[str, str] = field(default_factory=dict)  # where each exercise was seen first
    results: dict[str, ExerciseResult] = field(default_factory=dict)
    current: str = ""
    view: str = "verdict"
    hint: str = ""
    problem: str = ""
    just_passed: str = ""
    stale: set[str] = field(default_factory=set)  # exercises whose grading was interrupted
    on_exercise: OnProgress = lambda name, note="": None

    def begin(self) -> None:
        """Take the results of exercises of which none was begun; no grader is needed for them."""
        report = unbegun(self.request, self.seed)
        if report is not None:
            self.submission = self.request.submission
            self.homes = dict(self.submission.paths)
            self.results = {result.name: result for result in report.exercises}
            self._select([])

    def refresh(self, *, everything: bool = False) -> tuple[str, ...]:
        """Grade changed exercises and those that build on them; return their names."""
        try:
            found = self.request.read_again()
        except RequestError as error:  # most likely a file that an editor is replacing
            self.problem = error.message
            if lone := self.request.names if len(self.request.names) == 1 else ():
                self.problem += f": {reset_of(lone[0])}"
            return ()
        needs = {name: {name} | self.request.course.needed(name) for name in self.request.names}
        changed = {
            name
            for name in set().union(*needs.values())
            if everything
            or (name in needs and name not in self.results)
            or found.files.get(name) != self.submission.files.get(name)
            or found.problems.get(name) != self.submission.problems.get(name)
        } | self.stale
        chosen = tuple(name for name in needs if needs[name] & changed)
        self.submission, self.problem = found, ""
        self.homes = {**found.paths, **self.homes}
        if chosen:
            first = not self.results
            self.stale = set(chosen)
            self._grade(chosen)
            self.stale = set()
            self._select([] if everything or first else [n for n in chosen if n in changed])
        return chosen

    @property
    def passed(self) -> bool:
        """Whether every exercise passes in its current state."""
        graded = [self.results.get(name) for name in self.request.names]
        return not self.stale and all(result and result.passed for result in graded)

    def _grade(self, names: Sequence[str]) -> None:
        passed = {name for name, result in self.results.items() if result.passed}
        first = not self.results
        assert self.grader is not None
        grading = self.grader.grade(self.submission, names, self.seed, self.on_exercise)
        report = for_student(grading.report, self.request.course.policy)
        self.results |= {result.name: result for result in report.exercises}
        remember(self.request.course, self.submission, report)
        fresh = [r.name for r in report.exercises if r.passed and r.name not in passed]
        self.just_passed = fresh[0] if fresh and not first else ""

    def _select(self, wanted: Sequence[str]) -> None:
        """Show the first of `wanted` left to fix, else the shown one, else the first left."""
        self.view, self.hint = "verdict", ""
        left = self._left
        self.current = next((n for n in (*wanted, self.current, *left) if n in left), "")

    def press(self, key: str) -> None:
        """Carry out the command of a key; the caller handles `quit`."""
        if key == "n":
            self._next()
        elif key == "h" and self.current:
            hints = hints_for(self.request.course, self.current, self.submission)
            shown, fresh = memory_of(self.request.course).show_hints(self.current, hints)
            is_on_mistake = len(hints) > len(self.request.course[self.current].hints)
            self.hint = fresh[-1] if fresh else hints[0] if is_on_mistake else shown[-1]
            self.view, self.just_passed = "verdict", ""
        elif key == "l":
            self.view = "verdict" if self.view == "list" else "list"
        elif key == "r":
            self.refresh(everything=True)

    def _next(self) -> None:
        left = self._left
        after = left.index(self.current) + 1 if self.current in left else 0
        self._select([*left[after:], *left])
        self.just_passed = ""

    @property
    def _left(self) -> list[str]:
        results = self.results
        return [n for n in self.request.names if n in results and not results[n].passed]


# --- drawing --------------------------------------------------------------------------------------


def screen(session: Session, height: int) -> str:
    """Return the whole screen: progress in the course, the current exercise, and the keys."""
    top = [*head(session), ""]
    foot = ["", "  " + "   ".join(f"{style(k, bold=True)} {word}" for k, word in KEYS.items())]
    room = max(0, height - len(top) - len(foot))
    body = list(_list(session) if session.view == "list" else _verdict(session, room))
    return "\n".join([*top, *body[:room], *foot])


def head(session: Session) -> Iterator[str]:
    """Yield the progress in the course, and the problem that prevents grading, if any."""
    results = [session.results[name] for name in session.request.names if name in session.results]
    points, worth = sum(r.points for r in results), sum(r.max_points for r in results)
    passed = sum(result.passed for result in results)
    count = f"{passed} of {len(session.request.names)} exercises"
    yield f"  {text.bar(points, worth)}  {style(count, bold=True)}  {points} / {worth} points"
    if session.problem:
        yield style(f"  {session.problem}"[: text.WIDTH], fg="red")


def _verdict(session: Session, room: int) -> Iterator[str]:
    if session.just_passed:
        yield from _praise(session.results[session.just_passed])
    if not session.results:
        return
    if not session.current:
        yield "  Every exercise here passes. There is nothing left to fix."
        return
    result = session.results[session.current]
    if session.just_passed:
        yield f"  next: {session.current}"
        return
    hints = list(_hint(session, session.hint)) if session.hint else []
    if result.unfinished or not result.tests:
        yield from _to_start(session, result)
    else:
        yield from text.fitting(list(text.to_fix(result)), max(1, room - len(hints)))
    yield from hints


def _praise(result: ExerciseResult) -> Iterator[str]:
    word = f"  ✓ {result.title}: all {len(result.tests)} checks pass. Well done."
    yield style(word, fg="green", bold=True)
    yield from wrap_text(result.idea, text.WIDTH, "    ", "    ").splitlines()
    yield ""


def _to_start(session: Session, result: ExerciseResult) -> Iterator[str]:
    exercise = session.request.course[result.name]
    path = os.path.relpath(session.submission.paths.get(result.name, f"{result.name}.py"))
    yield style(f"  next: {exercise.title}", bold=True)
    yield from wrap_text(exercise.summary, text.WIDTH, "    ", "    ").splitlines()
    if result.tests or result.unfinished:
        yield f"    open {path}: the task is at its top"[: text.WIDTH]
    if result.advice:
        yield from wrap_text(result.advice, text.WIDTH, "    ", "    ").splitlines()
    if not os.path.exists(session.homes.get(result.name, "")):
        yield f"    {reset_of(result.name)}   writes the stub again"


def _hint(session: Session, hint: str) -> Iterator[str]:
    hints = hints_for(session.request.course, session.current, session.submission)
    number = f"hint {hints.index(hint) + 1} of {len(hints)}" if hint in hints else "hint"
    yield ""
    yield style(f"    {number}", bold=True)
    yield from wrap_text(hint, text.WIDTH, "    ", "    ").splitlines()


def _list(session: Session) -> Iterator[str]:
    width = max(map(len, session.request.names))
    for name in filter(session.results.get, session.request.names):
        result = session.results[name]
        mark = "▸" if name == session.current else " "
        score = f"{mark} {name:<{width}}  {result.points:>3} / {result.max_points:<3}"
        yield f"{score} {text.bar(result.points, result.max_points)}  {text.describe_state(result)}"
