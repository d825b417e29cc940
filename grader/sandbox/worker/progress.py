"""The progress of a long call, by the `report(step, loss)` of the student's code."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from grader.sandbox import wire

DENSE = 256  # calls that are all passed on; of twice as many, every 2nd one, and so on


class CallProgress:
    """The progress of one call: the student's code gets `report`, which works in the block only."""

    def __init__(self, number: int, tell: Callable[[wire.TrainingStep], None]) -> None:
        self._number, self._tell = number, tell
        self._count, self._every = 0, 1
        self._untold: wire.TrainingStep | None = None
        self._is_over = False

    def __enter__(self) -> CallProgress:
        return self

    def __exit__(self, *exc: object) -> None:
        """Pass on the last report, so that the loss at the end of a training is known."""
        self._is_over = True
        if self._untold is not None:
            self._tell(self._untold)

    def report(self, step: Any, loss: Any) -> None:
        """Tell the host a step and its loss; of many calls, only some are passed on.

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
