"""Grading on the workers of a Dask cluster: the same jobs and answers, on other machines.

A task may run twice if its worker is lost with the answer; the ledger keeps the first result.
"""

from __future__ import annotations

import contextlib
import io
import secrets
import zipfile
from concurrent.futures import Future
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from distributed import Client, KilledWorker, WorkerPlugin, get_worker

from grader.classroom.workers import messages
from grader.classroom.workers.pool import WorkerPool, refuse_unconfined
from grader.course.course import Course, load_course
from grader.errors import GraderError, InternalError, RequestError
from grader.grading.reporter import versions
from grader.sandbox.confinement.layers import Isolation

NAME = "attention-grader"
SECONDS = 30  # to reach the scheduler, and for its first worker to come
AHEAD = 2  # jobs for each thread: one is graded, one waits beside it


class Cluster:
    """An engine on the workers of the scheduler at `address`."""

    def __init__(self, course: Course, isolation: Isolation, address: str) -> None:
        self._course, self._isolation, self._address = course, isolation, address
        try:
            self._client = Client(address, timeout=SECONDS, set_as_default=False, name="grader")
        except (OSError, ValueError, TypeError) as error:
            message = f"no Dask scheduler answers at {address}: {error}"
            remedy = "dask scheduler   starts one and says its address"
            raise RequestError(message, remedy) from None
        self._executor = self._client.get_executor(pure=False)
        self._name = f"{NAME}-{course.hash}-{secrets.token_hex(4)}"  # others grade here as well
        self._is_started = False

    def start(self) -> None:
        """Have every worker warm up, now or when it joins; return when the present ones began."""
        if self._is_started:
            return
        self._is_started = True
        try:
            self._client.wait_for_workers(1, timeout=SECONDS)
        except TimeoutError:
            message = f"the scheduler at {self._address} has no workers"
            raise RequestError(message, f"dask worker {self._address}") from None
        plugin = GraderPlugin(self._name, self._course, self._isolation)
        try:
            self._client.register_plugin(plugin)
        except Exception as error:  # raised on a worker, whatever it is
            remedy = "pip install attention-grader   the same version on every worker"
            raise InternalError(f"a worker cannot prepare to grade: {error}", remedy) from error

    @property
    def width(self) -> int:
        """The number of jobs that keep the present workers busy."""
        threads: int = sum(self._client.nthreads().values())
        return max(1, AHEAD * threads)

    def submit(self, job: messages.Job) -> Future[messages.Answer]:
        """Have a job graded by the next free worker."""
        self.start()
        answer: Future[messages.Answer] = Future()
        task = self._executor.submit(_grade, self._name, messages.encode(job))
        task.add_done_callback(lambda done: _resolve(answer, done))
        return answer

    def close(self) -> None:
        """Stop the grading processes of all workers, and disconnect from the cluster."""
        with contextlib.suppress(Exception):  # a cluster that is gone has let go
            if self._is_started:
                self._client.unregister_worker_plugin(self._name)
        self._client.close(timeout=2)


def _resolve(answer: Future[messages.Answer], done: Future[bytes]) -> None:
    if answer.cancelled():
        return
    try:
        found = messages.decode_answer(done.result())
    except KilledWorker as error:
        answer.set_result(messages.Lost(f"{error.allowed_failures + 1} workers ended over it"))
    except BaseException as error:
        answer.set_exception(InternalError(f"the cluster cannot grade: {error}"))
    else:
        if isinstance(found, messages.Failed):
            answer.set_exception(found.to_error())
        else:
            answer.set_result(found)


def packed(course: Course) -> bytes:
    """Return the part of a course that a worker needs, as a zip."""
    if course.suites != "hidden":
        raise RequestError("a cluster grades with hidden suites", "a course with reference/")
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(course.reference.rglob("*")):
            if path.is_file() and "__pycache__" not in path.parts:
                archive.write(path, path.relative_to(course.root))
    return data.getvalue()


# --- on a worker ----------------------------------------------------------------------------------


class GraderPlugin(WorkerPlugin):
    """Gives a Dask worker a pool of grading processes, one for each of its threads."""

    def __init__(self, name: str, course: Course, isolation: Isolation) -> None:
        self.name, self._isolation = name, isolation
        self._course, self._hash, self._versions = packed(course), course.hash, versions()
        self.pool: WorkerPool | None = None
        self.why = "it is not warm yet"
        self._folder: TemporaryDirectory[str] | None = None

    def setup(self, worker: Any) -> None:
        """Unpack the course and begin to warm up."""
        try:
            self._prepare(worker)
        except Exception as error:  # kept for the jobs that come nevertheless
            self.why = str(error)
            raise

    def _prepare(self, worker: Any) -> None:
        if versions() != self._versions:
            raise RuntimeError(f"it has {versions()}, and the coordinator {self._versions}")
        # Dask tidies up the worker's own folder, even after a worker that was killed.
        self._folder = TemporaryDirectory(prefix="course-", dir=worker.local_directory)
        with zipfile.ZipFile(io.BytesIO(self._course)) as archive:
            archive.extractall(self._folder.name)
        course = load_course(Path(self._folder.name))
        if course.hash != self._hash:
            raise RuntimeError("the course has changed while it was sent")
        if self._isolation == "confined":
            refuse_unconfined(course)
        self.pool = WorkerPool(course, self._isolation, worker.state.nthreads, shared=True)
        self.pool.start()

    def teardown(self, worker: Any) -> None:
        """Stop the grading processes."""
        if self.pool is not None:
            self.pool.close()
        if self._folder is not None:
            self._folder.cleanup()


def _grade(name: str, data: bytes) -> bytes:
    worker = get_worker()
    plugin = worker.plugins.get(name)
    try:
        if not isinstance(plugin, GraderPlugin) or plugin.pool is None:
            why = getattr(plugin, "why", "it was not prepared")
            message = f"the worker at {worker.address} cannot grade: {why}"
            raise InternalError(message, "see that worker's log")
        return messages.encode(plugin.pool.grade(messages.decode_job(data)))
    except GraderError as error:
        return messages.encode(messages.Failed.of(error))
