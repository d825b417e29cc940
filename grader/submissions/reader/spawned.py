"""Readers that are spawned: each one is a Python process of its own, which does one job."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from pathlib import Path
from typing import TypeVar

from grader.sandbox.confinement.limits import Confinement
from grader.sandbox.host.child import clean_environment
from grader.sandbox.host.spawning import Spawner
from grader.submissions.reader import messages
from grader.submissions.reader.exchange import (
    ORDINARY,
    START_SECONDS,
    LostReader,
    ReadingFailed,
    ReadingLimits,
    answer_body,
    confinement,
    decoded_answer,
    does_not_start,
    expected_answer,
    hand_over,
    how_it_ended,
)

MODULE = "grader.submissions.reader_process.spawned"
TRIES = 2
ENDING_SECONDS = 1.0  # seconds for a reader that hung up to end
T = TypeVar("T", bound=messages.Result)


class SpawnedReaders:
    """Spawns a reader for each job. With `ahead`, the next is started when one has ended."""

    def __init__(self) -> None:
        self.ahead = False
        self._spawner = Spawner(MODULE, "reader", clean_environment())

    def start(self) -> None:
        """Start the first reader; return while it still imports."""
        self._spawner.start()

    def ask(
        self,
        job: messages.Job,
        expected: type[T],
        readable: Iterable[Path],
        folder: Path | None = None,
        limits: ReadingLimits = ORDINARY,
        *,
        root: Path | None = None,
    ) -> T:
        """Let a new reader do a job; it may read `readable`, and write to `folder`.

        `root`, the folder of a class, makes no difference. Raises `ReadingFailed` and
        `ReadingImpossible`.
        """
        confined = confinement(limits, readable, folder)
        for left in reversed(range(TRIES)):
            try:
                return expected_answer(self._answer(job, confined, limits), expected)
            except LostReader as error:
                if not left:
                    raise ReadingFailed(str(error)) from None
        raise AssertionError("unreachable")

    def _answer(
        self, job: messages.Job, confined: Confinement, limits: ReadingLimits
    ) -> messages.Answer:
        try:
            with contextlib.closing(self._spawner.take()) as process:
                with process.meet(START_SECONDS) as connection:
                    allowed = hand_over(connection, confined, job)
                    body = answer_body(connection, limits)
                if body is not None:
                    return decoded_answer(body)
                status = process.wait(ENDING_SECONDS)
        except (OSError, EOFError) as error:
            raise does_not_start(str(error)) from error
        finally:
            if self.ahead:
                self._spawner.start()
        raise how_it_ended(messages.ReaderStopped(status or 0, 0.0), allowed)

    def close(self) -> None:
        """End the unused reader."""
        self._spawner.close()
