"""The examiner of plain pytest runs: imports the student's code into this process.

Breakpoints work and tracebacks are real. Graded runs go through the sandbox instead.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import ModuleType

import pytest
import torch

from grader.course.course import Course, find_course
from grader.grading.deciding import Given, given_for
from grader.grading.direct import DirectCode
from grader.grading.rng import Rng
from grader.grading.seeds import seed_of_test, seed_of_worker
from grader.sandbox.host.proxies import Student
from grader.sandbox.host.training import Trainings
from grader.sandbox.program import Program
from grader.sandbox.wire import Source


class DirectExaminer:
    """Gives tests the files in the folder `--submission`, or those beside the suite."""

    def __init__(self, config: pytest.Config) -> None:
        self._submission: Path | None = config.getoption("submission")
        self._seed: int = config.getoption("grading_seed")
        self._find_course = functools.cache(find_course)
        self._programs: dict[tuple[Path, str], Program] = {}
        self._trainings: dict[str, Trainings] = {}  # by exercise

    @contextlib.contextmanager
    def student(self, item: pytest.Item) -> Iterator[Student]:
        """Yield the student's module for this test."""
        suite = item.path
        course = self._find_course(suite.parent)
        name = course.exercise_of(suite)
        beside = course.reference if suite.parent.name == name else suite.parent.parent
        program = self._program(self._submission or beside, course, name)
        # As in a worker, so that no draw of a test depends on earlier tests.
        torch.default_generator.manual_seed(seed_of_worker(self._seed, name, item.name))
        with program.active():
            trainings = self._trainings.setdefault(name, Trainings())
            yield Student(DirectCode(program, name, course[name].forbidden, trainings))

    def reference(self, item: pytest.Item) -> ModuleType:
        """Return the reference solution's module for this test."""
        course = self._find_course(item.path.parent)
        name = course.exercise_of(item.path)
        return self._program(course.reference, course, name).load(name)

    def rng(self, item: pytest.Item) -> Rng:
        """Return the source of this test's random inputs."""
        exercise = self._find_course(item.path.parent).exercise_of(item.path)
        return Rng(seed_of_test(self._seed, exercise, item.name))

    def cases(self, item: pytest.Item) -> Given:
        """Return the function that asks the cases of a check."""
        course = self._find_course(item.path.parent)
        return given_for(course, course[course.exercise_of(item.path)], self._seed)

    def _program(self, folder: Path, course: Course, name: str) -> Program:
        """Return a folder's files as a program; of the course, only those that `name` requires."""
        own = folder == course.reference
        place = folder, name if own else ""
        if place not in self._programs:
            names = {name, *course.needed(name)} if own else course.names
            self._programs[place] = Program(files_in(folder, names))
        return self._programs[place]


def files_in(folder: Path, names: Iterable[str]) -> dict[str, Source]:
    """Return the files of some exercises in `folder` by exercise name, under their real paths."""
    return {
        name: Source(str(path), path.read_text("utf-8"))
        for name in names
        for path in (folder / name / "solution.py", folder / f"{name}.py")  # the second wins
        if path.is_file()
    }
