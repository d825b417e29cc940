"""The jobs that a cluster still owes answers to, in the order in which they are handed out."""

from __future__ import annotations

import contextlib
from collections import deque
from concurrent.futures import Future, InvalidStateError
from dataclasses import dataclass, field

from grader.classroom.workers import messages
from grader.errors import GraderError

ENDINGS = 1  # workers that may end over a job before it counts as lost


@dataclass(eq=False)
class Task:
    """A job that waits for its answer; `endings` counts the workers that ended over it."""

    job: messages.Job
    answer: Future[messages.Answer] = field(default_factory=Future)
    endings: int = 0


class TaskQueue:
    """The tasks without an answer; tasks that no worker has wait in a queue."""

    def __init__(self) -> None:
        self._open: set[Task] = set()
        self._waiting: deque[Task] = deque()

    @property
    def is_empty(self) -> bool:
        """Whether every task has its answer."""
        return not self._open

    def add(self, task: Task) -> None:
        """Put a new task at the end of the queue."""
        self._open.add(task)
        self._waiting.append(task)

    def take(self) -> Task | None:
        """Remove the first task from the queue and return it; None if the queue is empty."""
        while self._waiting:
            task = self._waiting.popleft()
            if not task.answer.done():
                return task
            self._open.discard(task)  # it was cancelled
        return None

    def put_back(self, task: Task) -> None:
        """Put a task that a worker had first in the queue."""
        self._waiting.appendleft(task)

    def blame(self, task: Task) -> None:
        """Put back a task whose worker ended, unless enough workers have ended over it."""
        task.endings += 1
        if task.endings > ENDINGS:
            count = f"{task.endings} workers" if task.endings > 1 else "the worker"
            self.settle(task, messages.Lost(f"{count} ended over it"))
        else:
            self.put_back(task)

    def settle(self, task: Task, found: messages.Answer | GraderError) -> None:
        """Give a task its answer, or an error in its place."""
        self._open.discard(task)
        with contextlib.suppress(InvalidStateError):  # it was cancelled, or is graded twice
            if isinstance(found, GraderError):
                task.answer.set_exception(found)
            else:
                task.answer.set_result(found)

    def settle_all(self, error: GraderError) -> None:
        """Make every task raise an error."""
        self._waiting.clear()
        for task in list(self._open):
            self.settle(task, error)
