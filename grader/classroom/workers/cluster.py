"""Slots on the workers of a Dask cluster: the same jobs, the same answers, other machines.

Every worker holds as many warm slots as it has threads; a worker plugin brings them the course.
Only the coordinator, which is this side, knows the ledger. A task may run twice, if its worker is
lost with the answer; the ledger takes the first. Security and addresses are Dask's own affair.
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

from grader.classroom.workers import messages as jobs
from grader.course.course import Course, load_course
from grader.errors import GraderError, InternalError, RequestError
from grader.grading.reporter import versions
from grader.sandbox.confinement.layers import Isolation
from grader.classroom.workers.pool import Pool, refuse_unconfined

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
            raise RequestError(
                f"no Dask scheduler answers at {address}: {error}",
                "dask scheduler   starts one and says its address",
            ) from None
        self._executor = self._client.get_executor(pure=False)
        self._name = f"{NAME}-{course.hash}-{secrets.token_hex(4)}"  # others grade here as well
        self._is_started = False

    def start(self) -> None:
        """Have every worker, now and later, warm up its slots; returns when the present ones do."""
        if self._is_started:
            return
        self._is_started = True
        try:
            self._client.wait_for_workers(1, timeout=SECONDS)
        except TimeoutError:
            raise RequestError(
                f"the scheduler at {self._address} has no workers",
                f"dask worker {self._address}",
            ) from None
        plugin = Slots(self._name, self._course, self._isolation)
        try:
            self._client.register_plugin(plugin)
        except Exception as error:  # raised on a worker, whatever it is
            raise InternalError(
                f"a worker cannot prepare to grade: {error}",
                "pip install attention-grader   the same version on every worker",
            ) from error

    @property
    def width(self) -> int:
        """How many jobs keep the workers of this moment busy."""
        threads: int = sum(self._client.nthreads().values())
        return max(1, AHEAD * threads)

    def submit(self, job: jobs.Job) -> Future[jobs.Answer]:
        """Have a job graded by whichever worker is free."""
        self.start()
        answer: Future[jobs.Answer] = Future()
        self._executor.submit(_grade, self._name, jobs.encode(job)).add_done_callback(
            lambda done: _settle(answer, done)
        )
        return answer

    def close(self) -> None:
        """Have the workers let go of their slots, and leave the cluster."""
        with contextlib.suppress(Exception):  # a cluster that is gone has let go
            if self._is_started:
                self._client.unregister_worker_plugin(self._name)
        self._client.close(timeout=2)


def _settle(answer: Future[jobs.Answer], done: Future[bytes]) -> None:
    """Turn what a task gave into an answer."""
    if answer.cancelled():
        return
    try:
        found = jobs.decode_answer(done.result())
    except KilledWorker as error:
        answer.set_result(jobs.Lost(f"{error.allowed_failures + 1} workers ended over it"))
    except BaseException as error:
        answer.set_exception(InternalError(f"the cluster cannot grade: {error}"))
    else:
        if isinstance(found, jobs.Failed):
            answer.set_exception(found.raised())
        else:
            answer.set_result(found)


def packed(course: Course) -> bytes:
    """What a worker needs of a course, as a zip."""
    if course.suites != "hidden":
        raise RequestError("a cluster grades with hidden suites", "a course with reference/")
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(course.reference.rglob("*")):
            if path.is_file() and "__pycache__" not in path.parts:
                archive.write(path, path.relative_to(course.root))
    return data.getvalue()


# --- on a worker ----------------------------------------------------------------------------------


class Slots(WorkerPlugin):
    """A worker's warm slots, as many as it has threads."""

    def __init__(self, name: str, course: Course, isolation: Isolation) -> None:
        self.name, self._isolation = name, isolation
        self._course, self._hash, self._versions = packed(course), course.hash, versions()
        self.pool: Pool | None = None
        self.why = "it is not warm yet"
        self._folder: TemporaryDirectory[str] | None = None

    def setup(self, worker: Any) -> None:
        """Unpack the course and start warming up."""
        try:
            self._prepare(worker)
        except Exception as error:  # kept for the jobs that come all the same
            self.why = str(error)
            raise

    def _prepare(self, worker: Any) -> None:
        if versions() != self._versions:
            raise RuntimeError(f"it has {versions()}, and the coordinator {self._versions}")
        # Beneath the worker's own folder, which Dask tidies up even after a worker that was killed.
        self._folder = TemporaryDirectory(prefix="course-", dir=worker.local_directory)
        with zipfile.ZipFile(io.BytesIO(self._course)) as archive:
            archive.extractall(self._folder.name)
        course = load_course(Path(self._folder.name))
        if course.hash != self._hash:
            raise RuntimeError("the course has changed while it was sent")
        if self._isolation == "confined":
            refuse_unconfined(course)
        self.pool = Pool(course, self._isolation, worker.state.nthreads, shared=True)
        self.pool.start()

    def teardown(self, worker: Any) -> None:
        """End the slots."""
        if self.pool is not None:
            self.pool.close()
        if self._folder is not None:
            self._folder.cleanup()


def _grade(name: str, data: bytes) -> bytes:
    """Grade a job in one of this worker's slots."""
    worker = get_worker()
    plugin = worker.plugins.get(name)
    if not isinstance(plugin, Slots) or plugin.pool is None:
        why = plugin.why if isinstance(plugin, Slots) else "it was not prepared"
        words = f"the worker at {worker.address} cannot grade: {why}"
        return jobs.encode(jobs.Failed(InternalError.exit_code, words, "see that worker's log"))
    try:
        return jobs.encode(plugin.pool.grade(jobs.decode_job(data)))
    except GraderError as error:
        return jobs.encode(jobs.Failed.of(error))
