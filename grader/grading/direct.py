"""The student's code imported directly, for `pytest exercises/tests` in an editor.

A student's own machine has no secrets to keep from them; in exchange breakpoints work and a
traceback is the real one. Grading never comes here: it goes through the sandbox.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch

from grader.course.course import Course
from grader.errors import CheckFailure, Mismatch
from grader.report import Frame
from grader.sandbox.program import Program
from grader.sandbox.host.proxies import Seen
from grader.sandbox.worker.operations import Watch
from grader.sandbox.wire import Source
from grader.sandbox.source import forbidden_calls


class DirectStudent:
    """The interface of `sandbox.proxies.Student`, on a module in this process."""

    def __init__(self, program: Program, exercise: str, forbidden: tuple[str, ...]) -> None:
        self.exercise = exercise
        self.forbidden = forbidden
        self._program = program

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name.startswith("__"):
            raise AttributeError(name)
        if self.exercise not in self._program.sources:
            raise CheckFailure(f"there is no {self.exercise}.py here")
        function = getattr(self._program.load(self.exercise), name, None)
        if function is None:
            raise CheckFailure(f"{self.exercise}.py defines no `{name}`")
        return function  # type: ignore[no-any-return]

    def manual_seed(self, seed: int) -> None:
        """Seed torch's generator."""
        torch.manual_seed(seed)

    @contextlib.contextmanager
    def watched(self, *, kernels: bool = True) -> Iterator[Seen]:
        """Within, the operations of every call are noted."""
        seen = Seen(kernels=kernels)
        watch = Watch(kernels=kernels)
        try:
            with watch:
                yield seen
        finally:
            seen.counts.update(watch.counts)

    @contextlib.contextmanager
    def sharing(self) -> Iterator[None]:
        """In one process, arguments are always shared."""
        yield

    @contextlib.contextmanager
    def raises(self, *kinds: str) -> Iterator[None]:
        """The student's code must raise one of `kinds` within."""
        try:
            yield
        except Exception as error:
            names = {base.__name__ for base in type(error).__mro__}
            if isinstance(error, NotImplementedError) or not names & set(kinds):
                raise
        else:
            raise Mismatch(f"nothing was raised, where {' or '.join(kinds)} is expected")

    def forbidden_in_source(self) -> list[Frame]:
        """Where the student's source names a forbidden call."""
        source = self._program.sources.get(self.exercise)
        return forbidden_calls(source.text, source.file, self.forbidden) if source else []


def files_in(folder: Path, course: Course) -> dict[str, Source]:
    """The exercise files in `folder`, under their real paths, so that breakpoints hit."""
    found = {}
    for name in course.names:
        for path in (folder / f"{name}.py", folder / name / "solution.py"):
            if path.is_file():
                found[name] = Source(str(path), path.read_text("utf-8"))
                break
    return found
