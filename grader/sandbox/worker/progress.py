"""What the student's code tells about a call that takes long: `report(step, loss)`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from grader.sandbox import wire

DENSE = 256  # calls that are all told; of twice as many, every 2nd is, and so on


class CallProgress:
    """The progress of one call: `report` is what the student's code gets, in the block alone."""

    def __init__(self, number: int, tell: Callable[[wire.TrainingStep], None]) -> None:
        self._number, self._tell = number, tell
        self._count, self._every = 0, 1
        self._untold: wire.TrainingStep | None = None
        self._is_over = False

    def __enter__(self) -> CallProgress:
        return self

    def __exit__(self, *exc: object) -> None:
        """Tell what was reported last, so that a loss is known from the end of a training."""
        self._is_over = True
        if self._untold is not None:
            self._tell(self._untold)

    def report(self, step: Any, loss: Any) -> None:
        """Tell the host the step and the loss of it; of many calls, not every one.

        Raises an error if they are not numbers.
        """
        number, value = int(step), float(loss)
        if self._is_over or not -(2**63) <= number < 2**63:
            return
        told = wire.TrainingStep(self._number, number, value)
        self._untold = told if self._count % self._every else None
        if self._untold is None:
            self._tell(told)
        if self._count == DENSE * self._every:
            self._every *= 2
        self._count += 1
