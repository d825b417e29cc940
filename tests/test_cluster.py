"""A class graded on a cluster gets the marks it gets at home, whatever happens to the workers.

The scheduler and its workers are Dask's own, as processes on loopback.
"""

from __future__ import annotations

import contextlib
import csv
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from pathlib import Path

import pytest
from commandline import Cli
from distributed import KilledWorker

from grader.classroom.workers import cluster as clusters
from grader.classroom.workers.messages import Answer, Lost

TINY = Path(__file__).parent / "tiny"
MANY = 80
SECONDS = 60.0
SWITCHES = ("--no-dashboard", "--host", "127.0.0.1")


class Dask:
    """A scheduler and its workers."""

    def __init__(self, folder: Path) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.address = f"tcp://127.0.0.1:{self.port}"
        self._folder = folder
        self._processes: list[subprocess.Popen[bytes]] = []
        self.nannies: list[subprocess.Popen[bytes]] = []

    def start(self, *command: str) -> subprocess.Popen[bytes]:
        # One death is enough to be blamed for it: here the third try is not worth its time.
        environment = os.environ | {"DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES": "0"}
        with (self._folder / f"{len(self._processes)}.log").open("wb") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", "distributed.cli.dask_" + command[0], *command[1:]],
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=self._folder,
                env=environment,
                start_new_session=True,
            )
        self._processes.append(process)
        return process

    def workers(self) -> list[int]:
        """The processes that run tasks, by the nannies that restart them."""
        found = []
        for nanny in self.nannies:
            for task in Path(f"/proc/{nanny.pid}/task").glob("*/children"):
                pids = [int(pid) for pid in task.read_text().split()]
                found += [pid for pid in pids if "spawn_main" in _command(pid)]
        return found

    def close(self) -> None:
        for process in reversed(self._processes):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def _command(pid: int) -> str:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()
    return ""


@pytest.fixture(scope="module")
def dask(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Dask]:
    """A scheduler and two workers of one thread."""
    running = Dask(tmp_path_factory.mktemp("dask"))
    try:
        running.start("scheduler", "--port", str(running.port), *SWITCHES)
        for _ in range(2):
            nanny = running.start("worker", running.address, "--nthreads", "1", *SWITCHES)
            running.nannies.append(nanny)
        yield running
    finally:
        running.close()


def handed_in(folder: Path, solution: str, count: int) -> Path:
    """So many submissions, no two with the same bytes; every third is wrong."""
    for number in range(1, count + 1):
        wrong = solution.replace("return x * factor", "return x * 2.0")
        text = (wrong if number % 3 == 0 else solution) + f"\n# {number}\n"
        student = folder / f"s{number:03}"
        student.mkdir(parents=True)
        (student / "scale.py").write_text(text)
    return folder


def marks(out: Path) -> dict[str, str]:
    with (out / "grades.csv").open(newline="") as file:
        return {row["submission"]: row["points"] for row in csv.DictReader(file)}


@pytest.mark.slow
def test_the_marks_are_those_of_a_local_run_though_a_worker_dies_half_way(
    dask: Dask, cli: Cli, tmp_path: Path, tiny_solution: str
) -> None:
    folder = handed_in(tmp_path / "class", tiny_solution, MANY)
    spy = folder / f"s{MANY:03}" / "scale.py"
    call = f"import socket\nsocket.create_connection(('127.0.0.1', {dask.port}), 1)\n"
    spy.write_text(call + spy.read_text())
    log = tmp_path / "log.jsonl"
    killed = threading.Thread(target=_kill_half_way, args=(log, dask.workers))
    killed.start()
    common = ("batch", folder, "--course", TINY, "--seed", 5, "--quiet")
    away = cli(*common, "--out", tmp_path / "away", "--cluster", dask.address, "--log", log)
    killed.join()
    assert away.code == 1, away.err
    home = cli(*common, "--out", tmp_path / "home")
    assert home.code == 1
    assert marks(tmp_path / "away") == marks(tmp_path / "home")
    assert len(marks(tmp_path / "away")) == MANY
    events = [json.loads(line) for line in log.read_text().splitlines()]
    graded = [event["student"] for event in events if event["event"] == "graded"]
    assert len(graded) == len(set(graded)) == MANY
    report = json.loads((tmp_path / "away" / "reports" / f"s{MANY:03}.json").read_text())
    assert report["points"] == 0  # it never reached the scheduler
    assert "PermissionError" in report["exercises"][0]["tests"][1]["message"]
    assert "seccomp" in report["confinement"]


def _kill_half_way(log: Path, workers: Callable[[], list[int]]) -> None:
    """SIGKILL one of the workers when half of the class is graded."""
    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        if log.exists() and log.read_text().count('"graded"') >= MANY // 2:
            os.kill(workers()[0], signal.SIGKILL)
            return
        time.sleep(0.01)


# A suite that ends the Dask worker that runs it: grading process, template process, worker.
DEADLY = '''

import os, signal
from pathlib import Path

def _parent(pid):
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])

@pytest.mark.points(0)
def test_of_the_cluster(student, rng):
    """Ends the worker, where the factor is 13."""
    x = rng.randn(2, 3)
    if float(student.scale(x, 1.0).sum() - x.sum()) > 1e6:
        os.kill(_parent(_parent(os.getpid())), signal.SIGKILL)
'''


@pytest.mark.slow
def test_a_submission_that_ends_workers_is_given_up_and_flagged(
    dask: Dask, cli: Cli, tmp_path: Path, tiny_solution: str
) -> None:
    course = tmp_path / "course"
    shutil.copytree(TINY, course, ignore=shutil.ignore_patterns("__pycache__"))
    suite = course / "reference" / "scale" / "test_hidden.py"
    suite.write_text(suite.read_text() + DEADLY)
    folder = handed_in(tmp_path / "class", tiny_solution, 4)
    deadly = tiny_solution.replace("return x * factor", "return x * factor + 1e6")
    (folder / "s002" / "scale.py").write_text(deadly)
    out = tmp_path / "out"
    command = ("batch", folder, "--course", course, "--out", out, "--seed", 5)
    said = cli(*command, "--cluster", dask.address)
    assert said.code == 1, said.err
    assert marks(out) | {"s002": "0"} == marks(out)
    assert {name for name, points in marks(out).items() if points == "8"} == {"s001", "s004"}
    report = json.loads((out / "reports" / "s002.json").read_text())
    assert "given up after 3 tries" in report["flags"][0]


def test_a_scheduler_that_is_not_there_is_named(
    cli: Cli, tmp_path: Path, tiny_solution: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clusters, "SECONDS", 0.2)
    folder = handed_in(tmp_path / "class", tiny_solution, 1)
    said = cli(
        "batch",
        folder,
        "--course",
        TINY,
        "--out",
        tmp_path / "out",
        "--cluster",
        "tcp://127.0.0.1:9",
    )
    assert said.code == 2
    assert "no Dask scheduler answers at tcp://127.0.0.1:9" in said.err


def test_a_task_whose_workers_all_ended_counts_as_lost() -> None:
    done: Future[bytes] = Future()
    answer: Future[Answer] = Future()
    done.set_exception(KilledWorker("grade", None, allowed_failures=3))
    clusters.Cluster._resolve(object.__new__(clusters.Cluster), answer, b"", done)
    assert answer.result() == Lost("4 workers ended over it")


def test_closing_waits_for_a_silent_cluster_no_longer_than_it_may(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(clusters, "CLOSE_SECONDS", 0.05)
    never, asked = threading.Event(), threading.Event()

    class Silent:
        def unregister_worker_plugin(self, name: str) -> None:
            asked.set()
            never.wait()

        close = print

    cluster = object.__new__(clusters.Cluster)
    cluster._client, cluster._closed = Silent(), threading.Event()  # type: ignore[assignment]
    cluster._is_started, cluster._name = True, "n"
    cluster.close()
    assert asked.is_set()
    never.set()
