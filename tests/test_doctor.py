"""The grader finds and names a missing layer, and refuses other people's code without it."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest
from commandline import Said
from warm import run_warm

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux confines")
HERE = Path(__file__).parent


def lacking(what: str, *arguments: object) -> Said:
    """Run `grader …` on this kernel as if the kernel lacked `what`."""
    command = [sys.executable, str(HERE / "without.py"), what, *map(str, arguments)]
    return run_warm(command, cwd=HERE / "tiny")


DOCTOR = {
    "landlock": ("✗ Landlock\n      the kernel offers no Landlock", "✗ read the hidden tests: NOT"),
    "seccomp": ("✗ seccomp\n      the kernel offers no system call", "✗ start a process: NOT"),
    "limits": (
        "resource limits: the kernel offers this layer but refused it",
        "✗ start, but could not",
    ),
    "privileges": (
        "no privileges: the kernel offers this layer but refused it",
        "✗ start, but could not",
    ),
    "restrict": ("Landlock: the kernel offers this layer but refused it", "✗ start, but could not"),
}


@pytest.mark.slow
@pytest.mark.parametrize("what", DOCTOR)
def test_the_doctor_says_what_is_missing(what: str) -> None:
    said = lacking(what, "doctor")
    assert said.code == 1, said.err
    plain = re.sub(r"\s*\n\s+", "\n      ", said.out)
    flat = " ".join(said.out.split())
    for part in DOCTOR[what]:
        assert part in plain or part in flat
    assert "Student code is not confined here" in said.out
    assert "✓ take 8 GiB of memory: refused" in said.out or "could not" in said.out


def test_the_doctor_finds_this_machine_well() -> None:
    said = lacking("nothing", "doctor")
    assert said.code == 0, said.out
    assert "✗" not in said.out
    assert said.out.count("refused") >= 12
    assert all(len(line) <= 80 for line in said.out.splitlines())


@pytest.mark.slow
@pytest.mark.parametrize("what", ["landlock", "seccomp"])
def test_batch_refuses_to_grade_unconfined_unless_asked(
    what: str, tmp_path: Path, tiny_solution: str
) -> None:
    (tmp_path / "class" / "s001").mkdir(parents=True)
    (tmp_path / "class" / "s001" / "scale.py").write_text(tiny_solution)
    request = ("batch", tmp_path / "class", "--out", tmp_path / "out")
    said = lacking(what, *request)
    assert said.code == 2
    assert "this machine cannot confine other people's code" in said.err
    assert "grader doctor" in said.err
    assert "--isolation process" in said.err
    assert not (tmp_path / "out").exists()
    graded = lacking(what, *request, "--isolation", "process")
    assert graded.code == 0, graded.err
    report = (tmp_path / "out" / "reports" / "s001.json").read_text()
    assert {"landlock": "Landlock", "seccomp": "seccomp"}[what] not in report.split("exercises")[0]


@pytest.mark.slow
def test_a_layer_that_the_kernel_refuses_stops_grading(tmp_path: Path) -> None:
    said = lacking("restrict", "check", HERE / "tiny" / "reference")
    assert said.code == 3
    assert "Landlock: the kernel offers this layer but refused it" in said.err
