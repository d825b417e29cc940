"""Our code on a Dask worker: prepares to grade a course, grades, and releases it.

Every request is the text of an expression. Dask can send a text to any worker, even one without
this package or with another version of it; then only the evaluation fails.
"""

from __future__ import annotations

import io
import zipfile
from typing import Any

import msgspec
from distributed import WorkerPlugin, get_worker

from grader.classroom.workers import messages
from grader.classroom.workers.pool import WorkerPool, refuse_unconfined
from grader.course.course import Course, load_course
from grader.errors import GraderError, InternalError, RequestError
from grader.sandbox.confinement.limits import Isolation
from grader.scratch import ScratchFolder
from grader.submissions.submission import Submission

# Like `grader.grading.reporter.versions`, but without our functions, which a version may lack.
VERSIONS = """{
    'attention-grader': __import__('grader').__version__,
    'python': __import__('platform').python_version(),
    'torch': __import__('importlib.metadata').metadata.version('torch'),
    'pytest': __import__('importlib.metadata').metadata.version('pytest'),
}"""
_HERE = f"__import__({__name__!r}, fromlist=['_'])"
PREPARE = f"{_HERE}.prepare(name, course, chosen, hash, isolation)"
GRADE = f"{_HERE}.grade(name, job)"
RELEASE = f"{_HERE}.release(name)"


class Unprepared(msgspec.Struct, frozen=True, tag="unprepared"):
    """The answer of a worker that has not prepared, such as one that was started again."""


decode = msgspec.msgpack.Decoder(messages.Answer | messages.Failed | Unprepared).decode
_workers: dict[str, list[Any]] = {}  # the plugins of this process, by the name of their run
_released: set[str] = set()  # names of runs that have ended


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


class GraderPlugin(WorkerPlugin):
    """The grading processes of a Dask worker for one run; they end with the worker."""

    def __init__(self, course: bytes, chosen: str, isolation: Isolation, size: int) -> None:
        self._folder = ScratchFolder("course", outlived=True)  # Dask may kill a worker
        try:
            with zipfile.ZipFile(io.BytesIO(course)) as archive:
                archive.extractall(self._folder.path)
            self.course = load_course(self._folder.path, chosen)
            if isolation == "confined":
                refuse_unconfined(self.course)
            self.pool = WorkerPool(self.course, isolation, size, shared=True)
        except BaseException:
            self._folder.close()
            raise

    def teardown(self, worker: Any) -> None:
        """Stop the grading processes and remove the course."""
        self.pool.close()
        self._folder.close()


def prepare(name: str, course: bytes, chosen: str, course_hash: str, isolation: Isolation) -> bytes:
    """Warm up under the `name` of a run; return the answer to a job with a reference solution."""
    worker = get_worker()
    try:
        _forget(name, worker)
        plugin = GraderPlugin(course, chosen, isolation, worker.state.nthreads)
        worker.plugins[name] = plugin  # so that it ends with the worker from now on
        _workers.setdefault(name, []).append(worker)
        if name in _released:
            _forget(name, worker)
        if plugin.course.hash != course_hash:
            raise RequestError("the course has changed while it was sent", "the same command again")
        first = plugin.course.exercises[0]
        right = Submission("trial", {first.name: first.read("solution.py")})
        return messages.encode(plugin.pool.grade(messages.Job(right, (first.name,), seed=0)))
    except Exception as error:
        _forget(name, worker)
        return _failed(error)


def grade(name: str, job: bytes) -> bytes:
    """Return the answer to a job."""
    plugin = get_worker().plugins.get(name)
    if not isinstance(plugin, GraderPlugin):
        return messages.encode(Unprepared())
    try:
        return messages.encode(plugin.pool.grade(messages.decode_job(job)))
    except Exception as error:
        return _failed(error)


def release(name: str) -> None:
    """Stop the grading processes of a run in this process, including those about to start."""
    _released.add(name)
    for worker in _workers.pop(name, ()):
        _forget(name, worker)


def _forget(name: str, worker: Any) -> None:
    if (plugin := worker.plugins.pop(name, None)) is not None:
        plugin.teardown(worker)


def _failed(error: Exception) -> bytes:
    known = error if isinstance(error, GraderError) else InternalError(repr(error))
    return messages.encode(messages.Failed.of(known))
