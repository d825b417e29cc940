"""Kill any process of a batch at any moment, many times: what comes out is what always does."""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from classroom import TINY, beneath, hand_in, processes, rows, waits
from commandline import Cli
from warm import warm_popen

pytestmark = [
    pytest.mark.in_turn("file"),
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="finds its processes in /proc"),
]

STUDENTS = [f"s{n:03}" for n in range(1, 81)]
SLOWLY = "    __import__('time').sleep(0.03)\n"  # a moment in which to be killed
# What is killed in each run, before the parent itself is, while the run warms up and later: every
# kind of process in each phase, and each start of a run is the start of all its processes.
EARLY = [(), ("zygote", "template")]
LATER = [(*["grading"] * 5, "template"), (*["grading"] * 5, "zygote")]
LAST = (*["grading"] * 8, "zygote")
KILLS = sum(len(each) + 1 for each in (*EARLY, *LATER)) + len(LAST)


@dataclass
class Batch:
    """A class that is graded by a process of its own, whose processes can be found."""

    folder: Path
    killed: Counter[str] = field(default_factory=Counter)
    seen: set[int] = field(default_factory=set)

    @property
    def log(self) -> Path:
        return self.folder / "log.jsonl"

    def start(self) -> subprocess.Popen[bytes]:
        command = ["batch", str(self.folder.parent / "class"), "--out", str(self.folder / "out")]
        scratch = self.folder / "scratch"
        scratch.mkdir(parents=True, exist_ok=True)
        return warm_popen()(
            [
                *(sys.executable, "-m", "grader", *command, "--course", str(TINY)),
                *("--seed", "5", "--jobs", "2", "--quiet", "--log", str(self.log)),
            ],
            stdout=subprocess.DEVNULL,
            stderr=(self.folder / "errors.txt").open("ab"),
            env={**os.environ, "TMPDIR": str(scratch)},
        )

    def told(self) -> list[dict[str, Any]]:
        """What has happened so far; the last line may still be being written."""
        text = self.log.read_text() if self.log.exists() else ""
        whole = text[: text.rfind("\n") + 1]
        return [json.loads(line) for line in whole.splitlines()]

    def graded(self) -> list[str]:
        return [each["student"] for each in self.told() if each["event"] == "graded"]

    def untouched(self, since: int) -> set[str]:
        """Whom no run has graded, nor handed out since the `since`-th line of the log."""
        told = self.told()
        begun = {each["student"] for each in told[since:] if each["event"] == "started"}
        done = {each["student"] for each in told if each["event"] == "graded"}
        return set(STUDENTS) - begun - done

    def kill(self, run: subprocess.Popen[bytes], what: str, chance: random.Random) -> bool:
        """Kill one process of a kind, if there is one."""
        below = list(beneath(run.pid))
        self.seen.update(one.pid for one in below)
        templates = {one.pid for one in below if one.parent == run.pid}
        of_kind = {
            "parent": [run.pid],
            "template": sorted(templates),
            "grading": [p.pid for p in below if "template" in p.command and p.parent in templates],
            "zygote": [p.pid for p in below if "worker" in p.command and p.parent in templates],
        }[what]
        if not of_kind:
            return False
        with contextlib.suppress(ProcessLookupError):
            os.kill(chance.choice(of_kind), signal.SIGKILL)
            self.killed[what] += 1
            return True
        return False

    def warms_up(self, seconds: float) -> None:
        """Wait so long, but not while it grades already."""
        before = len(self.graded())
        waits(lambda: len(self.graded()) > before, seconds)

    def kill_soon(self, run: subprocess.Popen[bytes], what: str, chance: random.Random) -> None:
        """Kill one process of a kind as soon as there is one; none is left once the run ends."""
        while run.poll() is None and not self.kill(run, what, chance):
            time.sleep(0.01)


def kill_while_grading(
    batch: Batch, run: subprocess.Popen[bytes], kinds: tuple[str, ...], chance: random.Random
) -> None:
    """Kill one after another while there are submissions that this run has not handed out yet.

    Whoever is lost is tried again after them, and is given up if that is stopped as well.
    """
    since = len(batch.told())
    for what in kinds:
        wanted = len(batch.graded()) + chance.randint(1, 2)
        while len(batch.graded()) < wanted:
            assert batch.untouched(since), "nobody is left to grade: the class is too small"
            time.sleep(0.005)
        time.sleep(chance.uniform(0, 0.05))
        batch.kill_soon(run, what, chance)
    assert batch.untouched(since), "nobody is left to grade: the class is too small"


def results(out: Path) -> dict[str, Any]:
    """Everything that was found, without how long it took."""
    lines = (out / "results.jsonl").read_text().splitlines()
    return {report["submission"]: report for report in map(json.loads, lines)}


def same(out: Path, other: Path) -> None:
    assert (out / "grades.csv").read_bytes() == (other / "grades.csv").read_bytes()
    assert results(out) == results(other)
    for place in ("", "reports"):
        names = {path.name for path in (out / place).iterdir() if "ledger" not in path.name}
        assert names == {p.name for p in (other / place).iterdir() if "ledger" not in p.name}
    for path in (other / "reports").iterdir():
        assert (out / "reports" / path.name).read_bytes() == path.read_bytes()


def test_kills_at_random_change_nothing(cli: Cli, tmp_path: Path, tiny_solution: str) -> None:
    seed = random.randrange(1 << 32)
    print(f"KILL_SEED={seed}   repeats it")  # pytest shows it where this fails
    chance = random.Random(int(os.environ.get("KILL_SEED", seed)))
    right = tiny_solution.replace("    if factor < 0", f"{SLOWLY}    if factor < 0")
    wrong = right.replace("return x * factor", "return x * min(factor, 2.0)")
    texts = {
        f"{name}/scale.py": f"{right if n % 3 else wrong}\n# {name}\n"
        for n, name in enumerate(STUDENTS)
    }
    hand_in(tmp_path / "class", texts)
    batch, whole = Batch(tmp_path / "killed"), tmp_path / "whole"
    runs = [*((kinds, True) for kinds in EARLY), *((kinds, False) for kinds in LATER)]
    chance.shuffle(runs)
    for kinds, is_early in runs:
        run = batch.start()
        if is_early:
            for what in kinds:
                batch.warms_up(chance.uniform(0, 0.8))
                batch.kill_soon(run, what, chance)
            batch.warms_up(chance.uniform(0, 1.6))
        else:
            kill_while_grading(batch, run, kinds, chance)
            time.sleep(chance.uniform(0, 0.3))
        assert run.poll() is None, (batch.folder / "errors.txt").read_text()[-2000:]
        batch.kill(run, "parent", chance)
        run.wait()
    run = batch.start()
    kill_while_grading(batch, run, LAST, chance)
    assert run.wait() == 1, (batch.folder / "errors.txt").read_text()[-2000:]
    assert (batch.killed.total(), batch.killed["parent"]) == (KILLS, len(runs))
    assert KILLS >= 25
    command = ("batch", tmp_path / "class", "--out", whole, "--course", TINY, "--seed", 5)
    assert cli(*command, "--jobs", 2, "--quiet").code == 1
    same(batch.folder / "out", whole)
    # Nobody was given up, and nobody graded twice, as far as anybody was ever told.
    told = Counter((each["event"], each["student"]) for each in batch.told())
    assert {student for event, student in told if event == "gave up"} == set()
    assert all(count == 1 for (event, _), count in told.items() if event == "graded")
    found = rows(batch.folder / "out", "SELECT hash, count(*), count(DISTINCT run) FROM results")
    assert found[0][1:] == (len(STUDENTS), found[0][2])
    assert rows(batch.folder / "out", "PRAGMA integrity_check") == [("ok",)]
    # Nothing is left behind; but if a zygote is killed and then its host, nobody is left to remove
    # the zygote's folder and the workers' private folders in it, which are empty.
    assert waits(lambda: not batch.seen & set(processes()))
    scratch = batch.folder / "scratch"
    assert waits(lambda: len(list(scratch.iterdir())) <= batch.killed["zygote"])
    assert waits(lambda: not any(path.is_file() for path in scratch.rglob("*")))
