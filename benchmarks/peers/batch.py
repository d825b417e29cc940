"""Running `grader batch`: its command line, and the files in its results folder."""

from __future__ import annotations

import functools
import json
from collections.abc import Sequence
from pathlib import Path

from peers import environments
from peers.environments import OURS, ROOT
from peers.harness import SEED
from peers.measure import Usage, measured

LEDGER = "ledger.sqlite"  # in the results folder


@functools.cache
def options() -> str:
    """Return what `grader batch --help` prints."""
    return environments.run([environments.python(OURS), "-m", "grader", "batch", "--help"])


def grade(
    folder: Path, out: Path, *, log: Path, jobs: int = 1, cluster: str = "", seed: int = SEED
) -> Usage:
    """Grade a folder of submissions; each sample of the processes counts the reports."""
    command: list[str | Path] = [
        environments.python(OURS),
        "-m",
        "grader",
        "batch",
        folder,
        "--out",
        out,
    ]
    chosen = ["--seed", str(seed), *_where(jobs, cluster)]
    return measured([*command, *chosen], cwd=ROOT, log=log, fine=(0, 1), count=lambda: reports(out))


def _where(jobs: int, cluster: str) -> Sequence[str]:
    if cluster:
        return ["--cluster", cluster]
    if "--jobs" in options():
        return ["--jobs", str(jobs)]
    if jobs != 1:
        raise SystemExit("this version of `grader batch` has no --jobs")
    return []


def reports(out: Path) -> int:
    """Return the number of submissions that have a report."""
    folder = out / "reports"
    return sum(1 for path in folder.iterdir() if path.suffix == ".json") if folder.is_dir() else 0


def points(out: Path) -> dict[str, dict[str, int]]:
    """Return the points of each student in each exercise, from the reports."""
    found = {}
    for path in (out / "reports").glob("*.json"):
        report = json.loads(path.read_text("utf-8"))
        found[path.stem] = {e["name"]: e["points"] for e in report["exercises"]}
    return found
