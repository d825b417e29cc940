"""A class of any size that is made up, some with hostile names, its reports, and a term of it."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

from grader.classroom.statistics import ClassTally
from grader.report import Diagnosis, ExerciseResult, Mark, Outcome, Person, Report
from grader.reports.summary import (
    AssignmentSummary,
    RecurringMistake,
    SimilarGroup,
    Summary,
    TermSummary,
)

HOSTILE = {
    "s0003": "</script><script>document.title='owned'</script>",
    "s0004": "<img src=x onerror=document.title='owned'>",
    "s0005": "=1+1",
    "s0006": "\u202egnihtyreve sdaer",
    "s0007": "<!--<script>",
    "s0008": "{{ 7 * 7 }} ${7 * 7}",
    "s0009": "Zoë Ångström",
}
EXERCISES = (
    "Dictionary lookup",
    "Masked softmax",
    "Causal attention",
    "Layer norm",
    "Feed-forward",
)
DIFFICULTY = (0.1, 0.25, 0.45, 0.35, 0.3)
SAYS = ("the scores are not scaled", "the mask is off by one", "the wrong axis")


def result(rng: random.Random, number: int, skill: float) -> ExerciseResult:
    """One exercise of a student with this skill, from 0 to 1; with -1, nothing was written."""
    unfinished = rng.random() > skill + 0.6
    tests = []
    for check in range(6):
        likely = min(0.98, max(0.02, 1.25 * skill - DIFFICULTY[number] + 0.25))
        passed = not unfinished and (check == 5 or rng.random() < likely)
        verdict: Any = "passed" if passed else "skipped" if check == 4 and not passed else "failed"
        sentence = f"Promise {check + 1} of this exercise holds for inputs of every shape."
        points = 4 if check else 0
        tests.append(Outcome(f"test_{check}", sentence, verdict, points if passed else 0, points))
    failed = [test for test in tests if test.outcome == "failed"]
    fault = rng.choice((0, 0, 0, 1, 1, 2))
    named = rng.random() < 0.8
    diagnosis = Diagnosis((), "no known mistake", "")
    if named:
        shown = (tuple(test.name for test in failed),)
        diagnosis = Diagnosis((f"fault_{fault}",), SAYS[fault], "", shown, (SAYS[fault],), (4,))
    return ExerciseResult(
        name=f"exercise_{number}",
        title=EXERCISES[number],
        points=sum(test.points for test in tests),
        max_points=20,
        advice="",
        tests=tuple(tests),
        unfinished=unfinished,
        diagnosis=diagnosis if failed and not unfinished else None,
    )


def report(at: int, rng: random.Random) -> Report:
    """The report of the student at this place of the class."""
    skill = min(1.0, max(0.0, rng.gauss(0.72, 0.25))) if at % 97 != 5 else -1.0
    exercises = tuple(result(rng, number, skill) for number in range(len(EXERCISES)))
    if at == 11:
        tests = exercises[0].tests
        broken = replace(tests[0], outcome="error")
        exercises = (replace(exercises[0], tests=(broken, *tests[1:])), *exercises[1:])
    earned = sum(exercise.points for exercise in exercises)
    late = 1.0 if at % 40 == 2 else 0.0
    student = f"s{at:04}"
    return Report(
        submission=student,
        seed=7 if at else 8,
        suites="hidden",
        confinement=("landlock", "seccomp"),
        exercises=exercises,
        versions={"python": "3.11", "torch": "2.13.0"},
        hashes={"course": "4f1c", "submission": f"{at:04x}"},
        person=Person(
            name=HOSTILE.get(student, ""),
            email=f"{student}@school.example",
            login=f"login-{at}",
            section="ABC"[at % 3],
        ),
        attempt=1 + at % 2,
        submitted=f"2026-11-{1 + at % 28:02}T12:30:00+01:00",
        flags=("took all of its time",) if at % 50 == 1 else (),
        mark=Mark(0.9 * earned if late else earned, 100, earned, late),
    )


def class_of(count: int) -> Summary:
    """A class of `count` students, the same at each call."""
    rng, tally = random.Random(20), ClassTally()
    for at in range(count):
        tally.add(report(at, rng), f"reports/s{at:04}.html")
    missing = {f"s9{at:03}": Person(section="B") for at in range(3)}
    alike = tuple(f"s{at:04}" for at in range(min(count, 40)))
    exercises = ("exercise_1", "exercise_2")
    group = SimilarGroup(
        alike, exercises, exercises[1:], (0.83, 0.9), (("s0001", "s0002"),), ("similar/001-1.html",)
    )
    similar = [group]
    return tally.summary("Attention, autumn", missing, similar)


def term_of(count: int) -> TermSummary:
    """A term of five assignments, which are the exercises of `class_of`."""
    made = class_of(count)
    behind = tuple(range(5, count, 7))
    reason = "worse than before: 25 % in hw5, 81 % on average until then"
    rows = tuple(
        replace(row, flags=(reason,) if at in behind else (), free_days=1.0, free_left=2.0)
        for at, row in enumerate(made.students)
    )
    names = [f"hw{number}" for number in range(1, len(EXERCISES) + 1)]
    says = "The softmax runs over the `queries` </script><b>."
    mistakes = [
        RecurringMistake(f"fault_{at}", says, tuple(range(at, count, 5)), ((names[0], 7),))
        for at in range(12)
    ]
    assignments = [
        AssignmentSummary(name, count, count - 2, 50, 0.75, 0.5, 3, 4.0, f"{name}/index.html")
        for name in names
    ]
    return TermSummary(tuple(assignments), rows, behind, tuple(mistakes), ("hw2 is not finished",))
