"""What `grader autograder` writes grades on each platform, and keeps to what it publishes."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import pytest
from classroom import Instant
from commandline import Cli, Said

from grader import __version__
from grader.__main__ import run
from grader.commands.on_platform import SHARED
from grader.commands.own_wheel import WHEEL_NAME, make_wheel, pins
from grader.course.course import Exercise
from grader.grading.reporter import given_up
from grader.grading.seeds import seed_of_submission
from grader.report import ExerciseResult
from grader.reports.platforms import gradescope, prairielearn

ROOT = Path(__file__).parent.parent
BIN = Path(sys.executable).parent
TINY = Path(__file__).parent / "tiny"
OURS = re.compile(r"attention[-_]grader|^(pip|setuptools|_?distutils)")  # not from an index
NUMBER = (int, float)
WRONG = ("return x * factor", "return x + factor")
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


def right(solution: str) -> dict[str, str]:
    return {"scale.py": solution}


def cases(solution: str) -> dict[str, tuple[dict[str, str], float]]:
    """Submissions to the tiny course, and their points."""
    return {
        "right": (right(solution), 8.0),
        "wrong": (right(solution.replace(*WRONG)), 4.0),
        "empty": ({}, 0.0),
        "broken": (right("def scale(:\n"), 0.0),
    }


SAYS = {  # in each case, somewhere
    "right": "",
    "wrong": "values differ",
    "empty": "no file was handed in",
    "broken": "your code raised SyntaxError",
}


def hand_in(folder: Path, files: Mapping[str, str]) -> None:
    """Put these files into a folder, and no others."""
    folder.mkdir(parents=True, exist_ok=True)
    for path in folder.glob("*.py"):
        path.unlink()
    for name, text in files.items():
        (folder / name).write_text(text)


def load(path: Path) -> Any:
    return json.loads(path.read_text("utf-8"))


def started(command: list[str], cwd: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run a command as a platform does: with these variables, and our Python."""
    path = f"{BIN}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, **variables}
    return subprocess.run(
        command, cwd=cwd, env=environment, capture_output=True, text=True, check=False
    )


# --- Gradescope -----------------------------------------------------------------------------------

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


def fits(data: Mapping[str, Any], fields: Mapping[str, Any]) -> None:
    """Check that every field is in a specification, with a type or value that it allows."""
    for name, value in data.items():
        wanted = fields[name]
        if isinstance(wanted, set):
            assert value in wanted, name
        else:
            assert isinstance(value, wanted), name
            assert not (wanted is NUMBER and isinstance(value, bool)), name


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
def test_a_seed_gives_the_inputs_that_a_class_gets_by_it(
    cli: Cli,
    instant: Instant,
    gradescope_root: Path,
    tiny_copy: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def recorded(secret: bytes, digest: str) -> int:
        seeds.append(seed_of_submission(secret, digest))
        return seeds[-1]

    seeds: list[int] = []
    monkeypatch.setattr("grader.commands.on_platform.seed_of_submission", recorded)
    unpack(cli, tiny_copy, gradescope_root, "--seed", 7)
    for folder in (tmp_path / "class" / "s001", gradescope_root / "submission"):
        hand_in(folder, right("# 4 points\n"))
    graded(cli, gradescope_root)
    out = tmp_path / "out"
    cli("batch", tmp_path / "class", "--out", out, "--course", tiny_copy, "--seed", 7)
    assert [job.seed for job in instant.jobs] == seeds


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


# --- PrairieLearn ---------------------------------------------------------------------------------

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


# --- Classroom 50 ---------------------------------------------------------------------------------

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


@pytest.mark.slow
def test_autograder_replaces_a_link_and_follows_none(
    cli: Cli, bundle: Path, checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (checkout / "result.json").rmdir()
    elsewhere = bundle.parent / "elsewhere"
    for name in ("result.json", "result.json.new"):
        (checkout / name).symlink_to(elsewhere)
    monkeypatch.chdir(checkout)
    assert cli("autograder", "grade", "classroom50", bundle).code == 0
    assert not elsewhere.exists()
    assert not (checkout / "result.json").is_symlink()
    assert load(checkout / "result.json")["score"] == 0


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
    assert install == f"-P -m pip install --quiet -c {pinned} {bundle / WHEEL_NAME}"
    assert grade == f"-P -m grader autograder grade classroom50 {bundle}"


# --- the grader that is brought along -------------------------------------------------------------


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
    assert "grader = grader.__main__:main" in said
    assert "attention_grader = grader.grading.plugin" in said
    assert [point.value for point in entry_points(group="pytest11", name="attention_grader")] == (
        ["grader.grading.plugin"]
    )


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


def test_a_zip_that_cannot_be_written_says_so(cli: Cli, tiny_copy: Path) -> None:
    place = tiny_copy / "reference" / "course.toml" / "gradescope.zip"
    said = cli("autograder", "gradescope", "--course", tiny_copy, "--out", place)
    assert (said.code, "cannot write" in said.err) == (2, True)


@pytest.mark.slow
def test_what_a_platform_would_get_can_be_looked_at(
    cli: Cli, tiny_copy: Path, tiny_solution: str
) -> None:
    hand_in(tiny_copy / "s001", right(tiny_solution))

    def shown(form: str) -> Said:
        return cli("check", tiny_copy / "s001", "--course", tiny_copy, "--format", form)

    fits_gradescope(json.loads(shown("gradescope").out))
    fits_prairielearn(json.loads(shown("prairielearn").out))
