"""Whatever stops a run, nothing is lost: the same command goes on, to the same marks."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from classroom import (
    TINY,
    Instant,
    events,
    hand_in,
    marks,
    rows,
    running,
    waits,
)
from commandline import Cli
from forty import STUDENTS, batch, check_consistent, waiting_for
from refusing_disk import failing
from warm import warm_popen

from grader.classroom import ledger as ledgers
from grader.classroom import publishing
from grader.errors import InternalError
from grader.stopping import SIGNALS, stop_on_signals, whole_step

ROOT = Path(__file__).parent.parent


@pytest.mark.slow
@pytest.mark.parametrize("at", [1, 2, 3, 17, 40])
def test_after_ctrl_c_what_was_graded_is_there_and_the_same_command_goes_on(
    at: int, cli: Cli, instant: Instant, forty: Path, whole: bytes
) -> None:
    def stopping(job: Any) -> None:
        if len(instant.jobs) == at:
            raise KeyboardInterrupt

    instant.before = stopping
    said = batch(cli, forty)
    assert (said.code, said.err.splitlines()[-1]) == (130, "grader: stopped")
    out = forty.parent / "out"
    graded = [name for (name,) in rows(out, "SELECT student FROM published ORDER BY student")]
    assert graded == STUDENTS[: max(0, at - 3)]
    assert f"{len(graded)} of 40 graded, and kept" in said.err
    assert "to go on: grader batch --resume --out" in said.err
    assert list(marks(out)) == graded
    for name in graded:
        check_consistent(out, name)
    instant.before = lambda job: None
    assert batch(cli, forty).code == 1
    assert (out / "grades.csv").read_bytes() == whole
    assert rows(out, "SELECT count(*) FROM results") == [(40,)]
    assert len(instant.jobs) - at <= 40 - len(graded)


@pytest.fixture
def signals() -> Iterator[None]:
    """Signals that stop this process as they stop `grader`."""
    if threading.current_thread() is not threading.main_thread():
        pytest.skip("only the main thread of a process handles signals")
    known = {number: signal.getsignal(number) for number in SIGNALS}
    for number in SIGNALS:  # also one that these tests were started to ignore
        signal.signal(number, signal.SIG_DFL)
    stop_on_signals()
    yield
    for number, handler in known.items():
        signal.signal(number, handler)


@pytest.mark.slow
@pytest.mark.usefixtures("signals")
@pytest.mark.parametrize("how", SIGNALS)
def test_a_stored_result_is_told_though_a_signal_comes_in_between(
    how: signal.Signals,
    cli: Cli,
    instant: Instant,
    forty: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    out, log = forty.parent / "out", forty.parent / "log.jsonl"
    record = ledgers.Ledger.record

    def interrupted(ledger: ledgers.Ledger, *values: Any) -> None:
        record(ledger, *values)
        if rows(out, "SELECT count(*) FROM results") == [(7,)]:
            os.kill(os.getpid(), how)

    with monkeypatch.context() as patched:
        patched.setattr(ledgers.Ledger, "record", interrupted)
        assert batch(cli, forty, "out", "--log", log).code == 130
    assert rows(out, "SELECT count(*) FROM results") == [(7,)]
    told = [entry["student"] for entry in events(log) if entry["event"] == "graded"]
    assert told == list(marks(out)) == STUDENTS[:7]


@pytest.mark.usefixtures("signals")
def test_a_signal_that_is_ignored_from_the_start_stops_nothing() -> None:
    signal.signal(signal.SIGHUP, signal.SIG_IGN)  # as `nohup` does
    stop_on_signals()
    os.kill(os.getpid(), signal.SIGHUP)
    with pytest.raises(KeyboardInterrupt):
        os.kill(os.getpid(), signal.SIGTERM)


@pytest.mark.usefixtures("signals")
def test_a_second_ctrl_c_does_not_wait_for_the_step_that_hangs() -> None:
    told = []

    def hang() -> None:
        with whole_step():
            os.kill(os.getpid(), signal.SIGINT)
            told.append("goes on")
            os.kill(os.getpid(), signal.SIGINT)
            told.append("never")

    with pytest.raises(KeyboardInterrupt):
        hang()
    assert told == ["goes on"]


@pytest.mark.slow
def test_ctrl_c_while_a_report_is_written_loses_nothing(
    cli: Cli, instant: Instant, forty: Path, whole: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        once = iter([True])
        failing(
            patched,
            KeyboardInterrupt(),
            lambda path: path.name == "s007.html" and next(once, False),
        )
        assert batch(cli, forty).code == 130
    out = forty.parent / "out"
    assert list(marks(out))[-1] == "s007"
    check_consistent(out, "s007")
    assert not [path for path in out.rglob(".*") if path.is_file()]
    assert batch(cli, forty).code == 1
    assert (out / "grades.csv").read_bytes() == whole
    check_consistent(out, "s007")


@pytest.mark.slow
def test_what_is_told_of_the_class_is_current_after_any_two_stops(
    cli: Cli, instant: Instant, forty: Path, whole: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stopping(job: Any) -> None:
        if len(instant.jobs) == 9:
            raise KeyboardInterrupt

    instant.before = stopping
    batch(cli, forty)  # leaves a short grades.csv
    instant.before = lambda job: None
    with monkeypatch.context() as patched:  # and everybody's report, but nothing of the class
        patched.setattr(publishing.Publisher, "finish", lambda self: None)
        batch(cli, forty)
    batch(cli, forty)
    assert (forty.parent / "out" / "grades.csv").read_bytes() == whole


@pytest.mark.slow
def test_half_a_page_of_a_run_that_was_killed_is_cleared_away(
    cli: Cli, instant: Instant, forty: Path
) -> None:
    out = forty.parent / "out"
    (killed := subprocess.Popen([sys.executable, "-c", ""])).wait()
    draft = f".grader-{killed.pid}-{'0123456789abcdef'}"
    pages = {f"reports/{draft}.html": "<html", f"{draft}.csv": "subm"}
    hand_in(out, {**pages, "reports/mine.txt": "keep"})
    batch(cli, forty)
    assert [path.name for path in out.rglob(".*") if path.is_file()] == []
    assert (out / "reports" / "mine.txt").read_text() == "keep"


@pytest.mark.slow
def test_when_the_grader_itself_fails_what_was_graded_is_there(
    cli: Cli, instant: Instant, forty: Path, whole: bytes
) -> None:
    def failing_at(job: Any) -> None:
        if job.submission.name == "s020":
            raise InternalError("the process that grades does not start: no memory", "free some")

    instant.before = failing_at
    said = batch(cli, forty)
    assert said.code == 3
    assert "the process that grades does not start: no memory" in said.err
    assert "try: free some" in said.err
    out = forty.parent / "out"
    assert len(marks(out)) >= 18
    instant.before = lambda job: None
    assert batch(cli, forty).code == 1
    assert (out / "grades.csv").read_bytes() == whole
    assert len(rows(out, "SELECT * FROM results WHERE run = 2")) == 40 - len(
        rows(out, "SELECT * FROM results WHERE run = 1")
    )


@pytest.mark.slow
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_real_signal_ends_the_run_at_once_and_its_processes(
    how: signal.Signals, cli: Cli, tmp_path: Path, tiny_solution: str
) -> None:
    students = [f"s0{n:02}" for n in range(1, 31)]
    go, log, out, scratch = (tmp_path / name for name in ("go", "log.jsonl", "out", "scratch"))
    scratch.mkdir()
    hangs = {name: waiting_for(go) for name in students[10:]}
    texts = {f"{s}/scale.py": f"{hangs.get(s, '')}{tiny_solution}# {s}\n" for s in students}
    hand_in(tmp_path / "class", texts)
    command = ["batch", str(tmp_path / "class"), "--out", str(out), "--course", str(TINY)]
    run = warm_popen()(
        [sys.executable, "-m", "grader", *command, "--seed", "5", "--log", str(log)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "TMPDIR": str(scratch)},
    )
    while not (log.exists() and log.read_text().count('"graded"') >= 3):
        assert run.poll() is None
        time.sleep(0.01)
    run.send_signal(how)
    _, err = run.communicate(timeout=60)
    assert (run.returncode, err.splitlines()[-1]) == (130, "grader: stopped")
    graded = marks(out)
    assert 3 <= len(graded) <= 10
    for name in graded:
        check_consistent(out, name)
    assert waits(lambda: not any(scratch.iterdir()))  # the workers' folders go with them
    go.touch()
    assert cli(*command, "--seed", 5, "--log", log).code == 0
    assert set(marks(out)) == set(students)
    told = [entry["student"] for entry in events(log) if entry["event"] == "graded"]
    assert sorted(told) == students


@pytest.mark.slow
def test_a_signal_to_all_processes_of_a_proof_ends_them_all(tmp_path: Path) -> None:
    script = tmp_path / "proof.py"
    script.write_text("""
import os, time
from grader.commands.cores import on_all_cores
from grader.stopping import stop_on_signals

def pid_then_sleep(seconds):
    with open("pids", "a") as file:
        file.write(f"{os.getpid()}\\n")
    time.sleep(seconds)

if __name__ == "__main__":
    stop_on_signals()
    with on_all_cores(2) as mapped:  # of which one process waits for more to do
        for _ in mapped(pid_then_sleep, [0, 600]):
            print("one", flush=True)
""")
    run = subprocess.Popen(
        [sys.executable, script.name],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert run.stdout is not None
    assert run.stdout.readline() == "one\n"
    pids = tmp_path / "pids"
    assert waits(lambda: pids.read_text().count("\n") == 2)
    os.killpg(run.pid, signal.SIGTERM)
    _, err = run.communicate(timeout=60)
    assert "KeyboardInterrupt" in err
    assert not any(Path("/proc", pid).exists() for pid in pids.read_text().split())


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="only there are processes forked warm")
def test_the_server_of_warm_processes_ends_with_whoever_started_it(tmp_path: Path) -> None:
    script = """
import os, subprocess, sys, time
import warm
warm.run_warm([sys.executable, "-m", "grader", "--version"])
if os.fork() == 0:  # which holds the server's socket
    os.close(1)
    time.sleep(600)
print(open(f"/proc/{os.getpid()}/task/{os.getpid()}/children").read(), flush=True)
time.sleep(600)
"""
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "tests")}
    run = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, env=environment)
    assert run.stdout is not None
    children = [Path("/proc", pid) for pid in run.stdout.readline().decode().split()]
    assert len(children) == 2
    fork, server = sorted(children, key=lambda one: b"warm.py" in (one / "cmdline").read_bytes())
    run.kill()
    run.communicate()
    try:
        assert fork.exists()
        assert waits(lambda: not running(int(server.name)))
    finally:
        os.kill(int(fork.name), signal.SIGKILL)
