"""Slots on this machine: warm grading processes, forked from one nursery.

A slot that ends over a job is replaced, and the job comes back as `Lost`; the nursery likewise.
Knows no torch: whoever hands out jobs stays small.
"""

from __future__ import annotations

import contextlib
import os
import queue
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections import Counter
from concurrent.futures import Future, ThreadPoolExecutor
from multiprocessing.connection import Connection
from typing import Any

from grader.classroom.workers import messages as jobs
from grader.course.course import Course
from grader.errors import InternalError, RequestError
from grader.sandbox.confinement import landlock
from grader.sandbox.confinement.layers import LAYERS, Isolation
from grader.sandbox.host.zygote import cannot_confine

SLACK = 60.0  # seconds that a job may take beyond what its exercises are allowed
ENDED = "the process that graded it ended"
PATIENCE = 3  # nurseries that die one after another before we give up


class _Slot:
    """One slot: a job in, an answer out."""

    def __init__(
        self, connection: Connection, pid: int, core: int | None, nursery: subprocess.Popen[bytes]
    ) -> None:
        self._connection, self.pid, self.core, self._nursery = connection, pid, core, nursery

    def grade(self, job: jobs.Job, seconds: float) -> jobs.Graded | jobs.Failed | jobs.Lost | None:
        """The answer to a job; a slot that answers `Lost` is gone.

        None: it was gone before the job came, or its nursery was, and the job is not to blame.
        """
        try:
            jobs.send(self._connection, job)
        except OSError:
            self.kill()
            return None
        try:
            if self._connection.poll(seconds):
                return jobs.receive_answer(self._connection)
            why = f"nothing came back within {seconds:.0f} seconds"
        except (EOFError, OSError):
            why = ENDED
        fell_with_its_nursery = self._nursery.poll() is not None
        self.kill()
        return None if fell_with_its_nursery else jobs.Lost(why)

    def kill(self) -> None:
        """End the process, now.

        Its nursery, which it does not outlive, keeps its number from others for as long as it runs.
        """
        self.end()
        self._connection.close()

    def end(self) -> None:
        """End the process, and leave its connection to whoever waits at it."""
        if self._nursery.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)


class _Nursery:
    """The process that slots are forked from."""

    def __init__(self, course: Course, isolation: Isolation) -> None:
        ours, theirs = socket.socketpair()
        self._errors: Any = tempfile.TemporaryFile()  # noqa: SIM115, read when the process ends
        command = [sys.executable, "-I", "-W", "ignore", "-m", "grader.classroom.workers.template"]
        with theirs:
            self.process = subprocess.Popen(
                [*command, str(theirs.fileno()), str(os.getpid())],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=self._errors,
                start_new_session=True,  # Ctrl-C is ours to handle
            )
        self._orders, self._told = ours, Connection(os.dup(ours.fileno()))
        self._setup: jobs.Setup | None = jobs.Setup(course.root, course.hash, isolation)

    def slot(self, core: int | None) -> _Slot:
        """Fork a slot that keeps to a core, if one is given; the first waits for the warm-up."""
        try:
            if self._setup is not None:
                jobs.send(self._told, self._setup)
                self._setup = None
                self._ready()
            ours, theirs = socket.socketpair()
            with theirs:
                socket.send_fds(self._orders, [jobs.encode(jobs.Order(core))], [theirs.fileno()])
                pid = self._ready()
            return _Slot(Connection(ours.detach()), pid, core, self.process)
        except (EOFError, OSError) as error:
            raise Gone(self._last_words() or repr(error)) from error

    def _ready(self) -> int:
        answer = jobs.receive_ready(self._told)
        if isinstance(answer, jobs.Failed):
            raise answer.raised()
        return answer.pid

    def _last_words(self) -> str:
        self.kill()
        self._errors.seek(0)
        lines = self._errors.read().decode("utf-8", "replace").strip().splitlines()
        return lines[-1] if lines else ""

    def kill(self) -> None:
        """End the process; its slots and their workers end with it."""
        self.process.kill()
        self.process.wait()
        self._orders.close()
        self._told.close()


class Gone(Exception):
    """The nursery has ended; the message is the last it said."""


def refuse_unconfined(course: Course) -> None:
    """Raise, before anything is written, where other people's code could not be kept in."""
    for layer in LAYERS:
        if reason := layer.missing():
            raise cannot_confine(f"{layer.name}: {reason}")
    for folder in landlock.readable():
        if course.root.resolve().is_relative_to(folder):
            raise RequestError(
                f"the course lies in {folder}, where student code may read",
                "move the course out of the Python installation",
            )


def cores() -> list[int]:
    """The cores that slots may use; a slot for each is what this machine has room for."""
    if sys.platform == "linux":
        return sorted(os.sched_getaffinity(0))
    return list(range(os.cpu_count() or 1))


class Pool:
    """A number of slots; `submit` gives the next free one a job.

    Where they fill a machine that is all theirs (not `shared`), each keeps to a core of its own: a
    slot and its worker take turns, and waking each other on one core is cheapest.
    """

    def __init__(
        self, course: Course, isolation: Isolation, size: int, *, shared: bool = False
    ) -> None:
        self.width = size + 1  # one waits, so that no slot does
        available = cores()
        fills = sys.platform == "linux" and size >= len(available) and not shared
        self._cores = Counter(dict.fromkeys(available, 0) if fills else ())
        self._course, self._isolation = course, isolation
        self._nursery: _Nursery | None = None
        self._lock = threading.Lock()
        self._idle: queue.SimpleQueue[_Slot] = queue.SimpleQueue()
        self._busy: set[_Slot] = set()
        self._closed = False
        self._threads = ThreadPoolExecutor(size, "slot")

    @property
    def pids(self) -> list[int]:
        """The nursery, and the slots that are at work."""
        with self._lock:
            nursery = [self._nursery.process.pid] if self._nursery else []
            return nursery + [slot.pid for slot in self._busy]

    def start(self) -> None:
        """Start the nursery; returns at once, it warms up over there meanwhile."""
        with self._lock:
            if self._nursery is None:
                self._nursery = _Nursery(self._course, self._isolation)

    def submit(self, job: jobs.Job) -> Future[jobs.Answer]:
        """Have a job graded; `InternalError` and the like come out of the future."""
        return self._threads.submit(self.grade, job)

    def grade(self, job: jobs.Job) -> jobs.Answer:
        """Grade a job in a slot of its own for as long as it takes."""
        seconds = SLACK + sum(self._course[name].exercise_seconds for name in job.names)
        for _ in range(self.width + PATIENCE):  # with the nursery, every slot that waits has ended
            slot = self._take()
            answer = None
            try:
                answer = slot.grade(job, seconds)
            finally:
                with self._lock:
                    self._busy.discard(slot)
                    if not isinstance(answer, jobs.Graded | jobs.Failed):  # it is gone
                        slot.end()
                        if slot.core is not None:
                            self._cores[slot.core] -= 1
            if answer is not None:
                break
        if answer is None or isinstance(answer, jobs.Lost):
            return answer or jobs.Lost(ENDED)
        self._idle.put(slot)
        if isinstance(answer, jobs.Failed):
            raise answer.raised()
        return answer

    def _take(self) -> _Slot:
        """A free slot, or a new one: never more at work than `size`, as threads are."""
        try:
            slot = self._idle.get_nowait()
            with self._lock:
                self._busy.add(slot)
        except queue.Empty:
            with self._lock:
                slot = self._forked()
                self._busy.add(slot)
        return slot

    def _forked(self) -> _Slot:
        for _ in range(PATIENCE):
            if self._closed:
                break
            if self._nursery is None:
                self._nursery = _Nursery(self._course, self._isolation)
            core = min(self._cores, key=self._cores.__getitem__, default=None)
            try:
                slot = self._nursery.slot(core)
                if core is not None:
                    self._cores[core] += 1
                return slot
            except Gone as gone:
                self._nursery, words = None, str(gone)
        raise InternalError(
            f"the process that grades does not start: {'' if self._closed else words}",
            "grader doctor   says what this machine lacks",
        )

    def close(self) -> None:
        """End everything, at once."""
        self._closed = True
        for slot in list(self._busy):
            slot.end()
        nursery = self._nursery
        if nursery is not None:
            nursery.process.kill()  # whoever waits for it, or for a slot, is let go
        self._threads.shutdown(cancel_futures=True)
        while not self._idle.empty():
            self._idle.get().kill()
        if self._nursery is not None:
            self._nursery.kill()
            self._nursery = None
