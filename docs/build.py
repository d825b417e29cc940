"""Write what README.md and docs/ show of the project itself: verdicts, tables, counts.

    python docs/build.py           brings the pages up to date (`make docs`)
    python docs/build.py --check   writes nothing; exit 1 if a page is stale

A page marks such a part with `<!-- begin: NAME -->` and `<!-- end: NAME -->`.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from grader.course.course import load_course
from grader.course.faults import load_faults

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
PART = re.compile(r"(<!-- begin: (\w+) -->\n).*?(<!-- end: \2 -->)", re.DOTALL)


def verdict() -> str:
    """What `grader check` says of a sample submission."""
    command = ["check", "examples/class/s002", "multi_head_attention", "--seed", "7"]
    done = subprocess.run(
        [sys.executable, "-m", "grader", *command],
        cwd=ROOT,
        check=False,
        capture_output=True,
        text=True,
    )
    return f"```\n$ grader {' '.join(command)}\n{done.stdout.rstrip()}\n```\n"


def watch() -> str:
    """The screen of `grader check --watch` on a sample exercise."""
    command = ["check", "--watch", "examples/class/s009/causal_attention.py"]
    with TemporaryDirectory() as folder:  # where nobody has asked for hints yet
        for part in ("reference", "examples"):
            shutil.copytree(ROOT / part, Path(folder) / part)
        done = subprocess.run(
            [sys.executable, "-m", "grader", *command, "--manual", "--seed", "7"],
            cwd=folder,
            check=False,
            capture_output=True,
            text=True,
            input="h\nq\n",
        )
    screens = done.stdout.split("  checking …\n")[1].split("q quit\n")
    return f"```\n$ grader {' '.join(command)}\n{screens[1].strip(chr(10))}q quit\n```\n"


def exercises() -> str:
    """The course as a table."""
    course = load_course(ROOT)
    rows = ["| exercise | | points | known mistakes |", "|---|---|---|---|"]
    for exercise in course.exercises:
        name = f"[{exercise.title}](exercises/{exercise.name}.py)"
        faults = len(load_faults(exercise))
        rows.append(f"| {name} | {exercise.summary} | {exercise.points} | {faults} |")
    total = sum(len(load_faults(exercise)) for exercise in course.exercises)
    rows.append(f"| | | **{course.points}** | **{total}** |")
    return "\n".join(rows) + "\n"


def updated(page: str) -> str:
    """A page with its marked parts made anew."""
    makers = {"verdict": verdict, "watch": watch, "exercises": exercises}
    return PART.sub(
        # What takes minutes to make is kept by a command of its own, such as `make attacks`.
        lambda part: part[1] + makers[part[2]]() + part[3] if part[2] in makers else part[0],
        page,
    )


def main() -> int:
    """Write or check every page."""
    stale = []
    for path in PAGES:
        text = path.read_text("utf-8")
        fresh = updated(text)
        if fresh != text:
            stale.append(path)
            if "--check" not in sys.argv:
                path.write_text(fresh, "utf-8")
    for path in stale:
        print(f"{'stale' if '--check' in sys.argv else 'wrote'}: {path.relative_to(ROOT)}")
    return 1 if stale and "--check" in sys.argv else 0


if __name__ == "__main__":
    sys.exit(main())
