"""Code as a module in this process, with the interface of a student's module in a worker."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor

from grader.errors import CheckFailure, NothingRaised, StudentFailure
from grader.report import Frame
from grader.sandbox.host.connection import frame_at
from grader.sandbox.host.operations import OperationCounts
from grader.sandbox.host.training import TrainingLimits, TrainingLog, Trainings
from grader.sandbox.program import Program
from grader.sandbox.source import forbidden_calls
from grader.sandbox.syntax import Unsearchable
from grader.sandbox.wire import TrainingStep, Watch
from grader.sandbox.worker.operations import THREADS, OperationWatch


class DirectCode:
    """The student's code as a module in this process: a `StudentCode`."""

    def __init__(
        self,
        program: Program,
        exercise: str,
        forbidden: tuple[str, ...],
        trainings: Trainings | None = None,
    ) -> None:
        self.exercise, self.forbidden, self._program = exercise, forbidden, program
        self.trainings = trainings or Trainings()
        self._not_loaded: Exception | None = None  # the error if the file could not be loaded

    def function(self, name: str) -> Callable[..., Any]:
        """Return the function or class `name` of the student's module."""
        if self.exercise not in self._program.sources:
            raise CheckFailure(f"there is no {self.exercise}.py here")
        try:
            module = self._program.load(self.exercise)
        except Exception as error:
            self._not_loaded = error
            raise
        function = getattr(module, name, None)
        if function is None:
            raise CheckFailure(f"{self.exercise}.py defines no `{name}`")
        return function  # type: ignore[no-any-return]

    def manual_seed(self, seed: int, *, only_torch: bool = False) -> None:
        """Seed torch's generator; the other generators go on."""
        torch.default_generator.manual_seed(seed)  # torch.manual_seed takes 100 times as long

    @contextlib.contextmanager
    def watched(self, watch: Watch) -> Iterator[OperationCounts]:
        """Count the operations of every call in the block, as `wire.Call` describes."""
        seen, counting = OperationCounts(watch), OperationWatch(watch)
        try:
            with counting:
                yield seen
        finally:
            # Threads do not count here, because a debugger has threads of its own.
            seen.add({n: count for n, count in counting.reported.items() if n != THREADS})
        seen.check(self.forbidden)

    @contextlib.contextmanager
    def training(self, name: str) -> Iterator[tuple[Callable[[int, float], None], TrainingLog]]:
        """Let calls in the block train; yield the `report` for them, and its log."""
        log = TrainingLog(TrainingLimits(), functools.partial(self.trainings.on_report, name))
        yield lambda step, loss: log.hear(TrainingStep(0, int(step), float(loss))), log

    @contextlib.contextmanager
    def sharing(self, *written: Tensor) -> Iterator[None]:
        """Do nothing: in this process, the code always writes into the test's own tensors."""
        yield

    @contextlib.contextmanager
    def raises(self, *kinds: str) -> Iterator[None]:
        """Raise `NothingRaised` unless the code raises one of `kinds` (type names) in the block.

        A stub's `NotImplementedError` and a file that does not load never count.
        """
        try:
            yield
        except Exception as error:
            names = {base.__name__ for base in type(error).__mro__}
            counts = not isinstance(error, NotImplementedError) and error is not self._not_loaded
            if not counts or not names & set(kinds):
                raise
        else:
            raise NothingRaised(f"nothing was raised, where {' or '.join(kinds)} is expected")

    def forbidden_in_source(self) -> list[Frame]:
        """Return the places where the source names a forbidden call."""
        source = self._program.sources.get(self.exercise)
        try:
            uses = forbidden_calls(source.text, source.file, self.forbidden) if source else []
        except Unsearchable as error:
            message = f"your file cannot be searched for forbidden calls: {error}"
            raise StudentFailure("Forbidden", message) from None
        return [frame_at(use, source.text, source.file) for use in uses] if source else []
