"""A run that was stopped goes on with the answers that it has worked out."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

import pytest

from grader.classroom.workers.messages import GradedJob, Job, decode_result
from grader.classroom.workers.pool import WorkerPool
from grader.commands.graded import sharing_answers
from grader.course.course import Course, load_course
from grader.course.faults import load_faults
from grader.grading.diagnosis.computed import ComputedCatalogue
from grader.grading.diagnosis.kept import load_answers
from grader.grading.diagnosis.probes import Probe
from grader.grading.diagnosis.respondent import Respondent
from grader.submissions.submission import Submission

NAME = "feed_forward"
SAMPLING = Path(__file__).parent.parent / "examples" / "sampling"


def test_a_run_that_ends_leaves_no_answers_and_one_that_is_stopped_leaves_them(
    tmp_path: Path,
) -> None:
    (kept := tmp_path / ".grader" / "run" / "answers").mkdir(parents=True)
    with contextlib.suppress(KeyboardInterrupt), sharing_answers(tmp_path):
        raise KeyboardInterrupt
    assert kept.is_dir()
    with sharing_answers(tmp_path):
        pass
    assert list(tmp_path.iterdir()) == []
    (tmp_path / ".grader").write_text("a file where a folder should be")
    with sharing_answers(tmp_path):
        pass


def touched(catalogue: ComputedCatalogue, every: int = 1) -> list[int]:
    return [each.touched for each in list(catalogue.singles())[::every]]


def test_what_one_process_has_worked_out_no_other_works_out_again(
    course: Course, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    exercise = course[NAME]
    one, other = (ComputedCatalogue(course, exercise, 5, tmp_path) for _ in range(2))
    expected = touched(one)
    touched(other, 7)
    for catalogue in (one, other):
        catalogue.keep()
    monkeypatch.setattr(Respondent, "_ask", None)  # nothing answers now
    assert touched(other) == expected  # which took over what the first one kept
    assert touched(ComputedCatalogue(course, exercise, 5, tmp_path)) == expected
    assert touched(ComputedCatalogue(course, exercise, 6, tmp_path)) != expected


def test_answers_are_kept_while_they_are_worked_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So a process that is lost in between leaves them to whoever tries again."""
    course = load_course(SAMPLING)
    exercise = course["perplexity"]
    monkeypatch.setattr("grader.grading.diagnosis.computed.KEEP_SECONDS", 0.0)
    catalogue = ComputedCatalogue(course, exercise, 5, tmp_path)
    first = next(catalogue.singles())
    asked: list[int] = []
    ask = Respondent._ask

    def lost(respondent: Respondent, probe: Probe) -> Any:
        asked.append(1)
        if len(asked) > 12:
            raise KeyboardInterrupt
        return ask(respondent, probe)

    monkeypatch.setattr(Respondent, "_ask", lost)
    with contextlib.suppress(KeyboardInterrupt):
        assert first.touched
        assert [each.touched for each in catalogue.singles()]
    assert len(asked) > 12
    assert sum(map(len, load_answers(tmp_path, course, exercise.name, 5).values())) >= 10


@pytest.mark.slow
def test_grading_processes_keep_what_they_have_worked_out(tmp_path: Path) -> None:
    course = load_course(SAMPLING)
    exercise = course["perplexity"]
    fault = load_faults(exercise)[0]
    files = {name: course[name].read("solution.py") for name in course.names}
    files[exercise.name] = fault.apply(files[exercise.name])
    job = Job(Submission("s001", files), (exercise.name,), 5)
    named, answers = [], tmp_path / ".grader" / "run" / "answers"
    for _ in range(2):
        pool = WorkerPool(course, "process", 1, answers=answers)
        with contextlib.closing(pool):
            answer = pool.submit(job).result()
        assert isinstance(answer, GradedJob)
        diagnosis = decode_result(exercise.name, answer.results[exercise.name]).diagnosis
        named.append(diagnosis and diagnosis.faults)
    assert named == [(fault.name,)] * 2
    (kept,) = answers.iterdir()
    assert kept.name.partition("-")[0] == exercise.name
    assert {path.stat().st_mode & 0o077 for path in (kept, kept.parent)} == {0}
