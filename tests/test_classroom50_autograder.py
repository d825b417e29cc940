"""The folder for Classroom 50 grades, and keeps to what Classroom 50 reads."""

from __future__ import annotations

import os
import runpy
import sys
import zipfile
from collections.abc import Mapping
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from autograding import cases, fits, hand_in, load, started
from commandline import Cli

from grader.commands.own_wheel import WHEEL_NAME

pytestmark = pytest.mark.in_turn

RUNNER = {
    "CLASSROOM": "c",
    "ASSIGNMENT": "a",
    "SUBMISSION_TAG": "submit/1",
    "COMMIT_URL": "https://git.example/commit/1",
    "RELEASE_URL": "https://git.example/releases/1",
    "REVIEW_URL": "https://git.example/compare/0...1",
}
RESULT: Mapping[str, Any] = {
    **dict.fromkeys(("classroom", "assignment", "submission", "commit", "release"), str),
    **{"schema": {"classroom50/result/v1"}, "review": str, "datetime": str},
    **{"score": int, "max-score": int, "tests": list},
}
RESULT_TEST: Mapping[str, Any] = {
    "test-name": str,
    "passed": bool,
    "score": int,
    "max-score": int,
}


@pytest.fixture
def bundle(cli: Cli, tiny_copy: Path, tmp_path: Path) -> Path:
    """What Classroom 50 publishes and gives to its runner."""
    cli("build", "--course", tiny_copy)
    said = cli("autograder", "classroom50", "--course", tiny_copy, "--out", tmp_path / "bundle")
    assert said.code == 0, said.err
    return tmp_path / "bundle"


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A student's repository, with files that are in the way of a careless runner."""
    folder = tmp_path / "checkout"
    (folder / "exercises").mkdir(parents=True)
    for name in ("grader", "pip", "click"):
        (folder / name).mkdir()
        (folder / name / "__init__.py").write_text("raise SystemExit('imported')\n")
    (folder / "result.json").mkdir()
    return folder


def test_what_classroom50_publishes_holds_no_answer(bundle: Path, tiny_solution: str) -> None:
    files = [path for path in bundle.rglob("*") if path.is_file() and path.suffix != ".whl"]
    texts = [path.read_text("utf-8", "replace") for path in files]
    assert not [text for text in texts if "return x * factor" in text]
    with zipfile.ZipFile(bundle / WHEEL_NAME) as wheel:
        assert not [name for name in wheel.namelist() if "reference" in name]
    assert load(bundle / "settings.json")["secret"] == ""


@pytest.mark.slow
@pytest.mark.parametrize("case", ["right", "wrong", "empty", "broken"])
def test_autograder_writes_what_classroom50_reads(
    case: str,
    cli: Cli,
    bundle: Path,
    checkout: Path,
    tiny_solution: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    hand_in(checkout / "exercises", cases(tiny_solution)[case][0])
    if case == "wrong":
        script = str(bundle / "autograder.py")
        done = started([sys.executable, script], checkout, **RUNNER)
        assert done.returncode == 0, done.stderr
    else:  # what the script calls, without the start
        (checkout / "result.json").rmdir()
        monkeypatch.chdir(checkout)
        for name, value in RUNNER.items():
            monkeypatch.setenv(name, value)
        assert cli("autograder", "grade", "classroom50", bundle).code == 0
    result = load(checkout / "result.json")
    assert result.keys() == RESULT.keys()
    fits(result, RESULT)
    for test in result["tests"]:
        assert test.keys() == RESULT_TEST.keys()
        fits(test, RESULT_TEST)
    assert (result["submission"], result["review"]) == ("submit/1", RUNNER["REVIEW_URL"])
    assert datetime.fromisoformat(result["datetime"]).utcoffset() == timedelta(0)
    assert result["score"] == sum(test["score"] for test in result["tests"])
    assert (result["score"] == result["max-score"]) == (case == "right")
    assert all(test["passed"] for test in result["tests"]) == (case == "right")


@pytest.mark.slow
def test_autograder_leaves_no_result_if_the_grader_fails(bundle: Path, checkout: Path) -> None:
    (checkout / "result.json").rmdir()
    (checkout / "result.json").write_text('{"score": 8}')
    (bundle / "settings.json").unlink()
    done = started([sys.executable, str(bundle / "autograder.py")], checkout, **RUNNER)
    assert done.returncode == 2
    assert not (checkout / "result.json").exists()


def folder_nobody_can_empty(path: Path) -> None:
    (path / "inner" / "more").mkdir(parents=True)
    (path / "inner").chmod(0o000)


IN_THE_WAY = {
    "a link": lambda path: path.symlink_to(path.parent.parent / "elsewhere"),
    "a link to a folder": lambda path: path.symlink_to(path.parent.parent),
    "a pipe": os.mkfifo,
    "a folder": folder_nobody_can_empty,
    "an unreadable file": lambda path: path.touch(0o000),
}


@pytest.mark.parametrize("kind", IN_THE_WAY)
def test_autograder_writes_the_result_whatever_lies_there(
    kind: str, cli: Cli, bundle: Path, checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (checkout / "result.json").rmdir()
    elsewhere = bundle.parent / "elsewhere"
    elsewhere.write_text("mine")
    for name in ("result.json", "result.json.new"):
        IN_THE_WAY[kind](checkout / name)
    monkeypatch.chdir(checkout)
    assert cli("autograder", "grade", "classroom50", bundle).code == 0
    assert elsewhere.read_text() == "mine"
    assert not (checkout / "result.json").is_symlink()
    assert load(checkout / "result.json")["score"] == 0


@pytest.mark.parametrize("kind", IN_THE_WAY)
def test_the_script_takes_away_what_a_student_put_in_the_place_of_the_result(
    kind: str, bundle: Path, checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (checkout / "result.json").rmdir()
    IN_THE_WAY[kind](checkout / "result.json")
    checkout.chmod(0o500)
    monkeypatch.chdir(checkout)
    make_way = runpy.run_path(str(bundle / "autograder.py"))["make_way"]
    make_way(Path("result.json"))
    assert not os.path.lexists("result.json")
    assert bundle.is_dir()


def test_autograder_installs_what_lies_beside_it(
    bundle: Path, checkout: Path, tmp_path: Path
) -> None:
    """Where the grader is not there yet: here pip only says what it was asked for."""
    scripts = tmp_path / "python"
    scripts.write_text('#!/bin/sh\necho "$@" >>"$LOG"\n')
    scripts.chmod(0o755)
    asked = tmp_path / "asked"
    code = f"import sys, runpy; sys.executable = {str(scripts)!r}; sys.argv = ['a']; "
    code += f"runpy.run_path({str(bundle / 'autograder.py')!r}, run_name='__main__')"
    done = started([sys.executable, "-P", "-c", code], checkout, LOG=str(asked))
    assert done.returncode == 0, done.stderr
    version, install, grade = asked.read_text().splitlines()
    assert version == "-P -m grader --version"
    pinned = bundle / "constraints.txt"
    assert install == f"-P -m pip install --quiet --no-cache-dir -c {pinned} {bundle / WHEEL_NAME}"
    assert grade == f"-P -m grader autograder grade classroom50 {bundle}"
