"""Whatever stops a run, nothing is lost: the same command goes on, to the same marks."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import signal
import sqlite3
import stat
import subprocess
import sys
import tempfile
import threading
import time
import types
from collections import Counter
from collections.abc import Callable, Iterator
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
    rows,
    waits,
)
from commandline import Cli

from grader.classroom import ledger as ledgers
from grader.classroom import publishing, storage
from grader.classroom.run import MAX_TRIES
from grader.classroom.workers.messages import Job
from grader.classroom.workers.pool import WorkerPool
from grader.course.course import load_course
from grader.errors import InternalError, RequestError
from grader.files import Draft
from grader.report import ExerciseResult
from grader.sandbox.host import worker as host_worker
from grader.sandbox.host.worker import Worker
from grader.sandbox.host.zygote import Zygote
from grader.stopping import SIGNALS, stop_on_signals, whole_step
from grader.submissions.reader.host import ReaderTemplate
from grader.submissions.submission import Submission

NOBODY = 65534
STUDENTS = [f"s0{n:02}" for n in range(1, 41)]
AGAIN = "what was graded is kept; fix that, and run the same command again"


@pytest.fixture
def handed_in(tmp_path: Path) -> Path:
    """Forty submissions, no two alike, each with a good deal of text."""
    more = "x = 1  # padding\n" * 50
    texts = {f"{name}/scale.py": f"# {n % 9} points\n# {name}\n" for n, name in enumerate(STUDENTS)}
    return hand_in(tmp_path / "class", {place: text + more for place, text in texts.items()})


@pytest.fixture
def whole(cli: Cli, instant: Instant, handed_in: Path) -> bytes:
    """The marks of a run that nothing stops."""
    batch(cli, handed_in, "whole")
    instant.jobs.clear()
    return (handed_in.parent / "whole" / "grades.csv").read_bytes()


def batch(cli: Cli, handed_in: Path, out: str = "out", *more: object) -> Any:
    place = handed_in.parent / out
    return cli("batch", handed_in, "--out", place, "--course", TINY, "--seed", 5, *more)


def check_consistent(out: Path, name: str) -> None:
    """Of a student whose line is in grades.csv there is a whole report."""
    report = report_of(out, name)
    assert f"{report['mark']['points']:g}" == marks(out)[name]
    assert (out / "reports" / f"{name}.html").read_text().rstrip().endswith("</html>")


# --- stopped --------------------------------------------------------------------------------------


@pytest.mark.parametrize("at", [1, 2, 3, 17, 40])
def test_after_ctrl_c_what_was_graded_is_there_and_the_same_command_goes_on(
    at: int, cli: Cli, instant: Instant, handed_in: Path, whole: bytes
) -> None:
    def stopping(job: Any) -> None:
        if len(instant.jobs) == at:
            raise KeyboardInterrupt

    instant.before = stopping
    said = batch(cli, handed_in)
    assert (said.code, said.err.splitlines()[-1]) == (130, "grader: stopped")
    out = handed_in.parent / "out"
    graded = [name for (name,) in rows(out, "SELECT student FROM published ORDER BY student")]
    assert graded == STUDENTS[: max(0, at - 3)]
    assert list(marks(out)) == graded
    for name in graded:
        check_consistent(out, name)
    instant.before = lambda job: None
    assert batch(cli, handed_in).code == 1
    assert (out / "grades.csv").read_bytes() == whole
    assert rows(out, "SELECT count(*) FROM results") == [(40,)]
    assert len(instant.jobs) - at <= 40 - len(graded)


@pytest.fixture
def signals() -> Iterator[None]:
    """Signals that stop this process as they stop `grader`."""
    if threading.current_thread() is not threading.main_thread():
        pytest.skip("only the main thread of a process handles signals")
    known = {number: signal.getsignal(number) for number in SIGNALS}
    stop_on_signals()
    yield
    for number, handler in known.items():
        signal.signal(number, handler)


@pytest.mark.usefixtures("signals")
@pytest.mark.parametrize("how", SIGNALS)
def test_a_stored_result_is_told_though_a_signal_comes_in_between(
    how: signal.Signals,
    cli: Cli,
    instant: Instant,
    handed_in: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    out, log = handed_in.parent / "out", handed_in.parent / "log.jsonl"
    record = ledgers.Ledger.record

    def interrupted(ledger: ledgers.Ledger, *values: Any) -> None:
        record(ledger, *values)
        if rows(out, "SELECT count(*) FROM results") == [(7,)]:
            os.kill(os.getpid(), how)

    with monkeypatch.context() as patched:
        patched.setattr(ledgers.Ledger, "record", interrupted)
        assert batch(cli, handed_in, "out", "--log", log).code == 130
    assert rows(out, "SELECT count(*) FROM results") == [(7,)]
    told = [entry["student"] for entry in events(log) if entry["event"] == "graded"]
    assert told == list(marks(out)) == STUDENTS[:7]


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


def test_folders_of_runs_that_were_killed_are_removed_at_the_next_start(tmp_path: Path) -> None:
    make = "from grader.scratch import ScratchFolder\nfolder = ScratchFolder('zip')\n"
    fill = "(folder.path / 'a').mkdir()\n(folder.path / 'a' / 'b.txt').write_text('b')\n"
    close = "(folder.path / 'a').chmod(0)\n"
    command = [sys.executable, "-c"]
    variables = {**os.environ, "TMPDIR": str(tmp_path)}
    lives = subprocess.Popen(
        [*command, f"{make}print(folder.path, flush=True)\ninput()"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=variables,
    )
    assert lives.stdout is not None
    owned = Path(lives.stdout.readline().decode().strip())
    killed = f"{make}{fill}{close}import os\nos.kill(os.getpid(), 9)"
    assert subprocess.run([*command, killed], env=variables, check=False).returncode == -9
    others = [tmp_path / name for name in ("grader-notes", "grader-zip-mine", "other")]
    for folder in others:
        folder.mkdir()
    (tmp_path / f"grader-zip-{'0' * 16}").symlink_to(others[0])
    assert len(list(tmp_path.iterdir())) == 6
    subprocess.run([*command, f"{make}folder.close()"], env=variables, check=True)
    left = {path.name for path in tmp_path.iterdir() if not path.is_symlink()}
    assert left == {owned.name, *(folder.name for folder in others)}
    lives.kill()
    lives.communicate()
    subprocess.run([*command, f"{make}folder.close()"], env=variables, check=True)
    assert not owned.exists()


def test_ctrl_c_while_a_report_is_written_loses_nothing(
    cli: Cli, instant: Instant, handed_in: Path, whole: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        once = iter([True])
        failing(
            patched,
            KeyboardInterrupt(),
            lambda path: path.name == "s007.html" and next(once, False),
        )
        assert batch(cli, handed_in).code == 130
    out = handed_in.parent / "out"
    assert list(marks(out))[-1] == "s007"
    check_consistent(out, "s007")
    assert not [path for path in out.rglob(".*") if path.is_file()]
    assert batch(cli, handed_in).code == 1
    assert (out / "grades.csv").read_bytes() == whole
    check_consistent(out, "s007")


def test_what_is_told_of_the_class_is_current_after_any_two_stops(
    cli: Cli, instant: Instant, handed_in: Path, whole: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stopping(job: Any) -> None:
        if len(instant.jobs) == 9:
            raise KeyboardInterrupt

    instant.before = stopping
    batch(cli, handed_in)  # leaves a short grades.csv
    instant.before = lambda job: None
    with monkeypatch.context() as patched:  # and everybody's report, but nothing of the class
        patched.setattr(publishing.Publisher, "finish", lambda self: None)
        batch(cli, handed_in)
    batch(cli, handed_in)
    assert (handed_in.parent / "out" / "grades.csv").read_bytes() == whole


def test_half_a_page_of_a_run_that_was_killed_is_cleared_away(
    cli: Cli, instant: Instant, handed_in: Path
) -> None:
    out = handed_in.parent / "out"
    hand_in(out, {"reports/.4711.html": "<html", ".4711.csv": "subm", "reports/mine.txt": "keep"})
    batch(cli, handed_in)
    assert [path.name for path in out.rglob(".*") if path.is_file()] == []
    assert (out / "reports" / "mine.txt").read_text() == "keep"


def test_when_the_grader_itself_fails_what_was_graded_is_there(
    cli: Cli, instant: Instant, handed_in: Path, whole: bytes
) -> None:
    def failing_at(job: Any) -> None:
        if job.submission.name == "s020":
            raise InternalError("the process that grades does not start: no memory", "free some")

    instant.before = failing_at
    said = batch(cli, handed_in)
    assert said.code == 3
    assert "the process that grades does not start: no memory" in said.err
    assert "try: free some" in said.err
    out = handed_in.parent / "out"
    assert len(marks(out)) >= 18
    instant.before = lambda job: None
    assert batch(cli, handed_in).code == 1
    assert (out / "grades.csv").read_bytes() == whole
    assert len(rows(out, "SELECT * FROM results WHERE run = 2")) == 40 - len(
        rows(out, "SELECT * FROM results WHERE run = 1")
    )


# --- no room --------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("room", [0, 1, 8, 12])
def test_a_full_disk_under_the_ledger_loses_nothing(
    room: int,
    cli: Cli,
    instant: Instant,
    handed_in: Path,
    whole: bytes,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    out = handed_in.parent / "out"
    real = storage.connect

    def full(path: Path) -> sqlite3.Connection:
        connection = real(path)
        (pages,) = connection.execute("PRAGMA page_count").fetchone()
        connection.execute(f"PRAGMA max_page_count = {pages + room}")
        return connection

    with monkeypatch.context() as patched:
        patched.setattr(ledgers, "connect", full)
        said = batch(cli, handed_in)
    assert said.code == 2
    assert f"the ledger in {out}: database or disk is full" in said.err
    assert AGAIN in said.err
    kept = rows(out, "SELECT count(*) FROM results")[0][0]
    assert kept < 40
    assert (room < 8) or kept > 0
    for name in marks(out) if kept else ():
        assert rows(out, "SELECT 1 FROM results JOIN attempts USING (hash) WHERE student = ?", name)
    assert batch(cli, handed_in).code == 1
    assert (out / "grades.csv").read_bytes() == whole
    assert rows(out, "SELECT count(*) FROM results") == [(40,)]
    assert rows(out, "PRAGMA integrity_check") == [("ok",)]


def failing(
    patched: pytest.MonkeyPatch, error: BaseException, when: Callable[[Path], bool]
) -> None:
    """Have the disk refuse the end of some pages."""
    real = publishing.writing_whole

    @contextlib.contextmanager
    def writing_whole(path: Path, later: list[Draft] | None = None) -> Iterator[Any]:
        with real(path, later) as file:
            yield file
            if when(path):
                raise error

    patched.setattr(publishing, "writing_whole", writing_whole)


@pytest.mark.slow
@pytest.mark.parametrize("page", ["s011.html", "s011.json", "s040.md"])
def test_a_full_disk_under_a_report_loses_nothing(
    page: str,
    cli: Cli,
    instant: Instant,
    handed_in: Path,
    whole: bytes,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    out = handed_in.parent / "out"
    with monkeypatch.context() as patched:
        failing(patched, OSError(errno.ENOSPC, "No space left"), lambda path: path.name == page)
        for _ in range(2):  # it says so each time, and grades nothing twice
            said = batch(cli, handed_in)
            assert said.code == 2
            assert f"cannot write {out / 'reports' / page}: No space left" in said.err
            assert AGAIN in said.err
    assert not (out / "reports" / page).exists()
    assert not [path for path in out.rglob(".*") if path.is_file()]
    assert batch(cli, handed_in).code == 1
    assert (out / "grades.csv").read_bytes() == whole
    for name in STUDENTS:
        check_consistent(out, name)


@pytest.mark.slow
@pytest.mark.parametrize("page", ["grades.csv", "results.jsonl", "index.html"])
def test_a_full_disk_under_the_pages_of_the_class_loses_nothing(
    page: str,
    cli: Cli,
    instant: Instant,
    handed_in: Path,
    whole: bytes,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    out = handed_in.parent / "out"
    with monkeypatch.context() as patched:
        failing(patched, OSError(errno.ENOSPC, "No space left"), lambda path: path.name == page)
        said = batch(cli, handed_in)
        assert (said.code, f"cannot write {out / page}: No space left" in said.err) == (2, True)
    graded = len(instant.jobs)
    assert graded == 40
    assert batch(cli, handed_in).code == 1
    assert len(instant.jobs) == graded
    assert (out / "grades.csv").read_bytes() == whole
    assert len((out / "results.jsonl").read_text().splitlines()) == 40
    assert (out / "index.html").exists()


def test_a_full_disk_while_a_class_is_read_blames_no_student(
    cli: Cli, instant: Instant, handed_in: Path, whole: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    batch(cli, handed_in)
    (handed_in / "s020.py").write_text((handed_in / "s020" / "scale.py").read_text())
    (handed_in / "s020" / "scale.py").unlink()
    (handed_in / "s020").rmdir()

    real = ReaderTemplate.ask

    def full(template: ReaderTemplate, job: Any, *more: Any, **options: Any) -> Any:
        if job.student == b"s020":
            raise RequestError("cannot read what s020 handed in: No space left", "fix that")
        return real(template, job, *more, **options)

    with monkeypatch.context() as patched:
        patched.setattr(ReaderTemplate, "ask", full)
        said = batch(cli, handed_in)
    assert said.code == 2
    assert "cannot read what s020 handed in: No space left" in said.err
    assert rows(handed_in.parent / "out", "SELECT count(*) FROM attempts WHERE present") == [(40,)]
    hand_in(handed_in, {"s020/scale.py": (handed_in / "s020.py").read_text()})
    (handed_in / "s020.py").unlink()
    assert batch(cli, handed_in).code == 1
    assert (handed_in.parent / "out" / "grades.csv").read_bytes() == whole


@contextlib.contextmanager
def ordinary() -> Iterator[None]:
    """As an ordinary user: to root, nothing is read-only.

    The process that forks readers runs already: Python may be where that user cannot start it.
    """
    if os.geteuid() != 0:
        yield
        return
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(ReaderTemplate, "_start", lambda template: None)
        os.seteuid(NOBODY)
        try:
            yield
        finally:
            os.seteuid(0)


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that an ordinary user can reach."""
    with tempfile.TemporaryDirectory(prefix="readonly-") as name:
        os.chmod(name, 0o755)
        yield Path(name)


@pytest.mark.parametrize(
    ("place", "said"),
    [
        ("out", "the ledger in {out}: attempt to write a readonly database"),
        ("out/reports", "cannot write {out}/reports/s001.html: Permission denied"),
        ("out/ledger.sqlite", "the ledger in {out}: attempt to write a readonly database"),
    ],
)
def test_a_read_only_folder_is_said_and_the_same_command_goes_on(
    place: str, said: str, cli: Cli, instant: Instant, open_folder: Path, handed_in: Path
) -> None:
    out = open_folder / "out"
    folder = hand_in(open_folder / "class", {"s001/scale.py": "# 3 points", "s002/scale.py": ""})
    batch(cli, handed_in)  # so that all is imported that root alone may be able to read

    def stopping(job: Any) -> None:
        raise KeyboardInterrupt

    instant.before = stopping
    command = ("batch", folder, "--out", out, "--course", TINY, "--seed", 5)
    cli(*command)  # makes the ledger
    instant.before = lambda job: None
    (out / "reports").mkdir(exist_ok=True)
    for path in (out, *out.iterdir()):
        path.chmod(0o777 if path.is_dir() else 0o666)
    (open_folder / place).chmod(0o555 if place != "out/ledger.sqlite" else 0o444)
    with ordinary():
        refused = cli(*command)
    assert refused.code == 2
    assert said.format(out=out) in refused.err
    (open_folder / place).chmod(stat.S_IRWXU)
    assert cli(*command).code == 1
    assert marks(out) == {"s001": "3", "s002": "8"}


def test_a_place_where_nothing_can_be_made_is_said_at_once(
    cli: Cli, instant: Instant, open_folder: Path, handed_in: Path
) -> None:
    batch(cli, handed_in)  # so that all is imported
    instant.jobs.clear()
    folder = hand_in(open_folder / "class", {"s001/scale.py": "# 3 points"})
    open_folder.chmod(0o555)
    with ordinary():
        said = cli("batch", folder, "--out", open_folder / "out", "--course", TINY)
    assert said.code == 2
    assert f"cannot write in {open_folder / 'out'}: Permission denied" in said.err
    assert "--out DIR" in said.err
    assert instant.jobs == []


# --- nobody reads what is said --------------------------------------------------------------------


@pytest.mark.skipif(sys.platform != "linux", reason="needs /dev/full")
@pytest.mark.parametrize("streams", ["2>/dev/full", "2>&-", ">/dev/full 2>/dev/full", ">&- 2>&-"])
@pytest.mark.parametrize(
    ("command", "code"), [("batch nowhere --out {out}", 2), ("check nowhere/scale.py", 2)]
)
def test_exit_codes_say_the_same_where_nothing_can_be_printed(
    streams: str, command: str, code: int, tmp_path: Path
) -> None:
    line = f"{sys.executable} -m grader {command.format(out=tmp_path / 'out')} {streams}"
    assert subprocess.run(line, shell=True, check=False, cwd=TINY).returncode == code


# --- a worker that is lost ------------------------------------------------------------------------


def losing(patched: pytest.MonkeyPatch, times: int, how: Callable[[Worker], None]) -> list[int]:
    """Do something to the workers of the first `times` calls of `scale`; return their pids."""
    request, lost = Worker.request, []

    def interrupted(worker: Worker, message: Any, seconds: float) -> Any:
        if getattr(message, "name", "") == "scale" and len(lost) < times:
            lost.append(worker.pid)
            how(worker)
        return request(worker, message, seconds)

    patched.setattr(Worker, "request", interrupted)
    return lost


def end_with(number: signal.Signals) -> Callable[[Worker], None]:
    """Return what ends a worker from outside, and waits until it has ended."""

    def end(worker: Worker) -> None:
        os.kill(worker.pid, number)
        assert waits(lambda: worker.pid not in processes())

    return end


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
    fork, lost = Zygote.fork, []

    def stillborn(zygote: Zygote) -> Any:
        connection, pid = fork(zygote)
        if len(lost) < MAX_TRIES - 1:
            os.kill(pid, signal.SIGKILL)
            lost.append(pid)
        return connection, pid

    monkeypatch.setattr(Zygote, "fork", stillborn)
    assert grade_tiny(tiny_solution).points == 8
    assert len(lost) == MAX_TRIES - 1


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


# --- a submission that kills its grading process --------------------------------------------------


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


def waiting_for(file: Path) -> str:
    """Return code that hangs until a file exists: student code cannot read it, but can see it."""
    return f"import os, time\nwhile not os.path.exists({str(file)!r}):\n    time.sleep(0.01)\n"


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
    run = subprocess.Popen(
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
