"""A submission that ends its grading process costs its exercise and nobody else."""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from classroom import (
    TINY,
    Instant,
    Pools,
    beneath,
    events,
    hand_in,
    marks,
    processes,
    report_of,
    waits,
)
from commandline import Cli
from forty import waiting_for

from grader.classroom.run import MAX_TRIES
from grader.classroom.workers.messages import Job
from grader.classroom.workers.pool import WorkerPool
from grader.course.course import load_course
from grader.errors import RequestError
from grader.submissions.submission import Submission


@pytest.mark.slow
def test_a_poisonous_submission_costs_its_exercise_and_nobody_else(
    cli: Cli, instant: Instant, tmp_path: Path, pair: Path
) -> None:
    texts = {f"s00{n}/{name}.py": "" for n in range(1, 6) for name in ("scale", "shift")}
    hand_in(tmp_path / "class", texts | {"s002/scale.py": "# lost"})
    command = ("batch", tmp_path / "class", "--out", tmp_path / "out", "--course", pair)
    log = tmp_path / "log.jsonl"
    said = cli(*command, "--log", log)
    out = tmp_path / "out"
    assert said.code == 1
    assert marks(out) == {"s001": "10", "s002": "2", "s003": "10", "s004": "10", "s005": "10"}
    tried = [names for name, names in instant.graded if name == "s002"]
    alone = [("scale",)] * (MAX_TRIES - 1)
    assert sorted(tried) == [*alone, ("scale", "shift"), ("shift",)]
    report = report_of(out, "s002")
    why = f"given up after {MAX_TRIES} tries: the process that graded it ended"
    why += "; needs review"
    assert report["flags"] == [f"scale could not be graded: {why}"]
    assert report["exercises"][0]["advice"] == why
    assert "s002 (scale): the process that graded it ended; needs review" in said.err
    told = [entry["event"] for entry in events(log) if entry["student"] == "s002"]
    assert told.count("lost") == MAX_TRIES
    assert told.count("gave up") == 1
    assert told[-1] == "published"
    jobs = len(instant.jobs)
    assert cli(*command).code == 1  # and it is not tried for ever
    assert len(instant.jobs) == jobs


@pytest.mark.slow
def test_a_class_of_poison_comes_to_an_end(cli: Cli, instant: Instant, tmp_path: Path) -> None:
    hand_in(tmp_path / "class", {f"s0{n:02}/scale.py": f"# lost {n}" for n in range(20)})
    said = cli("batch", tmp_path / "class", "--out", tmp_path / "out", "--course", TINY)
    assert said.code == 1
    assert len(instant.jobs) == 20 * MAX_TRIES
    assert set(marks(tmp_path / "out").values()) == {"0"}
    assert all(report_of(tmp_path / "out", f"s0{n:02}")["flags"] for n in range(20))


def test_tries_of_a_run_that_was_stopped_do_not_count(
    cli: Cli, instant: Instant, tmp_path: Path
) -> None:
    hand_in(
        tmp_path / "class", {"s001/scale.py": "# lost", "s002/scale.py": "a", "s003/scale.py": "b"}
    )

    def stopping(job: Any) -> None:
        if len(instant.jobs) == 4:
            raise KeyboardInterrupt

    instant.before = stopping
    command = ("batch", tmp_path / "class", "--out", tmp_path / "out", "--course", TINY)
    assert cli(*command).code == 130
    instant.before = lambda job: None
    assert cli(*command).code == 1
    assert marks(tmp_path / "out") == {"s001": "0", "s002": "8", "s003": "8"}


def killing(pools: Pools, log: Path, most: int, go: Path) -> tuple[threading.Thread, list[int]]:
    """Kill the process that grades s009 `most` times, once all others are graded; make `go`."""
    killed: list[int] = []
    course = load_course(TINY)

    def kill() -> None:
        deadline = time.monotonic() + 120
        while len(killed) < most and time.monotonic() < deadline:
            time.sleep(0.005)
            text = log.read_text() if log.exists() else ""
            told = [json.loads(line) for line in text[: text.rfind("\n") + 1].splitlines()]
            done = {entry["student"] for entry in told if entry["event"] == "graded"}
            begun = sum(e["event"] == "started" and e["student"] == "s009" for e in told)
            at_work = pools.at_work(course) if len(done) == 3 and begun > len(killed) else []
            if len(at_work) == 1:
                os.kill(at_work[0], signal.SIGKILL)
                killed.append(at_work[0])
        go.touch()

    thread = threading.Thread(target=kill)
    thread.start()
    return thread, killed


@pytest.mark.slow
@pytest.mark.parametrize("times", [1, MAX_TRIES])
def test_a_slot_that_is_killed_is_replaced_and_in_the_end_a_person_is_asked(
    times: int, cli: Cli, pools: Pools, tmp_path: Path, tiny_solution: str
) -> None:
    texts = {f"s00{n}/scale.py": f"{tiny_solution}# {n}\n" for n in (1, 2, 3)}
    go, log, out = tmp_path / "go", tmp_path / "log.jsonl", tmp_path / "out"
    hangs = f"# {times}\n{waiting_for(go)}raise ValueError('it was graded')\n"
    hand_in(tmp_path / "class", texts | {"s009/scale.py": hangs})
    thread, killed = killing(pools, log, times, go)
    command = ("batch", tmp_path / "class", "--out", out, "--course", TINY, "--seed", 5)
    said = cli(*command, "--log", log)
    thread.join()
    assert said.code == 1
    assert len(set(killed)) == times
    assert marks(out) == {"s001": "8", "s002": "8", "s003": "8", "s009": "0"}
    told = [entry["event"] for entry in events(log) if entry["student"] == "s009"]
    assert told.count("lost") == times
    report = report_of(out, "s009")
    if times == 1:
        assert "graded" in told
        assert report["flags"] == []
        tests = report["exercises"][0]["tests"]
        assert any("it was graded" in test["message"] for test in tests)
        return
    assert told[-2:] == ["gave up", "published"]
    assert f"given up after {MAX_TRIES} tries" in report["flags"][0]
    again = cli("regrade", "--in", out, "--course", TINY, "--again", "s009", "--publish")
    assert again.code == 0
    report = report_of(out, "s009")
    assert (report["flags"], len(report["exercises"][0]["tests"])) == ([], 5)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="finds its processes in /proc")
@pytest.mark.parametrize(
    "what", ["grader.classroom.workers.template", "grader.sandbox.worker.zygote"]
)
def test_a_slot_that_ended_while_it_waited_costs_no_submission_a_try(
    what: str, cli: Cli, pools: Pools, tmp_path: Path, tiny_solution: str
) -> None:
    course = load_course(TINY)
    command = ("batch", tmp_path / "class", "--out", tmp_path / "out", "--course", TINY)
    hand_in(tmp_path / "class", {f"s00{n}/scale.py": f"{tiny_solution}# {n}" for n in (1, 2, 3)})
    cli(*command, "--seed", 5)
    template = pools.template(course)
    children = [one for one in beneath(template) if one.parent == template]
    killed = [one.pid for one in children if what in one.command]
    idle = [one.pid for one in children if "grader.classroom.workers.template" in one.command]
    assert killed
    for pid in killed:  # every grading process, or the zygote that they all need
        os.kill(pid, signal.SIGKILL)
    assert waits(lambda: not {*killed, *idle} & set(processes()))
    log = tmp_path / "log.jsonl"
    hand_in(tmp_path / "class", {f"s00{n}/scale.py": f"{tiny_solution}# {n}" for n in (4, 5, 6)})
    assert cli(*command, "--log", log).code == 0
    assert {entry["event"] for entry in events(log)} == {"started", "graded", "published"}


@pytest.mark.slow
def test_nothing_is_graded_by_a_course_that_has_changed_meanwhile(
    tiny_copy: Path, tiny_solution: str
) -> None:
    course = load_course(tiny_copy)
    assert course.hash
    suite = tiny_copy / "reference" / "scale" / "test_hidden.py"
    suite.write_text(suite.read_text() + "\n# changed\n")
    pool = WorkerPool(course, "process", 1)
    try:
        job = Job(Submission("s001", {"scale": tiny_solution}), ("scale",), 5)
        with pytest.raises(RequestError, match="has changed while it was graded"):
            pool.submit(job).result()
    finally:
        pool.close()
