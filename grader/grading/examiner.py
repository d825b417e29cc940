"""Who examines a submission: gives tests the student's code across the boundary."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import pytest
import torch

from grader.grading import plugin as pytest_plugin
from grader.course.course import Exercise
from grader.grading.outcomes import EVIDENCE
from grader.grading.programs import References, program
from grader.sandbox.host.connection import Desk, Limits, Record, Subject
from grader.sandbox.host.proxies import Student
from grader.submissions.submission import Submission

Records = dict[str, Record]  # test to its calls


class SandboxExaminer:
    """Gives tests the student's code across the boundary, and keeps each test's record."""

    def __init__(
        self, references: References, submission: Submission, desk: Desk, seed: int
    ) -> None:
        self.submission, self.desk = submission, desk
        self._references, self._course = references, references.course
        self._seed = seed
        self.records: Records = {}  # of the exercise that was examined last
        self._examined = ""

    @contextlib.contextmanager
    def student(self, item: pytest.Item) -> Iterator[Student]:
        """The student's module, freshly seeded; its globals live as long as the worker does."""
        exercise = self._course[pytest_plugin.exercise_of(item, self._course)]
        own_parts = item.get_closest_marker("own_parts") is not None
        if exercise.name != self._examined:
            self._examined, self.records = exercise.name, {}
        seed = self.seed(item)
        torch.default_generator.manual_seed(seed)
        student = self.module(exercise, seed, own_parts=own_parts)
        try:
            yield student
            self.desk.settle(student.subject)
        finally:
            if not own_parts:  # on a student's own parts, answers are not this exercise's alone
                self.records[item.name] = self.desk.record
            evidence = item.stash[EVIDENCE]
            evidence.printed = "".join(self.desk.printed)
            evidence.called = self.desk.called

    def module(self, exercise: Exercise, seed: int, *, own_parts: bool = False) -> Student:
        """The student's module with torch seeded; what was made before is gone."""
        self.desk.begin(seed)
        submission = self.submission
        name, sources = program(
            self._course, exercise, submission.files, submission.paths, own_parts=own_parts
        )
        limits = Limits(exercise.call_seconds, exercise.exercise_seconds)
        return Student(self.desk, Subject(exercise.name, name, sources, limits, exercise.forbidden))

    @contextlib.contextmanager
    def reference(self, item: pytest.Item) -> Iterator[Any]:
        """The reference solution's module."""
        yield self._references[pytest_plugin.exercise_of(item, self._course)]

    def seed(self, item: pytest.Item) -> int:
        """The seed of this test's inputs."""
        exercise = pytest_plugin.exercise_of(item, self._course)
        return pytest_plugin.test_seed(self._seed, exercise, item.name)
