"""Grading on the workers of a Dask cluster: the same jobs and answers, on other machines.

A worker gets jobs once it has the versions of this process and has graded a reference solution. A
job is given to one worker, and to another if the first cannot grade, falls silent or ends. So a job
may be graded twice; its first answer counts.
"""

from __future__ import annotations

import contextlib
import queue
import secrets
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from concurrent.futures import CancelledError, Future, InvalidStateError
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal

import msgspec
from distributed import Client, KilledWorker

from grader import __version__
from grader.classroom.workers import cluster_worker, messages
from grader.classroom.workers.pool import SLACK
from grader.course.course import Course
from grader.errors import GraderError, InternalError, RequestError
from grader.grading.reporter import versions
from grader.sandbox.confinement.layers import Isolation

NAME = "attention-grader"
SECONDS = 30  # to reach the scheduler, and for each of its answers
CHECK_SECONDS = 2.0  # between two looks at the workers
CLOSE_SECONDS = 10.0
EMPTY_SECONDS = 60.0  # without a worker that can grade, before we say so
REPEAT_SECONDS = 600.0  # before we say the same thing again
SILENT_SECONDS = 60.0  # without a sign of life, before others get a worker's jobs
UNABLE_SECONDS = 15.0  # for another worker to come when all that are there cannot grade
VERSIONS_SECONDS = 60.0  # to say which versions it has
PREPARE_SECONDS = 600.0  # to warm up
ENDINGS = 1  # workers that may end over a job before it counts as lost
AHEAD = 2  # jobs for each thread: one is graded, one waits beside it
KEPT = "what was graded is kept"
INSTALL = (
    f"pip install 'attention-grader[cluster]=={__version__}'   in its environment, "
    "and start it again"
)
_ENDED = KilledWorker, CancelledError, OSError  # what Dask says of a call whose worker has ended


@dataclass(eq=False)
class _Task:
    """A job that waits for its answer; `endings` counts the workers that ended over it."""

    job: messages.Job
    answer: Future[messages.Answer] = field(default_factory=Future)
    endings: int = 0


@dataclass
class _Call:
    """What a worker was asked, by when it should answer, and what is done with the answer."""

    due: float
    receive: Callable[[Any], None]
    task: _Task | None = None


@dataclass(eq=False)
class _RemoteWorker:
    """What is known of one worker; its calls are in the order in which they were made."""

    address: str
    threads: int
    seen: float  # when it last gave a sign of life, by our clock
    state: Literal["new", "ready", "unable"] = "new"
    has_course: bool = False
    is_silent: bool = False
    is_running: bool = True  # for Dask: neither paused nor about to end
    heartbeat: float = 0.0  # its last one, by the clock of the scheduler
    calls: dict[Future[Any], _Call] = field(default_factory=dict)

    @property
    def is_free(self) -> bool:
        """Whether it may get another job."""
        can = self.state == "ready" and self.is_running and not self.is_silent
        return can and len(self.calls) < AHEAD * self.threads


class Cluster:
    """An engine on the workers of the scheduler at `address`; `tell` says what a user should know.

    One thread of its own knows the state of all workers. Dask calls back in the thread of its event
    loop, where nothing may wait, so everything that happens is put into the inbox of that thread.
    """

    def __init__(
        self,
        course: Course,
        isolation: Isolation,
        address: str,
        tell: Callable[[str], None] | None = None,
    ) -> None:
        self._course, self._address, self._tell = course, address, tell or _write_error
        self._name = f"{NAME}-{course.hash}-{secrets.token_hex(4)}"  # others grade here as well
        self._order = {
            "name": self._name,
            "course": cluster_worker.packed(course),
            "hash": course.hash,
            "isolation": isolation,
        }
        try:
            self._client = Client(address, timeout=SECONDS, set_as_default=False, name="grader")
        except (OSError, ValueError, TypeError) as error:
            message = f"no Dask scheduler answers at {address}: {error}"
            remedy = "dask scheduler   starts one and says its address"
            raise RequestError(message, remedy) from None
        self._executor = self._client.get_executor(pure=False)
        self._inbox: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._serve, name="cluster", daemon=True)
        # The rest belongs to the thread.
        self._workers: dict[str, _RemoteWorker] = {}
        self._tasks: set[_Task] = set()
        self._waiting: deque[_Task] = deque()
        self._width = 1
        self._error: GraderError | None = None  # that ended the run
        self._problem = GraderError("")  # of the last worker that cannot grade
        self._said: dict[str, float] = {}
        self._checked = time.monotonic()
        self._clock = self._hopeful = 0.0

    def start(self) -> None:
        """Have every worker prepare, now or when it joins; return at once."""
        if not self._thread.is_alive() and not self._closed.is_set():
            self._inbox.put(self._check)
            self._thread.start()

    @property
    def width(self) -> int:
        """The number of jobs that keep the present workers busy."""
        return self._width

    def submit(self, job: messages.Job) -> Future[messages.Answer]:
        """Have a job graded by the next free worker."""
        task = _Task(job)
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
        workers = self._workers.values()
        with contextlib.suppress(Exception):  # a cluster that is gone has let go
            for worker in workers:
                _cancel(worker.calls)
            asked = [each.address for each in workers if each.has_course and not each.is_silent]
            text, names = cluster_worker.RELEASE, {"name": self._name}
            if self._client.status == "running":
                self._client.run(eval, text, names, workers=asked, on_error="ignore")
        with contextlib.suppress(Exception):
            self._client.close(timeout=2)

    # --- the thread -------------------------------------------------------------------------------

    def _serve(self) -> None:
        while not self._closed.is_set():
            try:
                with contextlib.suppress(queue.Empty):
                    self._inbox.get(timeout=CHECK_SECONDS)()
                if time.monotonic() - self._checked >= CHECK_SECONDS:
                    self._check()
                self._hand_out()
            except GraderError as error:
                self._end(error)
            except Exception as error:
                self._end(InternalError(f"handing out jobs failed: {error!r}", _go_on()))

    def _end(self, error: GraderError) -> None:
        if not self._closed.is_set():
            self._error = error
            self._waiting.clear()
            for task in list(self._tasks):
                self._settle(task, error)

    def _accept(self, task: _Task) -> None:
        self._tasks.add(task)
        self._waiting.append(task)
        if self._error is not None:
            self._end(self._error)

    def _settle(self, task: _Task, found: messages.Answer | GraderError) -> None:
        self._tasks.discard(task)
        with contextlib.suppress(InvalidStateError):  # it was cancelled
            if isinstance(found, GraderError):
                task.answer.set_exception(found)
            else:
                task.answer.set_result(found)

    def _say(self, text: str, topic: str = "") -> None:
        """Tell the user, but of the same topic only now and then."""
        last = self._said.get(topic or text)
        if last is None or self._clock - last >= REPEAT_SECONDS:
            self._said[topic or text] = self._clock
            self._tell(text)

    # --- calls ------------------------------------------------------------------------------------

    def _call(
        self,
        worker: _RemoteWorker,
        text: str,
        names: Mapping[str, Any],
        seconds: float,
        receive: Callable[[Any], None],
        task: _Task | None = None,
    ) -> None:
        """Have a worker evaluate a text, and receive what it gives."""
        try:
            done = self._executor.submit(eval, text, dict(names), workers=[worker.address])
        except Exception as error:
            raise self._gone(error) from None
        worker.calls[done] = _Call(self._clock + seconds, receive, task)
        done.add_done_callback(lambda done: self._inbox.put(partial(self._answered, worker, done)))

    def _answered(self, worker: _RemoteWorker, done: Future[Any]) -> None:
        """Receive an answer, unless the worker was asked in vain and others have its jobs."""
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
            self._blame(call.task)
        else:
            self._fail(worker, call, error)

    def _fail(self, worker: _RemoteWorker, call: _Call, error: BaseException) -> None:
        """Give up a worker that cannot even answer, such as one without this package."""
        if call.task is not None:
            self._waiting.appendleft(call.task)
        why = f"cannot grade: {error!r}"
        if isinstance(error, ImportError):
            why = f"cannot import {error.name or 'grader'}: {error}"
        self._give_up(worker, why, INSTALL)

    def _take_back(self, worker: _RemoteWorker, *, has_ended: bool = False) -> None:
        """Give a worker's jobs to others; if it has ended, any of them may be why."""
        jobs = {done: call for done, call in worker.calls.items() if call.task is not None}
        for done in jobs:
            del worker.calls[done]
        _cancel(jobs)
        for task in reversed([call.task for call in jobs.values() if call.task is not None]):
            if has_ended:
                self._blame(task)
            else:
                self._waiting.appendleft(task)

    def _blame(self, task: _Task) -> None:
        """Give a job to another worker, unless enough of them have ended over it."""
        task.endings += 1
        if task.endings > ENDINGS:
            count = f"{task.endings} workers" if task.endings > 1 else "the worker"
            self._settle(task, messages.Lost(f"{count} ended over it"))
        else:
            self._waiting.appendleft(task)

    # --- getting to know a worker -----------------------------------------------------------------

    def _meet(self, worker: _RemoteWorker) -> None:
        worker.state = "new"
        received = partial(self._compare, worker)
        self._call(worker, cluster_worker.VERSIONS, {}, VERSIONS_SECONDS, received)

    def _compare(self, worker: _RemoteWorker, theirs: Mapping[str, str]) -> None:
        """Have a worker prepare that has our versions."""
        ours = versions()
        if theirs != ours:
            other = [name for name in ours if theirs.get(name) != ours[name]]
            here = ", ".join(f"{name} {ours[name]}" for name in other)
            there = ", ".join(f"{name} {theirs.get(name)}" for name in other)
            why = f"has {there}, and this machine {here}"
            self._give_up(worker, why, "install the same versions on both, or marks may differ")
        else:
            received = partial(self._prove, worker)
            worker.state, worker.has_course = "new", True
            self._call(worker, cluster_worker.PREPARE, self._order, PREPARE_SECONDS, received)

    def _prove(self, worker: _RemoteWorker, data: bytes) -> None:
        """Count a worker as ready if it has graded a reference solution as it should."""
        answer = cluster_worker.decode(data)
        if isinstance(answer, messages.GradedJob):
            results = [messages.decode_result(each) for each in answer.results.values()]
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
        self._give_up(worker, why, remedy)

    def _give_up(self, worker: _RemoteWorker, why: str, remedy: str) -> None:
        """Give a worker no more jobs, and those that it has to others; say why."""
        worker.state = "unable"
        says = f"worker {worker.address}: {why}"
        self._problem = RequestError(says, remedy)
        self._say(f"{says}; it gets no jobs: {remedy}" if remedy else f"{says}; it gets no jobs")
        self._take_back(worker)
        self._count()

    # --- jobs -------------------------------------------------------------------------------------

    def _hand_out(self) -> None:
        while self._waiting:
            free = [worker for worker in self._workers.values() if worker.is_free]
            if not free:
                break
            task = self._waiting.popleft()
            if task.answer.done():  # cancelled
                self._tasks.discard(task)
                continue
            worker = min(free, key=lambda each: len(each.calls) / each.threads)
            names = {"name": self._name, "job": messages.encode(task.job)}
            seconds = AHEAD * job_seconds(self._course, task.job)
            received = partial(self._graded, worker, task)
            self._call(worker, cluster_worker.GRADE, names, seconds, received, task)

    def _graded(self, worker: _RemoteWorker, task: _Task, data: bytes) -> None:
        answer = cluster_worker.decode(data)
        if isinstance(answer, cluster_worker.Unprepared):  # another process has its address now
            self._blame(task)
            self._take_back(worker, has_ended=True)
            self._meet(worker)
        elif isinstance(answer, messages.Failed):
            self._waiting.appendleft(task)
            self._give_up(worker, f"cannot grade any more: {answer.message}", answer.remedy)
        else:
            self._settle(task, answer)

    # --- looking after the workers ----------------------------------------------------------------

    def _check(self) -> None:
        """Look at the workers, and do what is due."""
        if self._error is not None:
            return
        now = time.monotonic()
        # Time in which this process was stopped itself is not the fault of any worker.
        self._clock += min(now - self._checked, 2 * CHECK_SECONDS)
        self._checked = now
        self._look()
        for worker in list(self._workers.values()):
            self._check_silence(worker)
            if not worker.is_silent:
                self._check_due(worker)
        if self._tasks:
            self._check_hope()
        else:
            self._hopeful = self._clock

    def _look(self) -> None:
        """Take note of workers that have come, gone, or given a sign of life."""
        try:
            if self._client.status != "running":
                raise OSError("the connection has ended")
            info = self._client.sync(self._identity, callback_timeout=SECONDS)
        except Exception as error:
            raise self._gone(error) from None
        present = info["workers"]
        for address in self._workers.keys() - present.keys():
            self._mourn(self._workers.pop(address))
        for address, facts in present.items():
            if address not in self._workers:
                worker = _RemoteWorker(address, facts["nthreads"], self._clock)
                self._workers[address] = worker
                self._meet(worker)
            worker = self._workers[address]
            worker.is_running = facts["status"] == "running"
            if facts["last_seen"] != worker.heartbeat:
                worker.heartbeat, worker.seen = facts["last_seen"], self._clock
        self._count()

    async def _identity(self) -> dict[str, Any]:
        """Ask the scheduler itself; what the client knows of its workers may be old."""
        scheduler: Any = self._client.scheduler
        facts: dict[str, Any] = await scheduler.identity(n_workers=-1)
        return facts

    def _count(self) -> None:
        able = (each for each in self._workers.values() if each.state != "unable")
        self._width = max(1, AHEAD * sum(each.threads for each in able if not each.is_silent))

    def _mourn(self, worker: _RemoteWorker) -> None:
        """Have others do the jobs of a worker that has ended."""
        jobs = sum(call.task is not None for call in worker.calls.values())
        if jobs:
            self._say(f"worker {worker.address}: has ended; others get its jobs")
        elif worker.state == "new" and not worker.is_silent:
            says = f"worker {worker.address}: ended while it prepared; its log says why"
            self._say(says, topic="ended while it prepared")
        self._take_back(worker, has_ended=True)

    def _check_silence(self, worker: _RemoteWorker) -> None:
        was, worker.is_silent = worker.is_silent, self._clock - worker.seen > SILENT_SECONDS
        if worker.is_silent and not was:
            says = f"worker {worker.address}: no sign of life for {SILENT_SECONDS:.0f} seconds"
            self._say(f"{says}; others get its jobs", topic=f"{worker.address} is silent")
            self._take_back(worker)
        if worker.is_silent != was:
            self._count()

    def _check_due(self, worker: _RemoteWorker) -> None:
        """Give up a worker that should have answered by now; if it still does, it may grade."""
        late = [call for call in worker.calls.values() if call.due < self._clock]
        if late and worker.state != "unable":
            what = "a job" if late[0].task else "the question whether it can grade"
            self._give_up(worker, f"does not answer {what}", "its log may say why")

    def _check_hope(self) -> None:
        """Say that nobody grades; end the run if the only workers there are cannot."""
        workers = self._workers.values()
        if any(each.state != "unable" and not each.is_silent for each in workers):
            self._hopeful = self._clock
            return
        alone = self._clock - self._hopeful
        if workers and all(each.state == "unable" for each in workers):
            if alone >= UNABLE_SECONDS:
                says = f"no worker can grade, and {KEPT}: {self._problem.message}"
                raise RequestError(says, self._problem.remedy or _go_on())
        elif alone >= EMPTY_SECONDS:
            says = f"no worker of {self._address} answers; waiting for one: "
            says += f"dask worker {self._address}   (after Ctrl-C, {KEPT})"
            self._say(says, topic="no worker")

    def _gone(self, error: BaseException) -> RequestError:
        says = f"the scheduler at {self._address} does not answer any more"
        return RequestError(f"{says} ({str(error) or type(error).__name__}); {KEPT}", _go_on())


def job_seconds(course: Course, job: messages.Job) -> float:
    """Return how long a worker may take for a job; its own deadline comes before."""
    return 2 * SLACK + sum(course[name].exercise_seconds for name in job.names)


def _go_on() -> str:
    return "once it runs, the same command goes on"


def _cancel(calls: Mapping[Future[Any], _Call]) -> None:
    for done in calls:
        done.cancel()


def _write_error(text: str) -> None:
    """Write a line to the error stream, in place of a bar that a terminal shows there."""
    with contextlib.suppress(OSError, ValueError):  # nobody reads it
        start = "\r\x1b[2K" if sys.stderr.isatty() else ""
        sys.stderr.write(f"{start}  {text}\n")
        sys.stderr.flush()
