"""What it gains to keep each grading process, and its workers, to a core of its own.

    python benchmarks/cores.py           about two minutes
    python benchmarks/cores.py --write   also writes the table into docs/benchmarks.md

Two pools grade the same submissions in turns: one keeps each of its processes to a core, the other
leaves them to the kernel. Both have one process for each core.
"""

from __future__ import annotations

import argparse
import platform
import statistics
import sys
import time
from pathlib import Path

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "tests"))

from pages import keep  # noqa: E402

from grader.classroom.workers.messages import GradedJob, Job  # noqa: E402
from grader.classroom.workers.pool import WorkerPool, available_cores  # noqa: E402
from grader.course.course import load_course  # noqa: E402
from grader.submissions.submission import Submission  # noqa: E402

PAGE = ROOT / "docs" / "benchmarks.md"
ROUNDS = 7  # of each pool, in turns; the median counts
CLASSES = {"one exercise": (1, 60), "the whole course": (7, 12)}  # exercises, submissions


def seconds(pool: WorkerPool, jobs: list[Job]) -> float:
    """Return the wall time for each job, with as many at a time as the pool likes."""
    start = time.perf_counter()
    answers = [future.result() for future in [pool.submit(job) for job in jobs]]
    assert all(isinstance(answer, GradedJob) for answer in answers)
    return (time.perf_counter() - start) / len(jobs)


def measured() -> str:
    """Return the table."""
    course, size = load_course(ROOT).choose("core"), len(available_cores())
    solutions = {name: course[name].read("solution.py") for name in course.names}
    pools = {
        "kept to a core": WorkerPool(course, "confined", size),
        "left to the kernel": WorkerPool(course, "confined", size, shared=True),
    }
    lines = [
        f"{size} cores, {platform.machine()}; {size} grading processes; medians of {ROUNDS} rounds "
        "in turns.",
        "",
        "| a class that hands in | kept to a core | left to the kernel | ratio |",
        "|---|--:|--:|--:|",
    ]
    try:
        for name, (count, students) in CLASSES.items():
            names = course.names[-count:]
            jobs = [
                Job(Submission(f"s{n:03}", solutions), names, seed=n)
                for n in range(1, students + 1)
            ]
            for pool in pools.values():
                seconds(pool, jobs[: 2 * size])  # warms up
            rounds = [[seconds(pool, jobs) for pool in pools.values()] for _ in range(ROUNDS)]
            kept, free = map(statistics.median, zip(*rounds))
            lines.append(
                f"| {name} | {kept * 1000:.0f} ms | {free * 1000:.0f} ms | {free / kept:.2f} × |"
            )
    finally:
        for pool in pools.values():
            pool.close()
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--write", action="store_true", help="write the table into its page")
    options = parser.parse_args()
    table = measured()
    print(table)
    if options.write:
        keep(PAGE, "cores", table)
