"""Grading on the workers of a Dask cluster: the same jobs and answers, on other machines.

A task may run twice if its worker is lost with the answer; the ledger keeps the first result.
"""

from __future__ import annotations

import contextlib
import io
import secrets
import threading
import time
import zipfile
from concurrent.futures import CancelledError, Future, InvalidStateError
from typing import Any

import msgspec
from distributed import Client, KilledWorker, WorkerPlugin, get_worker

from grader.classroom.workers import messages
from grader.classroom.workers.pool import WorkerPool, refuse_unconfined
from grader.course.course import Course, load_course
from grader.errors import GraderError, InternalError, RequestError
from grader.grading.reporter import versions
from grader.sandbox.confinement.layers import Isolation
from grader.scratch import ScratchFolder

NAME = "attention-grader"
SECONDS = 30  # to reach the scheduler, and for its first worker to come
EMPTY_SECONDS = 60.0  # without any worker, after which a run ends
CHECK_SECONDS = 2.0
CLOSE_SECONDS = 10.0
SAME_VERSION = "pip install attention-grader   the same version on every worker"
AHEAD = 2  # jobs for each thread: one is graded, one waits beside it


class Unable(msgspec.Struct, frozen=True, tag="unable"):
    """The answer of a worker that cannot grade, which says nothing of the job."""

    worker: str
    why: str


_decode = msgspec.msgpack.Decoder(messages.Answer | messages.Failed | Unable).decode


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
        self._pending: set[Future[messages.Answer]] = set()
        self._unable: set[str] = set()  # addresses of workers that cannot grade
        self._problem = ""  # why the last of them cannot
        self._closed = threading.Event()

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
        except Exception as error:  # of a worker that cannot import this package; others may
            self._problem = f"a worker cannot prepare to grade: {error}"
        threading.Thread(target=self._watch_over, daemon=True).start()

    @property
    def width(self) -> int:
        """The number of jobs that keep the present workers busy."""
        return max(1, AHEAD * sum(self._workers().values()))

    def _workers(self) -> dict[str, int]:
        """Return the threads of each present worker that can grade, by its address."""
        try:
            threads: dict[str, int] = self._client.nthreads()
        except Exception as error:
            raise _gone(self._address, error) from None
        return {worker: count for worker, count in threads.items() if worker not in self._unable}

    def submit(self, job: messages.Job) -> Future[messages.Answer]:
        """Have a job graded by the next free worker."""
        self.start()
        answer: Future[messages.Answer] = Future()
        self._pending.add(answer)
        answer.add_done_callback(self._pending.discard)
        self._hand_over(answer, messages.encode(job))
        return answer

    def _hand_over(self, answer: Future[messages.Answer], job: bytes) -> None:
        """Have a job graded by a worker that is not known to be unable."""
        workers = list(self._workers()) if self._unable else None
        if workers == []:
            _fail(answer, InternalError(f"no worker can grade: {self._problem}", SAME_VERSION))
            return
        task = self._executor.submit(_grade, self._name, job, workers=workers)
        task.add_done_callback(lambda done: self._resolve(answer, job, done))

    def _resolve(self, answer: Future[messages.Answer], job: bytes, done: Future[bytes]) -> None:
        if answer.done():
            return
        try:
            found = _decode(done.result())
            if isinstance(found, Unable):
                self._problem = f"the worker at {found.worker} cannot: {found.why}"
                self._unable.add(found.worker)
                self._hand_over(answer, job)
            elif isinstance(found, messages.Failed):
                _fail(answer, found.to_error())
            else:
                _settle(answer, found)
        except KilledWorker as error:
            _settle(answer, messages.Lost(f"{error.allowed_failures + 1} workers ended over it"))
        except (CancelledError, OSError) as error:
            _fail(answer, _gone(self._address, error))
        except GraderError as error:
            _fail(answer, error)
        except BaseException as error:
            says = self._problem or f"the cluster cannot grade: {error}"
            _fail(answer, InternalError(says, SAME_VERSION))

    def _watch_over(self) -> None:
        """End the run if the scheduler is gone, or has had no workers for a while."""
        seen = time.monotonic()
        while not self._closed.wait(CHECK_SECONDS):
            error: GraderError | None = None
            try:
                if self._workers():
                    seen = time.monotonic()
                elif time.monotonic() - seen > EMPTY_SECONDS:
                    says = f"the scheduler at {self._address} has had no workers for "
                    says += f"{EMPTY_SECONDS:.0f} seconds; what was graded is kept"
                    error = RequestError(says, f"dask worker {self._address}   and go on")
            except GraderError as gone:
                error = gone
            if error is not None and not self._closed.is_set():
                for answer in list(self._pending):
                    _fail(answer, error)

    def close(self) -> None:
        """Stop the grading processes of all workers, and disconnect, within `CLOSE_SECONDS`."""
        self._closed.set()
        closing = threading.Thread(target=self._close, daemon=True)
        closing.start()
        closing.join(CLOSE_SECONDS)  # a worker that cannot import this package never answers

    def _close(self) -> None:
        with contextlib.suppress(Exception):  # a cluster that is gone has let go
            if self._is_started:
                self._client.unregister_worker_plugin(self._name)
        with contextlib.suppress(Exception):
            self._client.close(timeout=2)


def _gone(address: str, error: BaseException) -> RequestError:
    says = f"the scheduler at {address} does not answer any more ({error or 'it has ended'})"
    remedy = "run the same command again once it runs: what was graded is kept"
    return RequestError(says, remedy)


def _settle(answer: Future[messages.Answer], found: messages.Answer) -> None:
    with contextlib.suppress(InvalidStateError):  # it was cancelled, or has failed
        answer.set_result(found)


def _fail(answer: Future[messages.Answer], error: GraderError) -> None:
    with contextlib.suppress(InvalidStateError):
        answer.set_exception(error)


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
        self._folder: ScratchFolder | None = None

    def setup(self, worker: Any) -> None:
        """Unpack the course and begin to warm up."""
        try:
            self._prepare(worker)
        except Exception as error:  # said to the jobs that come, which others can grade
            self.why = str(error)

    def _prepare(self, worker: Any) -> None:
        if versions() != self._versions:
            raise RuntimeError(f"it has {versions()}, and the coordinator {self._versions}")
        self._folder = ScratchFolder("course")  # for its user alone
        with zipfile.ZipFile(io.BytesIO(self._course)) as archive:
            archive.extractall(self._folder.path)
        course = load_course(self._folder.path)
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
            self._folder.close()


def _grade(name: str, data: bytes) -> bytes:
    worker = get_worker()
    plugin = worker.plugins.get(name)
    try:
        if not isinstance(plugin, GraderPlugin) or plugin.pool is None:
            why = getattr(plugin, "why", "it was not prepared")
            return messages.encode(Unable(worker.address, why))
        return messages.encode(plugin.pool.grade(messages.decode_job(data)))
    except GraderError as error:
        return messages.encode(messages.Failed.of(error))
