"""What is set on the teacher's machine decides no mark: neither variables nor Python's options."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from classroom import TINY, Pools, hand_in, marks
from commandline import Cli

from grader.errors import InternalError

pytestmark = pytest.mark.in_turn

HOSTILE = {
    "leaves out every test": {"PYTEST_ADDOPTS": "-k nothing"},
    "leaves out a test": {"PYTEST_ADDOPTS": "--deselect=test_twice -k 'not thrice'"},
    "runs tests in other processes": {"PYTEST_ADDOPTS": "-n 2"},
    "needs a plugin that is not there": {"PYTEST_PLUGINS": "no_such_plugin"},
    "stops at the first failure": {"PYTEST_ADDOPTS": "-x --maxfail=1"},
    "makes errors of warnings": {"PYTHONWARNINGS": "error", "PYTEST_ADDOPTS": "-W error"},
    "lists tests, and runs none": {"PYTEST_ADDOPTS": "--collect-only"},
}


@pytest.fixture
def wrong(tmp_path: Path, tiny_solution: str) -> Path:
    """A submission that earns some of the points."""
    text = tiny_solution.replace("return x * factor", "return x * 2.0")
    return hand_in(tmp_path / "class", {"s001/scale.py": text})


def fresh_batch(folder: Path, out: Path, *python: str, **variables: str) -> Any:
    """Grade a class in processes of their own, which see these variables."""
    command = ["batch", folder, "--out", out, "--course", TINY, "--jobs", 1, "--seed", 5]
    return subprocess.run(
        [sys.executable, *python, "-m", "grader", *map(str, command)],
        env=os.environ | variables,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.slow
@pytest.mark.parametrize("what", HOSTILE)
def test_variables_change_no_point_of_a_check(
    what: str, cli: Cli, wrong: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    command = ("check", wrong / "s001", "--course", TINY, "--seed", 5, "--format", "json")
    usual = json.loads(cli(*command).out)
    for name, value in HOSTILE[what].items():
        monkeypatch.setenv(name, value)
    said = cli(*command)
    assert json.loads(said.out) == usual, said.err
    assert usual["points"] == 6
    assert os.environ.items() >= HOSTILE[what].items()  # they are the teacher's, and come back


@pytest.mark.slow
def test_variables_change_no_mark_of_a_class(wrong: Path, tmp_path: Path) -> None:
    hostile = {"PYTEST_ADDOPTS": "-k nothing", "PYTEST_PLUGINS": "none", "PYTHONOPTIMIZE": "1"}
    said = fresh_batch(wrong, tmp_path / "out", "-I", **hostile)
    assert said.returncode == 1, said.stderr
    assert marks(tmp_path / "out") == {"s001": "6"}


@pytest.mark.slow
@pytest.mark.parametrize(
    "error",
    [
        ModuleNotFoundError("No module named 'landlockpy'"),
        InternalError("no worker starts: No module named 'landlockpy'", "grader doctor"),
    ],
)
def test_a_package_that_is_not_installed_is_named_with_the_install(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def fails(*_: object, **options: object) -> None:
        raise error

    monkeypatch.setattr("grader.commands.check.work.starting", fails)
    said = cli("check")
    assert said.code == 3
    assert "No module named 'landlockpy'" in said.err
    assert "try: pip install -r requirements.txt" in said.err


def test_a_python_without_assertions_is_refused(wrong: Path) -> None:
    command = ["check", str(wrong / "s001"), "--course", str(TINY)]
    said = subprocess.run(
        [sys.executable, "-O", "-m", "grader", *command],
        capture_output=True,
        text=True,
        check=False,
    )
    assert said.returncode == 2
    assert "this Python leaves out assertions" in said.stderr


@pytest.mark.slow
def test_an_exercise_with_other_tests_than_its_points_is_the_courses_error(
    cli: Cli, pools: Pools, wrong: Path, tmp_path: Path, tiny_copy: Path
) -> None:
    suite = tiny_copy / "reference" / "scale" / "test_hidden.py"
    suite.write_text(suite.read_text().replace("def test_thrice", "def untested_thrice"))
    said = cli("batch", wrong, "--out", tmp_path / "out", "--course", tiny_copy)
    assert said.code == 2
    assert "scale: its tests are worth 6 points, and the exercise 8" in said.err
    assert not (tmp_path / "out" / "grades.csv").exists() or marks(tmp_path / "out") == {}


@pytest.mark.slow
def test_an_exercise_without_tests_is_the_courses_error(
    cli: Cli, wrong: Path, tiny_copy: Path
) -> None:
    suite = tiny_copy / "reference" / "scale" / "test_hidden.py"
    suite.write_text('"""Nothing."""\n')
    said = cli("check", wrong / "s001", "--course", tiny_copy)
    assert said.code == 2
    assert "has no tests" in said.err
