"""Proving one exercise: reference, stub, stand-in, every mistake in every form, each hidden test.

A problem is a sentence that names the file to fix.
"""

from __future__ import annotations

import contextlib
import functools
import re
from collections import Counter
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from grader.commands.blanks import blanks
from grader.commands.branches import load_reasons
from grader.commands.mistake_texts import PART, is_part, made_by, text_problem
from grader.commands.proof import EVERYTHING, Price, Proof, Scope
from grader.course.course import EXAMPLE, NAMED_FILE, OUTPUT, Course, Exercise
from grader.course.known_mistakes import Edit, Mistake, edited, load_mistakes
from grader.course.named import Named, load_named
from grader.course.stubs import make_stub
from grader.course.suite_text import SUITE, has_cases
from grader.errors import CourseError, did_you_mean
from grader.grading.failures import SELF_EXPLAINING
from grader.grading.price import price_of
from grader.grading.programs import solutions
from grader.grading.session import with_grader
from grader.grading.signatures import parsed
from grader.report import Diagnosis, Outcome, Report
from grader.submissions.submission import Submission

if TYPE_CHECKING:
    from grader.grading.cases import Case, Check
    from grader.grading.grader import Grader, OnProgress

MIN_HINTS = 3
TO_DO = "TODO"  # marks the places in a new exercise's files that its author has to fill in
STAND_IN_SHARE = 10  # a stand-in that is handed in earns at most 1 / STAND_IN_SHARE of the points
BLANK_SHARE = 10  # the same for code that computes nothing


class Prover:
    """Proves one exercise with suites that are already collected."""

    def __init__(
        self,
        exercise: Exercise,
        grader: Grader,
        seed: int,
        *,
        note: Callable[[str], object] = lambda says: None,  # reports the progress of the proof
        on_wait: Callable[[], None] = lambda: None,  # called before each program; may raise
        scope: Scope = EVERYTHING,
    ) -> None:
        self._note, self._on_wait, self._scope = note, on_wait, scope
        self.exercise, self.grader, self.seed = exercise, grader, seed
        course = grader.suite.course
        self.solutions = solutions(course, exercise.name)
        self.solution = self.solutions[exercise.name]
        self.items = grader.suite.items.get(exercise.name, [])
        self.proof = Proof(exercise, tests=len(self.items))

    def prove(self) -> Proof:
        """Run every step, in the order that makes failures easiest to understand."""
        self._texts()
        self._cases()
        if self._scope.mistakes:
            self._faults()
            return self.proof
        self._branches()
        self._reference()
        self._example()
        self._stub()
        self._stand_in()
        self._blanks()
        self._faults()
        self._named()
        self._tests()
        return self.proof

    def _problem(self, file: str, text: str) -> None:
        self.proof.problems.append(f"reference/{self.exercise.name}/{file}: {text}")

    def grade(self, solution: str, seed: int | None = None) -> Report:
        """Return the report on `solution` for this exercise, among reference solutions."""
        self._on_wait()  # raises if nobody waits for this proof any more
        files = {**self.solutions, self.exercise.name: solution}
        submission, seed = Submission("validate", files), self.seed if seed is None else seed
        return self.grader.grade(submission, [self.exercise.name], seed).report

    def _texts(self) -> None:
        exercise = self.exercise
        written = [hint for hint in exercise.hints if hint.strip()]
        # A hint that says TODO is a problem already.
        if len(written) < max(MIN_HINTS, len(exercise.hints)) and TO_DO not in "".join(written):
            self._problem("exercise.toml", f"needs {MIN_HINTS} hints, none empty")
        if exercise.predict and not exercise.example:
            self._problem("exercise.toml", f"predict: there is no {EXAMPLE} that would show it")
        for number, question in enumerate(exercise.questions):
            if question.problem:
                self._problem("exercise.toml", f"questions[{number}]: {question.problem}")
        total = self.grader.suite.points_of(exercise.name)
        if total != exercise.points:
            says = f"its tests are worth {total} points, exercise.toml says {exercise.points}"
            self._problem("test_hidden.py", says)
        if not (exercise.folder / "test_public.py").is_file():
            self._problem("test_public.py", "missing")

    def _cases(self) -> None:
        """Check that each stage is a name of the solution, and that the cases themselves work."""
        for stage in self.exercise.stages:
            if stage != OUTPUT and not re.search(rf"\b{re.escape(stage)}\b", self.solution):
                self._problem("exercise.toml", f"stages: nothing in solution.py is called {stage}")
        try:
            catalogue = self.grader.computed(self.exercise, self.seed)
        except CourseError as error:
            self._problem(SUITE, error.message)
            return
        self._shipped(catalogue.cases)
        for case in catalogue.cases:
            kind = getattr(catalogue.reference.answer(case), "kind", "")
            if kind and not case.is_misuse:
                says = f"{case.name} raises {kind} on the reference; only those of the aspect "
                self._problem(SUITE, f'{says}"refusals" may')

    def _shipped(self, cases: Sequence[Case]) -> None:
        """Check that students' copies get the cases that are not hidden, and no others."""
        # Imports torch, which the other commands of this file's users do without.
        from grader.grading.diagnosis.asked import load_cases  # noqa: PLC0415

        if not has_cases(self.exercise):
            return
        try:
            there = {case.name for case in load_cases(self.exercise, shipped=True)[0]}
        except CourseError as error:
            self._problem(SUITE, f"as students' copies get it: {error.message}")
            return
        for name in sorted(there ^ {case.name for case in cases if not case.hidden}):
            says = (
                f"{name} is cut out of students' copies without hidden=True, or stays in with it; "
            )
            self._problem(SUITE, says + "write hidden=True itself where the case is made")
        for item in filter(_is_check, self.items):
            check: Check = item.function.check  # type: ignore[attr-defined]
            if not any(case.hidden and case.decides for case in check.cases):
                says = f"{item.name} has no hidden case; give one sizes of its own: hidden=True"
                self._problem(SUITE, says)

    def _branches(self) -> None:
        """Check that each promise is asked in every branch of an option, or has a reason not to."""
        # Imports torch, which the other commands of this file's users do without.
        from grader.commands.watched_calls import watch_calls  # noqa: PLC0415

        reasons = load_reasons(self.exercise)
        with contextlib.suppress(CourseError):  # `_cases` has reported it
            table = watch_calls(self.grader.suite.course, self.exercise, self.seed)
            for file, problem in table.problems(reasons):
                self._problem(file, problem)

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
        tests = report.exercises[0].tests
        if all(test.outcome == "skipped" for test in tests if test.max_points):
            says = (
                "on the stub a check that all others need fails, so whoever has not written one "
                "class earns nothing; make modules inside of what assert_written_by_hand calls"
            )
            self._problem("test_hidden.py", says)

    def _stand_in(self) -> None:
        """Check that a stand-in, which runs beside students' code, is worthless as a solution."""
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

    def _blanks(self) -> None:
        """Check that code which computes nothing earns almost nothing.

        All blanks that compute nothing fail the same checks, so only the first of them is graded.
        A blank with one of several functions right, such as a softmax of the input, is part of a
        solution. If a blank is wrong only by known mistakes, such as a feed-forward network
        without its ReLU, their prices decide what it may earn.
        """
        if not any(map(_is_check, self.items)) or self.exercise.training:
            return
        for number, (says, text) in enumerate(blanks(self.exercise)):
            self._note(f"a blank: {says}")
            computing = self.grader.computing(self.exercise, text, self.seed)
            if (number and not computing) or any(computing.values()):
                continue
            report = self.grade(text)
            diagnosis = report.exercises[0].diagnosis
            is_priced = diagnosis is not None and diagnosis.faults and diagnosis.complete
            most = max(1, round(report.max_points / BLANK_SHARE))  # points are whole
            if report.points > most and not is_priced:
                self._problem(
                    "test_hidden.py",
                    f"a blank, {says}, earns {report.points} of {report.max_points} points, and "
                    f"may earn {most}; compare more cases with the reference",
                )

    def _faults(self) -> None:
        chosen, all_of_them = self._scope.mistakes, load_mistakes(self.exercise)
        faults = [fault for fault in all_of_them if not chosen or fault.name in chosen]
        self.proof.faults = len(faults)
        for number, fault in enumerate(faults, start=1):
            self._note(f"mistake {number} of {len(faults)}: {fault.name}")
            if problem := text_problem(fault, self.solution) or self._fault(fault):
                self._problem("mistakes.toml", f"{fault.name}: {problem}")

    def _fault(self, fault: Mistake) -> str:
        """Grade the solution with a mistake; return the problem with its own keys, or nothing."""
        main, *forms = fault.programs()
        text = edited(self.solution, main) or self.solution
        if not self._scope.prices and self._is_named_by_cases(fault, text, alone=True):
            self.proof.caught += 1
            return self._mispriced(fault) or self._forms(fault, forms)
        report = self.grade(text)
        if report.points == report.max_points:
            says = f"the mistake {fault.name} earns all points; ask a case that it gets wrong"
            self._problem("test_hidden.py", says)
            return ""
        self.proof.caught += 1
        self._note_needed(fault, report)
        self._note_price(fault, report)
        return (
            self._misnamed(fault, main, text, report)
            or self._mispriced(fault)
            or self._forms(fault, forms)
        )

    def _misnamed(self, fault: Mistake, form: Sequence[Edit], text: str, report: Report) -> str:
        """Return how the diagnosis fails to name exactly this mistake, or nothing."""
        diagnosis = report.exercises[0].diagnosis
        named = _named(diagnosis) if diagnosis else set[str]()
        if named - {fault.like} == {fault.name}:
            return ""
        if named:
            others = ", ".join(sorted(named - {fault.name}))
            return (
                f"the diagnosis cannot distinguish it from {others}; ask a case at which they "
                "differ, or, if they answer everything alike, write one as a form of the other"
            )
        if diagnosis and self.grader.computed(self.exercise, self.seed).can_name(fault, form):
            return "the diagnosis does not name it"
        self._note_overcharged(fault, form, text, report)
        return ""

    def _note_overcharged(
        self, fault: Mistake, form: Sequence[Edit], text: str, report: Report
    ) -> None:
        """Note a form that costs more than its price because its answers are errors."""
        # Imports torch, which the other commands of this file's users do without.
        from grader.grading.diagnosis.answers import Raised  # noqa: PLC0415

        price, lost = price_of(fault, self.exercise.points), report.max_points - report.points
        if lost <= price or any(test.kind in SELF_EXPLAINING for test in wrong_tests(report)):
            return
        catalogue = self.grader.computed(self.exercise, self.seed)
        answers = catalogue.answers_of(text)
        wrong = [case for case in catalogue.wrong(answers) if not case.is_misuse]
        if any(isinstance(answers[case.name], Raised) for case in wrong):
            self.proof.overcharged.setdefault(
                fault.name,
                f"reference/{self.exercise.name}/mistakes.toml: {fault.name}: in the form "
                f"{made_by(form)!r} its answers are errors, so no report names it and it costs "
                f"{lost}, not {price}; ask whether such a call works (works_as_well)",
            )

    def _note_needed(self, fault: Mistake, report: Report) -> None:
        """Note the case that alone rejects a form of a mistake."""
        self._note_wrong(fault, [case.name for test in wrong_tests(report) for case in test.wrong])

    def _note_wrong(self, fault: Mistake, wrong: Sequence[str]) -> None:
        if len(wrong) == 1 and fault.name not in self.proof.needed.setdefault(wrong[0], []):
            self.proof.needed[wrong[0]].append(fault.name)

    def _mispriced(self, fault: Mistake) -> str:
        """Return the problem with the price of a mistake, or nothing."""
        most, price = self.exercise.points, price_of(fault, self.exercise.points)
        return f"it costs {price} points, and the exercise is worth {most}" if price > most else ""

    def _note_price(self, fault: Mistake, report: Report) -> None:
        """Note what a form of a mistake costs, if no earlier form costs as much."""
        lost = report.max_points - report.points
        checks = report.max_points - sum(test.points for test in report.exercises[0].tests)
        price = price_of(fault, self.exercise.points)
        earlier = self.proof.prices.get(fault.name)
        if earlier is None or lost > earlier.lost:
            self.proof.prices[fault.name] = Price(fault.name, checks, price, lost)

    def _forms(self, fault: Mistake, forms: Sequence[tuple[Edit, ...]]) -> str:
        """Prove the other forms of a mistake; return the problem of the first that has one."""
        for form in forms:
            text = edited(self.solution, form) or self.solution
            if not self._scope.prices and self._is_named_by_cases(fault, text):
                continue
            report = self.grade(text)
            self._note_needed(fault, report)
            self._note_price(fault, report)
            if problem := self._form_problem(fault, form, text, report):
                part = PART if is_part(fault, form) else ""
                return f"in the form {made_by(form)!r} {problem}{part}"
        return ""

    def _is_named_by_cases(self, fault: Mistake, text: str, *, alone: bool = False) -> bool:
        """Return whether a form of a mistake is rejected and named if it is only asked the cases.

        If `alone`, no other mistake may be named as well. Asking takes a third of the time of
        grading. What it does not settle, such as a form that uses a forbidden function, is graded
        as a student's code is.
        """
        # Imports torch, which the other commands of this file's users do without.
        from grader.grading.deciding import decided  # noqa: PLC0415

        diagnostician = self.grader.diagnostician(self.exercise, self.seed)
        if diagnostician is None:
            return False
        self._on_wait()
        catalogue = self.grader.computed(self.exercise, self.seed)
        answer, answers = catalogue.respondent(text).answer, catalogue.answers_of(text)
        wrong = decided(catalogue, catalogue.cases, answer)
        failed = list(dict.fromkeys(case.check for case in wrong if case.of and case.of.points))
        diagnosis = diagnostician.explain(answers, text, failed) if failed else None
        named = _named(diagnosis) if diagnosis else set[str]()
        if not {fault.name, fault.like} & named or (alone and named - {fault.like} != {fault.name}):
            return False
        if len(wrong) == 1:  # it may be needed, unless one of the slowest cases rejects the form
            wrong += decided(catalogue, catalogue.deciding_only, answer)
        self._note_wrong(fault, [case.name for case in wrong])
        return True

    def _form_problem(self, fault: Mistake, form: Sequence[Edit], text: str, report: Report) -> str:
        """Return why a form of a mistake is not proven; a tie with another one is no problem."""
        if report.points == report.max_points:
            return "it earns all points"
        diagnosis = report.exercises[0].diagnosis
        if diagnosis and {fault.name, fault.like} & _named(diagnosis):
            return ""
        return self._misnamed(fault, form, text, report)

    def _named(self) -> None:
        """Check the mistakes that were named with `grader name`."""
        named = load_named(self.exercise)
        taken = Counter(
            [*(each.id for each in named), *(each.name for each in load_mistakes(self.exercise))]
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
        most, price = self.exercise.points, price_of(named.as_mistake(), self.exercise.points)
        if price > most:
            return f"it costs {price} points, and the exercise is worth {most}"
        known = self.grader.known_with(self.exercise, named.signature)
        return f"it is the same as {known}; take it out" if known else ""

    def _tests(self) -> None:
        """Check that each hidden test has a sentence, and needs only tests that exist."""
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


def prove(
    course: Course,
    names: Sequence[str],
    seed: int,
    on_exercise: OnProgress = lambda name, note="": None,
    on_proof: Callable[[Proof], None] = lambda proof: None,
    *,
    on_wait: Callable[[], None] = lambda: None,
    scope: Scope = EVERYTHING,
) -> list[Proof]:
    """Collect the suites of the exercises `names`, and prove each; `on_proof` gets each proof.

    All programs are the course's own, and run in this process. Before each, `on_wait` may raise.
    """

    def prove_all(grader: Grader) -> list[Proof]:
        proofs = []
        for name in names:
            on_exercise(name)
            note = functools.partial(on_exercise, name)
            prover = Prover(course[name], grader, seed, note=note, on_wait=on_wait, scope=scope)
            proofs.append(prover.prove())
            on_proof(proofs[-1])
        return proofs

    return with_grader(course, names, None, prove_all)


def _is_check(item: Any) -> bool:
    """Return whether a test is a check made of cases."""
    return hasattr(getattr(item, "function", None), "check")


def wrong_tests(report: Report) -> list[Outcome]:
    """Return the tests of a report that should pass and do not."""
    return [
        test
        for exercise in report.exercises
        for test in exercise.tests
        if test.outcome in ("failed", "error")
    ]


def _named(diagnosis: Diagnosis) -> set[str]:
    """Return the names in each explanation of a diagnosis."""
    found = [diagnosis.faults, *(other.faults for other in diagnosis.tie)]
    return {" with ".join(faults) for faults in found if faults}
