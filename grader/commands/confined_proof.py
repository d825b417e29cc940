"""The proof of an imported exercise whose code nobody has reviewed yet.

It shows that the solution passes its tests and the stub fails them, in a process confined like
student code. The mistakes are proven after the review.
"""

from __future__ import annotations

from grader.commands.proof import Proof
from grader.commands.proving import wrong_tests
from grader.commands.trusted_courses import files_of
from grader.course.course import Course
from grader.course.stubs import make_stub
from grader.errors import GraderError
from grader.grading.confined_grader import ConfinedGrader, why_not_here
from grader.grading.programs import solutions
from grader.sandbox.host.source import WorkerSource
from grader.submissions.submission import Submission


def confined_proof(course: Course, name: str, workers: WorkerSource, seed: int) -> Proof:
    """Return the proof of an exercise whose code runs confined, or not at all."""
    exercise = course[name]
    proof = Proof(exercise)
    ran = "not at all here" if (why := why_not_here()) else "confined"
    if not why:
        try:
            _grade(course, name, workers, seed, proof)
        except GraderError as error:
            proof.problems.append(f"reference/{name}: {error.message}")
    says = f"its code, or that of an exercise it requires, was imported and runs {ran} "
    says += "until you review it: "
    proof.problems.append(f"reference/{name}: {says}grader trust {course.root}")
    return proof


def _grade(course: Course, name: str, workers: WorkerSource, seed: int, proof: Proof) -> None:
    """Add the problems of the solution and the stub to a proof."""
    files = solutions(course, name)
    with ConfinedGrader(course, files_of(course).contents, [name], workers) as grader:
        report = grader.grade(Submission("validate", files), [name], seed).report
        stub = files | {name: make_stub(course[name])}
        of_stub = grader.grade(Submission("validate", stub), [name], seed).report
    proof.tests = sum(len(each.tests) for each in report.exercises)
    proof.problems += [
        f"reference/{name}/solution.py: fails {test.name}: {test.message} ({test.kind})"
        for test in wrong_tests(report)
    ]
    if of_stub.points:
        says = f"the stub earns {of_stub.points} points"
        proof.problems.append(f"reference/{name}/test_hidden.py: {says}")
