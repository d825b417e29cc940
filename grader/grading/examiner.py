"""The examiner of graded runs: gives tests the student's code across the boundary."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Collection, Iterator, Sequence
from types import ModuleType
from typing import get_args

import pytest
import torch
from msgspec.structs import asdict

from grader.course.course import Exercise
from grader.course.policy import When
from grader.grading.deciding import Given, given_for
from grader.grading.kept_trainings import Keeps, key_of, load_trainings, save_trainings
from grader.grading.outcomes import EVIDENCE, Evidence
from grader.grading.programs import References, program
from grader.grading.rng import Rng
from grader.grading.seeds import seed_of_test, seed_of_worker
from grader.report import LossCurve
from grader.sandbox.host.connection import Subject, TimeLimits, WorkerConnection
from grader.sandbox.host.proxies import RemoteCode, Student
from grader.sandbox.host.training import TrainingLimits, Trainings
from grader.submissions.submission import Submission

# Called with the exercise, the training's name, the step and the loss of each report.
OnTraining = Callable[[str, str, int, float], None]


def secrecy_of(item: pytest.Item) -> int:
    """Return the secrecy of a test: 0 if students always see it, more if they see less."""
    mark = item.get_closest_marker("visible")
    return get_args(When).index(mark.args[0]) if mark else 0


class SandboxExaminer:
    """Gives tests the student's code across the boundary; keeps the log of each test's calls."""

    def __init__(
        self,
        references: References,
        submission: Submission,
        connection: WorkerConnection,
        seed: int,
        names: Sequence[str],  # the texts of the graded exercises
        on_report: OnTraining = lambda exercise, training, step, loss: None,
        *,
        keeps: Keeps = "nothing",
    ) -> None:
        self.submission, self.connection = submission, connection
        self._references, self._course = references, references.course
        self.seed, self.on_report, self._keeps = seed, on_report, keeps
        self._trainings: dict[tuple[str, str], Trainings] = {}  # trainings by program and exercise
        self._forbidden = {name: self._course[name].all_forbidden for name in names}
        # For exercises on the student's own parts: the parts that stand-ins replace.
        self.stood_in: dict[str, tuple[str, ...]] = {}
        self.naming_seed: int | None = None  # the seed of the cases that compare unnamed mistakes
        # By exercise and test, the student's functions and classes that it asked for.
        self.asked: dict[tuple[str, str], set[str]] = {}
        self._given: dict[str, Given] = {}  # by exercise
        self._secrecy = 0  # the secrecy of the tests that the current worker has seen

    @contextlib.contextmanager
    def student(self, item: pytest.Item) -> Iterator[Student]:
        """Yield the student's module, freshly seeded; its globals live as long as the worker."""
        exercise = self._course[self._course.exercise_of(item.path)]
        own_parts = item.get_closest_marker("own_parts") is not None
        place = exercise.name, item.name
        torch.default_generator.manual_seed(seed_of_test(self.seed, *place))
        self._separate(secrecy_of(item))
        stood_in = () if own_parts else self.stood_in.get(exercise.name)
        code = self._code(exercise, seed_of_worker(self.seed, *place), stood_in)
        try:
            yield Student(code)
            self.connection.await_quiet_calls(code.subject)
        finally:
            self.asked[place] = code.names
            printed = "".join(self.connection.printed)
            item.stash[EVIDENCE] = Evidence(self.submission, printed, self.connection.called)

    def module(self, exercise: Exercise, seed: int) -> Student:
        """Return the student's module with torch seeded; forget the objects made before."""
        self._separate(0)
        return Student(self._code(exercise, seed, self.stood_in.get(exercise.name)))

    def _separate(self, secrecy: int) -> None:
        """End the worker if it saw tests of another secrecy: it could repeat their inputs."""
        if secrecy != self._secrecy:
            self._secrecy = secrecy
            self.connection.close()

    def _code(self, exercise: Exercise, seed: int, stood_in: Collection[str] | None) -> RemoteCode:
        self.connection.begin(seed)
        files, paths = self.submission.files, self.submission.paths
        name, sources = program(self._course, exercise, files, paths, stood_in)
        training = TrainingLimits(**asdict(exercise.training)) if exercise.training else None
        limits = TimeLimits(exercise.call_seconds, exercise.exercise_seconds, training)
        subject = Subject(
            exercise.name,
            name,
            sources,
            limits,
            exercise.all_forbidden,
            all_forbidden=self._forbidden,
            implements={each.name: each.implements for each in self._course.exercises},
            muted=self._course.mute_imports,
        )
        return RemoteCode(self.connection, subject, self._trainings_of(subject))

    def _trainings_of(self, subject: Subject) -> Trainings:
        """Return the trainings of an exercise in this program, with those stored before."""
        place = subject.program, subject.exercise
        if place not in self._trainings:
            self._trainings[place] = self._kept_trainings(subject)
        return self._trainings[place]

    def _kept_trainings(self, subject: Subject) -> Trainings:
        name = subject.exercise
        trainings = Trainings(seed_of_worker(self.seed, name, "training"))
        trainings.on_report = functools.partial(self.on_report, name)
        if self._keeps != "nothing" and subject.limits.training is not None:
            parts = {name, *self._course.needed(name)}
            sources = {each: text for each, text in subject.sources.items() if each in parts}
            seed = trainings.seed if self._keeps == "of this seed" else None
            key = key_of(self._course, name, sources, seed)
            trainings.done = load_trainings(key)
            trainings.keep = functools.partial(save_trainings, key, trainings.done)
        return trainings

    def curves_of(self, exercise: Exercise) -> tuple[LossCurve, ...]:
        """Return the curve of each training of an exercise, and the values that it reached."""
        return tuple(
            LossCurve.of(
                name, each.losses, trainings.reached.get(name, {}).values(), kept=each.kept
            )
            for (_, of), trainings in self._trainings.items()
            if of == exercise.name
            for name, each in trainings.done.items()
        )

    def reference(self, item: pytest.Item) -> ModuleType:
        """Return the reference solution's module."""
        return self._references[self._course.exercise_of(item.path)]

    def cases(self, item: pytest.Item) -> Given:
        """Return the function that asks the cases of a check."""
        return self.given(self._course[self._course.exercise_of(item.path)])

    def given(self, exercise: Exercise) -> Given:
        """Return the answers of the student's code to the cases of an exercise."""
        if exercise.name not in self._given:
            self._given[exercise.name] = given_for(self._course, exercise, self.seed)
        return self._given[exercise.name]

    def rng(self, item: pytest.Item) -> Rng:
        """Return the source of this test's random inputs."""
        return Rng(seed_of_test(self.seed, self._course.exercise_of(item.path), item.name))
