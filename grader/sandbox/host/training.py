"""A call in which the student's code trains a model: its limits and its reports."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from torch import Tensor

from grader.errors import CheckFailure, StudentFailure
from grader.report import Reached
from grader.sandbox import wire
from grader.sandbox.host.processor import used_by

MIB = 1 << 20
EVERY = 0.2  # seconds between two checks of a worker's use
KEPT = 512  # points of a loss curve

Losses = tuple[tuple[int, float], ...]  # the step and the loss of each report
OnReport = Callable[[int, float], None]


@dataclass(frozen=True)
class TrainingLimits:
    """The limits of an exercise's training calls: time for all, and memory for each.

    Only on Linux can a host see a worker's processor time and memory.
    """

    seconds: float = 120.0
    cpu_seconds: float = 60.0
    memory_mb: float = 512.0


@dataclass(frozen=True)
class Trained:
    """The outcome of a training: the parameters and buffers, and the losses on the way."""

    state: Mapping[str, Tensor]
    losses: Losses = ()
    kept: bool = False  # whether it comes from an earlier check of the same code


@dataclass
class Trainings:
    """The trainings of one exercise of a submission by name, so that each is done once.

    `on_report` is called with the name, step and loss of each report, `keep` after each training.
    """

    seed: int = 0
    done: dict[str, Trained] = field(default_factory=dict)
    failed: dict[str, CheckFailure] = field(default_factory=dict)
    reached: dict[str, dict[str, Reached]] = field(default_factory=dict)  # by the name of the value
    on_report: Callable[[str, int, float], None] = lambda name, step, loss: None
    keep: Callable[[], None] = lambda: None


class TrainingLog:
    """The training calls of a block: their remaining limits, and their reports."""

    def __init__(self, left: TrainingLimits, on_report: OnReport) -> None:
        self.left, self._on_report = left, on_report
        self.cpu_seconds = 0.0  # seconds that the current call has used
        self._losses: list[tuple[int, float]] = []
        self._looked = 0.0
        self._before: tuple[float, float] | None = None

    @property
    def losses(self) -> Losses:
        """The reported losses, evenly thinned if there are many."""
        every = -(-len(self._losses) // KEPT) or 1
        chosen = self._losses[::every]
        last = self._losses[-1:]
        return tuple(chosen if chosen[-1:] == last else [*chosen, *last])

    def hear(self, progress: wire.TrainingStep) -> None:
        """Take note of a report, and pass it on."""
        self._losses.append((progress.step, progress.loss))
        self._on_report(progress.step, progress.loss)

    def check(self, pid: int) -> None:
        """Raise `StudentFailure` if the worker `pid` has used more than it may."""
        if time.monotonic() - self._looked < EVERY:
            return
        self._looked = time.monotonic()
        used = used_by(pid)
        if used is None:
            return
        self._before = self._before or used
        self.cpu_seconds = used[0] - self._before[0]
        memory = used[1] - self._before[1]
        if self.cpu_seconds > self.left.cpu_seconds:
            says = f"your training took more than {self.left.cpu_seconds:.0f} seconds of computing"
            raise StudentFailure("Timeout", says + self.last_words)
        if memory > self.left.memory_mb * MIB:
            says = f"your training took more than {self.left.memory_mb:g} MB of memory"
            raise StudentFailure("MemoryError", says + self.last_words)

    @property
    def last_words(self) -> str:
        """The last report as the end of a sentence; empty without one."""
        if not self._losses:
            return ""
        step, loss = self._losses[-1]
        return f"; its last report was of step {step}, with the loss {loss:.4g}"
