"""A process that waits for a core is not to blame: what counts is what it computed."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import time
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path

import pytest
from classroom import busy
from commandline import Grade

from grader.classroom.workers import pool as pools
from grader.classroom.workers.messages import Answer, GradedJob, Job, Lost
from grader.classroom.workers.pool import WorkerPool
from grader.course.course import Course, load_course
from grader.sandbox.host import processor
from grader.submissions.submission import Submission

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="Linux alone says what waits")
SLEEPS = "import time\n\n{}\n\n_scale = scale\ndef scale(x, factor):\n    time.sleep({})\n"
SLEEPS += "    return _scale(x, factor)\n"


class Machine:
    """What the kernel would say of every process: it waits all the time, or it computes."""

    def __init__(self, *, waits: float, computes: float) -> None:
        self._begun, self._waits, self._computes = time.monotonic(), waits, computes

    def waited_by(self, pid: int) -> float:
        return self._waits * (time.monotonic() - self._begun)

    def used_by(self, pid: int) -> tuple[float, float]:
        return self._computes * (time.monotonic() - self._begun), 0.0


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Have processes wait for a core, or compute, for a share of the time."""

    def setting(*, waits: float, computes: float) -> None:
        made = Machine(waits=waits, computes=computes)
        for module in (processor, pools, sys.modules["grader.sandbox.host.worker"]):
            for name in ("waited_by", "used_by"):
                monkeypatch.setattr(module, name, getattr(made, name), raising=False)

    return setting


@pytest.fixture
def hasty(tiny_copy: Path) -> Course:
    """A course whose calls may take a second, and all of them two."""
    settings = tiny_copy / "reference" / "scale" / "exercise.toml"
    limits = {"call_seconds": "1", "exercise_seconds": "2"}
    lines = settings.read_text().splitlines()
    rest = [line for line in lines if line.partition(" ")[0] not in limits]
    said = [f"{name} = {value}" for name, value in limits.items()]
    settings.write_text("\n".join([*said, *rest]) + "\n")
    return load_course(tiny_copy)


def outcomes(grade: Grade, course: Course, text: str) -> set[str]:
    (result,) = grade(course, {"scale": text}).exercises
    return {test.kind for test in result.tests if test.outcome == "failed"}


# --- calls ----------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_call_whose_process_gets_no_core_has_longer(
    grade: Grade, hasty: Course, tiny_solution: str, machine: Callable[..., None]
) -> None:
    slow = SLEEPS.format(tiny_solution, 1.6)
    assert outcomes(grade, hasty, slow) == {"Timeout"}
    machine(waits=0.9, computes=0.05)
    assert outcomes(grade, hasty, slow) == set()


@pytest.mark.slow
@pytest.mark.parametrize(("waits", "computes"), [(0.0, 0.0), (0.9, 3.0)])
def test_a_call_that_sleeps_or_makes_itself_wait_has_not(
    waits: float,
    computes: float,
    grade: Grade,
    hasty: Course,
    tiny_solution: str,
    machine: Callable[..., None],
) -> None:
    machine(waits=waits, computes=computes)
    assert outcomes(grade, hasty, SLEEPS.format(tiny_solution, 1.6)) == {"Timeout"}


# --- jobs -----------------------------------------------------------------------------------------


@pytest.fixture
def short_jobs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a job compute for hardly longer than its exercise may take."""
    monkeypatch.setattr(pools, "SLACK", -1.0)
    monkeypatch.setattr(pools, "BEAT", 0.1)


def graded(course: Course, text: str, meanwhile: Callable[[int], None]) -> Answer:
    """Grade a submission; call `meanwhile` with the process that does it, once it does."""
    pool = WorkerPool(course, "process", 1)
    with contextlib.closing(pool):
        warm = pool.submit(Job(Submission("warm", {"scale": text}), ("scale",), 5))
        assert isinstance(warm.result(), GradedJob | Lost)
        future: Future[Answer] = pool.submit(
            Job(Submission("s001", {"scale": text}), ("scale",), 5)
        )
        while not (found := busy(pool)):
            time.sleep(0.01)
        meanwhile(found[0])
        return future.result()


def stop(pid: int) -> None:
    """Stop a process for longer than its job may take, and let it go on."""
    os.kill(pid, signal.SIGSTOP)
    time.sleep(1.3)
    os.kill(pid, signal.SIGCONT)


@pytest.mark.slow
@pytest.mark.usefixtures("short_jobs")
def test_a_job_whose_process_gets_no_core_is_not_given_up(
    hasty: Course, tiny_solution: str
) -> None:
    answer = graded(hasty, tiny_solution, stop)
    assert isinstance(answer, GradedJob), answer


@pytest.mark.slow
@pytest.mark.usefixtures("short_jobs")
def test_a_job_whose_process_computes_for_too_long_is_given_up(
    hasty: Course, tiny_solution: str, machine: Callable[..., None]
) -> None:
    def compute(pid: int) -> None:
        machine(waits=0.0, computes=100.0)

    answer = graded(hasty, SLEEPS.format(tiny_solution, 0.3), compute)
    assert answer == Lost("it computed for more than 1 seconds")


@pytest.mark.slow
@pytest.mark.usefixtures("short_jobs")
def test_a_job_whose_process_hangs_is_given_up_in_the_end(
    hasty: Course, tiny_solution: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pools, "IDLE", 1.5)
    answer = graded(hasty, tiny_solution, lambda pid: os.kill(pid, signal.SIGSTOP))
    assert isinstance(answer, Lost)
    assert answer.why.startswith("nothing came back within")
