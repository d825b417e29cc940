"""Proving one exercise: reference, stub, stand-in, every fault in every form, each hidden test.

A problem is a sentence that names the file to fix.
"""

from __future__ import annotations

import ast
import functools
import re
import textwrap
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from grader.course.course import EXAMPLE, NAMED_FILE, OUTPUT, Course, Exercise
from grader.course.faults import Edit, Fault, edited, load_faults
from grader.course.named import Named, load_named
from grader.course.stubs import make_stub
from grader.course.suite_text import cases_file
from grader.errors import CourseError, did_you_mean
from grader.grading.outcomes import points_of
from grader.grading.price import price_of
from grader.grading.programs import solutions
from grader.grading.session import with_grader
from grader.grading.signatures import parsed
from grader.report import NO_COMPUTATION, Diagnosis, Outcome, Report, clean
from grader.sandbox.host.source import WorkerSource
from grader.submissions.submission import Submission

if TYPE_CHECKING:
    from grader.grading.cases import Case, Check
    from grader.grading.grader import Grader, OnProgress

MIN_HINTS = 3
TO_DO = "TODO"  # stands in a file of a new exercise where its author has to write
STAND_IN_SHARE = 10  # a stand-in that is handed in earns at most one part in so many
GUARDS = "Guards:"  # in the docstring of a hidden test that no fault needs


@dataclass(frozen=True)
class Price:
    """What a fault costs: its failed checks, its price, and all points lost in each form of it."""

    fault: str
    checks: int
    price: int
    charged: tuple[int, ...]


NO_PRICE = Price("fault", 0, 0, ())


@dataclass
class Proof:
    """What was proven about one exercise, and the problems found."""

    exercise: Exercise
    tests: int = 0
    faults: int = 0
    caught: int = 0
    needed: dict[str, list[str]] = field(
        default_factory=dict
    )  # test → faults that it alone rejects
    prices: list[Price] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


def left_to_do(exercise: Exercise) -> list[str]:
    """Return the lines of an exercise's files that its author has to write, as problems."""
    return [
        f"reference/{exercise.name}/{path.name}:{number}: "
        + clean(line[line.index(TO_DO) :].strip(' ",.'))
        for path in sorted(exercise.folder.glob("*.*"))
        for number, line in enumerate(path.read_text("utf-8", "replace").splitlines(), start=1)
        if TO_DO in line
    ]


class Prover:
    """Proves one exercise with suites that are already collected."""

    def __init__(
        self,
        exercise: Exercise,
        grader: Grader,
        seed: int,
        *,
        prices: bool = False,
        note: Callable[[str], object] = lambda says: None,  # says how far the proof is
    ) -> None:
        self._note = note
        self.exercise, self.grader, self.seed, self._prices = exercise, grader, seed, prices
        course = grader.suite.course
        self.solutions = solutions(course, exercise.name)
        self.solution = self.solutions[exercise.name]
        self.items = grader.suite.items.get(exercise.name, [])
        self.proof = Proof(exercise, tests=len(self.items))

    def prove(self) -> Proof:
        """Run every step, in the order that makes a failure easiest to understand."""
        self.proof.problems += left_to_do(self.exercise)
        self._texts()
        self._probes()
        self._reference()
        self._example()
        self._stub()
        self._stand_in()
        self._faults()
        self._named()
        self._tests()
        return self.proof

    def _problem(self, file: str, text: str) -> None:
        self.proof.problems.append(f"reference/{self.exercise.name}/{file}: {text}")

    def grade(self, solution: str, seed: int | None = None, only: Collection[str] = ()) -> Report:
        """Return the report on `solution` for this exercise, among reference solutions."""
        self.grader.workers.on_wait()  # raises if nobody waits for this proof any more
        files = {**self.solutions, self.exercise.name: solution}
        submission, seed = Submission("validate", files), self.seed if seed is None else seed
        return self.grader.grade(submission, [self.exercise.name], seed, only=only).report

    def _texts(self) -> None:
        exercise = self.exercise
        if len(exercise.hints) < MIN_HINTS or not all(hint.strip() for hint in exercise.hints):
            self._problem("exercise.toml", f"needs {MIN_HINTS} hints, none empty")
        total = self.grader.suite.points_of(exercise.name)
        if total != exercise.points:
            says = f"its tests are worth {total} points, exercise.toml says {exercise.points}"
            self._problem("test_hidden.py", says)
        if not (exercise.folder / "test_public.py").is_file():
            self._problem("test_public.py", "missing")

    def _probes(self) -> None:
        """Check that each stage is a name of the solution, and that the probes themselves work."""
        for stage in self.exercise.stages:
            if stage != OUTPUT and not re.search(rf"\b{re.escape(stage)}\b", self.solution):
                self._problem("exercise.toml", f"stages: nothing in solution.py is called {stage}")
        try:
            catalogue = self.grader.computed(self.exercise, self.seed)
        except CourseError as error:
            self._problem(cases_file(self.exercise), error.message)
            return
        self._shipped(catalogue.probes)
        for probe in catalogue.probes:
            kind = getattr(catalogue.reference.answer(probe), "kind", "")
            if kind and not probe.is_misuse:
                says = f"{probe.name} raises {kind} on the reference; only those of the aspect "
                self._problem(cases_file(self.exercise), f'{says}"refusals" may')

    def _shipped(self, probes: Sequence[Case]) -> None:
        """Check that students' copies get the cases that are not hidden, and no others."""
        # Imports torch, which the other commands of this file's users do without.
        from grader.grading.diagnosis.probes import load_probes  # noqa: PLC0415

        file = cases_file(self.exercise)
        if not file:
            return
        try:
            there = {probe.name for probe in load_probes(self.exercise, shipped=True)[0]}
        except CourseError as error:
            self._problem(file, f"as students' copies get it: {error.message}")
            return
        for name in sorted(there ^ {probe.name for probe in probes if not probe.hidden}):
            says = f"{name} is cut out of students' copies, or stays in, against what it says; "
            self._problem(file, says + "write hidden=True itself where the case is made")
        for item in filter(_is_check, self.items):
            check: Check = item.function.check  # type: ignore[attr-defined]
            if not any(case.hidden and case.decides for case in check.cases):
                says = f"{item.name} has no hidden case; give one sizes of its own: hidden=True"
                self._problem(file, says)

    def _reference(self) -> None:
        first = self.grade(self.solution)
        for test in wrong_tests(first):
            self._problem("solution.py", f"fails {test.name}: {test.message} ({test.kind})")
        if self.grade(self.solution) != first:
            self._problem("test_hidden.py", "two runs with one seed differ")
        for test in wrong_tests(self.grade(self.solution, self.seed + 1)):
            self._problem("solution.py", f"fails {test.name} with another seed: {test.message}")

    def _example(self) -> None:
        """Run the worked example on the reference solution, in this process."""
        name, text = self.exercise.name, self.exercise.example
        try:
            solution = vars(self.grader.suite.references[name])
            names = {each: solution[each] for each in self.exercise.implements}
            exec(compile(text, EXAMPLE, "exec"), names)
        except Exception as error:
            self._problem(EXAMPLE, f"raises {type(error).__name__} on solution.py: {error}")

    def _stub(self) -> None:
        report = self.grade(make_stub(self.exercise))
        if report.points:
            self._problem("test_hidden.py", f"the stub earns {report.points} points")
        for test in wrong_tests(report):
            if test.kind != "NotImplementedError":
                kind = test.kind or test.message
                says = f"on the stub {test.name} fails with {kind}, not NotImplementedError"
                self._problem("test_hidden.py", says)

    def _stand_in(self) -> None:
        """Check that a stand-in, which runs beside students' code, is no solution."""
        text = self.exercise.stand_in
        if text is None:
            return
        report = self.grade(text)
        if report.points * STAND_IN_SHARE > report.max_points:
            says = (
                f"handed in as a solution, it earns {report.points} of {report.max_points} points, "
                f"and may earn 1/{STAND_IN_SHARE}; compute a part of it by a function of torch's "
                "that `forbidden` in exercise.toml names, and add one there if none fits"
            )
            self._problem("stand_in.py", says)

    def _faults(self) -> None:
        faults = load_faults(self.exercise)
        self.proof.faults = len(faults)
        for number, fault in enumerate(faults, start=1):
            self._note(f"mistake {number} of {len(faults)}: {fault.name}")
            if problem := _text_problem(fault, self.solution) or self._fault(fault):
                self._problem("faults.toml", f"{fault.name}: {problem}")

    def _fault(self, fault: Fault) -> str:
        """Grade the solution with a fault; return what is wrong with the fault's own keys."""
        main, *forms = fault.forms()
        report = self.grade(edited(self.solution, main) or self.solution)
        if report.points == report.max_points:
            self._problem("test_hidden.py", f"the fault {fault.name} earns all points")
            return ""
        # What falls because nothing is computed is no check that this mistake fails by itself.
        failed = [test for test in wrong_tests(report) if test.kind != NO_COMPUTATION]
        wrong = [test.name for test in failed]
        self.proof.caught += 1
        if len(wrong) == 1:
            self.proof.needed.setdefault(wrong[0], []).append(fault.name)
        return (
            self._fails_otherwise(fault, wrong)
            or self._misnamed(fault, main, report.exercises[0].diagnosis)
            or self._mispriced(fault)
            or self._forms(fault, forms, report)
        )

    def _misnamed(
        self,
        fault: Fault,
        form: Sequence[Edit],
        diagnosis: Diagnosis | None,
        asked: Literal["in a worker", "here"] = "in a worker",
    ) -> str:
        """Return what the diagnosis names instead of this fault alone, or nothing."""
        if diagnosis is None:  # its message says what it is
            return ""
        named = _named(diagnosis)
        if named - {fault.like} == {fault.name}:
            return ""
        if not named and not self.grader.computed(self.exercise, self.seed).can_name(fault, form):
            return ""
        if not named:
            why = self._answers_otherwise(form) if asked == "in a worker" else ""
            return f"the diagnosis does not name it{why}"
        others = ", ".join(sorted(named - {fault.name}))
        return f"the diagnosis cannot distinguish it from {others}"

    def _answers_otherwise(self, form: Sequence[Edit]) -> str:
        """Return in words which probes a form answered otherwise in the last worker than here."""
        diagnostician = self.grader.diagnostician(self.exercise, self.seed)
        text = edited(self.solution, form)
        if diagnostician is None or diagnostician.last is None or text is None:
            return ""
        theirs = diagnostician.last
        ours = self.grader.computed(self.exercise, self.seed).answers_of(text)
        others = [n for n, answer in ours.items() if n in theirs and not theirs[n].same(answer)]
        if not others:
            return ""
        kind = "the probe" if len(others) == 1 else "the probes"
        return f": in a worker, it answers {kind} {', '.join(others)} otherwise"

    def _mispriced(self, fault: Fault) -> str:
        """Return what is wrong with the price of a fault, or nothing."""
        most, price = self.exercise.points, price_of(fault, self.exercise.points)
        worth = {item.name: points_of(item) for item in self.items}
        stated = min(filter(None, (worth[name] for name in fault.fails)), default=0)
        if price < stated:
            says = f"it costs {price} points, and the cheapest check that it fails takes {stated}"
            return f"{says}; set `costs`"
        return f"it costs {price} points, and the exercise is worth {most}" if price > most else ""

    def _forms(self, fault: Fault, forms: Sequence[tuple[Edit, ...]], main: Report) -> str:
        """Grade the other forms of a fault; return what is wrong with the first that is wrong."""
        reports = [main]
        for form in forms:
            text = edited(self.solution, form) or self.solution
            report = self._rejection(fault, text)
            if problem := self._form_problem(fault, form, text, report):
                made = " · ".join(" ".join(edit.by.split()) or "(nothing)" for edit in form)
                return f"in the form {textwrap.shorten(made, 100)!r} {problem}"
            reports.append(report)
        lost = sorted({report.max_points - report.points for report in reports})
        checks = main.max_points - sum(test.points for test in main.exercises[0].tests)
        price = price_of(fault, self.exercise.points)
        self.proof.prices.append(Price(fault.name, checks, price, tuple(lost)))
        return ""

    def _rejection(self, fault: Fault, text: str) -> Report:
        """Return the report on a form of a fault; the first test that rejects it is enough."""
        for name in () if self._prices else sorted(fault.fails):
            report = self.grade(text, only=[name])
            if any(test.max_points for test in wrong_tests(report)):
                return report
        return self.grade(text)

    def _form_problem(self, fault: Fault, form: Sequence[Edit], text: str, report: Report) -> str:
        """Return why a form of a fault is not proven; a tie with another mistake is no problem.

        Its answers are worked out here: that a worker gives the same ones is seen of main forms.
        """
        if report.points == report.max_points:
            return "it earns all points"
        diagnostician = self.grader.diagnostician(self.exercise, self.seed)
        if diagnostician is None:
            return ""
        answers = self.grader.computed(self.exercise, self.seed).answers_of(text)
        diagnosis = diagnostician.diagnose(report.exercises[0].tests, answers, text)
        if diagnosis is None or {fault.name, fault.like} & _named(diagnosis):
            return ""
        return self._misnamed(fault, form, diagnosis, asked="here")

    def _fails_otherwise(self, fault: Fault, wrong: Sequence[str]) -> str:
        """Compare the failing tests with those that the fault names; `own_parts` do not count."""
        own_parts = {item.name for item in self.items if item.get_closest_marker("own_parts")}
        names = [name for name in wrong if name not in own_parts]
        if not fault.fails or fault.fails == set(names):
            return ""
        listed = ", ".join(f'"{name}"' for name in names)
        return f"it fails other tests than it says; they are: fails = [{listed}]"

    def _named(self) -> None:
        """Check the mistakes that were named with `grader name`."""
        named = load_named(self.exercise)
        taken = Counter(
            [*(each.id for each in named), *(each.name for each in load_faults(self.exercise))]
        )
        for each in named:
            if problem := self._named_problem(each, taken[each.id]):
                self._problem(NAMED_FILE, f"{each.id}: {problem}")

    def _named_problem(self, named: Named, called_so: int) -> str:
        if called_so > 1:
            return "another mistake has the same name"
        if not named.says.strip():
            return "its `says` is empty"
        if parsed(named.signature) is None:
            return "its `signature` is damaged; name the mistake again"
        most, price = self.exercise.points, price_of(named.as_fault(), self.exercise.points)
        if price > most:
            return f"it costs {price} points, and the exercise is worth {most}"
        known = self.grader.known_with(self.exercise, named.signature)
        return f"it is the same as {known}; take it out" if known else ""

    def _tests(self) -> None:
        """Check that each hidden test is needed by a fault, or says which contract it guards."""
        # Imports torch, which the other commands of this file's users do without.
        from grader.grading.suite_globals import tensors_at_module_level  # noqa: PLC0415

        tests = [item for item in self.items if not _is_check(item)]
        for name in tensors_at_module_level(tests) if len(tests) == len(self.items) else ():
            says = f"keeps a tensor or a module at module level ({name}); make it in a function, "
            self._problem("test_hidden.py", says + "so that every student gets the same values")
        known = {item.name for item in self.items}
        for item in self.items:
            doc = getattr(item, "function", item).__doc__ or ""
            needs = {name for mark in item.iter_markers("needs") for name in mark.args}
            for name in needs - known:
                says = f"{item.name} needs {name}, which is not there{did_you_mean(name, known)}"
                self._problem("test_hidden.py", says)
            if not doc.strip():
                self._problem("test_hidden.py", f"{item.name} has no sentence")
            if any(map(_is_check, self.items)):
                continue  # cases say what they are for
            if GUARDS not in doc and not self._is_needed(item):
                says = f"no fault needs {item.name}{self._rejected_otherwise(item.name)}, and its "
                self._problem(
                    "test_hidden.py", f"{says}docstring names no contract that it `{GUARDS}`"
                )

    def _rejected_otherwise(self, test: str) -> str:
        """Say that faults which fail a test are rejected without it, if there are such faults."""
        names = [fault.name for fault in load_faults(self.exercise) if test in fault.fails]
        if not names:
            return ""
        return f" (if it passed, other tests would run and reject {', '.join(names)} all the same)"

    def _is_needed(self, item: Any) -> bool:
        """Return whether a fault earns everything if this test passes whatever it is given."""
        faults = self.proof.needed.get(item.name, ())
        tested, item.obj = item.obj, _pass
        try:
            for fault in load_faults(self.exercise):
                if fault.name in faults:
                    report = self.grade(fault.apply(self.solution))
                    if report.passed and report.points == report.max_points:
                        return True
            return False
        finally:
            item.obj = tested


def prove(
    course: Course,
    names: Sequence[str],
    workers: WorkerSource,
    seed: int,
    on_exercise: OnProgress = lambda name, note="": None,
    on_proof: Callable[[Proof], None] = lambda proof: None,
    *,
    prices: bool = False,
) -> list[Proof]:
    """Collect the suites of the exercises `names`, and prove each; `on_proof` gets each proof."""

    def prove_all(grader: Grader) -> list[Proof]:
        proofs = []
        for name in names:
            on_exercise(name)
            note = functools.partial(on_exercise, name)
            proofs.append(Prover(course[name], grader, seed, prices=prices, note=note).prove())
            on_proof(proofs[-1])
        return proofs

    return with_grader(course, names, workers, prove_all, keep=True)


def _is_check(item: Any) -> bool:
    """Return whether a test is a check made of cases."""
    return hasattr(getattr(item, "function", None), "check")


def _pass(**fixtures: Any) -> None:
    """Pass."""


def wrong_tests(report: Report) -> list[Outcome]:
    """Return the tests of a report that do not pass as they should."""
    return [
        test
        for exercise in report.exercises
        for test in exercise.tests
        if test.outcome in ("failed", "error")
    ]


def _named(diagnosis: Diagnosis) -> set[str]:
    """Return the names of every explanation of a diagnosis."""
    found = [diagnosis.faults, *(other.faults for other in diagnosis.tie)]
    return {" with ".join(faults) for faults in found if faults}


def _text_problem(fault: Fault, solution: str) -> str:
    if not all(edit.replace for edit in fault.main_edits):
        return "it has no text to replace"
    for form in fault.forms():
        text = edited(solution, form)
        if text is None:
            counts = {edit.replace: solution.count(edit.replace) for edit in form}
            place = next((text for text, count in counts.items() if count != 1), form[-1].replace)
            stands = f"its text stands {counts[place]} times in solution.py, not once"
            return stands if len(form) == 1 else f"{stands}: {place!r}"
        if text == solution:
            return "it changes nothing"
        try:
            ast.parse(text)
        except SyntaxError as error:
            edits = " and ".join(repr(edit.by) for edit in form)
            return f"with {edits} the solution is no valid Python: {error.msg}"
    for key in ("says", "hint"):
        if not getattr(fault, key).strip():
            return f"its `{key}` is empty"
    return ""
