"""Readers that are spawned: each one is a Python process of its own, which does one job."""

from __future__ import annotations

import contextlib

from grader.processes.child import clean_environment
from grader.sandbox.confinement.limits import Confinement
from grader.sandbox.host.spawning import Spawner
from grader.submissions.reader import messages
from grader.submissions.reader.exchange import (
    START_SECONDS,
    Readers,
    ReadingLimits,
    answer_body,
    decoded_answer,
    hand_over,
    how_it_ended,
)

MODULE = "grader.submissions.reader_process.spawned"
ENDING_SECONDS = 1.0  # that a reader which hung up has to end


class SpawnedReaders(Readers):
    """Spawns a reader for each job. With `ahead`, the next is started when one has ended."""

    def __init__(self) -> None:
        self.ahead = False
        self._spawner = Spawner(MODULE, "reader", clean_environment())

    def start(self) -> None:
        """Start the first reader; return while it still imports."""
        self._spawner.start()

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
        finally:
            if self.ahead:
                self._spawner.start()
        raise how_it_ended(messages.ReaderStopped(status or 0, 0.0), allowed)

    def close(self) -> None:
        """End the unused reader."""
        self._spawner.close()
