"""Measure the time and memory of `grader batch` for classes of any size.

    python benchmarks/scale.py [--write] [--part homework] [--sizes 10,100] [--ways jobs-1,cluster]

Every row is one run of the command. The class is made here: every student hands in reference
solutions, for one exercise (homework) or for all (course). No two have the same bytes, and every
tenth has one mistake of the catalogue. `--write` writes the tables into docs/benchmarks.md, and the
estimates for a hundred thousand submissions into docs/scale.md.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "tests"))

from pages import keep  # noqa: E402
from peers import batch, environments  # noqa: E402
from peers.environments import BUILD, OURS  # noqa: E402
from peers.harness import course  # noqa: E402
from peers.measure import Sample, Usage, disturbance, machine  # noqa: E402
from peers.tools import Files, write_files  # noqa: E402

from grader.course.known_mistakes import load_mistakes  # noqa: E402

PAGE = ROOT / "docs" / "benchmarks.md"
ARITHMETIC = ROOT / "docs" / "scale.md"
SMALL = 100  # larger classes with a whole course are graded in one way only, to save time
HOMEWORK = "causal_attention"
HUNDRED_THOUSAND = 100_000
CORES = (2, 8, 32)
COORDINATOR_SECONDS = 0.015  # that the coordinator spends on a submission, however many cores grade
EVERY = 10  # every tenth submission has a mistake
EARLY = 100  # memory is shown after this many submissions
WINDOW = 20  # samples of which the median is shown
START_SECONDS = 60.0  # for a cluster to start
MIB = 1024**2
SIZES = {"homework": (10, 100, 1000, 5000), "course": (10, SMALL, 1000)}  # by part
WAYS = {
    "jobs-1": "`--jobs 1`",
    "jobs-2": "`--jobs 2`",
    "cluster": "`--cluster`",
}


@dataclass(frozen=True)
class Row:
    """One run: how many submissions, graded in which way, and the resources it took."""

    size: int
    way: str
    usage: Usage
    ledger: int  # bytes on disk
    pages: int

    def __str__(self) -> str:
        early, late = (memory_at(self.usage.samples, done) for done in (EARLY, self.size))
        after = shown(early) if self.size > EARLY else "–"
        return (
            f"| {self.size:,} | {WAYS[self.way]} | {self.usage.wall:.1f} s | "
            f"{self.size / self.usage.wall:.1f} | {shown(self.usage.peak)} | {after} | "
            f"{shown(late)} |"
        )


def exercises_of(part: str) -> Sequence[str]:
    """Return the names of the exercises in a part."""
    return [HOMEWORK] if part == "homework" else course().names


def submissions(part: str, size: int) -> Iterator[tuple[str, Files, bool]]:
    """Yield each student's name and files, and whether they are right; the same in every run."""
    solutions = {name: course()[name].read("solution.py") for name in exercises_of(part)}
    faults = [(name, fault) for name in solutions for fault in load_mistakes(course()[name])]
    for number in range(1, size + 1):
        files = dict(solutions)
        wrong = number % EVERY == 0
        if wrong:
            name, fault = random.Random(number).choice(faults)
            files[name] = fault.apply(files[name])
        student = f"student-{number:05}"
        yield student, {n: f"{text}\n# {student}\n" for n, text in files.items()}, not wrong


def row(part: str, size: int, way: str, work: Path) -> Row:
    """Grade a class; exit with an error unless exactly the right submissions have all points."""
    shutil.rmtree(work, ignore_errors=True)
    right = set()
    for student, files, is_right in submissions(part, size):
        write_files(work / "class" / student, files)
        right |= {student} if is_right else set()
    with way_of(way) as (jobs, cluster):
        usage = batch.grade(
            work / "class", work / "out", log=work / "log", jobs=jobs, cluster=cluster
        )
    points = batch.points(work / "out")
    worth = sum(course()[name].points for name in exercises_of(part))
    full = {student for student, mine in points.items() if sum(mine.values()) == worth}
    if len(points) != size or full != right:
        wrong = sorted(full ^ right)[:5]
        raise SystemExit(f"{len(points)} of {size} graded; wrong marks for {wrong}: see {work}")
    out = work / "out"
    pages = sum(path.stat().st_size for path in (out / "reports").iterdir())
    return Row(size, way, usage, (out / batch.LEDGER).stat().st_size, pages)


@contextlib.contextmanager
def way_of(way: str) -> Iterator[tuple[int, str]]:
    """Yield the number of jobs and the address of a running cluster; empty without one."""
    if way != "cluster":
        yield int(way.removeprefix("jobs-")), ""
        return
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        file = Path(folder) / "scheduler.json"
        here: list[str | Path] = ["--no-dashboard", "--scheduler-file", file]
        loopback = ["--host", "127.0.0.1"]
        stack.enter_context(_running(["scheduler", *loopback, "--port", "0", *here], folder))
        for _ in range(2):
            stack.enter_context(_running(["worker", *loopback, "--nthreads", "1", *here], folder))
        yield 1, _address(file)


@contextlib.contextmanager
def _running(arguments: Sequence[str | Path], folder: str) -> Iterator[None]:
    """Run a program of Dask for as long as the block lasts."""
    dask = environments.python(OURS).parent / "dask"
    with (Path(folder) / f"{arguments[0]}.log").open("ab") as log:
        process = subprocess.Popen(
            [dask, *arguments], cwd=folder, stdout=log, stderr=subprocess.STDOUT
        )
        try:
            yield
        finally:
            process.terminate()
            process.wait()


def _address(file: Path) -> str:
    """Return the scheduler's address, as soon as both workers are connected."""
    code = (
        "import sys; from distributed import Client\n"
        "client = Client(scheduler_file=sys.argv[1])\n"
        "client.wait_for_workers(2, timeout=60); print(client.scheduler.address)"
    )
    limit = time.monotonic() + START_SECONDS
    while not file.exists():
        if time.monotonic() > limit:
            raise SystemExit("the dask scheduler does not start")
        time.sleep(0.1)
    return environments.run([environments.python(OURS), "-c", code, file]).strip()


# --- the table -----------------------------------------------------------------------------------


def memory_at(samples: Sequence[Sample], done: int) -> float:
    """Return the memory in bytes around the time when `done` submissions had their reports.

    It is the median over `WINDOW` samples after that time, or before it if these are the last
    submissions.
    """
    after = [number for number, sample in enumerate(samples) if sample.done >= done]
    first = after[0] if after else len(samples)
    last = samples and done >= samples[-1].done
    window = samples[max(0, first - WINDOW) : first] if last else samples[first : first + WINDOW]
    return statistics.median(sample.memory for sample in window) if window else 0


def shown(memory: float) -> str:
    """Return bytes as a text in MiB."""
    return f"{memory / MIB:.0f} MiB" if memory else "–"


def table(rows: Sequence[Row]) -> str:
    """Return the table, and on which machine it was measured."""
    columns = ("time", "a second", "memory at most", f"after {EARLY}", "at the last report")
    return "\n".join(
        [
            f"{machine()}; Python {sys.version.split()[0]}, "
            f"{environments.versions(OURS, ('torch', 'distributed'))}. " + _disturbance(rows),
            "",
            f"| submissions | | {' | '.join(columns)} |",
            f"|--:|---{'|--:' * len(columns)}|",
            *map(str, rows),
            "",
        ]
    )


def arithmetic(measured: Row) -> str:
    """Return a row's estimates for a hundred thousand submissions, as a table."""
    rate = measured.size / measured.usage.wall / 2  # per second and core; `jobs-2` uses two
    seconds = [max(1 / rate / cores, COORDINATOR_SECONDS) for cores in CORES]
    times = [_long(HUNDRED_THOUSAND * each) for each in seconds]
    sizes = [f"{b / measured.size * HUNDRED_THOUSAND / 1e9:.1f} GB"
             for b in (measured.ledger, measured.pages)]  # fmt: skip
    source = f"{measured.size:,} by {WAYS[measured.way]}: {rate:.2f} a second and core"
    cores = " | ".join(f"{n} cores" for n in CORES)
    return "\n".join(
        [
            f"| measured | {cores} | ledger | reports |",
            "|---" + "|--:" * (len(CORES) + 2) + "|",
            f"| {source} | {' | '.join([*times, *sizes])} |",
            "",
        ]
    )


def _weight(row: Row) -> tuple[bool, int]:
    """Return the sort key of the row for the estimates: two jobs and many submissions."""
    return row.way == "jobs-2", row.size


def _long(seconds: float) -> str:
    return f"{seconds / 3600:.1f} h" if seconds >= 3600 else f"{seconds / 60:.0f} min"


def _disturbance(rows: Sequence[Row]) -> str:
    """Return how busy the machine was; on a cluster, our own work looks like that of others."""
    usages = [row.usage for row in rows if row.way != "cluster"]
    return disturbance(usages) if usages else ""


def main() -> None:
    """Grade classes of every size in every way and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--write", action="store_true", help="write the tables into their pages")
    parser.add_argument("--write-arithmetic", action="store_true", help="write only the estimates")
    parser.add_argument("--part", choices=SIZES, help="measure only one of the two tables")
    parser.add_argument("--sizes", help="such as 10,100")
    parser.add_argument("--ways", default=",".join(WAYS), help="such as jobs-1,cluster")
    options = parser.parse_args()
    environments.python(OURS)
    os.makedirs(BUILD / "scale", exist_ok=True)
    for part in [options.part] if options.part else SIZES:
        sizes = map(int, options.sizes.split(",")) if options.sizes else SIZES[part]
        rows = []
        for size in sizes:
            for way in options.ways.split(","):
                if part == "course" and size > SMALL and way != "jobs-2":
                    continue
                rows.append(row(part, size, way, BUILD / "scale" / "work"))
                print(rows[-1], file=sys.stderr)
        text, estimates = table(rows), arithmetic(max(rows, key=_weight))
        print(f"{text}\n{estimates}")
        if options.write:
            keep(PAGE, f"scale-{part}", text)
        if options.write or options.write_arithmetic:
            keep(ARITHMETIC, f"arithmetic-{part}", estimates)


if __name__ == "__main__":
    main()
