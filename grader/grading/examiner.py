"""The examiner of graded runs: gives tests the student's code across the boundary."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from types import ModuleType

import pytest
import torch

from grader.course.course import Exercise
from grader.grading.outcomes import EVIDENCE, Evidence
from grader.grading.programs import References, program
from grader.grading.rng import Rng
from grader.grading.seeds import seed_of_test, seed_of_worker
from grader.sandbox.host.connection import Subject, TimeLimits, WorkerConnection
from grader.sandbox.host.proxies import RemoteCode, Student
from grader.submissions.submission import Submission

SECRECY = ("always", "after_due", "never")  # the values of `visible`, by what students see


def secrecy_of(item: pytest.Item) -> int:
    """Return how little students see of a test: 0 for one that is always shown."""
    mark = item.get_closest_marker("visible")
    return SECRECY.index(mark.args[0]) if mark else 0


class SandboxExaminer:
    """Gives tests the student's code across the boundary; keeps the log of each test's calls."""

    def __init__(
        self,
        references: References,
        submission: Submission,
        connection: WorkerConnection,
        seed: int,
        names: Sequence[str],  # of the exercises that are graded
    ) -> None:
        self.submission, self.connection = submission, connection
        self._references, self._course = references, references.course
        self._seed = seed
        self._forbidden = {name: self._course[name].forbidden for name in names}
        self._secrecy = 0  # of the tests that the present worker has seen

    @contextlib.contextmanager
    def student(self, item: pytest.Item) -> Iterator[Student]:
        """Yield the student's module, freshly seeded; its globals live as long as the worker."""
        exercise = self._course[self._course.exercise_of(item.path)]
        own_parts = item.get_closest_marker("own_parts") is not None
        place = exercise.name, item.name
        torch.default_generator.manual_seed(seed_of_test(self._seed, *place))
        self._separate(secrecy_of(item))
        code = self._code(exercise, seed_of_worker(self._seed, *place), own_parts=own_parts)
        try:
            yield Student(code)
            self.connection.await_quiet_calls(code.subject)
        finally:
            printed = "".join(self.connection.printed)
            item.stash[EVIDENCE] = Evidence(self.submission, printed, self.connection.called)

    def module(self, exercise: Exercise, seed: int) -> Student:
        """Return the student's module with torch seeded; forget the objects made before."""
        self._separate(0)
        return Student(self._code(exercise, seed, own_parts=False))

    def _separate(self, secrecy: int) -> None:
        """End the worker if it saw tests of another secrecy: it could repeat what they sent."""
        if secrecy != self._secrecy:
            self._secrecy = secrecy
            self.connection.close()

    def _code(self, exercise: Exercise, seed: int, *, own_parts: bool) -> RemoteCode:
        self.connection.begin(seed)
        files, paths = self.submission.files, self.submission.paths
        name, sources = program(self._course, exercise, files, paths, own_parts=own_parts)
        limits = TimeLimits(exercise.call_seconds, exercise.exercise_seconds)
        subject = Subject(
            exercise.name,
            name,
            sources,
            limits,
            exercise.forbidden,
            all_forbidden=self._forbidden,
            implements={each.name: each.implements for each in self._course.exercises},
            muted=self._course.mute_imports,
        )
        return RemoteCode(self.connection, subject)

    def reference(self, item: pytest.Item) -> ModuleType:
        """Return the reference solution's module."""
        return self._references[self._course.exercise_of(item.path)]

    def rng(self, item: pytest.Item) -> Rng:
        """Return the source of this test's random inputs."""
        return Rng(seed_of_test(self._seed, self._course.exercise_of(item.path), item.name))
