"""Grading on the workers of a Dask cluster: the same jobs and answers, on other machines.

A job is given to one worker, and to another if the first cannot grade, falls silent or ends. So a
job may be graded twice; its first answer counts.
"""

from __future__ import annotations

import contextlib
import queue
import secrets
import sys
import threading
from collections.abc import Callable
from concurrent.futures import Future
from functools import partial

from grader.classroom.workers import cluster_worker, messages, remote_workers
from grader.classroom.workers.pool import IDLE, SLACK
from grader.classroom.workers.remote_workers import AHEAD, RemoteWorker, RemoteWorkers
from grader.classroom.workers.scheduler import GO_ON, SchedulerConnection
from grader.classroom.workers.tasks import Task, TaskQueue
from grader.course.course import Course
from grader.errors import GraderError, InternalError
from grader.sandbox.confinement.limits import Isolation

NAME = "attention-grader"
CLOSE_SECONDS = 10.0


class Cluster:
    """An engine on the workers of the scheduler at `address`; `tell` gets messages for the user.

    A separate thread keeps the state of all workers and tasks. Every event is put into the inbox
    of that thread.
    """

    def __init__(
        self,
        course: Course,
        isolation: Isolation,
        address: str,
        tell: Callable[[str], None] | None = None,
    ) -> None:
        self._course = course
        self._name = f"{NAME}-{course.hash}-{secrets.token_hex(4)}"  # others grade here as well
        prepare = {
            "name": self._name,
            "course": cluster_worker.packed(course),
            "hash": course.hash,
            "chosen": course.chosen,
            "isolation": isolation,
        }
        self._scheduler = SchedulerConnection(address)
        self._inbox: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._serve, name="cluster", daemon=True)
        # The rest belongs to the thread.
        self._tasks = TaskQueue()
        self._workers = RemoteWorkers(
            self._scheduler, self._tasks, prepare, tell or _write_error, self._inbox.put
        )
        self._error: GraderError | None = None  # the error that ended the run

    def start(self) -> None:
        """Make every worker prepare, now or when it joins; return at once."""
        if not self._thread.is_alive() and not self._closed.is_set():
            self._inbox.put(self._workers.check)
            self._thread.start()

    @property
    def width(self) -> int:
        """The number of jobs that keep the current workers busy."""
        return self._workers.width

    def submit(self, job: messages.Job) -> Future[messages.Answer]:
        """Let the next free worker grade a job."""
        task = Task(job)
        self._inbox.put(partial(self._accept, task))
        self.start()
        return task.answer

    def close(self) -> None:
        """Stop the grading processes of all workers, and disconnect, within `CLOSE_SECONDS`."""
        self._closed.set()
        closing = threading.Thread(target=self._close, daemon=True)
        closing.start()
        closing.join(CLOSE_SECONDS)  # a worker or a scheduler may have fallen silent

    def _close(self) -> None:
        if self._thread.ident is not None:
            self._inbox.put(lambda: None)
            self._thread.join()
        addresses: list[str] = []
        with contextlib.suppress(Exception):  # cancelling matters only to a cluster that still runs
            addresses = self._workers.let_go()
        self._scheduler.close(addresses, cluster_worker.RELEASE, {"name": self._name})

    # --- the thread -------------------------------------------------------------------------------

    def _serve(self) -> None:
        while not self._closed.is_set():
            try:
                with contextlib.suppress(queue.Empty):
                    self._inbox.get(timeout=remote_workers.CHECK_SECONDS)()
                if self._error is None:
                    self._workers.check_if_due()
                self._hand_out()
            except GraderError as error:
                self._end(error)
            except Exception as error:
                self._end(InternalError(f"handing out jobs failed: {error!r}", GO_ON))

    def _end(self, error: GraderError) -> None:
        if not self._closed.is_set():
            self._error = error
            self._tasks.settle_all(error)

    def _accept(self, task: Task) -> None:
        self._tasks.add(task)
        if self._error is not None:
            self._end(self._error)

    def _hand_out(self) -> None:
        while (worker := self._workers.free()) and (task := self._tasks.take()):
            names = {"name": self._name, "job": messages.encode(task.job)}
            seconds = AHEAD * job_seconds(self._course, task.job)
            received = partial(self._graded, worker, task)
            self._workers.call(worker, cluster_worker.GRADE, names, seconds, received, task)

    def _graded(self, worker: RemoteWorker, task: Task, data: bytes) -> None:
        answer = cluster_worker.decode(data)
        if isinstance(answer, cluster_worker.Unprepared):  # another process has its address now
            self._tasks.blame(task)
            self._workers.meet_again(worker)
        elif isinstance(answer, messages.Failed):
            self._tasks.put_back(task)
            why = f"cannot grade any more: {answer.message}"
            self._workers.give_up(worker, why, answer.remedy)
        else:
            self._tasks.settle(task, answer)


def job_seconds(course: Course, job: messages.Job) -> float:
    """Return how long a worker may take for a job; its own deadline comes before."""
    return SLACK + IDLE * (SLACK + sum(course[name].most_seconds for name in job.names))


def _write_error(text: str) -> None:
    """Write a line to the error stream, in place of a bar that a terminal shows there."""
    with contextlib.suppress(OSError, ValueError):  # nobody reads the stream
        start = "\r\x1b[2K" if sys.stderr.isatty() else ""
        sys.stderr.write(f"{start}  {text}\n")
        sys.stderr.flush()
