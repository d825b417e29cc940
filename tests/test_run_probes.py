"""A run that was stopped goes on with the probes and the answers that it has worked out."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

import pytest

from grader.classroom.workers.messages import GradedJob, Job, decode_result
from grader.classroom.workers.pool import WorkerPool
from grader.classroom.workers.run_probes import RunProbes
from grader.course.course import Course, load_course
from grader.course.faults import load_faults
from grader.grading.diagnosis.computed import ComputedCatalogue
from grader.grading.diagnosis.kept import load_answers
from grader.grading.diagnosis.probes import Probe
from grader.grading.diagnosis.respondent import Respondent
from grader.submissions.submission import Submission

NAME = "feed_forward"
SAMPLING = Path(__file__).parent.parent / "examples" / "sampling"


def test_whoever_continues_a_stopped_run_has_its_seed_and_a_new_run_has_another(
    tmp_path: Path,
) -> None:
    with contextlib.suppress(KeyboardInterrupt), RunProbes(tmp_path) as stopped:
        first = stopped.seed()
        raise KeyboardInterrupt
    with RunProbes(tmp_path) as continued:
        assert [continued.seed(), continued.seed()] == [first, first]
    assert list(tmp_path.iterdir()) == []
    assert RunProbes(tmp_path).seed() != first


@pytest.mark.parametrize("text", ["", "no number", "9" * 5000])
def test_a_damaged_seed_is_no_reason_to_stop(tmp_path: Path, text: str) -> None:
    probes = RunProbes(tmp_path)
    probes.seed()
    (path,) = tmp_path.rglob("seed.txt")
    path.write_text(text)
    assert isinstance(RunProbes(tmp_path).seed(), int)


def test_a_seed_that_cannot_be_kept_is_one_all_the_same(tmp_path: Path) -> None:
    (tmp_path / ".grader").write_text("a file where a folder should be")
    assert isinstance(RunProbes(tmp_path).seed(), int)


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
    named = []
    for _ in range(2):
        with contextlib.suppress(KeyboardInterrupt), RunProbes(tmp_path) as probes:
            pool = WorkerPool(course, "process", 1, probes=probes)
            with contextlib.closing(pool):
                answer = pool.submit(job).result()
            assert isinstance(answer, GradedJob)
            diagnosis = decode_result(exercise.name, answer.results[exercise.name]).diagnosis
            named.append(diagnosis and diagnosis.faults)
            kept = list(probes.answers.iterdir())
            raise KeyboardInterrupt
    assert named == [(fault.name,)] * 2
    assert [path.name.partition("-")[0] for path in kept] == [exercise.name]
    assert {path.stat().st_mode & 0o077 for path in (kept[0], kept[0].parent)} == {0}
