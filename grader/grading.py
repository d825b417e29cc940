"""From a submission to a report: the named steps in between."""

from __future__ import annotations

import platform
import secrets
from collections.abc import Sequence
from importlib.metadata import version

from grader import __version__
from grader.catalog import Course, Exercise
from grader.records import ExerciseResult, Outcome, Report
from grader.sandbox.host import Sandbox
from grader.sandbox.proxies import Desk
from grader.submissions import Submission
from grader.suite import Suite, points_of

SEED_BITS = 48


def fresh_seed() -> int:
    """A seed nobody can guess."""
    return secrets.randbits(SEED_BITS)


def grade(
    submission: Submission, names: Sequence[str], suite: Suite, sandbox: Sandbox, seed: int
) -> Report:
    """Grade the exercises `names` of one submission in a warm suite."""
    desk = Desk(sandbox.worker)
    try:
        results = [
            _grade_exercise(suite.course[name], submission, suite, desk, seed) for name in names
        ]
    finally:
        desk.close()
    return Report(
        submission=submission.name,
        seed=seed,
        suites=suite.course.suites,
        confinement=desk.layers,
        exercises=tuple(results),
        notes=submission.notes,
        versions=versions(),
        hashes={"course": suite.course.hash, "submission": submission.hash},
    )


def _grade_exercise(
    exercise: Exercise, submission: Submission, suite: Suite, desk: Desk, seed: int
) -> ExerciseResult:
    problem = submission.problems.get(exercise.name, "")
    if not problem and exercise.name not in submission.files:
        problem = f"there is no {exercise.name}.py in this submission"
    outcomes: tuple[Outcome, ...] = ()
    if not problem:
        outcomes = suite.run(suite.examiner(submission, desk, seed), exercise.name)
    return ExerciseResult(
        name=exercise.name,
        title=exercise.title,
        points=sum(outcome.points for outcome in outcomes),
        max_points=sum(points_of(item) for item in suite.items[exercise.name]),
        advice=problem,
        tests=outcomes,
    )


def versions() -> dict[str, str]:
    """The versions that a result depends on."""
    return {
        "attention-grader": __version__,
        "python": platform.python_version(),
        "torch": version("torch"),
        "pytest": version("pytest"),
    }
