"""A Dask scheduler and its workers as processes, forked from one that has imported Dask already.

Workers come in kinds: most have a pool that answers at once and never imports torch.
"""

from __future__ import annotations

import asyncio
import contextlib
import multiprocessing
import os
import signal
import socket
import sys
import tempfile
import time
from collections.abc import Callable
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

from distributed import Client

SECONDS = 60.0
_FORKS = multiprocessing.get_context("forkserver")
_FORKS.set_forkserver_preload(["distributed", "grader.classroom.workers.cluster_worker"])


class Dask:
    """A scheduler and its workers; they write into `folder`, and have their temporary files there.

    A worker's kind is one of the functions below.
    """

    def __init__(self, folder: Path) -> None:
        self.port = self.free_port()
        self.address = f"tcp://127.0.0.1:{self.port}"
        self.folder = folder
        self._processes: list[BaseProcess] = []
        self.scheduler = self.start_scheduler()

    @staticmethod
    def free_port() -> int:
        """Return the number of a port that nobody uses."""
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            number: int = free.getsockname()[1]
        return number

    def start_scheduler(self) -> BaseProcess:
        """Start a scheduler at the address."""
        return self._start(_schedule, self.port)

    def start_worker(self, kind: Callable[[], None], port: int = 0) -> BaseProcess:
        """Start a worker of one thread that nobody starts again when it ends."""
        return self._start(_work, self.address, kind, port)

    def await_workers(self, count: int) -> None:
        """Wait until so many workers have joined."""
        with Client(self.address, set_as_default=False, timeout=SECONDS) as client:
            client.wait_for_workers(count, timeout=SECONDS)

    def _start(self, target: Callable[..., None], *arguments: object) -> BaseProcess:
        log = self.folder / f"{len(self._processes)}.log"
        process = _FORKS.Process(target=_logged, args=(log, target, *arguments), daemon=False)
        process.start()
        self._processes.append(process)
        return process

    def end(self, process: BaseProcess) -> None:
        """Kill a process and wait for its end."""
        process.kill()
        process.join()

    def close(self) -> None:
        """End all processes."""
        for process in reversed(self._processes):
            self.end(process)


def _logged(log: Path, target: Callable[..., None], *arguments: object) -> None:
    file = os.open(log, os.O_WRONLY | os.O_CREAT, 0o600)
    for number in (1, 2):
        os.dup2(file, number)
    tempfile.tempdir = str(log.parent)
    target(*arguments)


def _schedule(port: int) -> None:
    from distributed import Scheduler

    async def run() -> None:
        async with Scheduler(host="127.0.0.1", port=port, dashboard=False) as scheduler:
            await scheduler.finished()

    asyncio.run(run())


def _work(address: str, kind: Callable[[], None], port: int) -> None:
    from distributed import Worker

    async def run() -> None:
        where = {"host": "127.0.0.1", "port": port, "local_directory": tempfile.gettempdir()}
        async with Worker(address, nthreads=1, dashboard=False, **where) as worker:
            await worker.finished()

    kind()
    asyncio.run(run())


# --- kinds of workers -----------------------------------------------------------------------------


def grades() -> None:
    """A worker as it should be."""


def answers_at_once() -> None:
    """A worker whose pool answers at once, as the file says; one that says `ends` ends it."""
    _replace_pool(_end_if_it_says_so)


def ends_at_once() -> None:
    """A worker that ends before it is warm."""
    _replace_pool(_kill, _kill)


def stops() -> None:
    """A worker that is warm, and stopped by its first job."""
    _replace_pool(lambda job: os.kill(os.getpid(), signal.SIGSTOP))


def hangs() -> None:
    """A worker that is warm and alive, and whose jobs never end."""
    _replace_pool(lambda job: time.sleep(600))


def grades_one_and_hangs() -> None:
    """A worker that hangs with its second job."""
    jobs: list[object] = []
    _replace_pool(lambda job: time.sleep(600) if jobs else jobs.append(job))


def grades_one_and_waits() -> None:
    """A worker that begins with its second job when there is a file `go`."""
    jobs: list[object] = []
    go = Path(tempfile.gettempdir(), "go")

    def wait(job: object) -> None:
        while jobs and not go.exists():
            time.sleep(0.01)
        jobs.append(job)

    _replace_pool(wait)


def breaks_at_once() -> None:
    """A worker whose processes do not start."""
    _replace_pool(_break, _break)


def breaks_later() -> None:
    """A worker that is warm, and whose jobs fail."""
    _replace_pool(_break)


def is_wrong() -> None:
    """A worker on which the reference solution gets no points."""
    _replace_pool(_pass_over, points={"scale": 0})


def lacks_the_package() -> None:
    """A worker that cannot import the grader."""
    for name in list(sys.modules):
        if name.partition(".")[0] == "grader":
            del sys.modules[name]
    sys.modules["grader"] = None  # type: ignore[assignment]


def is_of_another_version() -> None:
    """A worker with another version of the grader."""
    import grader

    grader.__version__ = "0.0"


def is_mute() -> None:
    """A worker that never says which version it has."""
    import platform

    platform.python_version = lambda: str(time.sleep(600))


def _pass_over(job: object) -> None:
    pass


def _end_if_it_says_so(job: Any) -> None:
    if any("ends" in text for text in job.submission.files.values()):
        _kill(job)


def _kill(job: object) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _break(job: object) -> None:
    from grader.errors import InternalError

    raise InternalError("the process that grades does not start: no torch", "grader doctor")


def _replace_pool(
    before: Callable[[Any], object],
    before_trial: Callable[[Any], object] = _pass_over,
    points: dict[str, int] | None = None,
) -> None:
    """Have an instant engine in place of the pool, which calls something before each job."""
    from classroom import Instant

    from grader.classroom.workers import cluster_worker

    class Pool(Instant):
        def __call__(self, course: Any, isolation: Any, size: int, *, shared: bool = False) -> Any:
            mode = course.root.stat().st_mode & 0o777
            Path(tempfile.gettempdir(), "modes").write_text(f"{mode:o}")
            self.points = points or {}
            return super().__call__(course, isolation, size)

        def grade(self, job: Any) -> Any:
            (before_trial if job.submission.name == "trial" else before)(job)
            return self.submit(job).result()

    with contextlib.suppress(AttributeError):
        cluster_worker.WorkerPool = Pool()  # type: ignore[attr-defined,assignment,misc]
