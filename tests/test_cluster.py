"""A class graded on a cluster gets the marks it gets at home, whatever happens to the workers.

The scheduler and its workers are Dask's own, as processes on loopback.
"""

from __future__ import annotations

import multiprocessing.process
import os
import signal
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import dask_processes as kinds
import pytest
from classroom import TINY, events, hand_in, marks, report_of, waits
from commandline import Cli, Said
from dask_processes import Dask

from grader.classroom.workers import cluster as clusters
from grader.classroom.workers import remote_workers, scheduler, tasks
from grader.course.course import Course

pytestmark = pytest.mark.in_turn

MANY = 24
FEW = {f"s00{n}/scale.py": f"# {n} points" for n in range(1, 7)}
ALL = {f"s00{n}": f"{n}" for n in range(1, 7)}

OnCluster = Callable[..., Said]


@pytest.fixture
def dask(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Dask]:
    """A scheduler without workers, and a coordinator that looks after them often."""
    monkeypatch.setattr(remote_workers, "CHECK_SECONDS", 0.1)
    monkeypatch.setattr(clusters, "CLOSE_SECONDS", 2.0)
    folder = tmp_path / "dask"
    folder.mkdir()
    running = Dask(folder)
    try:
        yield running
    finally:
        running.close()


@pytest.fixture
def on_cluster(cli: Cli, dask: Dask, tmp_path: Path) -> OnCluster:
    """Return a function that grades a class of six on the cluster, or goes on with it."""
    folder, out = hand_in(tmp_path / "class", FEW), tmp_path / "out"
    command = ("batch", folder, "--course", TINY, "--out", out, "--seed", 5, "--quiet")
    more = ("--cluster", dask.address, "--log", tmp_path / "log.jsonl")
    return lambda: cli(*command, *more)


def everybody_has_their_marks(tmp_path: Path, count: int = 0) -> bool:
    """Whether each student was graded once and lost no try, and `count` of them so far."""
    happened = events(tmp_path / "log.jsonl")
    graded = [event["student"] for event in happened if event["event"] == "graded"]
    assert not {event["event"] for event in happened} & {"lost", "gave up"}
    return sorted(graded) == sorted(ALL) and marks(tmp_path / "out") == ALL


def once(condition: Callable[[], bool], act: Callable[[], object]) -> threading.Thread:
    """Act in a thread as soon as a condition holds."""

    def wait_and_act() -> None:
        if waits(condition, kinds.SECONDS):
            act()

    thread = threading.Thread(target=wait_and_act, daemon=True)
    thread.start()
    return thread


def is_stopped(process: multiprocessing.process.BaseProcess) -> bool:
    """Whether a process was stopped."""
    return Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()[0] == "T"


def many_handed_in(folder: Path, solution: str) -> Path:
    """Many submissions, no two with the same bytes; every third is wrong."""
    wrong = solution.replace("return x * factor", "return x * 2.0")
    texts = {n: wrong if n % 3 == 0 else solution for n in range(1, MANY + 1)}
    return hand_in(folder, {f"s{n:03}/scale.py": f"{text}\n# {n}\n" for n, text in texts.items()})


@pytest.mark.slow
def test_the_marks_are_those_of_a_local_run_though_a_worker_dies_half_way(
    dask: Dask, cli: Cli, tmp_path: Path, tiny_solution: str
) -> None:
    folder = many_handed_in(tmp_path / "class", tiny_solution)
    spy = folder / f"s{MANY:03}" / "scale.py"
    call = f"import socket\nsocket.create_connection(('127.0.0.1', {dask.port}), 1)\n"
    spy.write_text(call + spy.read_text())
    log = tmp_path / "log.jsonl"
    workers = [dask.start_worker(kinds.grades) for _ in range(2)]
    dask.await_workers(2)
    half = once(
        lambda: log.exists() and log.read_text().count('"graded"') >= MANY // 2, workers[0].kill
    )
    common = ("batch", folder, "--course", TINY, "--seed", 5, "--quiet")
    away = cli(*common, "--out", tmp_path / "away", "--cluster", dask.address, "--log", log)
    half.join()
    assert away.code == 1, away.err
    home = cli(*common, "--out", tmp_path / "home")
    assert home.code == 1
    assert marks(tmp_path / "away") == marks(tmp_path / "home")
    assert len(marks(tmp_path / "away")) == MANY
    graded = [event["student"] for event in events(log) if event["event"] == "graded"]
    assert len(graded) == len(set(graded)) == MANY
    report = report_of(tmp_path / "away", f"s{MANY:03}")
    assert report["points"] == 0  # it never reached the scheduler
    assert "PermissionError" in report["exercises"][0]["tests"][1]["message"]
    assert "seccomp" in report["confinement"]
    # The worker that was killed left no hidden test behind.
    assert waits(lambda: not list(dask.folder.glob("grader-course-*")))


@pytest.mark.slow
def test_a_submission_that_ends_workers_is_given_up_and_flagged(
    dask: Dask, on_cluster: OnCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tasks, "ENDINGS", 0)
    hand_in(tmp_path / "class", {"s002/scale.py": "# ends the worker"})
    for _ in range(4):
        dask.start_worker(kinds.answers_at_once)
    dask.await_workers(4)
    said = on_cluster()
    assert said.code == 1, said.err
    assert marks(tmp_path / "out") == ALL | {"s002": "0"}
    assert "given up after 3 tries" in report_of(tmp_path / "out", "s002")["flags"][0]


# --- workers that cannot grade --------------------------------------------------------------------

UNABLE = [
    (kinds.lacks_the_package, "cannot import grader", "py3-none-any.whl[cluster]'"),
    (kinds.is_of_another_version, "has attention-grader 0.0, and this machine", "same versions"),
    (kinds.is_mute, "does not answer the question whether it can grade", "its log"),
    (kinds.breaks_at_once, "cannot grade this course: the process that grades", "grader doctor"),
    (kinds.is_wrong, "fails the reference solution", "grader validate"),
    (kinds.breaks_later, "cannot grade any more: the process that grades", "grader doctor"),
]


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "why", "remedy"), UNABLE)
def test_a_worker_that_cannot_grade_is_named_and_costs_nobody_a_try(
    kind: Callable[[], None],
    why: str,
    remedy: str,
    dask: Dask,
    on_cluster: OnCluster,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(remote_workers, "VERSIONS_SECONDS", 3.0)
    monkeypatch.setattr(remote_workers, "UNABLE_SECONDS", 0.3)
    dask.start_worker(kind)
    dask.await_workers(1)
    said = on_cluster()
    assert said.code == 2
    assert said.err.count("it gets no jobs") == 1
    assert f": {why}" in said.err
    assert remedy in said.err
    assert "no worker can grade, and what was graded is kept" in said.err
    # The same command goes on as soon as there is another worker.
    dask.start_worker(kinds.answers_at_once)
    dask.await_workers(2)
    said = on_cluster()
    assert said.code == 1, said.err
    assert everybody_has_their_marks(tmp_path)


@pytest.mark.slow
def test_a_worker_that_joins_late_and_cannot_grade_holds_up_nobody(
    dask: Dask, on_cluster: OnCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dask.start_worker(kinds.grades_one_and_waits)
    said_so: list[str] = []
    monkeypatch.setattr(clusters, "_write_error", said_so.append)
    log = tmp_path / "log.jsonl"
    joining = once(
        lambda: log.exists() and '"graded"' in log.read_text(),
        lambda: dask.start_worker(kinds.lacks_the_package),
    )
    naming = once(lambda: bool(said_so), (dask.folder / "go").touch)
    said = on_cluster()
    joining.join()
    naming.join()
    assert said.code == 1, said.err
    assert "cannot import grader" in said_so[0]
    assert everybody_has_their_marks(tmp_path)


@pytest.mark.slow
def test_a_worker_that_ends_before_it_is_warm_costs_nobody_a_try(
    dask: Dask, on_cluster: OnCluster, tmp_path: Path
) -> None:
    doomed = dask.start_worker(kinds.ends_at_once)
    helping = once(lambda: not doomed.is_alive(), lambda: dask.start_worker(kinds.answers_at_once))
    said = on_cluster()
    helping.join()
    assert said.code == 1, said.err
    assert "ended while it prepared; its log says why" in said.err
    assert everybody_has_their_marks(tmp_path)


@pytest.mark.slow
def test_another_process_at_the_address_of_a_worker_prepares_as_well(
    dask: Dask, on_cluster: OnCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log, port = tmp_path / "log.jsonl", dask.free_port()
    first = dask.start_worker(kinds.grades_one_and_hangs, port)

    def replace() -> None:
        dask.end(first)
        dask.start_worker(kinds.answers_at_once, port)

    replacing = once(lambda: log.exists() and '"graded"' in log.read_text(), replace)
    said = on_cluster()
    replacing.join()
    assert said.code == 1, said.err
    assert everybody_has_their_marks(tmp_path)


# --- silence --------------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_jobs_of_a_silent_worker_go_to_others(
    dask: Dask, on_cluster: OnCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remote_workers, "SILENT_SECONDS", 2.0)
    monkeypatch.setattr(remote_workers, "EMPTY_SECONDS", 0.2)
    silent = dask.start_worker(kinds.stops)
    dask.await_workers(1)
    said_so: list[str] = []
    monkeypatch.setattr(clusters, "_write_error", said_so.append)
    helping = once(lambda: len(said_so) >= 2, lambda: dask.start_worker(kinds.answers_at_once))
    said = on_cluster()
    helping.join()
    assert said.code == 1, said.err
    assert is_stopped(silent)
    assert "no sign of life for 2 seconds; others get its jobs" in said_so[0]
    assert f"no worker of {dask.address} answers; waiting for one" in said_so[1]
    assert len(said_so) == len(set(said_so))
    assert everybody_has_their_marks(tmp_path)


@pytest.mark.slow
def test_the_jobs_of_a_worker_that_lives_and_never_answers_go_to_others(
    dask: Dask, on_cluster: OnCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clusters, "job_seconds", lambda course, job: 0.5)
    dask.start_worker(kinds.hangs)
    dask.await_workers(1)
    dask.start_worker(kinds.answers_at_once)
    said = on_cluster()
    assert said.code == 1, said.err
    assert "does not answer a job; it gets no jobs" in said.err
    assert everybody_has_their_marks(tmp_path)


@pytest.mark.slow
def test_a_cluster_without_workers_says_so_rarely_and_waits_for_one(
    dask: Dask, on_cluster: OnCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remote_workers, "EMPTY_SECONDS", 0.2)
    monkeypatch.setattr(remote_workers, "REPEAT_SECONDS", 0.5)
    said_so: list[str] = []
    monkeypatch.setattr(clusters, "_write_error", said_so.append)
    helping = once(lambda: len(said_so) == 2, lambda: dask.start_worker(kinds.answers_at_once))
    said = on_cluster()
    helping.join()
    assert said.code == 1, said.err
    assert f"dask worker {dask.address}" in said_so[0]
    assert everybody_has_their_marks(tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP])
def test_a_scheduler_that_ends_ends_the_run_and_the_same_command_goes_on(
    number: signal.Signals,
    dask: Dask,
    on_cluster: OnCluster,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(scheduler, "SECONDS", 3)
    log, doomed = tmp_path / "log.jsonl", dask.scheduler
    worker = dask.start_worker(kinds.grades_one_and_hangs)
    assert doomed.pid is not None
    ending = once(
        lambda: log.exists() and '"graded"' in log.read_text(),
        lambda: os.kill(doomed.pid or 0, number),
    )
    said = on_cluster()
    ending.join()
    assert said.code == 2, said.err
    assert f"the scheduler at {dask.address} does not answer any more" in said.err
    assert "what was graded is kept" in said.err
    for process in (doomed, worker):
        dask.end(process)
    dask.start_scheduler()
    dask.start_worker(kinds.answers_at_once)
    said = on_cluster()
    assert said.code == 1, said.err
    assert everybody_has_their_marks(tmp_path)


def test_a_scheduler_that_is_not_there_is_named(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scheduler, "SECONDS", 0.2)
    folder, out = hand_in(tmp_path / "class", FEW), tmp_path / "out"
    away = "tcp://127.0.0.1:9"
    said = cli("batch", folder, "--course", TINY, "--out", out, "--cluster", away)
    assert said.code == 2
    assert f"no Dask scheduler answers at {away}" in said.err


# --- what a worker keeps --------------------------------------------------------------------------


@pytest.mark.slow
def test_a_course_on_a_worker_is_for_its_user_alone_and_removed(
    dask: Dask, on_cluster: OnCluster
) -> None:
    dask.start_worker(kinds.answers_at_once)
    said = on_cluster()
    assert said.code == 1, said.err
    assert (dask.folder / "modes").read_text() == "700"
    assert not list(dask.folder.glob("grader-*"))


def test_closing_waits_for_a_silent_cluster_no_longer_than_it_may(
    monkeypatch: pytest.MonkeyPatch, tiny_course: Course
) -> None:
    never, asked = threading.Event(), threading.Event()

    class Silent:
        status = "running"

        def __init__(self, *arguments: object, **more: object) -> None:
            pass

        def get_executor(self, pure: bool) -> None:
            pass

        def run(self, *arguments: object, **more: object) -> None:
            asked.set()
            never.wait()

    monkeypatch.setattr(scheduler, "Client", Silent)
    monkeypatch.setattr(clusters, "CLOSE_SECONDS", 0.05)
    clusters.Cluster(tiny_course, "confined", "tcp://127.0.0.1:9").close()
    assert asked.is_set()
    never.set()
