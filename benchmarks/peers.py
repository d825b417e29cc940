"""Compare this project with the graders that a teacher could use instead, in one run.

    python benchmarks/peers.py [--write] [--only NAME] [--rounds N]

The same exercises, hidden tests and submissions are graded by `grader batch`, plain pytest, Otter,
nbgrader and gradescope-utils. Each has its own virtual environment in build/peers/, made in the
first run. `--write` writes the tables into docs/benchmarks.md.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "tests"))

from pages import keep  # noqa: E402
from peers import environments  # noqa: E402
from peers.harness import cases, course  # noqa: E402
from peers.measure import Usage, disturbance, machine  # noqa: E402
from peers.tools import TOOLS, Class, Points, Tool  # noqa: E402

PAGE = ROOT / "docs" / "benchmarks.md"
# s006 loops without end, s012 ends the process that it runs in, s011 holds a file that is not UTF-8
# and fits into no notebook. The others would only take more time.
STUDENTS = ("s001", "s002", "s004", "s005", "s007", "s009", "s010", "s013", "s014", "s018")
RIGHT = STUDENTS[0]  # must get all points
MIB = 1024**2


@dataclass(frozen=True)
class Cost:
    """Seconds to start; seconds and CPU seconds for each submission; the most memory in bytes."""

    start: float
    each: float
    cpu: float
    peak: int


@dataclass(frozen=True)
class Result:
    """A tool's cost, the points that it gives, and the usages that the cost is computed from."""

    tool: Tool
    cost: Cost
    points: Points
    usages: tuple[Usage, ...]


def students(copies: int = 1) -> Class:
    """Return the class, several times over; the files of each copy have different bytes."""
    return {
        f"{student}-{copy}" if copy else student: {
            path.stem: path.read_text("utf-8") + (f"\n# copy {copy}\n" if copy else "")
            for path in sorted((ROOT / "examples" / "class" / student).glob("*.py"))
            if path.stem in course().names
        }
        for copy in range(copies)
        for student in STUDENTS
    }


def result(tool: Tool, rounds: int) -> Result:
    """Grade the class with a tool `rounds` times; the costs are medians."""
    costs: list[Cost] = []
    usages: list[Usage] = []
    for number in range(rounds):
        print(f"{tool.name}, round {number + 1} of {rounds}", file=sys.stderr)
        work = _empty(environments.BUILD / tool.environment / "work")
        once = tool.grade(students(), work)
        if sum(once.points[RIGHT].values()) != course().points:
            raise SystemExit(f"{tool.name} gives {once.points[RIGHT]} for a right one: see {work}")
        usages += once.usages
        if tool.copies == 1:
            costs.append(_of_processes(once.usages))
        else:
            more = tool.grade(students(tool.copies), _empty(work))
            usages += more.usages
            costs.append(_of_runs(once.usages[0], more.usages[0], tool.copies))
    cost = Cost(
        start=statistics.median(cost.start for cost in costs),
        each=statistics.median(cost.each for cost in costs),
        cpu=statistics.median(cost.cpu for cost in costs),
        peak=max(cost.peak for cost in costs),
    )
    return Result(tool, cost, once.points, tuple(usages))


def _empty(folder: Path) -> Path:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder


def _of_processes(usages: Sequence[Usage]) -> Cost:
    """Return the cost of a tool that runs once for each submission."""
    return Cost(
        start=0.0,
        each=statistics.fmean(usage.wall for usage in usages),
        cpu=statistics.fmean(usage.cpu for usage in usages),
        peak=max(usage.peak for usage in usages),
    )


def _of_runs(once: Usage, more: Usage, copies: int) -> Cost:
    """Return the cost of a tool that grades a class in one run, from two runs of it."""
    added = (copies - 1) * len(STUDENTS)
    each = (more.wall - once.wall) / added
    return Cost(
        start=max(0.0, once.wall - each * len(STUDENTS)),
        each=each,
        cpu=(more.cpu - once.cpu) / added,
        peak=max(once.peak, more.peak),
    )


# --- tables --------------------------------------------------------------------------------------


def costs(results: Sequence[Result]) -> Iterator[str]:
    """Yield the lines of the table of costs, with their ratios to ours."""
    ours = results[0].cost
    columns = ("start", "a submission", "a minute", "CPU each", "memory", "time", "CPU", "memory")
    yield f"| | {' | '.join(columns)} |"
    yield f"|---{'|--:' * len(columns)}|"
    for result in results:
        cost = result.cost
        start = f"{cost.start:.1f} s" if result.tool.copies > 1 else "in each"
        yield (
            f"| {result.tool.name} | {start} | {cost.each:.2f} s | {60 / cost.each:.0f} | "
            f"{cost.cpu:.2f} s | {cost.peak / MIB:.0f} MiB | {cost.each / ours.each:.1f} × | "
            f"{cost.cpu / ours.cpu:.1f} × | {cost.peak / ours.peak:.1f} × |"
        )


def differences(results: Sequence[Result]) -> Iterator[str]:
    """Yield the lines of the table of points that differ from ours."""
    ours = results[0].points
    yield f"| | same points as {results[0].tool.name} | differences: its points, and ours |"
    yield "|---|--:|---|"
    for result in results[1:]:
        found = {
            student: "; ".join(
                f"{name} {mine.get(name, 0)}, ours {points}"
                for name, points in ours[student].items()
                if mine.get(name, 0) != points
            )
            for student, mine in result.points.items()
        }
        same = sum(not difference for difference in found.values())
        listed = "<br>".join(f"{student}: {text}" for student, text in found.items() if text)
        yield f"| {result.tool.name} | {same} of {len(found)} | {listed or '–'} |"


def report(results: Sequence[Result]) -> str:
    """Return both tables, and the submissions, versions and machine that were measured."""
    versions = dict.fromkeys(
        environments.versions(result.tool.environment, result.tool.packages) for result in results
    )
    return "\n".join(
        [
            f"{len(STUDENTS)} submissions ({', '.join(STUDENTS)}), {len(cases())} hidden tests; "
            f"{machine()}; Python {sys.version.split()[0]}, {', '.join(versions)}. "
            + disturbance([usage for result in results for usage in result.usages]),
            "",
            *costs(results),
            "",
            *differences(results),
            "",
        ]
    )


def main() -> None:
    """Grade with every tool and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument(
        "--write", action="store_true", help="write the tables into docs/benchmarks.md"
    )
    parser.add_argument(
        "--only", metavar="NAME", help="measure only ours and this one: pytest, otter, …"
    )
    parser.add_argument("--rounds", type=int, default=1, help="take the median of N runs")
    options = parser.parse_args()
    if options.write and options.only:
        parser.error("--write writes the whole table, so leave out --only")
    tools = [make(cases()) for make in TOOLS]
    chosen = [t for t in tools if not options.only or t is tools[0] or options.only in t.name]
    for tool in chosen:  # nothing may be installed while a tool is measured
        environments.python(tool.environment)
    text = report([result(tool, options.rounds) for tool in chosen])
    print(text)
    if options.write:
        keep(PAGE, "peers", text)


if __name__ == "__main__":
    main()
