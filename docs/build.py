"""Write the generated parts of README.md and docs/: verdicts, tables, counts.

    python docs/build.py           bring the pages up to date (`make docs`)
    python docs/build.py --check   write nothing; exit 1 if a page is out of date

A page marks such a part with `<!-- begin: NAME -->` and `<!-- end: NAME -->`.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from grader.course.course import load_course
from grader.course.known_mistakes import load_mistakes

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
PART = re.compile(r"(<!-- begin: (\w+) -->\n).*?(<!-- end: \2 -->)", re.DOTALL)


def printed(command: Sequence[str], folder: Path) -> str:
    """Return a command of the grader and what it prints in a folder."""
    done = subprocess.run(
        [sys.executable, "-m", "grader", *command],
        cwd=folder,
        check=False,
        capture_output=True,
        text=True,
    )
    return f"```\n$ grader {' '.join(command)}\n{done.stdout.rstrip()}\n```\n"


@cache  # two pages show it
def verdict() -> str:
    """Return what `grader check` prints about a sample submission."""
    command = ["check", "examples/class/s002", "multi_head_attention", "--seed", "7"]
    return printed(command, ROOT)


def exercises() -> str:
    """Return the course as a table: the first list by exercise, and each list as a whole."""
    course = load_course(ROOT)
    rows = ["| exercise | | points | known mistakes |", "|---|---|---|---|"]
    for number, name in enumerate(course.lists):
        listed = course.choose(name)
        faults = {exercise.name: len(load_mistakes(exercise)) for exercise in listed.exercises}
        if number == 0:
            for exercise in listed.exercises:
                title = f"[{exercise.title}](exercises/{exercise.name}.py)"
                count = faults[exercise.name]
                rows.append(f"| {title} | {exercise.summary} | {exercise.points} | {count} |")
        says = f"[{len(faults)} exercises](exercises/README.md)"
        rows.append(
            f"| **The list `{name}`** | {says} | **{listed.points}** | **{sum(faults.values())}** |"
        )
    return "\n".join(rows) + "\n"


def importing() -> str:
    """Return what `grader import` prints about a sample notebook, in an empty folder."""
    command = ["import", "nbgrader", "examples/other_graders/nbgrader.ipynb"]
    with TemporaryDirectory() as folder:
        shutil.copytree(ROOT / "examples", Path(folder) / "examples")
        return printed(command, Path(folder))


MAKERS: Mapping[str, Callable[[], str]] = {
    "verdict": verdict,
    "exercises": exercises,
    "importing": importing,
}


def updated(page: str) -> str:
    """Return a page with fresh text in its generated parts."""
    return PART.sub(
        # Parts that take minutes have commands of their own, such as `make attacks`.
        lambda part: part[1] + MAKERS[part[2]]() + part[3] if part[2] in MAKERS else part[0],
        page,
    )


def main() -> int:
    """Write or check every page."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 if one is old")
    only_check = parser.parse_args().check
    stale = []
    for path in PAGES:
        text = path.read_text("utf-8")
        fresh = updated(text)
        if fresh != text:
            stale.append(path)
            if not only_check:
                path.write_text(fresh, "utf-8")
    for path in stale:
        print(f"{'stale' if only_check else 'wrote'}: {path.relative_to(ROOT)}")
    return 1 if stale and only_check else 0


if __name__ == "__main__":
    sys.exit(main())
