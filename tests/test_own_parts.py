"""An exercise can run on the student's own earlier work, as far as that is right."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from commandline import Grade

from grader.course.course import Course, load_course
from grader.course.stubs import make_stub
from grader.report import ExerciseResult
from grader.reports import render

SAMPLING = Path(__file__).parent.parent / "examples" / "sampling"
SAYS = "print('mine'); "


@pytest.fixture
def course(tmp_path: Path) -> Course:
    """A course whose `perplexity` is run on the student's own `log_loss`."""
    root = tmp_path / "sampling"
    shutil.copytree(SAMPLING, root, ignore=shutil.ignore_patterns("__pycache__", ".grader"))
    path = root / "reference" / "perplexity" / "exercise.toml"
    path.write_text(f"own_parts = true\n{path.read_text()}")
    return load_course(root)


def grade_with(course: Course, grade: Grade, log_loss: str | None) -> ExerciseResult:
    files = {"perplexity": course["perplexity"].read("solution.py")}
    if log_loss is not None:
        files["log_loss"] = log_loss
    report = grade(course, files, "perplexity")
    (result,) = report.exercises
    assert result.passed
    for form in ("text", "html", "markdown"):
        said = render(report, form, None) if form == "text" else render(report, form)
        assert ("replaced the exercises" in " ".join(said.split())) == bool(result.stand_ins)
    return result


def right(course: Course) -> str:
    text = course["log_loss"].read("solution.py")
    return text.replace("    return ", f"    {SAYS}return ")


@pytest.mark.slow
def test_what_is_right_takes_part(course: Course, grade: Grade) -> None:
    result = grade_with(course, grade, right(course))
    assert result.stand_ins == ()
    assert "mine" in "".join(test.printed for test in result.tests)


@pytest.mark.slow
@pytest.mark.parametrize("what", ["nothing", "a stub", "an error", "another value"])
def test_a_stand_in_takes_the_place_of_what_is_not(course: Course, grade: Grade, what: str) -> None:
    texts = {
        "nothing": None,
        "a stub": make_stub(course["log_loss"]),
        "an error": "import no_such_module\n",
        "another value": right(course).replace(f"{SAYS}return ", f"{SAYS}return 2 * "),
    }
    result = grade_with(course, grade, texts[what])
    assert result.stand_ins == ("log_loss",)
    printed = [test.printed for test in result.tests if test.name != "test_on_your_own_loss"]
    assert "mine" not in "".join(printed)
    assert result.parts_line == (
        "Stand-ins replaced the exercises that are not right yet, or not written: log_loss"
    )
