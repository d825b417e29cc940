"""A worker that is ended from outside costs nobody points, but a person is asked."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
import types
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from classroom import (
    events,
    hand_in,
    marks,
    processes,
    report_of,
    waits,
)
from commandline import Cli

from grader.classroom.run import MAX_TRIES
from grader.report import ExerciseResult
from grader.sandbox.host import worker as host_worker
from grader.sandbox.host.worker import Worker
from grader.sandbox.host.zygote import Zygote


def losing(patched: pytest.MonkeyPatch, times: int, how: Callable[[Worker], None]) -> list[int]:
    """Do something to the workers of the first `times` calls of `scale`; return their pids."""
    request, lost = Worker.request, []

    def interrupted(worker: Worker, message: Any, seconds: float, watcher: Any = None) -> Any:
        if getattr(message, "name", "") == "scale" and len(lost) < times:
            lost.append(worker.pid)
            how(worker)
        return request(worker, message, seconds, watcher)

    patched.setattr(Worker, "request", interrupted)
    return lost


def end_with(number: signal.Signals) -> Callable[[Worker], None]:
    """Return what ends a worker from outside, and waits until it has ended."""

    def end(worker: Worker) -> None:
        os.kill(worker.pid, number)
        assert waits(lambda: worker.pid not in processes())

    return end


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="finds its processes in /proc")
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
@pytest.mark.parametrize("times", [1, MAX_TRIES - 1])
def test_a_worker_that_is_ended_from_outside_costs_no_points(
    number: signal.Signals,
    times: int,
    grade_tiny: Callable[[str], ExerciseResult],
    tiny_solution: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    usual = grade_tiny(tiny_solution)
    lost = losing(monkeypatch, times, end_with(number))
    assert grade_tiny(tiny_solution) == usual
    assert (usual.points, len(set(lost))) == (8, times)


def test_a_worker_that_ends_before_its_first_word_costs_no_points(
    grade_tiny: Callable[[str], ExerciseResult],
    tiny_solution: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    start, lost = Zygote.start_worker, []

    def stillborn(zygote: Zygote) -> Any:
        connection, pid = start(zygote)
        if len(lost) < MAX_TRIES - 1:
            os.kill(pid, signal.SIGKILL)
            lost.append(pid)
        return connection, pid

    monkeypatch.setattr(Zygote, "start_worker", stillborn)
    assert grade_tiny(tiny_solution).points == 8
    assert len(lost) == MAX_TRIES - 1


@pytest.mark.slow
def test_an_exercise_that_loses_every_worker_is_given_up_and_the_others_go_on(
    cli: Cli, pair: Path, tmp_path: Path, tiny_solution: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    shift = "def shift(x, by):\n    return x + by\n"
    hand_in(tmp_path / "s001", {"scale.py": tiny_solution, "shift.py": shift})
    losing(monkeypatch, 99, end_with(signal.SIGKILL))
    said = cli("check", tmp_path / "s001", "--course", pair, "--format", "json")
    scale, other = json.loads(said.out)["exercises"]
    assert (said.code, scale["points"], other["points"]) == (1, 0, 2)
    assert scale["advice"].startswith(f"given up after {MAX_TRIES} tries: SIGKILL ended")


def test_time_in_which_the_machine_stood_still_is_nobodys(
    grade_tiny: Callable[[str], ExerciseResult],
    tiny_solution: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = types.SimpleNamespace(passed=0.0, monotonic=lambda: time.monotonic() + clock.passed)

    def stops(worker: Worker) -> None:
        real = worker._socket

        class Stopped:
            def __getattr__(self, name: str) -> Any:
                return getattr(real, name)

            def recv(self, count: int) -> bytes:
                clock.passed += 3600.0
                return real.recv(count)

        worker._socket = Stopped()  # type: ignore[assignment]

    monkeypatch.setattr(host_worker, "time", clock)
    lost = losing(monkeypatch, 1, stops)
    assert grade_tiny(tiny_solution).points == 8
    assert len(lost) == 1


# A suite that kills the worker from outside, where the code adds a million.
FATAL = '''

import os, signal
from grader.sandbox.host.proxies import code_of

@pytest.mark.points(0)
def test_of_luck(student, rng):
    """Has the worker killed, where a million is added."""
    x = rng.randn(2, 3)
    if float(student.scale(x, 1.0).sum() - x.sum()) > 1e6:
        os.kill(code_of(student).connection._transport.pid, signal.SIGKILL)
        student.scale(x, 1.0)
'''


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="only Linux filters system calls")
def test_who_kills_a_worker_fails_and_whose_is_killed_from_outside_is_flagged(
    cli: Cli, tmp_path: Path, pair: Path, tiny_solution: str
) -> None:
    suite = pair / "reference" / "scale" / "test_hidden.py"
    suite.write_text(suite.read_text() + FATAL)
    shift = "def shift(x, by):\n    return x + by\n"
    texts = {
        f"s00{n}/{name}.py": f"{text}# {n}\n"
        for n in (1, 2, 3, 4)
        for name, text in (("scale", tiny_solution), ("shift", shift))
    }
    deadly = "    __import__('signal').raise_signal(9)\n    return x * factor"
    texts["s002/scale.py"] = tiny_solution.replace("    return x * factor", deadly)
    texts["s003/scale.py"] = tiny_solution.replace("x * factor", "x * factor + 1e6")
    hand_in(tmp_path / "class", texts)
    log, out = tmp_path / "log.jsonl", tmp_path / "out"
    command = ("batch", tmp_path / "class", "--out", out, "--course", pair, "--log", log)
    assert cli(*command).code == 1
    # The code of s002 refuses a negative factor before it tries to kill, which earns its points.
    assert marks(out) == {"s001": "10", "s002": "6", "s003": "2", "s004": "10"}
    told = Counter((entry["event"], entry["student"]) for entry in events(log))
    ends = {each: count for each, count in told.items() if each[0] in ("lost", "gave up")}
    assert ends == {("lost", "s003"): MAX_TRIES, ("gave up", "s003"): 1}
    assert report_of(out, "s002")["flags"] == []
    (flag,) = report_of(out, "s003")["flags"]
    assert f"given up after {MAX_TRIES} tries: SIGKILL ended the process that ran the code" in flag
