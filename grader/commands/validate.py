"""`grader validate`: prove the course's content both ways.

The reference scores everything, the stub nothing, every fault is rejected by the tests it names,
and the diagnosis names every fault and no other. Problems are sentences that name the file to mend.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from grader.commands.build import stale
from grader.course.course import Course, Exercise, did_you_mean
from grader.errors import CourseError
from grader.course.faults import Fault, load_faults
from grader.report import Outcome, Report
from grader.sandbox.host.zygote import Zygote
from grader.course.stubs import make_stub
from grader.submissions.submission import Submission

if TYPE_CHECKING:
    from grader.grading.examiner import Records
    from grader.grading.grader import Slot

MIN_HINTS = 3
GUARDS = "Guards:"  # in the docstring of a hidden test that no fault needs


@dataclass
class Proof:
    """What was proven of one exercise, and what was not."""

    exercise: Exercise
    tests: int = 0
    faults: int = 0
    caught: int = 0
    needed: dict[str, list[str]] = field(default_factory=dict)  # test to faults it alone rejects
    problems: list[str] = field(default_factory=list)


def validate_course(
    course: Course,
    names: Sequence[str],
    seed: int,
    progress: Callable[[str], None] = lambda name: None,
) -> list[Proof]:
    """Prove the exercises `names`; whole courses must add up and be built as well."""
    if course.suites != "hidden":
        raise CourseError(f"{course.root} has no reference/ to validate")
    proofs = []
    with Zygote() as zygote:
        from grader.grading.grader import with_slot

        def body(slot: Slot) -> None:
            for name in names:
                progress(name)
                proofs.append(Prover(course[name], slot, seed).prove())

        with_slot(course, names, zygote, body)
    if set(names) == set(course.names):
        proofs[-1].problems += _whole_course(course)
    return proofs


def _whole_course(course: Course) -> list[str]:
    problems = [
        f"{path.relative_to(course.root)}: not what `grader build` would write"
        for path in stale(course)
    ]
    total = sum(exercise.points for exercise in course.exercises)
    if total != course.points:
        problems.append(
            f"reference/course.toml: says {course.points} points, the exercises add up to {total}"
        )
    return problems


class Prover:
    """Proves one exercise in a warm suite."""

    def __init__(self, exercise: Exercise, slot: Slot, seed: int) -> None:
        self.exercise, self.slot, self.seed = exercise, slot, seed
        course = slot.suite.course
        self.solutions = {name: course[name].read("solution.py") for name in course.names}

    def prove(self) -> Proof:
        """Every step, in the order in which a failure is best understood."""
        proof = Proof(self.exercise)
        self._texts(proof)
        self._reference(proof)
        self._stub(proof)
        self._public_suite(proof)
        self._faults(proof)
        return proof

    def _file(self, name: str) -> str:
        return f"reference/{self.exercise.name}/{name}"

    def grade(self, solution: str, seed: int | None = None) -> Report:
        """The report on `solution` for this exercise, among reference solutions."""
        return self._examine(solution, self.seed if seed is None else seed)[0]

    def _examine(self, solution: str, seed: int) -> tuple[Report, Records]:
        files = {**self.solutions, self.exercise.name: solution}
        return self.slot.examine(Submission("validate", files), [self.exercise.name], seed)

    # --- the content itself ---

    def _texts(self, proof: Proof) -> None:
        exercise = self.exercise
        hints = [hint for hint in exercise.hints if hint.strip()]
        if len(hints) < max(MIN_HINTS, len(exercise.hints)):
            proof.problems.append(
                f"{self._file('exercise.toml')}: needs {MIN_HINTS} hints, none empty"
            )
        items = self.slot.suite.items.get(exercise.name, [])
        proof.tests = len(items)
        from grader.grading.outcomes import points_of

        total = sum(points_of(item) for item in items)
        if total != exercise.points:
            proof.problems.append(
                f"{self._file('test_hidden.py')}: its tests are worth {total} points, "
                f"exercise.toml says {exercise.points}"
            )

    def _reference(self, proof: Proof) -> None:
        solution = self.solutions[self.exercise.name]
        first, answers = self._examine(solution, self.seed)
        for test in _wrong(first):
            proof.problems.append(
                f"{self._file('solution.py')}: fails {test.name}: {test.message} ({test.kind})"
            )
        if self._examine(solution, self.seed) != (first, answers):
            proof.problems.append(f"{self._file('test_hidden.py')}: two runs with one seed differ")
        for test in _wrong(self.grade(solution, self.seed + 1)):
            proof.problems.append(
                f"{self._file('solution.py')}: fails {test.name} with another seed: {test.message}"
            )

    def _stub(self, proof: Proof) -> None:
        report = self.grade(make_stub(self.exercise))
        if report.points:
            proof.problems.append(
                f"{self._file('test_hidden.py')}: the stub earns {report.points} points"
            )
        for test in _wrong(report):
            if test.kind != "NotImplementedError":
                proof.problems.append(
                    f"{self._file('test_hidden.py')}: on the stub {test.name} fails with "
                    f"{test.kind or test.message}, not NotImplementedError"
                )

    def _public_suite(self, proof: Proof) -> None:
        """It is there; running it is left to pytest, as students do."""
        if not (self.exercise.folder / "test_public.py").is_file():
            proof.problems.append(f"{self._file('test_public.py')}: missing")

    # --- faults ---

    def _faults(self, proof: Proof) -> None:
        solution = self.solutions[self.exercise.name]
        path = self._file("faults.toml")
        faults = load_faults(self.exercise)
        proof.faults = len(faults)
        for fault in faults:
            problem = _text_problem(fault, solution)
            if problem:
                proof.problems.append(f"{path}: {fault.name}: {problem}")
                continue
            report = self.grade(fault.apply(solution))
            wrong = _wrong(report)
            if report.points == report.max_points:
                proof.problems.append(
                    f"{self._file('test_hidden.py')}: the fault {fault.name} earns all points"
                )
                continue
            proof.caught += 1
            if len(wrong) == 1:
                proof.needed.setdefault(wrong[0].name, []).append(fault.name)
            problem = self._fails_otherwise(fault, wrong) or _misnamed(fault, report)
            if problem:
                proof.problems.append(f"{path}: {fault.name}: {problem}")
        self._unneeded(proof)

    def _fails_otherwise(self, fault: Fault, wrong: Sequence[Outcome]) -> str:
        """What is wrong with the list of tests that a fault fails; own parts are another matter."""
        items = self.slot.suite.items.get(self.exercise.name, [])
        own_parts = {item.name for item in items if item.get_closest_marker("own_parts")}
        names = [test.name for test in wrong if test.name not in own_parts]
        if fault.fails == set(names):
            return ""
        listed = ", ".join(f'"{name}"' for name in names)
        return f"it fails other tests than it says; they are: fails = [{listed}]"

    def _unneeded(self, proof: Proof) -> None:
        """A hidden test that is not the only one to reject some fault says what it guards."""
        for item in self.slot.suite.items.get(self.exercise.name, []):
            doc = getattr(item, "function", item).__doc__ or ""
            known = {other.name for other in self.slot.suite.items[self.exercise.name]}
            for mark in item.iter_markers("needs"):
                for needed in set(mark.args) - known:
                    proof.problems.append(
                        f"{self._file('test_hidden.py')}: {item.name} needs {needed}, "
                        f"which is not there{did_you_mean(needed, known)}"
                    )
            if not doc.strip():
                proof.problems.append(
                    f"{self._file('test_hidden.py')}: {item.name} has no sentence"
                )
            if item.name not in proof.needed and GUARDS not in doc:
                proof.problems.append(
                    f"{self._file('test_hidden.py')}: no fault needs {item.name}, and its "
                    f"docstring names no contract that it `{GUARDS}`"
                )


def _wrong(report: Report) -> list[Outcome]:
    return [
        test
        for exercise in report.exercises
        for test in exercise.tests
        if test.outcome in ("failed", "error")
    ]


def _misnamed(fault: Fault, report: Report) -> str:
    """What the diagnosis makes of a fault, if not that fault alone."""
    diagnosis = report.exercises[0].diagnosis
    if diagnosis is None:  # its message says what it is
        return ""
    found = [diagnosis.faults, *(other.faults for other in diagnosis.tie)]
    named = {" with ".join(faults) for faults in found if faults}
    if named - {fault.like} == {fault.name}:
        return ""
    others = ", ".join(sorted(named - {fault.name})) or "no known mistake"
    return f"the diagnosis cannot tell it from {others}"


def _text_problem(fault: Fault, solution: str) -> str:
    count = solution.count(fault.replace)
    if not fault.replace or count != 1:
        return f"its text stands {count} times in solution.py, not once"
    if fault.apply(solution) == solution:
        return "it changes nothing"
    for key in ("says", "hint"):
        if not getattr(fault, key).strip():
            return f"its `{key}` is empty"
    return ""


def table(proofs: Sequence[Proof]) -> str:
    """What was proven, as a table."""
    width = max(len(proof.exercise.name) for proof in proofs)
    lines = [f"  {'exercise':<{width}}  points  tests  faults  rejected  needed tests  problems"]
    for proof in proofs:
        lines.append(
            f"  {proof.exercise.name:<{width}}  {proof.exercise.points:>6}  {proof.tests:>5}  "
            f"{proof.faults:>6}  {proof.caught:>8}  {len(proof.needed):>12}  "
            f"{len(proof.problems):>8}"
        )
    lines.append(
        f"  {'total':<{width}}  {sum(p.exercise.points for p in proofs):>6}  "
        f"{sum(p.tests for p in proofs):>5}  {sum(p.faults for p in proofs):>6}  "
        f"{sum(p.caught for p in proofs):>8}  {sum(len(p.needed) for p in proofs):>12}  "
        f"{sum(len(p.problems) for p in proofs):>8}"
    )
    return "\n".join(lines)
