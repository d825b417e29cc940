"""The page for operators: its commands do what it says, one after the other."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from classroom import Instant, hand_in, marks
from commandline import Cli

pytestmark = pytest.mark.in_turn

PAGE = Path(__file__).parent.parent / "docs" / "operator.md"
FROM_AN_INDEX = "pip install -U attention-grader"  # of which a test has none


def commands() -> list[str]:
    """The commands of the page, without what stands beside them."""
    lines = re.findall(r"^ {4}(\S.*)$", PAGE.read_text("utf-8"), re.MULTILINE)
    return [re.split(r" {2,}", line)[0] for line in lines]


def carry_out(cli: Cli, command: str) -> int:
    """Run a command of the page; return its exit code."""
    program, *arguments = shlex.split(command)
    if program == "grader":
        return cli(*arguments).code
    program = {"python": sys.executable}.get(program, program)
    return subprocess.run([program, *arguments], check=False).returncode


@pytest.mark.slow
def test_every_command_of_the_page_does_what_it_says(
    cli: Cli, instant: Instant, tiny_copy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tiny_copy)
    submissions = {f"submissions/s00{n}/scale.py": f"# {n} points\n" for n in range(1, 6)}
    hand_in(tiny_copy, submissions)
    codes = {}
    for command in commands():
        if command != FROM_AN_INDEX:
            codes[command] = carry_out(cli, command)
        if command.startswith("grader erase"):
            shutil.rmtree("submissions/s004")
    assert {command for command, code in codes.items() if code not in (0, 1)} == set()
    assert {name.split()[1] for name in codes if name.startswith("grader")} == {
        *("doctor", "batch", "erase", "regrade")
    }
    assert set(marks(Path("results"))) == {"s001", "s002", "s003", "s005"}
    restored = {path.name: path.read_bytes() for path in Path("restored/reports").iterdir()}
    assert restored == {path.name: path.read_bytes() for path in Path("results/reports").iterdir()}
    assert len(instant.jobs) == 5  # nothing was graded again
