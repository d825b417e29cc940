"""An autograder brings the grader along as a wheel, with the versions that it runs with."""

from __future__ import annotations

import io
import os
import re
import shutil
import sys
import zipfile
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import pytest

from grader import __version__
from grader.__main__ import run
from grader.commands.own_wheel import WHEEL_NAME, make_wheel, pins
from grader.course.course import load_public

pytestmark = pytest.mark.in_turn

ROOT = Path(__file__).parent.parent
ANSWERS = ("reference", "mistakes.toml", "solution.py", "test_hidden.py")


def test_the_wheel_is_the_same_each_time_and_holds_the_whole_package(tmp_path: Path) -> None:
    data = make_wheel()
    assert data == make_wheel()
    (tmp_path / WHEEL_NAME).write_bytes(data)
    with zipfile.ZipFile(tmp_path / WHEEL_NAME) as wheel:
        names = set(wheel.namelist())
        said = wheel.read(f"attention_grader-{__version__}.dist-info/entry_points.txt").decode()
    wanted = {str(path.relative_to(ROOT)) for path in (ROOT / "grader").rglob("*.[pj]*[y2]")}
    assert wanted - names == set()
    assert not [name for name in names if "__pycache__" in name]
    assert "grader/students/exercises/masked_softmax.py" in names
    assert not [name for name in names for part in ANSWERS if part in name.split("/")]
    assert "grader = grader.__main__:main" in said
    assert "attention_grader = grader.grading.plugin" in said
    assert [point.value for point in entry_points(group="pytest11", name="attention_grader")] == (
        ["grader.grading.plugin"]
    )


def test_the_wheel_holds_no_work_in_the_exercises(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository = tmp_path / "repository"
    shutil.copytree(ROOT / "exercises", repository / "exercises")
    work = repository / "exercises" / "masked_softmax.py"
    stub = work.read_bytes()
    work.write_text("# mine\n")
    monkeypatch.setattr(
        "grader.commands.own_wheel.packaged_course", lambda: load_public(repository)
    )
    with zipfile.ZipFile(io.BytesIO(make_wheel.__wrapped__())) as wheel:
        assert wheel.read("grader/students/exercises/masked_softmax.py") == stub


def test_the_pins_are_the_versions_of_here_and_no_tool_of_ours() -> None:
    lines = pins().splitlines()
    assert re.fullmatch(r"torch==[\d.]+", lines[0])  # on every Python, and without a build's name
    mine = f'python_version == "{sys.version_info.major}.{sys.version_info.minor}"'
    names = {line.partition("==")[0] for line in lines[1:] if line.endswith(f"; {mine}")}
    assert len(names) == len(lines) - 1
    assert {"pytest", "msgspec", "click", "jinja2", "ipython"} <= names
    assert not {"ruff", "mypy", "distributed", "attention-grader"} & names


def test_a_grader_that_is_not_installed_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    from importlib.metadata import PackageNotFoundError

    def nothing(name: str) -> Any:
        raise PackageNotFoundError(name)

    monkeypatch.setattr("grader.commands.own_wheel.distribution", nothing)
    assert run(["autograder", "gradescope", "--course", str(ROOT), "--out", os.devnull]) == 2
