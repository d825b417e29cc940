"""What the other graders of the benchmark run are the hidden tests that this one runs."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from conftest import ROOT

from grader.course.course import Course
from grader.errors import CheckFailure

sys.path.append(str(ROOT / "benchmarks"))
from peers import harness


@pytest.fixture
def handed_in(core: Course, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the references of the core, in which the tools would run."""
    for name in core.names:
        (tmp_path / f"{name}.py").write_text(core[name].read("solution.py"), "utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(harness, "_programs", {})  # a tool runs each submission in a new process
    monkeypatch.setattr(harness, "_failed", set())
    return tmp_path


@pytest.mark.slow
@pytest.mark.usefixtures("handed_in")
def test_the_references_pass_every_case_and_earn_all_points(core: Course) -> None:
    cases = harness.cases()
    for case in cases:
        harness.check(case.exercise, case.test)
    assert sum(case.points for case in cases) == core.points


def test_a_wrong_exercise_fails_its_case(handed_in: Path) -> None:
    file = handed_in / "layer_norm.py"
    file.write_text(file.read_text("utf-8").replace("correction=0", "correction=1"), "utf-8")
    with pytest.raises(CheckFailure):
        harness.check("layer_norm", "test_formula")
