"""Measure the speed of the grader, as ratios from one run on this machine.

    python benchmarks/bench.py      about eight minutes; `make bench`

A ratio compares the grader with something else that runs here: importing torch, or pytest that runs
the same tests in one process, again and again, with the solution imported and no boundary.
Nothing is asserted; the table shows what was measured and the aim.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import pty
import resource
import statistics
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch

from grader.course.course import Course, load_course
from grader.course.known_mistakes import load_mistakes
from grader.grading.grader import Grader
from grader.grading.session import with_grader
from grader.sandbox.confinement.layers import LAYERS, confine, prepare
from grader.sandbox.confinement.limits import Confinement
from grader.sandbox.host.connection import Subject, TimeLimits, WorkerConnection
from grader.sandbox.host.proxies import RemoteCode, Student
from grader.sandbox.host.worker import Worker
from grader.sandbox.host.zygote import Zygote
from grader.sandbox.wire import Source
from grader.sandbox.worker.quota import QuotaMonitor
from grader.submissions.submission import Submission

ROOT = Path(__file__).parent.parent
PYTHON = [sys.executable, "-W", "ignore"]
ROUNDS = 7  # for each command that is timed cold; the median counts
FEW, MANY = 2, 12  # gradings; the difference does not contain the cost of the start
LOOPS = 5  # of plain pytest, after one to warm up
TURNS = 3  # for plain pytest and a warm grader, alternating
CALLS = 3000
WORKERS = 60
SAVES = 5  # for a wrong file and a right one
STEP = 4  # every fourth fault of the catalogue is measured


def seconds(command: Sequence[str]) -> float:
    """Run a command that must succeed; return the seconds that it took."""
    start = time.perf_counter()
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    return time.perf_counter() - start


def interleaved(*commands: Sequence[str]) -> list[float]:
    """Return the median seconds of each command; they alternate, so conditions are the same."""
    times = [[seconds(command) for command in commands] for _ in range(ROUNDS)]
    return [statistics.median(column) for column in zip(*times)]


def cpu_here() -> float:
    """Return the CPU seconds of this process and of all its children that have ended."""
    total = 0.0
    for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN):
        usage = resource.getrusage(who)
        total += usage.ru_utime + usage.ru_stime
    return total


def cpu_of_grading(course: Course, names: Sequence[str], times: int) -> float:
    """Return the CPU seconds to grade references `times` times, workers included."""
    files = {name: course[name].read("solution.py") for name in course.names}
    submission = Submission("s001", files)

    def body(grader: Grader) -> None:
        for _ in range(times):
            report = grader.grade(submission, names, 1).report
            assert report.points == report.max_points

    start = cpu_here()
    with Zygote() as zygote:
        with_grader(course, names, zygote, body)
    return cpu_here() - start


def cpu_of_one_grading(course: Course, names: Sequence[str]) -> float:
    """Return the CPU seconds that one more grading takes in a warm grader."""
    few, many = (cpu_of_grading(course, names, times) for times in (FEW, MANY))
    return (many - few) / (MANY - FEW)


class Looped:
    """A pytest plugin that runs the collected tests again and again, as pytest runs them."""

    def __init__(self) -> None:
        self.cpu = 0.0  # seconds of one round

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Run one round to warm up, then measure the others."""
        self._run(session)
        start = time.process_time()
        for _ in range(LOOPS):
            self._run(session)
        self.cpu = (time.process_time() - start) / LOOPS
        assert session.testsfailed == 0
        return True

    def _run(self, session: pytest.Session) -> None:
        for item, following in zip(session.items, [*session.items[1:], None]):
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)


def cpu_of_plain_pytest(course: Course) -> float:
    """Return the CPU seconds that pytest takes for a round of the hidden suites.

    Students do not have our development tools, so it runs without their plugin.
    """
    looped, suites = Looped(), [str(course.suite(name)) for name in course.names]
    with contextlib.redirect_stdout(io.StringIO()):
        pytest.main(["-p", "no:cacheprovider", "-p", "no:hypothesispytest", *suites], [looped])
    return looped.cpu


def cpu_of_a_check(course: Course, names: Sequence[str]) -> float:
    """Return the CPU seconds that one check of these exercises takes in a warm grader."""
    with Zygote() as zygote:
        checks = with_grader(
            course, names, zygote, lambda grader: sum(map(len, grader.suite.items.values()))
        )
    return cpu_of_one_grading(course, names) / checks


def cost_of_a_call() -> float:
    """Return how many seconds longer a call takes across the boundary, with small tensors."""
    code = "import torch\ndef f(x): return torch.softmax(x, dim=-1)\n"
    x = torch.randn(2, 3, 5, dtype=torch.float64)
    with Zygote() as zygote:
        connection = WorkerConnection(lambda: Worker(zygote))
        connection.begin(1)
        subject = Subject("m", "m", {"m": Source("m.py", code)}, TimeLimits(5, 600))
        student: Any = Student(RemoteCode(connection, subject))
        across = per_call(lambda: student.f(x))
        connection.close()
    return across - per_call(lambda: torch.softmax(x, dim=-1))


def cost_of_confinement() -> float:
    """Return the median seconds to confine a worker, and to make and remove its folder.

    Workers are forked from this process as the zygote forks them.
    """
    prepare()
    costs: list[float] = []
    with tempfile.TemporaryDirectory() as root:
        quota = QuotaMonitor(Path(os.path.realpath(root)))
        for _ in range(WORKERS):
            here, there = os.pipe()
            parent, pid = os.getpid(), os.fork()
            if pid == 0:
                start = time.perf_counter()
                names = confine(Confinement("confined"), quota.folder(os.getpid()), parent)
                os.write(there, struct.pack("dB", time.perf_counter() - start, len(names)))
                os._exit(0)
            quota.add(pid)
            inside, layers = struct.unpack("dB", os.read(here, 16))
            assert layers == 1 + len(LAYERS)
            os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
            start = time.perf_counter()
            quota.end(pid, 0.0)
            costs.append(inside + time.perf_counter() - start)
            os.close(here)
            os.close(there)
    return statistics.median(costs)


def save_to_verdict(workers: str, idle: float) -> float:
    """Return the seconds from a save to the new verdict of `grader check --watch`.

    Nothing is saved for `idle` seconds before.
    """
    name = "multi_head_attention"
    right = (ROOT / "reference" / name / "solution.py").read_text()
    turns = [(right.replace("dim=-1", "dim=2"), "grader hint"), (right, "Well done")] * SAVES
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / f"{name}.py"
        file.write_text(right)
        pid, screen = pty.fork()
        if pid == 0:
            os.chdir(ROOT)
            command = [*PYTHON, "-m", "grader", "check", "--watch", "--workers", workers, str(file)]
            os.execv(PYTHON[0], command)
        _read_until(screen, "quit")
        times = []
        for text, verdict in turns:
            time.sleep(idle)
            start = time.perf_counter()
            file.write_text(text)
            _read_until(screen, verdict)
            times.append(time.perf_counter() - start)
        os.write(screen, b"q")
        _read_until(screen, "of 1 exercises")
        os.close(screen)
        os.waitpid(pid, 0)
    return statistics.median(times)


def _read_until(screen: int, wanted: str) -> None:
    seen = ""
    while wanted not in seen:
        seen += os.read(screen, 65536).decode("utf-8", "replace")


def cost_of_diagnosis(course: Course) -> list[float]:
    """Return the seconds that each diagnosis takes, for mistakes of the catalogue."""

    def body(grader: Grader) -> list[float]:
        files = {name: course[name].read("solution.py") for name in course.names}
        times = []
        for name in course.names:
            for fault in load_mistakes(course[name])[::STEP]:
                submission = Submission("s001", {**files, name: fault.apply(files[name])})
                (result,) = grader.grade(submission, [name], 1).results
                diagnostician = grader.diagnostician(course[name], 1)
                if diagnostician is None or not diagnostician.last:
                    continue
                # By now the known mistakes have answered the cases, as they have in a class.
                start = time.perf_counter()
                diagnostician.diagnose(result.tests, diagnostician.last, submission.files[name])
                times.append(time.perf_counter() - start)
        return times

    with Zygote() as zygote:
        return with_grader(course, course.names, zygote, body)


def per_call(call: Callable[[], object]) -> float:
    """Return the seconds of one call, as the median over batches."""
    for _ in range(CALLS // 10):
        call()
    batches = []
    for _ in range(10):
        start = time.perf_counter()
        for _ in range(CALLS // 10):
            call()
        batches.append((time.perf_counter() - start) / (CALLS // 10))
    return statistics.median(batches)


def begin(what: str) -> None:
    """Say what is measured from now on."""
    print(f"measuring {what} …", file=sys.stderr, flush=True)


def main() -> None:
    """Measure and print the table."""
    argparse.ArgumentParser(description=__doc__.partition("\n")[0]).parse_args()
    torch.set_num_threads(1)
    whole = load_course(ROOT)
    course = whole.choose("core")
    added = [e.name for e in whole.exercises if e.name not in course.names and not e.training]
    grader = [*PYTHON, "-m", "grader", "check", "--seed", "1"]
    one = [*grader, "reference/masked_softmax/solution.py"]
    begin("cold checks")
    importing, check_one, check_all = interleaved(
        [*PYTHON, "-c", "import torch"], one, [*grader, "reference"]
    )
    begin("a correct submission")
    turns = [
        (cpu_of_plain_pytest(course), cpu_of_one_grading(course, course.names))
        for _ in range(TURNS)
    ]
    pytest_cpu, grading_cpu = (statistics.median(column) for column in zip(*turns))
    begin("added exercises")
    core_check, added_check = (cpu_of_a_check(whole, names) for names in (course.names, added))
    begin("calls and workers")
    call = cost_of_a_call()
    confining = cost_of_confinement()
    begin("checks after a save")
    saving = save_to_verdict("fork", 0.3)
    saving_spawned = save_to_verdict("spawn", importing + 1.0)  # the next worker is ready by then
    begin("diagnoses")
    diagnosing = cost_of_diagnosis(course)
    rows = [
        (
            "`grader check`, one exercise, cold",
            f"{check_one / importing:.2f} x",
            "<= 1.6 x",
            f"{check_one:.2f} s against {importing:.2f} s of `import torch`",
        ),
        (
            f"`grader check`, all {len(course.names)}, cold",
            f"{check_all / importing:.2f} x",
            "<= 2.2 x",
            f"{check_all:.2f} s against {importing:.2f} s of `import torch`",
        ),
        (
            "`grader check --watch`, save to verdict",
            f"{saving / importing:.2f} x",
            "<= 0.35 x",
            f"{saving * 1e3:.0f} ms against {importing:.2f} s of `import torch`",
        ),
        (
            "the same with `--workers spawn`",
            f"{saving_spawned / importing:.2f} x",
            "<= 0.35 x",
            f"{saving_spawned * 1e3:.0f} ms against {importing:.2f} s of `import torch`",
        ),
        (
            "diagnosis of a failed exercise",
            f"{statistics.median(diagnosing) * 1e3:.1f} ms",
            "<= 2 ms",
            f"{max(diagnosing) * 1e3:.0f} ms at most, over {len(diagnosing)} mistakes",
        ),
        (
            "CPU of a correct submission, warm",
            f"{grading_cpu / pytest_cpu:.2f} x",
            "<= 0.9 x",
            f"{grading_cpu * 1e3:.0f} ms against {pytest_cpu * 1e3:.0f} ms in a pytest process",
        ),
        (
            "CPU of a check, added exercises",
            f"{added_check / core_check:.2f} x",
            "<= 1 x",
            f"{added_check * 1e3:.1f} ms against {core_check * 1e3:.1f} ms in the core",
        ),
        (
            "confining a worker",
            f"{confining * 1e3:.1f} ms",
            "<= 5 ms",
            f"{len(LAYERS)} layers and a folder; a submission takes {grading_cpu * 1e3:.0f} ms",
        ),
        (
            "one call across the boundary",
            f"{call * 1e6:.0f} us",
            "<= 150 us",
            "more than the direct call, small tensors",
        ),
    ]
    print(f"torch {torch.__version__}, Python {sys.version.split()[0]}, {os.cpu_count()} cores\n")
    print(f"| {'work':<40} | {'measured':>8} | {'aim':>9} | |")
    print(f"|{'-' * 42}|{'-' * 9}:|{'-' * 10}:|---|")
    for work, measured, aim, detail in rows:
        print(f"| {work:<40} | {measured:>8} | {aim:>9} | {detail} |")


if __name__ == "__main__":
    main()
