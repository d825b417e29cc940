"""A class for tests: what it hands in, an engine that answers at once, and what a run leaves."""

from __future__ import annotations

import contextlib
import csv
import json
import re
import sqlite3
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from commandline import Cli

from grader.classroom.workers.messages import Answer, GradedJob, Job, Lost, encode_result
from grader.classroom.workers.pool import WorkerPool
from grader.course.course import Course, load_course
from grader.report import Diagnosis, ExerciseResult, Frame, Outcome
from grader.sandbox.confinement.limits import Isolation

TINY = Path(__file__).parent / "tiny"


class Instant:
    """An engine that answers at once, with as many points as a file says (`# 6 points`).

    A file may also name the mistake that it makes (`# mistake no_scale`). A file that says `lost`
    takes its grading process with it; one that says `breaks` ends the grader. `jobs` are all that
    were handed out; `before` is called with each.
    """

    width = 2

    def __init__(self) -> None:
        self.jobs: list[Job] = []
        self.before: Callable[[Job], None] = lambda job: None
        self.points: dict[str, int] = {}  # of an exercise, whatever its file says
        self.course: Course | None = None

    def __call__(
        self, course: Course, isolation: Isolation, size: int, answers: Path | None = None
    ) -> Instant:
        """In place of `WorkerPool`."""
        self.course = course
        return self

    def start(self) -> None:
        """Nothing to warm up."""

    def close(self) -> None:
        """Nothing to end."""

    def submit(self, job: Job) -> Future[Answer]:
        """The answer, which is there already."""
        self.jobs.append(job)
        future: Future[Answer] = Future()
        try:
            self.before(job)
            future.set_result(self._answer(job))
        except Exception as error:
            future.set_exception(error)
        return future

    def _answer(self, job: Job) -> Answer:
        texts = [job.submission.files[name] for name in job.names]
        if any("lost" in text for text in texts):
            return Lost("the process that graded it ended")
        results = {name: encode_result(self._result(name, job)) for name in job.names}
        return GradedJob(results, ("separate process",), 0.25)

    def _result(self, name: str, job: Job) -> ExerciseResult:
        assert self.course is not None
        exercise = self.course[name]
        said = re.search(r"# (\d+) points", job.submission.files[name])
        points = self.points.get(name, int(said[1]) if said else exercise.points)
        right = "passed" if points == exercise.points else "failed"
        where = Frame(job.submission.paths.get(name, ""), 1, "") if right == "failed" else None
        test = Outcome("test_all", "All of it.", right, points, exercise.points, where=where)
        named = re.search(r"# mistake (\w+)", job.submission.files[name])
        says = f"This is {named[1]}." if named else ""
        shown = (("test_all",),)
        diagnosis = Diagnosis((named[1],), says, "", shown, (says,), (1,)) if named else None
        return ExerciseResult(
            *(name, exercise.title, points, exercise.points, "", (test,)), diagnosis=diagnosis
        )

    @property
    def graded(self) -> list[tuple[str, tuple[str, ...]]]:
        """Of every job whose submission it was, and the exercises."""
        return [(job.submission.name, job.names) for job in self.jobs]


class _Warm:
    """A pool that stays warm for the next test when it is closed."""

    def __init__(self, pool: WorkerPool) -> None:
        self.start, self.submit, self.width = pool.start, pool.submit, pool.width

    def close(self) -> None:
        pass


def busy(pool: WorkerPool) -> list[int]:
    """Return the pids of a pool's grading processes that are busy."""
    with pool._lock:
        return [process.pid for process in pool._busy]


class Pools:
    """Grading processes that tests share: one warm pool for each state of a course."""

    def __init__(self) -> None:
        self._pools: dict[tuple[str, Isolation], WorkerPool] = {}
        self._tiny = load_course(TINY)

    def __call__(
        self, course: Course, isolation: Isolation, size: int, answers: Path | None = None
    ) -> _Warm:
        """In place of `WorkerPool`; one that is warm keeps what it works out."""
        key = course.hash, isolation
        if key not in self._pools:
            lasting = self._tiny if course.hash == self._tiny.hash else course
            self._pools[key] = WorkerPool(lasting, isolation, 2)
        return _Warm(self._pools[key])

    def at_work(self, course: Course) -> list[int]:
        """Return the pids of a course's grading processes that are busy."""
        return busy(self._pools[course.hash, "confined"])

    def template(self, course: Course) -> int:
        """Return the pid of a course's template process."""
        template = self._pools[course.hash, "confined"]._template
        assert template is not None
        return template.process.pid

    def close(self) -> None:
        """End them all."""
        for pool in self._pools.values():
            pool.close()


def hand_in(folder: Path, texts: Mapping[str, str]) -> Path:
    """Write files (`s001/scale.py` and the like) into a folder of submissions."""
    for place, text in texts.items():
        (folder / place).parent.mkdir(parents=True, exist_ok=True)
        (folder / place).write_text(text)
    return folder


def run(cli: Cli, folder: Path, *more: object) -> Any:
    """Grade `folder`/class into `folder`/out, in the tiny course unless another is said."""
    course = [] if "--course" in more else ["--course", TINY]
    return cli("batch", folder / "class", "--out", folder / "out", "--seed", 5, *course, *more)


def marks(out: Path) -> dict[str, str]:
    """What the line in grades.csv of everybody who handed in says they get."""
    lines = grade_lines(out).items()
    return {name: line["points"] for name, line in lines if line["state"] != "missing"}


def grade_lines(out: Path, name: str = "grades.csv") -> dict[str, dict[str, str]]:
    """The lines of a file of marks, by student."""
    with (out / name).open(newline="", encoding="utf-8-sig") as file:
        return {row["submission"]: row for row in csv.DictReader(file)}


def report_of(out: Path, name: str) -> dict[str, Any]:
    """A student's report as JSON."""
    return json.loads((out / "reports" / f"{name}.json").read_text())


def events(log: Path) -> list[dict[str, Any]]:
    """What a `--log` file tells."""
    return [json.loads(line) for line in log.read_text().splitlines()]


def rows(out: Path, query: str, *values: object) -> list[tuple[Any, ...]]:
    """What the ledger in a folder answers."""
    with contextlib.closing(sqlite3.connect(out / "ledger.sqlite")) as connection:
        return connection.execute(query, values).fetchall()


def state(folder: Path) -> dict[str, tuple[int, int]]:
    """Of every file the time of its last change, and which file it is: one written anew differs."""
    return {
        str(path): (path.stat().st_mtime_ns, path.stat().st_ino)
        for path in folder.rglob("*")
        if path.is_file() and not path.name.startswith("ledger.")
    }


@dataclass
class Process:
    """One process of this machine."""

    pid: int
    parent: int
    command: str


def processes() -> dict[int, Process]:
    """Every process there is."""
    found = {}
    for path in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            status = (path / "stat").read_text().rpartition(")")[2].split()
            command = (path / "cmdline").read_bytes().replace(b"\0", b" ").decode()
            if status[0] != "Z":
                found[int(path.name)] = Process(int(path.name), int(status[1]), command)
    return found


def beneath(pid: int) -> Iterator[Process]:
    """A process's children, and theirs."""
    there = processes()
    level = {pid}
    while level:
        level = {one.pid for one in there.values() if one.parent in level}
        yield from (there[each] for each in level)


@contextlib.contextmanager
def short_limit(seconds: float, hangs: Callable[[Any], bool] = lambda _: True) -> Iterator[None]:
    """Give the requests for which `hangs` holds a limit of a few `seconds`.

    Code that hangs on purpose costs its limit, whereas on a busy machine honest code needs a
    generous one. So the courses of the tests allow a minute, and only what hangs gets less.
    """
    # Imports torch, which the process that distributes the tests does not need.
    from grader.sandbox.host.worker import Worker

    unlimited = Worker.request

    def limited(worker: Worker, request: Any, limit: float, watcher: Any = None) -> Any:
        limit = min(limit, seconds) if hangs(request) else limit
        return unlimited(worker, request, limit, watcher)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Worker, "request", limited)
        yield


def running(pid: int) -> bool:
    """Whether a process has not ended, even if nobody has asked yet how it did."""
    try:
        return "(zombie)" not in Path(f"/proc/{pid}/status").read_text()
    except FileNotFoundError:
        return False


def waits(condition: Callable[[], bool], seconds: float = 60) -> bool:
    """Whether a condition holds, sooner or later."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True
