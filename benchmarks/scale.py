"""How grading grows: time and memory of `grader batch` for classes of any size.

    python benchmarks/scale.py [--write] [--part homework] [--sizes 10,100] [--ways jobs-1,cluster]

Every row is one run of the command. The class is made here: everybody hands in reference solutions,
of one exercise (homework) or of all (the course), no two with the same bytes, and every tenth has
one mistake of the catalogue. `--write` keeps the tables in docs/benchmarks.md, and what follows for
a hundred thousand submissions in docs/scale.md.
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
from peers.measure import Look, Usage, disturbance, machine  # noqa: E402
from peers.tools import Files, write_files  # noqa: E402

from grader.course.faults import load_faults  # noqa: E402

PAGE = ROOT / "docs" / "benchmarks.md"
ARITHMETIC = ROOT / "docs" / "scale.md"
SMALL = 100  # a whole course of more is graded in one way only: the others take too long
HOMEWORK = "causal_attention"
HUNDRED_THOUSAND = 100_000
CORES = (2, 8, 32, 160)
EVERY = 10  # of so many submissions, one has a mistake
EARLY = 100  # submissions after which memory is looked at
WINDOW = 20  # looks whose median counts, at either place
START_SECONDS = 60.0  # that a cluster may take
MIB = 1024**2
PARTS = {"homework": (10, 100, 1000, 5000), "course": (10, SMALL, 1000)}  # and their sizes
WAYS = {
    "jobs-1": "`--jobs 1`",
    "jobs-2": "`--jobs 2`",
    "cluster": "`--cluster`, two workers of one thread",
}


@dataclass(frozen=True)
class Row:
    """One run: how many submissions, how they were graded, and what it took."""

    size: int
    way: str
    usage: Usage
    ledger: int  # bytes on disk
    pages: int

    def __str__(self) -> str:
        early, late = memory_at(self.usage.looks, EARLY), memory_at(self.usage.looks, self.size)
        after = shown(early) if self.size > EARLY else "–"
        return (
            f"| {self.size:,} | {WAYS[self.way]} | {self.usage.wall:.1f} s | "
            f"{self.size / self.usage.wall:.1f} | {shown(self.usage.peak)} | {after} | "
            f"{shown(late)} |"
        )


def handed_in(part: str) -> Sequence[str]:
    """The exercises of a part."""
    return [HOMEWORK] if part == "homework" else course().names


def submissions(part: str, size: int) -> Iterator[tuple[str, Files, bool]]:
    """Name, files and whether they are right; the same ones in every run."""
    solutions = {name: course()[name].read("solution.py") for name in handed_in(part)}
    faults = [(name, fault) for name in solutions for fault in load_faults(course()[name])]
    for number in range(1, size + 1):
        files = dict(solutions)
        wrong = number % EVERY == 0
        if wrong:
            name, fault = random.Random(number).choice(faults)
            files[name] = fault.apply(files[name])
        student = f"student-{number:05}"
        yield student, {n: f"{text}\n# {student}\n" for n, text in files.items()}, not wrong


def row(part: str, size: int, way: str, work: Path) -> Row:
    """Grade a class of `size`, and see that whoever is right has all points, and nobody else."""
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
    worth = sum(course()[name].points for name in handed_in(part))
    full = {student for student, mine in points.items() if sum(mine.values()) == worth}
    if len(points) != size or full != right:
        raise SystemExit(
            f"{len(points)} of {size} graded; wrong about {sorted(full ^ right)[:5]}: see {work}"
        )
    out = work / "out"
    pages = sum(path.stat().st_size for path in (out / "reports").iterdir())
    return Row(size, way, usage, (out / batch.LEDGER).stat().st_size, pages)


@contextlib.contextmanager
def way_of(way: str) -> Iterator[tuple[int, str]]:
    """How many jobs, and the address of a cluster that is up meanwhile, or none."""
    if way != "cluster":
        yield int(way.removeprefix("jobs-")), ""
        return
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        file = Path(folder) / "scheduler.json"
        here = ["--no-dashboard", "--scheduler-file", file]
        loopback = ["--host", "127.0.0.1"]
        stack.enter_context(_running(["scheduler", *loopback, "--port", "0", *here], folder))
        for _ in range(2):
            stack.enter_context(_running(["worker", *loopback, "--nthreads", "1", *here], folder))
        yield 1, _address(file)


@contextlib.contextmanager
def _running(arguments: Sequence[str | Path], folder: str) -> Iterator[None]:
    """A program of Dask, which ends with the block."""
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
    """The scheduler's address, as soon as both workers are there."""
    code = (
        "import sys; from distributed import Client\n"
        "client = Client(scheduler_file=sys.argv[1])\n"
        "client.wait_for_workers(2, timeout=60); print(client.scheduler.address)"
    )
    limit = time.monotonic() + START_SECONDS
    while not file.exists():
        if time.monotonic() > limit:
            raise SystemExit("dask scheduler does not start")
        time.sleep(0.1)
    return environments.run([environments.python(OURS), "-c", code, file]).strip()


# --- the table -----------------------------------------------------------------------------------


def memory_at(looks: Sequence[Look], done: int) -> float:
    """Memory around the time when `done` submissions had their reports.

    The median over some looks: those after it, or the last ones before everything ends.
    """
    after = [number for number, look in enumerate(looks) if look.done >= done]
    first = after[0] if after else len(looks)
    last = looks and done >= looks[-1].done
    window = looks[max(0, first - WINDOW) : first] if last else looks[first : first + WINDOW]
    return statistics.median(look.memory for look in window) if window else 0


def shown(memory: float) -> str:
    """Bytes in MiB."""
    return f"{memory / MIB:.0f} MiB" if memory else "–"


def table(rows: Sequence[Row]) -> str:
    """The table, and on which machine it was measured."""
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


def arithmetic(part: str, measured: Row) -> str:
    """What a row means for a hundred thousand submissions, as a table."""
    rate = measured.size / measured.usage.wall / 2  # a second and core; a row is of two
    times = [_long(HUNDRED_THOUSAND / rate / cores) for cores in CORES]
    sizes = [f"{b / measured.size * HUNDRED_THOUSAND / 1e9:.1f} GB"
             for b in (measured.ledger, measured.pages)]  # fmt: skip
    said = f"{measured.size:,} by {WAYS[measured.way]}: {rate:.2f} a second and core"
    cores = " | ".join(f"{n} cores" for n in CORES)
    return "\n".join(
        [
            f"| measured | {cores} | ledger | reports |",
            "|---" + "|--:" * (len(CORES) + 2) + "|",
            f"| {said} | {' | '.join([*times, *sizes])} |",
            "",
        ]
    )


def _weight(row: Row) -> tuple[bool, int]:
    """Which row says most: two slots, and many submissions."""
    return row.way == "jobs-2", row.size


def _long(seconds: float) -> str:
    return f"{seconds / 3600:.1f} h" if seconds >= 3600 else f"{seconds / 60:.0f} min"


def _disturbance(rows: Sequence[Row]) -> str:
    """How quiet the machine was; a cluster's own work cannot be told from that of others."""
    usages = [row.usage for row in rows if row.way != "cluster"]
    return disturbance(usages) if usages else ""


def main() -> None:
    """Grade classes of every size in every way and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--write", action="store_true", help="keep the tables in their pages")
    parser.add_argument("--write-arithmetic", action="store_true", help="keep only what follows")
    parser.add_argument("--part", choices=PARTS, help="only one of the two tables")
    parser.add_argument("--sizes", help="such as 10,100")
    parser.add_argument("--ways", default=",".join(WAYS), help="such as jobs-1,cluster")
    options = parser.parse_args()
    environments.python(OURS)
    os.makedirs(BUILD / "scale", exist_ok=True)
    for part in [options.part] if options.part else PARTS:
        sizes = map(int, options.sizes.split(",")) if options.sizes else PARTS[part]
        rows = []
        for size in sizes:
            for way in options.ways.split(","):
                if part == "course" and size > SMALL and way != "jobs-2":
                    continue
                rows.append(row(part, size, way, BUILD / "scale" / "work"))
                print(rows[-1], file=sys.stderr)
        text, follows = table(rows), arithmetic(part, max(rows, key=_weight))
        print(f"{text}\n{follows}")
        if options.write:
            keep(PAGE, f"scale-{part}", text)
        if options.write or options.write_arithmetic:
            keep(ARITHMETIC, f"arithmetic-{part}", follows)


if __name__ == "__main__":
    main()
