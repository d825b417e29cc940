"""The zip for Gradescope sets up, grades, and keeps to what Gradescope reads."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from autograding import NUMBER, SAYS, WRONG, cases, fits, hand_in, load, right, started
from commandline import Cli

from grader.__main__ import run
from grader.commands.own_wheel import WHEEL_NAME
from grader.course.course import Exercise
from grader.grading.grader import Grader, Grading
from grader.grading.reporter import given_up
from grader.grading.seeds import secret_from, seed_of_submission
from grader.report import ExerciseResult
from grader.reports.platforms import gradescope
from grader.submissions.submission import Submission

pytestmark = pytest.mark.in_turn

ROOT = Path(__file__).parent.parent
TINY = Path(__file__).parent / "tiny"
OURS = re.compile(r"attention[-_]grader|^(pip|setuptools|_?distutils)")  # not from an index
SPY = """
import os
{body}

def look():
    found = []
    for path in {paths!r}:
        try:
            found.append(open(path).read())
        except OSError as error:
            found.append(error.strerror)
    try:
        open({results!r}, "w").write("forged")
        found.append("forged")
    except OSError as error:
        found.append(error.strerror)
    raise ValueError("|".join(found))
"""


# The published specification: the type of each field.
SHOWN = {"hidden", "after_due_date", "after_published", "visible"}
FORMS = {"text", "html", "simple_format", "md", "ansi"}
GRADESCOPE: Mapping[str, Any] = {
    "score": NUMBER,
    "execution_time": NUMBER,
    "output": str,
    "output_format": FORMS,
    "test_output_format": FORMS,
    "test_name_format": FORMS,
    "visibility": SHOWN,
    "stdout_visibility": SHOWN,
    "extra_data": dict,
    "tests": list,
    "leaderboard": list,
}
GRADESCOPE_TEST: Mapping[str, Any] = {
    "score": NUMBER,
    "max_score": NUMBER,
    "status": {"passed", "failed"},
    "name": str,
    "name_format": FORMS,
    "number": str,
    "output": str,
    "output_format": FORMS,
    "tags": list,
    "visibility": SHOWN,
    "extra_data": dict,
}


def fits_gradescope(results: Mapping[str, Any]) -> None:
    fits(results, GRADESCOPE)
    for test in results["tests"]:
        fits(test, GRADESCOPE_TEST)
        assert 0 <= test["score"] <= test["max_score"]


@pytest.fixture
def gradescope_root(cli: Cli, tiny_copy: Path, tmp_path: Path) -> Path:
    """What Gradescope makes of the zip, with this Python as the one that was set up."""
    root = tmp_path / "autograder"
    unpack(cli, tiny_copy, root)
    (root / "venv").symlink_to(Path(sys.prefix), target_is_directory=True)
    (root / "results").mkdir()
    return root


def unpack(cli: Cli, course: Path, root: Path, *more: object) -> None:
    """Make the zip and unpack it as Gradescope does, which keeps what may be executed."""
    file = root.parent / "gradescope.zip"
    said = cli("autograder", "gradescope", "--course", course, "--out", file, *more)
    assert said.code == 0, said.err
    extract(file, root / "source")


def extract(file: Path, folder: Path) -> None:
    with zipfile.ZipFile(file) as archive:
        for member in archive.infolist():
            place = Path(archive.extract(member, folder))
            place.chmod(member.external_attr >> 16)


def graded(cli: Cli, root: Path) -> dict[str, Any]:
    """Grade what lies in the submission; return the results."""
    said = cli("autograder", "grade", "gradescope", root)
    assert said.code == 0, said.err
    results: dict[str, Any] = load(root / "results" / "results.json")
    return results


@pytest.fixture(scope="module")
def set_up(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What `setup.sh` makes of the zip; only what an index has is left out, and brought from here.

    So the grader is the one that was brought along, in an environment of its own.
    """
    root = tmp_path_factory.mktemp("gradescope") / "autograder"
    assert run(["autograder", "gradescope", "--course", str(TINY), "--out", f"{root}.zip"]) == 0
    extract(Path(f"{root}.zip"), root / "source")
    offline = {"PIP_NO_INDEX": "1", "PIP_NO_DEPS": "1", "AUTOGRADER_ROOT": str(root)}
    done = started([str(root / "source" / "setup.sh")], root, **offline)
    assert done.returncode == 0, done.stderr
    (site,) = root.glob("venv/lib/python3*/site-packages")
    for path in Path(pytest.__file__).parent.parent.iterdir():
        if not OURS.search(path.name) and not (site / path.name).exists():
            (site / path.name).symlink_to(path)
    return root


@pytest.mark.slow
def test_setup_installs_the_grader_that_was_brought_along(set_up: Path) -> None:
    (site,) = set_up.glob("venv/lib/python3*/site-packages")
    mine = {path.relative_to(ROOT): path for path in (ROOT / "grader").rglob("*.py")}
    assert all((site / name).read_bytes() == path.read_bytes() for name, path in mine.items())
    assert (set_up / "source" / "course").stat().st_mode & 0o077 == 0
    wheel = "from grader.commands.own_wheel import make_wheel; print(hash(make_wheel()))"
    python = [str(set_up / "venv" / "bin" / "python"), "-c", wheel]
    again = started(python, set_up, PYTHONHASHSEED="0")  # and brings itself along, too
    here = started([sys.executable, "-c", wheel], set_up, PYTHONHASHSEED="0")
    assert again.stdout == here.stdout != ""


@pytest.mark.slow
@pytest.mark.parametrize("case", ["right", "wrong", "empty", "broken"])
def test_run_autograder_writes_what_gradescope_reads(
    case: str, set_up: Path, tiny_solution: str
) -> None:
    files, points = cases(tiny_solution)[case]
    hand_in(set_up / "submission", files)
    script = str(set_up / "source" / "run_autograder")
    done = started([script], set_up, AUTOGRADER_ROOT=str(set_up))
    assert done.returncode == 0, done.stderr
    results = load(set_up / "results" / "results.json")
    fits_gradescope(results)
    assert results["score"] == points == sum(test["score"] for test in results["tests"])
    assert sum(test["max_score"] for test in results["tests"]) == 8
    said = "\n".join(test["output"] for test in results["tests"])
    assert SAYS[case] in said


def test_setup_asks_for_a_python_and_says_what_to_choose(
    gradescope_root: Path, tmp_path: Path
) -> None:
    log = tmp_path / "log"
    for name in ("apt-get", "python3"):  # nothing can be installed, and Python is too old
        (tmp_path / name).write_text(f'#!/bin/sh\necho {name} "$@" >>"{log}"\nexit 100\n')
        (tmp_path / name).chmod(0o755)
    bash = shutil.which("bash")
    assert bash is not None
    done = subprocess.run(
        [bash, str(gradescope_root / "source" / "setup.sh")],
        env={"PATH": str(tmp_path), "AUTOGRADER_ROOT": str(gradescope_root)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, "choose an image" in done.stderr) == (1, True)
    assert "apt-get install" in log.read_text()


@pytest.mark.slow
def test_a_late_submission_loses_what_the_course_says(
    cli: Cli, gradescope_root: Path, tiny_solution: str
) -> None:
    settings = gradescope_root / "source" / "course" / "reference" / "course.toml"
    due = datetime.now(UTC) - timedelta(days=9)
    settings.write_text(f'title = "T"\npoints = 8\ndue = {due.isoformat()}\n[late]\nper_day = 25\n')
    hand_in(gradescope_root / "submission", right(tiny_solution))
    known = graded(cli, gradescope_root)
    assert known["score"] == 8  # nobody knows when it was handed in
    when = {"created_at": (due + timedelta(hours=30)).isoformat()}
    metadata = gradescope_root / "submission_metadata.json"
    metadata.write_text(json.dumps({"id": 1, "users": [], "previous_submissions": [], **when}))
    results = graded(cli, gradescope_root)
    fits_gradescope(results)
    assert results["score"] == 4
    assert "50 % of them count" in results["output"]
    # The date on Gradescope, such as that of an extension, comes before the course's.
    later = {"assignment": {"due_date": (due + timedelta(days=2)).isoformat(), "title": "T"}}
    metadata.write_text(json.dumps({**when, **later}))
    assert graded(cli, gradescope_root)["score"] == 8


@pytest.mark.slow
def test_what_waits_for_the_due_date_waits_for_gradescopes(
    cli: Cli, gradescope_root: Path, tiny_solution: str
) -> None:
    suite = gradescope_root / "source" / "course" / "reference" / "scale" / "test_hidden.py"
    text = suite.read_text()
    for name, when in {"test_thrice": "after_due", "test_module": "never"}.items():
        marked = f"@pytest.mark.visible({when!r})\ndef {name}"
        text = text.replace(f"def {name}", marked)
    suite.write_text(text)
    due = {"due_date": (datetime.now(UTC) + timedelta(days=1)).isoformat()}
    (gradescope_root / "submission_metadata.json").write_text(json.dumps({"assignment": due}))
    hand_in(gradescope_root / "submission", right(tiny_solution.replace(*WRONG)))
    results = graded(cli, gradescope_root)
    fits_gradescope(results)
    tests = {test["name"]: test for test in results["tests"]}
    waits = tests["Scale: The factor 3 triples."]
    assert waits["visibility"] == "after_due_date"
    assert "where" in waits["output"]  # what is shown then
    assert [test["visibility"] for test in results["tests"]].count("hidden") == 1
    assert "weight" not in json.dumps(results)


@pytest.mark.slow
def test_the_same_files_get_the_same_inputs_and_a_seed_chooses_them(
    cli: Cli, tiny_copy: Path, tmp_path: Path
) -> None:
    def secret(name: str, *more: object) -> bytes:
        unpack(cli, tiny_copy, tmp_path / name / "autograder", *more)
        return (tmp_path / name / "autograder" / "source" / "settings.json").read_bytes()

    for name in ("one", "two", "three", "four"):
        (tmp_path / name).mkdir()
    assert secret("one", "--seed", 7) == secret("two", "--seed", 7)
    assert secret("three") != secret("four")


@pytest.mark.slow
def test_on_a_platform_each_submission_is_an_epoch_by_its_files(
    cli: Cli, gradescope_root: Path, tiny_copy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Feedback comes at once there, so that the next files need other inputs."""

    def grade(grader: Grader, submission: Submission, names: Any, seed: int) -> Grading:
        assert seed == seed_of_submission(secret_from(7), submission.hash)
        seeds.append(seed)
        return graded_at(grader, submission, names, seed)

    seeds: list[int] = []
    graded_at = Grader.grade
    monkeypatch.setattr(Grader, "grade", grade)
    unpack(cli, tiny_copy, gradescope_root, "--seed", 7)
    for text in ("# one\n", "# other\n", "# one\n"):
        hand_in(gradescope_root / "submission", right(text))
        graded(cli, gradescope_root)
    one, other, again = seeds
    assert one == again != other


def lost(grader: Any, exercise: Exercise, *_: object) -> ExerciseResult:
    return given_up(exercise, "the worker was ended from outside")


@pytest.mark.slow
@pytest.mark.parametrize("what", ["course", "metadata", "error", "lost"])
def test_if_the_grader_fails_no_score_is_there(
    what: str,
    cli: Cli,
    gradescope_root: Path,
    tiny_solution: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    folder = gradescope_root / "source" / "course" / "reference"
    hand_in(gradescope_root / "submission", right(tiny_solution))
    if what == "course":
        (folder / "course.toml").unlink()
    elif what == "metadata":
        (gradescope_root / "submission_metadata.json").write_text("{")
    elif what == "lost":  # as when the machine has no memory left, three times
        monkeypatch.setattr("grader.grading.grader.Grader._run", lost)
    else:
        suite = folder / "scale" / "test_hidden.py"
        suite.write_text(suite.read_text().replace("assert_close(student", "no_such_name(student"))
    results = gradescope_root / "results" / "results.json"
    results.write_text(json.dumps(gradescope.FAILED))  # as run_autograder does
    said = cli("autograder", "grade", "gradescope", gradescope_root)
    assert said.code in (2, 3)
    assert said.err.startswith("grader: ")
    assert load(results) == gradescope.FAILED


def test_what_is_there_before_and_if_all_fails_has_no_score(
    gradescope_root: Path, tmp_path: Path
) -> None:
    (gradescope_root / "venv").unlink()
    script = str(gradescope_root / "source" / "run_autograder")
    done = started([script], tmp_path, AUTOGRADER_ROOT=str(gradescope_root))
    assert done.returncode != 0
    results = load(gradescope_root / "results" / "results.json")
    fits(results, GRADESCOPE)
    assert not {"score", "tests"} & results.keys()
    assert "not your code" in results["output"]


@pytest.mark.slow
def test_student_code_reads_no_course_and_writes_no_results(
    gradescope_root: Path, tiny_solution: str
) -> None:
    source = gradescope_root / "source"
    results = gradescope_root / "results" / "results.json"
    paths = [
        *(str(source / "course" / "reference" / "scale" / name) for name in ("solution.py",)),
        str(source / "settings.json"),
        str(source / WHEEL_NAME),
    ]
    spying = SPY.format(body=tiny_solution, paths=paths, results=str(results))
    spying += "\n\ndef scale(x, factor):\n    look()\n"
    hand_in(gradescope_root / "submission", right(spying))
    script = str(source / "run_autograder")
    done = started([script], gradescope_root, AUTOGRADER_ROOT=str(gradescope_root))
    assert done.returncode == 0, done.stderr
    found = load(results)
    fits_gradescope(found)
    said = "\n".join(test["output"] for test in found["tests"])
    assert "|".join(["Permission denied"] * 4) in said
    assert "forged" not in said


@pytest.mark.slow
def test_unconfined_code_is_graded_only_if_the_teacher_says_so(
    cli: Cli, gradescope_root: Path, tiny_copy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from grader.sandbox.confinement import layers

    missing = layers.Layer("Landlock", lambda: "not here", lambda *_: None, "another kernel")
    monkeypatch.setattr("grader.classroom.workers.pool.LAYERS", (missing,))
    (gradescope_root / "submission").mkdir()
    said = cli("autograder", "grade", "gradescope", gradescope_root)
    assert (said.code, "Landlock: not here" in said.err) == (2, True)
    unpack(cli, tiny_copy, gradescope_root, "--isolation", "process")
    assert graded(cli, gradescope_root)["score"] == 0


def test_a_zip_that_cannot_be_written_says_so(cli: Cli, tiny_copy: Path) -> None:
    place = tiny_copy / "reference" / "course.toml" / "gradescope.zip"
    said = cli("autograder", "gradescope", "--course", tiny_copy, "--out", place)
    assert (said.code, "cannot write" in said.err) == (2, True)


@pytest.mark.slow
def test_what_gradescope_would_get_can_be_looked_at(
    cli: Cli, tiny_copy: Path, tiny_solution: str
) -> None:
    hand_in(tiny_copy / "s001", right(tiny_solution))
    said = cli("check", tiny_copy / "s001", "--course", tiny_copy, "--format", "gradescope")
    fits_gradescope(json.loads(said.out))
