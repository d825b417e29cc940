"""A pool of warm grading processes on this machine, forked from one template process.

A process that ends is replaced; its job comes back as `Lost`. Imports no torch, so the coordinator
stays small.
"""

from __future__ import annotations

import contextlib
import os
import queue
import select
import signal
import socket
import sys
import threading
import time
from collections import Counter
from concurrent.futures import Future, ThreadPoolExecutor

from grader.classroom.workers import messages
from grader.course.course import Course
from grader.errors import InternalError, RequestError
from grader.processes import channel
from grader.processes.child import ChildProcess, module_command
from grader.sandbox.confinement import landlock
from grader.sandbox.confinement.layers import LAYERS
from grader.sandbox.confinement.limits import Isolation
from grader.sandbox.host.processor import used_by
from grader.sandbox.host.source import cannot_confine

SLACK = 120.0  # seconds for naming mistakes, beyond the limits of a job's exercises
IDLE = 20.0  # times the seconds of a job, after which its process counts as hanging
BEAT = 1.0  # seconds between two checks of a process's time
ENDED = "the process that graded it ended"
PATIENCE = 3  # template processes that may end in a row before we give up


class _Allowance:
    """The time limit of a job: `seconds` of its process's computing.

    The clock does not decide, because a process that waits for a core is not to blame. The process
    itself limits student code in workers. A process that stops computing is given up after `IDLE`
    times as long.
    """

    def __init__(self, pid: int, seconds: float) -> None:
        self._pid, self._seconds = pid, seconds
        self._begun, self._used = time.monotonic(), used_by(pid)

    def exceeded(self) -> str:
        """Return, in words, the limit that the job has exceeded; empty if none."""
        seconds, used = time.monotonic() - self._begun, used_by(self._pid)
        if used is None or self._used is None:  # only the clock is known
            is_late = seconds > self._seconds
        else:
            computed = used[0] - self._used[0]
            if computed > self._seconds:
                return f"it computed for more than {self._seconds:.0f} seconds"
            is_late = seconds > IDLE * self._seconds
        return f"nothing came back within {seconds:.0f} seconds" if is_late else ""


class _GradingProcess:
    def __init__(
        self, connection: socket.socket, pid: int, core: int | None, template: ChildProcess
    ) -> None:
        self._connection, self.pid, self.core, self._template = connection, pid, core, template

    def grade(self, job: messages.Job, seconds: float) -> messages.Answer | messages.Failed | None:
        """Return the answer to a job; after `Lost` or None this process is gone.

        After None, the job is not to blame: the process had ended before, or its template ended.
        """
        try:
            messages.send(self._connection, job)
        except OSError:
            self.close()
            return None
        allowance = _Allowance(self.pid, seconds)

        def wait() -> None:
            while not select.select([self._connection], [], [], BEAT)[0]:
                if why := allowance.exceeded():
                    raise TimeoutError(why)

        try:
            return messages.decode_answer(channel.receive(self._connection.recv, wait=wait))
        except TimeoutError as late:
            why = str(late)
        except (EOFError, OSError):
            why = ENDED
        template_ended = self._template.has_ended
        self.close()
        return None if template_ended else messages.Lost(why)

    def close(self) -> None:
        """Kill the process and close the connection to it."""
        self.kill()
        self._connection.close()

    def kill(self) -> None:
        """Kill the process, and leave its connection to the thread that waits for it."""
        # While the template process lives, the pid belongs to no other process.
        if not self._template.has_ended:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)


class _TemplateProcess:
    def __init__(self, course: Course, isolation: Isolation) -> None:
        self.process = ChildProcess(
            module_command("grader.classroom.workers.template"), str(os.getpid())
        )
        self._setup: messages.Setup | None = messages.Setup(
            course.root,
            course.chosen,
            course.hash,
            isolation,
        )

    def fork(self, core: int | None) -> _GradingProcess:
        """Fork a process that keeps to `core`, if one is given; the first waits for the warm-up."""
        try:
            if self._setup is not None:
                messages.send(self.process.orders, self._setup)
                self._setup = None
                self._pid_when_ready()
            ours, theirs = socket.socketpair()
            with theirs:
                messages.send(self.process.orders, messages.ForkOrder(core), theirs)
                pid = self._pid_when_ready()
            return _GradingProcess(ours, pid, core, self.process)
        except (EOFError, OSError) as error:
            self.close()
            raise TemplateEnded(self.process.last_error_line() or repr(error)) from error

    def _pid_when_ready(self) -> int:
        answer = messages.decode_ready(channel.receive(self.process.orders.recv))
        if isinstance(answer, messages.Failed):
            raise answer.to_error()
        return answer.pid

    def close(self) -> None:
        """End the process; its grading processes and their workers end with it."""
        self.process.close()


class TemplateEnded(Exception):
    """The template process has ended; the message is the last line that it wrote."""


def refuse_unconfined(course: Course) -> None:
    """Raise `RequestError` if this machine cannot confine other people's code."""
    for layer in LAYERS:
        if reason := layer.missing():
            raise cannot_confine(f"{layer.name}: {reason}")
    for folder in landlock.readable():
        if course.root.resolve().is_relative_to(folder):
            message = f"the course lies in {folder}, where student code may read"
            raise RequestError(message, "move the course out of the Python installation")


def available_cores() -> list[int]:
    """Return the cores that grading processes may use."""
    if sys.platform == "linux":
        return sorted(os.sched_getaffinity(0))
    return list(range(os.cpu_count() or 1))


class WorkerPool:
    """A pool of `size` grading processes; a `shared` machine has other work to do as well."""

    def __init__(
        self,
        course: Course,
        isolation: Isolation,
        size: int,
        *,
        shared: bool = False,
    ) -> None:
        self.width = size + 1  # one job waits, so that no process does
        available = available_cores()
        # If the pool fills the machine, a process shares its core with its worker: they take turns.
        fills = sys.platform == "linux" and size >= len(available) and not shared
        self._cores = Counter(dict.fromkeys(available, 0) if fills else ())
        self._course, self._isolation = course, isolation
        self._template: _TemplateProcess | None = None
        self._lock = threading.Lock()
        self._idle: queue.SimpleQueue[_GradingProcess] = queue.SimpleQueue()
        self._busy: set[_GradingProcess] = set()
        self._closed = False
        self._threads = ThreadPoolExecutor(size, "grading")

    def start(self) -> None:
        """Start the template process; return at once, it warms up meanwhile."""
        with self._lock:
            if self._template is None:
                self._template = _TemplateProcess(self._course, self._isolation)

    def submit(self, job: messages.Job) -> Future[messages.Answer]:
        """Grade a job in the background; the future raises the grader's own errors."""
        return self._threads.submit(self.grade, job)

    def grade(self, job: messages.Job) -> messages.Answer:
        """Grade a job in a free process; wait for the answer."""
        seconds = SLACK + sum(self._course[name].most_seconds for name in job.names)
        # When the template process ends, every idle process has ended with it.
        for _ in range(self.width + PATIENCE):
            process = self._take()
            answer = None
            try:
                answer = process.grade(job, seconds)
            finally:
                with self._lock:
                    self._busy.discard(process)
                    if not isinstance(answer, messages.GradedJob | messages.Failed):  # it has ended
                        process.kill()
                        if process.core is not None:
                            self._cores[process.core] -= 1
            if answer is not None:
                break
        if answer is None or isinstance(answer, messages.Lost):
            return answer or messages.Lost(ENDED)
        self._idle.put(process)
        if isinstance(answer, messages.Failed):
            raise answer.to_error()
        return answer

    def _take(self) -> _GradingProcess:
        with self._lock:
            try:
                process = self._idle.get_nowait()
            except queue.Empty:
                process = self._fork()
            self._busy.add(process)
        return process

    def _fork(self) -> _GradingProcess:
        for _ in range(PATIENCE):
            if self._closed:
                break
            if self._template is None:
                self._template = _TemplateProcess(self._course, self._isolation)
            core = min(self._cores, key=self._cores.__getitem__, default=None)
            try:
                process = self._template.fork(core)
                if core is not None:
                    self._cores[core] += 1
                return process
            except TemplateEnded as ended:
                self._template, words = None, str(ended)
        raise InternalError(
            f"the process that grades does not start: {'' if self._closed else words}",
            "grader doctor   says what this machine lacks",
        )

    def close(self) -> None:
        """Stop all processes at once."""
        self._closed = True
        for process in list(self._busy):
            process.kill()
        if (template := self._template) is not None:
            template.process.kill()  # releases the threads that wait for it
        self._threads.shutdown(cancel_futures=True)
        while not self._idle.empty():
            self._idle.get().close()
        if self._template is not None:
            self._template.close()
            self._template = None
