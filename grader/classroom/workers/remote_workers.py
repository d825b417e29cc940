"""The workers of a cluster: which ones exist, their open calls, and which may get a job.

A worker may get jobs once it has the versions of this process and has graded a reference solution.
The jobs of one that cannot grade, falls silent or ends go back into the queue.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from concurrent.futures import CancelledError, Future
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal

import msgspec
from distributed import KilledWorker

from grader import __version__
from grader.classroom.workers import cluster_worker, messages
from grader.classroom.workers.scheduler import GO_ON, KEPT, SchedulerConnection
from grader.classroom.workers.tasks import Task, TaskQueue
from grader.errors import RequestError
from grader.grading.reporter import versions

CHECK_SECONDS = 2.0  # seconds between two checks of the workers
EMPTY_SECONDS = 60.0  # seconds without a worker that can grade, before we say so
REPEAT_SECONDS = 600.0  # seconds before we say the same thing again
SILENT_SECONDS = 60.0  # seconds without a sign of life, before others get a worker's jobs
UNABLE_SECONDS = 15.0  # seconds for another worker to come if no present one can grade
VERSIONS_SECONDS = 60.0  # seconds for a worker to name its versions
PREPARE_SECONDS = 600.0  # to warm up
AHEAD = 2  # jobs for each thread: one is graded, one waits beside it
WHEEL = f"./attention_grader-{__version__}-py3-none-any.whl"
INSTALL = f"pip install '{WHEEL}[cluster]'   in its environment, and start it again"
_ENDED = KilledWorker, CancelledError, OSError  # Dask's messages on a call whose worker has ended


@dataclass
class PendingCall:
    """A call to a worker: its deadline, and the function for the answer."""

    due: float
    receive: Callable[[Any], None]
    task: Task | None = None


@dataclass(eq=False)
class RemoteWorker:
    """The state of one worker; its calls are in the order in which they were made."""

    address: str
    threads: int
    seen: float  # the time of its last sign of life, by our clock
    state: Literal["new", "ready", "unable"] = "new"
    has_course: bool = False
    is_silent: bool = False
    is_running: bool = True  # whether Dask says that it is neither paused nor about to end
    heartbeat: float = 0.0  # its last sign of life, by the scheduler's clock
    calls: dict[Future[Any], PendingCall] = field(default_factory=dict)

    @property
    def is_free(self) -> bool:
        """Whether it may get another job."""
        can = self.state == "ready" and self.is_running and not self.is_silent
        return can and len(self.calls) < AHEAD * self.threads

    @property
    def is_hopeful(self) -> bool:
        """Whether it grades, or may still do so."""
        return self.state != "unable" and not self.is_silent

    @property
    def jobs(self) -> dict[Future[Any], Task]:
        """Its tasks, by the calls that gave them."""
        return {done: call.task for done, call in self.calls.items() if call.task is not None}

    def cancel(self) -> None:
        """Cancel all calls."""
        for done in self.calls:
            done.cancel()


class RemoteWorkers:
    """The workers of a scheduler; `prepare` is the data that each needs before it grades.

    It belongs to one thread, whose inbox `post` fills: Dask calls back in the thread of its event
    loop, where nothing may wait.
    """

    def __init__(
        self,
        scheduler: SchedulerConnection,
        tasks: TaskQueue,
        prepare: Mapping[str, Any],
        tell: Callable[[str], None],
        post: Callable[[Callable[[], None]], None],
    ) -> None:
        self._scheduler, self._tasks, self._prepare = scheduler, tasks, prepare
        self._tell, self._post = tell, post
        self.width = 1  # jobs that keep the current workers busy
        self._workers: dict[str, RemoteWorker] = {}
        self._problem = RequestError("")  # the error of the last worker that cannot grade
        self._said: dict[str, float] = {}
        self._checked = time.monotonic()
        self._clock = self._hopeful = 0.0

    def free(self) -> RemoteWorker | None:
        """Return the worker that should get the next job, if one may get any."""
        free = [worker for worker in self._workers.values() if worker.is_free]
        return min(free, key=lambda each: len(each.calls) / each.threads, default=None)

    def let_go(self) -> list[str]:
        """Cancel all calls; return the addresses of the workers that hold the course."""
        workers = self._workers.values()
        for worker in workers:
            worker.cancel()
        return [each.address for each in workers if each.has_course and not each.is_silent]

    def _say(self, text: str, topic: str = "") -> None:
        """Tell the user, but about the same topic only now and then."""
        last = self._said.get(topic or text)
        if last is None or self._clock - last >= REPEAT_SECONDS:
            self._said[topic or text] = self._clock
            self._tell(text)

    def _count(self) -> None:
        hopeful = (each.threads for each in self._workers.values() if each.is_hopeful)
        self.width = max(1, AHEAD * sum(hopeful))

    # --- calls ------------------------------------------------------------------------------------

    def call(
        self,
        worker: RemoteWorker,
        text: str,
        names: Mapping[str, Any],
        seconds: float,
        receive: Callable[[Any], None],
        task: Task | None = None,
    ) -> None:
        """Let a worker evaluate a text within some seconds, and call `receive` with the result."""
        done = self._scheduler.evaluate(worker.address, text, names)
        worker.calls[done] = PendingCall(self._clock + seconds, receive, task)
        done.add_done_callback(lambda done: self._post(partial(self._answered, worker, done)))

    def _answered(self, worker: RemoteWorker, done: Future[Any]) -> None:
        """Receive an answer, unless it came too late and others have the worker's jobs."""
        error = CancelledError() if done.cancelled() else done.exception()
        if isinstance(error, _ENDED) and done in worker.calls:
            self._look()  # the worker may be gone, and its calls with it
        if (call := worker.calls.pop(done, None)) is None:
            return
        if error is None:
            try:
                call.receive(done.result())
            except msgspec.MsgspecError as garbled:
                self._fail(worker, call, garbled)
        elif isinstance(error, _ENDED) and call.task is not None:
            self._tasks.blame(call.task)
        else:
            self._fail(worker, call, error)

    def _fail(self, worker: RemoteWorker, call: PendingCall, error: BaseException) -> None:
        """Give up a worker that cannot even answer, such as one without this package."""
        if call.task is not None:
            self._tasks.put_back(call.task)
        why = f"cannot grade: {error!r}"
        if isinstance(error, ImportError):
            why = f"cannot import {error.name or 'grader'}: {error}"
        self.give_up(worker, why, INSTALL)

    def _take_back(self, worker: RemoteWorker, *, has_ended: bool = False) -> None:
        """Give a worker's jobs to others; if it has ended, any of the jobs may be the reason."""
        jobs = worker.jobs
        for done in jobs:
            del worker.calls[done]
        for done in jobs:
            done.cancel()
        give = self._tasks.blame if has_ended else self._tasks.put_back
        for task in reversed(jobs.values()):
            give(task)

    # --- getting to know a worker -----------------------------------------------------------------

    def _meet(self, worker: RemoteWorker) -> None:
        worker.state = "new"
        received = partial(self._compare, worker)
        self.call(worker, cluster_worker.VERSIONS, {}, VERSIONS_SECONDS, received)

    def meet_again(self, worker: RemoteWorker) -> None:
        """Make another process prepare that has taken over a worker's address."""
        self._take_back(worker, has_ended=True)
        self._meet(worker)

    def _compare(self, worker: RemoteWorker, theirs: Mapping[str, str]) -> None:
        """Make a worker with our versions prepare."""
        ours = versions()
        if theirs != ours:
            other = [name for name in ours if theirs.get(name) != ours[name]]
            here = ", ".join(f"{name} {ours[name]}" for name in other)
            there = ", ".join(f"{name} {theirs.get(name)}" for name in other)
            why = f"has {there}, and this machine {here}"
            self.give_up(worker, why, "install the same versions on both, or marks may differ")
        else:
            received = partial(self._prove, worker)
            worker.state, worker.has_course = "new", True
            self.call(worker, cluster_worker.PREPARE, self._prepare, PREPARE_SECONDS, received)

    def _prove(self, worker: RemoteWorker, data: bytes) -> None:
        """Count a worker as ready if it has graded a reference solution as it should."""
        answer = cluster_worker.decode(data)
        if isinstance(answer, messages.GradedJob):
            results = [messages.decode_result(*each) for each in answer.results.items()]
            if all(result.passed for result in results):
                worker.state = "ready"
                self._count()
                return
            why, remedy = "fails the reference solution", "grader validate   on that machine"
        elif isinstance(answer, messages.Failed):
            why, remedy = f"cannot grade this course: {answer.message}", answer.remedy
        else:
            why = "lost the process that grades, over the reference solution"
            remedy = "grader doctor   says what that machine lacks"
        self.give_up(worker, why, remedy)

    def give_up(self, worker: RemoteWorker, why: str, remedy: str) -> None:
        """Give a worker no more jobs, pass its jobs on to others, and say why."""
        worker.state = "unable"
        says = f"worker {worker.address}: {why}"
        self._problem = RequestError(says, remedy)
        self._say(f"{says}; it gets no jobs: {remedy}" if remedy else f"{says}; it gets no jobs")
        self._take_back(worker)
        self._count()

    # --- looking after the workers ----------------------------------------------------------------

    def check_if_due(self) -> None:
        """Look at the workers if the last look was `CHECK_SECONDS` ago."""
        if time.monotonic() - self._checked >= CHECK_SECONDS:
            self.check()

    def check(self) -> None:
        """Check the workers, and act on what has changed."""
        now = time.monotonic()
        # No worker is to blame for time in which this process was stopped itself.
        self._clock += min(now - self._checked, 2 * CHECK_SECONDS)
        self._checked = now
        self._look()
        for worker in list(self._workers.values()):
            self._check_silence(worker)
            if not worker.is_silent:
                self._check_due(worker)
        if self._tasks.is_empty:
            self._hopeful = self._clock
        else:
            self._check_hope()

    def _look(self) -> None:
        """Take note of new workers, lost workers and signs of life."""
        present = self._scheduler.workers()
        for address in self._workers.keys() - present.keys():
            self._mourn(self._workers.pop(address))
        for address, facts in present.items():
            if address not in self._workers:
                worker = RemoteWorker(address, facts["nthreads"], self._clock)
                self._workers[address] = worker
                self._meet(worker)
            worker = self._workers[address]
            worker.is_running = facts["status"] == "running"
            if facts["last_seen"] != worker.heartbeat:
                worker.heartbeat, worker.seen = facts["last_seen"], self._clock
        self._count()

    def _mourn(self, worker: RemoteWorker) -> None:
        """Give the jobs of a worker that has ended to others."""
        if worker.jobs:
            self._say(f"worker {worker.address}: has ended; others get its jobs")
        elif worker.state == "new" and not worker.is_silent:
            says = f"worker {worker.address}: ended while it prepared; its log says why"
            self._say(says, topic="ended while it prepared")
        self._take_back(worker, has_ended=True)

    def _check_silence(self, worker: RemoteWorker) -> None:
        was, worker.is_silent = worker.is_silent, self._clock - worker.seen > SILENT_SECONDS
        if worker.is_silent and not was:
            says = f"worker {worker.address}: no sign of life for {SILENT_SECONDS:.0f} seconds"
            self._say(f"{says}; others get its jobs", topic=f"{worker.address} is silent")
            self._take_back(worker)
        if worker.is_silent != was:
            self._count()

    def _check_due(self, worker: RemoteWorker) -> None:
        """Give up a worker that should have answered by now; if it still does, it may grade."""
        late = [call for call in worker.calls.values() if call.due < self._clock]
        if late and worker.state != "unable":
            what = "a job" if late[0].task else "the question whether it can grade"
            self.give_up(worker, f"does not answer {what}", "its log may say why")

    def _check_hope(self) -> None:
        """Say that no worker grades; end the run if none of the present ones can."""
        workers = self._workers.values()
        if any(each.is_hopeful for each in workers):
            self._hopeful = self._clock
            return
        alone = self._clock - self._hopeful
        if workers and all(each.state == "unable" for each in workers):
            if alone >= UNABLE_SECONDS:
                says = f"no worker can grade, and {KEPT}: {self._problem.message}"
                raise RequestError(says, self._problem.remedy or GO_ON)
        elif alone >= EMPTY_SECONDS:
            address = self._scheduler.address
            says = f"no worker of {address} answers; waiting for one: "
            says += f"dask worker {address}   (after Ctrl-C, {KEPT})"
            self._say(says, topic="no worker")
