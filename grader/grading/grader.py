"""From a submission to its results: the named steps in between."""

from __future__ import annotations

import contextlib
import functools
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from typing import Protocol, TypeVar

from grader.course.course import Course, Exercise
from grader.course.known_mistakes import edited, load_mistakes
from grader.course.named import Named, load_named
from grader.course.stubs import UNWRITTEN, is_untouched, line_left_above_code, make_stub
from grader.errors import GraderError, WorkerLost
from grader.grading.causes import with_causes
from grader.grading.code_text import line_in_words
from grader.grading.copy_check import unasked, with_cases
from grader.grading.dependence import Dependence, without_computing
from grader.grading.diagnosis.answers import Values
from grader.grading.diagnosis.asked import Answers, load_cases
from grader.grading.diagnosis.catalogue import AnyCatalogue
from grader.grading.diagnosis.computed import ComputedCatalogue, catalogue_of
from grader.grading.diagnosis.record import load_record, load_sayings
from grader.grading.diagnosis.recorded import RecordedCatalogue
from grader.grading.diagnosis.search import Diagnostician
from grader.grading.diagnosis.signing import known_with, signature_of
from grader.grading.drawing import head_view, pictures_of, stages_of
from grader.grading.examiner import OnTraining, SandboxExaminer
from grader.grading.kept_trainings import Keeps
from grader.grading.outcomes import UNUSABLE, broken
from grader.grading.price import Nearest, charged
from grader.grading.programs import solutions
from grader.grading.reporter import MAX_TRIES, Reporter, given_up, not_run, problem_of
from grader.grading.seeds import PUBLIC_SEED
from grader.grading.signatures import are_comparable, is_same_mistake
from grader.grading.suite import Suite
from grader.grading.trusted import InThisProcess
from grader.report import (
    CASES_CHECK,
    Diagnosis,
    Drawing,
    ExerciseResult,
    Outcome,
    Report,
    clean,
)
from grader.sandbox.cells import CELL, NOTEBOOK
from grader.sandbox.host.connection import WorkerConnection
from grader.sandbox.host.proxies import Student
from grader.sandbox.host.source import WorkerSource
from grader.sandbox.host.worker import Worker
from grader.submissions.submission import Submission

Place = tuple[str, int]  # an exercise and a seed
T = TypeVar("T")
NOT_WRITTEN = "not written yet"
NOTE_SECONDS = 0.2  # seconds between two notes on a training


class OnProgress(Protocol):
    """Called with each exercise before it is graded, and then with notes on its progress."""

    def __call__(self, name: str, note: str = "") -> None:
        """Take note of it."""


@dataclass(frozen=True)
class Grading:
    """The results of one submission."""

    submission: Submission
    seed: int
    results: tuple[ExerciseResult, ...]
    confinement: tuple[str, ...]  # the layers that confined the worker
    _reporter: Reporter

    @functools.cached_property
    def report(self) -> Report:
        """The report on the submission."""
        return self._reporter.report(self.submission, self.results, self.seed, self.confinement)


@dataclass(frozen=True)
class Grader:
    """A warm suite and the source of its workers: grades one submission after another.

    Without workers, it grades only the course's own programs, in this process.
    """

    suite: Suite
    workers: WorkerSource | None
    keeps_trainings: Keeps = "nothing"
    # By exercise and seed: for one secret seed at a time, and for the public one.
    _diagnosticians: dict[Place, Diagnostician | None] = field(default_factory=dict, compare=False)
    _dependences: dict[Place, Dependence] = field(default_factory=dict, compare=False)
    # By exercise and test: whether the reference fails it, as far as known.
    _broken: dict[tuple[str, str], bool] = field(default_factory=dict, compare=False)
    # Signatures of the programs behind named mistakes, by exercise, hash and seed.
    _member_signatures: dict[tuple[str, str, int], str] = field(default_factory=dict, compare=False)

    @property
    def course(self) -> Course:
        """The course whose exercises are graded."""
        return self.suite.course

    @functools.cached_property
    def _reporter(self) -> Reporter:
        return Reporter(self.course)

    def with_workers(self, workers: WorkerSource) -> Grader:
        """Return the same warm suite with other workers, for a process forked from this one."""
        return replace(self, workers=workers)

    def check_confinement(self) -> None:
        """Confine and end a worker, so that a missing layer raises before grading."""
        assert self.workers is not None
        for left in reversed(range(MAX_TRIES)):
            with closing(Worker(self.workers)) as worker:
                try:
                    assert worker.layers
                    return
                except WorkerLost:
                    if not left:
                        raise

    def grade(
        self,
        submission: Submission,
        names: Sequence[str],
        seed: int,
        on_exercise: OnProgress = lambda name, note="": None,
        *,
        tries: int = MAX_TRIES,
        only: Collection[str] = (),
        naming_seed: int | None = None,
    ) -> Grading:
        """Grade the exercises `names` of one submission; report progress to `on_exercise`.

        The `seed` decides the inputs of the hidden tests and of the cases that tell mistakes
        apart. With public tests, the cases have their recorded inputs.

        With `only`, run just the tests of these names; failures are not explained then.

        An exercise whose worker is lost is tried again, and given up after `MAX_TRIES`. With fewer
        `tries`, it raises `WorkerLost` after them, so that the caller can decide. Cases of
        `naming_seed`, by default `seed`, compare unnamed mistakes.
        """
        results: list[ExerciseResult] = []
        with self.examining(submission, seed, names, _notes_for(on_exercise)) as examiner:
            if naming_seed is not None:
                examiner.naming_seed = naming_seed
            for name in names:
                on_exercise(name)
                results.append(self._run(self.course[name], examiner, tries, only))
        layers = examiner.connection.layers
        return Grading(submission, seed, tuple(results), layers, self._reporter)

    @contextlib.contextmanager
    def examining(
        self,
        submission: Submission,
        seed: int,
        names: Sequence[str],
        on_report: OnTraining = lambda exercise, training, step, loss: None,
    ) -> Iterator[SandboxExaminer]:
        """Yield the examiner of a submission, whose code runs in workers or in this process."""
        source = self.workers
        connect = InThisProcess if source is None else functools.partial(Worker, source)
        with closing(WorkerConnection(connect)) as connection:
            references, keeps = self.suite.references, self.keeps_trainings
            yield SandboxExaminer(
                references, submission, connection, seed, names, on_report, keeps=keeps
            )

    def _run(
        self, exercise: Exercise, examiner: SandboxExaminer, tries: int, only: Collection[str]
    ) -> ExerciseResult:
        if problem := problem_of(examiner.submission, exercise.name):
            return not_run(exercise, problem)
        for _ in range(tries):
            try:
                result = self._result(exercise, examiner, only)
                return result if only else self._completed(result, examiner)
            except WorkerLost as error:
                lost = error
                examiner.connection.try_again(exercise.name)
        if tries < MAX_TRIES:
            raise lost
        return given_up(exercise, lost.message)

    def _result(
        self, exercise: Exercise, examiner: SandboxExaminer, only: Collection[str]
    ) -> ExerciseResult:
        if exercise.own_parts and self.course.suites == "hidden":
            needed = self.course.needed(exercise.name)
            examiner.stood_in[exercise.name] = tuple(
                each.name
                for each in self.course.exercises
                if each.name in needed and self._lack(each, examiner)
            )
        outcomes = self._outcomes(exercise, examiner, only)
        if self.course.suites == "hidden":
            outcomes = tuple(self._blamed(exercise, each) for each in outcomes)
        advice = _common_problem(outcomes, examiner.submission.files[exercise.name])
        return ExerciseResult(
            name=exercise.name,
            title=exercise.title,
            points=sum(outcome.points for outcome in outcomes),
            max_points=self.suite.points_of(exercise.name),
            advice=advice,
            tests=outcomes,
            unfinished=not advice and _is_unfinished(outcomes),
            stand_ins=examiner.stood_in.get(exercise.name, ()),
            curves=examiner.curves_of(exercise),
        )

    def _outcomes(
        self, exercise: Exercise, examiner: SandboxExaminer, only: Collection[str]
    ) -> tuple[Outcome, ...]:
        """Run the tests of an exercise; raise `WorkerLost` even if a test has caught it."""
        outcomes = self.suite.run(examiner, exercise.name, only)
        if (lost := examiner.connection.lost) is not None:
            raise lost
        return outcomes

    def _blamed(self, exercise: Exercise, outcome: Outcome) -> Outcome:
        """Return an outcome, as an error of the course if the reference fails the test, too.

        That is tried only if the test broke at a result of the code, because the test may be
        wrong.
        """
        place = exercise.name, outcome.name
        if outcome.outcome != "failed" or (outcome.kind != UNUSABLE and place not in self._broken):
            return outcome
        if place not in self._broken:
            solution = exercise.read("solution.py")
            self._broken[place] = bool(self._fails(solution, [outcome.name], exercise))
        return broken(outcome) if self._broken[place] else outcome

    def note_reference(self, result: ExerciseResult) -> None:
        """Remember which tests the reference fails, from its result: nobody can pass them."""
        for test in result.tests:
            self._broken[result.name, test.name] = test.outcome in ("failed", "error")

    def _fails(
        self, text: str, tests: Collection[str], exercise: Exercise, seed: int = 0
    ) -> list[str]:
        """Return those of some tests that one of the course's own programs does not pass."""
        with self._examining(exercise, text, seed) as examiner:
            found = self._outcomes(exercise, examiner, tests)
        return [outcome.name for outcome in found if outcome.outcome != "passed"]

    @contextlib.contextmanager
    def _examining(self, exercise: Exercise, text: str, seed: int) -> Iterator[SandboxExaminer]:
        """Yield the examiner of a text for an exercise, beside the course's other solutions."""
        needed = solutions(self.course, exercise.name)
        paths = {exercise.name: f"{exercise.name}{NOTEBOOK}"} if CELL in text else {}
        program = Submission("reference", {**needed, exercise.name: text}, paths)
        with self.examining(program, seed, [exercise.name]) as examiner:
            yield examiner

    def _completed(self, result: ExerciseResult, examiner: SandboxExaminer) -> ExerciseResult:
        """Return a result with the findings of the cases: the mistake, and a picture.

        Hidden tests decide alone. Public tests ask less, so beside them the cases are a check,
        too.
        """
        result = _tried(self._drawn, result, examiner, "draw what this code computes")
        if self.course.suites == "public":
            return _tried(self._practised, result, examiner, "try other calls", unasked)
        if result.passed:
            return result
        result = _tried(self._explained, result, examiner, "name the mistake")
        result = _tried(self._computing, result, examiner, "see what the results depend on")
        result = _tried(self._charged, result, examiner, "charge each mistake once")
        return _tried(self._viewed, result, examiner, "draw the attention weights")

    def _drawn(self, result: ExerciseResult, examiner: SandboxExaminer) -> ExerciseResult:
        """Return a result with the pictures of the code's values."""
        exercise, pictures = self.course[result.name], list[Drawing]()
        if exercise.draws and not result.unfinished:
            pictures += pictures_of(exercise, examiner.module(exercise, seed=0))
        # A tour asks many exercises, so it is for a student's own report, not for a whole class.
        if exercise.leads_tour and self.course.suites == "public":
            pictures += stages_of(exercise, functools.partial(self._part, examiner))
        return replace(result, pictures=tuple(pictures))

    def _part(self, examiner: SandboxExaminer, name: str) -> Student | None:
        """Return the student's module of an exercise; None if it is not written.

        Raises `LookupError` if the course does not have it.
        """
        if name not in self.course.names:
            raise LookupError(name)
        exercise, files = self.course[name], examiner.submission.files
        if name not in files or is_untouched(files[name], make_stub(exercise)):
            return None
        return examiner.module(exercise, seed=0)

    def _explained(self, result: ExerciseResult, examiner: SandboxExaminer) -> ExerciseResult:
        """Return a failed result with the mistake that it shows."""
        exercise, diagnosis = self.course[result.name], None
        diagnostician = self.diagnostician(exercise, examiner.seed)
        if diagnostician is not None and any(test.outcome == "failed" for test in result.tests):
            given = examiner.given(exercise).answers
            answers = diagnostician.ask(examiner.module(exercise, seed=0), given)
            diagnosis = self._diagnosis(result, diagnostician, answers, examiner)
            diagnosis = self._with_causes(diagnosis, diagnostician, answers, examiner)
        return replace(result, diagnosis=diagnosis)

    def _charged(self, result: ExerciseResult, examiner: SandboxExaminer) -> ExerciseResult:
        """Return a failed result with each mistake charged once, named or not."""
        exercise = self.course[result.name]
        diagnostician = self.diagnostician(exercise, examiner.seed)
        if diagnostician is None or result.unfinished or not self.course.policy.carry_forward:
            return result
        text = examiner.submission.files[result.name]
        answers = examiner.given(exercise).answers
        clear = [case.name for case in diagnostician.catalogue.wrong(answers)]

        def nearest(wrong: Collection[str]) -> Nearest | None:
            # Errors show nothing about a computation, so no mistake excuses them.
            if any(isinstance(answers.get(name), Values) for name in wrong):
                return diagnostician.nearest(wrong, text)
            return None

        return charged(result, clear, nearest)

    def _computing(self, result: ExerciseResult, examiner: SandboxExaminer) -> ExerciseResult:
        """Return a failed result in which checks fail that call a function without computation.

        If known mistakes explain everything, their prices decide.
        """
        failed = any(test.outcome == "failed" and test.max_points for test in result.tests)
        complete = result.diagnosis is not None and result.diagnosis.complete
        if not failed or complete or result.unfinished:
            return result
        exercise = self.course[result.name]
        student, known = examiner.module(exercise, seed=0), _mistaken(exercise, result.diagnosis)
        lacking = self._dependence(exercise, examiner.seed).lacking(student, known)
        return without_computing(result, lacking, examiner.asked)

    def computing(self, exercise: Exercise, text: str, seed: int) -> dict[str, bool]:
        """Return which functions of one of the course's own programs compute, and which are right.

        If none computes, the program earns only the checks that call none of them.
        """
        with self._examining(exercise, text, seed) as examiner:
            student = examiner.module(exercise, seed=0)
            return self._dependence(exercise, seed).computing(student)

    def _dependence(self, exercise: Exercise, seed: int) -> Dependence:
        place = exercise.name, seed
        if place not in self._dependences:
            _drop_other_seeds(self._dependences, seed)
            cases, _ = load_cases(exercise)
            self._dependences[place] = Dependence(self.course, exercise, cases, seed)
        return self._dependences[place]

    def _practised(self, result: ExerciseResult, examiner: SandboxExaminer) -> ExerciseResult:
        """Return a result of public tests with the check by cases, and the mistake, if any."""
        exercise = self.course[result.name]
        # Its points do not predict the hidden tests, so an exercise is done only if all checks
        # pass.
        result = replace(result, tests=tuple(replace(t, required=True) for t in result.tests))
        text = examiner.submission.files[result.name]
        if is_untouched(text, make_stub(exercise)):
            return result
        diagnostician = self.diagnostician(exercise, examiner.seed)
        unmet = self._unmet(exercise, examiner)
        if unmet and not result.passed:  # which could be the cause of anything
            return replace(result, unfinished=False, advice=unmet)
        if diagnostician is None or result.unfinished or _cannot_be_called(result):
            return result
        answers = diagnostician.ask(examiner.module(exercise, seed=0))
        diagnosis = None if unmet else diagnostician.explain(answers, text, [CASES_CHECK])
        diagnosis = self._with_causes(diagnosis, diagnostician, answers, examiner)
        result = with_cases(result, diagnostician.catalogue, answers, diagnosis)
        return result if result.passed else replace(result, diagnosis=diagnosis, advice=unmet)

    def _unmet(self, exercise: Exercise, examiner: SandboxExaminer) -> str:
        """Return a sentence on the exercise to solve before this one; empty if there is none.

        A students' copy has no stand-ins: there, the student's own earlier work takes part.
        """
        for required in (self.course[name] for name in exercise.requires):
            if lacks := self._lack(required, examiner):
                says = f"{required.name} comes first: this exercise builds on it, and it is {lacks}"
                return says if lacks == NOT_WRITTEN else f"{says}: grader check {required.name}"
        return ""

    def _lack(self, exercise: Exercise, examiner: SandboxExaminer) -> str:
        """Return what the student's code lacks for an exercise; empty if its cases find nothing.

        In a students' copy, which has no stand-ins, it runs on their own earlier exercises.
        """
        submission = examiner.submission
        if problem_of(submission, exercise.name):
            return NOT_WRITTEN
        if is_untouched(submission.files[exercise.name], make_stub(exercise)):
            return NOT_WRITTEN
        diagnostician = self.diagnostician(exercise, examiner.seed)
        if diagnostician is not None:
            answers = diagnostician.ask(examiner.module(exercise, seed=0))
            if diagnostician.catalogue.disproving(answers):
                return "not right yet"
        return ""

    def _viewed(self, result: ExerciseResult, examiner: SandboxExaminer) -> ExerciseResult:
        """Return a failed result with a picture of the weights beside the right ones."""
        if result.unfinished or not result.tests:
            return result
        exercise = self.course[result.name]
        student = examiner.module(exercise, seed=0)
        view = head_view(exercise, student, self.suite.references[exercise.name])
        return replace(result, head_view=view)

    def _diagnosis(
        self,
        result: ExerciseResult,
        diagnostician: Diagnostician,
        answers: Answers,
        examiner: SandboxExaminer,
    ) -> Diagnosis | None:
        """Name the known mistake in an exercise that failed, from its answers to the cases."""
        text = examiner.submission.files[result.name]
        found = diagnostician.diagnose(result.tests, answers, text)
        if found is None or found.faults:
            return found
        exercise, seed = diagnostician.catalogue.exercise, examiner.naming_seed or examiner.seed
        public, secret = (
            self._signature(exercise, each, examiner, answers) for each in (PUBLIC_SEED, seed)
        )
        members = self._members(exercise, public, secret, seed) if secret else {}
        return replace(found, signature=public, secret=secret, members=members)

    def _with_causes(
        self,
        diagnosis: Diagnosis | None,
        diagnostician: Diagnostician,
        answers: Answers,
        examiner: SandboxExaminer,
    ) -> Diagnosis | None:
        """Return a diagnosis whose facts begin with what may be behind the others."""
        catalogue, texts = diagnostician.catalogue, examiner.submission.files
        module = functools.partial(examiner.module, catalogue.exercise, seed=0)
        return with_causes(diagnosis, catalogue, answers, module, texts)

    def _signature(
        self, exercise: Exercise, seed: int, examiner: SandboxExaminer, answers: Answers | None
    ) -> str:
        """Return the signature of code at a seed; `answers` are those at the examiner's seed."""
        catalogue = catalogue_of(self.course, exercise, seed)
        if answers is None or seed != examiner.seed:
            answers = Diagnostician(catalogue).ask(examiner.module(exercise, seed=0))
        whole = catalogue.cases[-1].name in answers
        return signature_of(catalogue, answers, whole=whole)

    def _members(self, exercise: Exercise, public: str, secret: str, seed: int) -> dict[str, str]:
        """Return the signatures, at a secret seed, of the programs that may have the same mistake.

        These are the programs behind named mistakes with the same `public` signature. A mistake
        that was named in this class already has a signature at this seed. Students wrote these
        programs, so they run only in workers.
        """
        if self.workers is None:
            return {}
        return {
            named.key: self._signature_of_member(exercise, named, seed)
            for named in load_named(exercise)
            if named.program and is_same_mistake(named.signature, public)
            if not any(are_comparable(each, secret) for each in named.secrets)
        }

    def _signature_of_member(self, exercise: Exercise, named: Named, seed: int) -> str:
        """Return the signature of a program that a student wrote: it runs confined, as all do."""
        place = exercise.name, named.key, seed
        if place not in self._member_signatures:
            with self._examining(exercise, named.program, 0) as examiner:
                found = self._signature(exercise, seed, examiner, None)
            self._member_signatures[place] = found
        return self._member_signatures[place]

    def known_with(self, exercise: Exercise, signature: str) -> str:
        """Return what a course knows already that has this signature; nothing if it is new."""
        catalogue = self.computed(exercise, PUBLIC_SEED)
        return known_with(signature, catalogue) if catalogue.cases else ""

    def computed(self, exercise: Exercise, seed: int) -> ComputedCatalogue:
        """Return the catalogue, at a seed, of an exercise whose solution is at hand."""
        return catalogue_of(self.course, exercise, seed)

    def diagnostician(self, exercise: Exercise, seed: int) -> Diagnostician | None:
        """Return the diagnostician of an exercise at a seed; None if it has no cases.

        In a students' copy it is always the public seed, the only one with recorded answers.
        """
        place = exercise.name, seed if self.course.suites == "hidden" else PUBLIC_SEED
        if place not in self._diagnosticians:
            _drop_other_seeds(self._diagnosticians, place[1])
            catalogue = self._catalogue(exercise, seed)
            found = Diagnostician(catalogue) if catalogue and catalogue.cases else None
            self._diagnosticians[place] = found
        return self._diagnosticians[place]

    def _catalogue(self, exercise: Exercise, seed: int) -> AnyCatalogue | None:
        if self.course.suites == "hidden":
            return self.computed(exercise, seed)
        recorded = load_record(self.course, exercise.name)
        if recorded is None:
            return None
        return RecordedCatalogue(exercise, recorded, load_sayings(self.course, exercise.name))


def _drop_other_seeds(kept: dict[Place, T], seed: int) -> None:
    """Drop the data for other secret seeds: a class grades its few epochs one by one."""
    for place in [each for each in kept if each[1] not in (seed, PUBLIC_SEED)]:
        del kept[place]


def _mistaken(exercise: Exercise, diagnosis: Diagnosis | None) -> Iterator[str]:
    """Yield the solution with each mistake that a diagnosis names, in every form."""
    solution = exercise.read("solution.py")
    for fault in load_mistakes(exercise) if diagnosis else ():
        if diagnosis and fault.name in diagnosis.faults:
            yield from filter(None, (edited(solution, form) for form in fault.programs()))


def _tried(
    step: Callable[[ExerciseResult, SandboxExaminer], ExerciseResult],
    result: ExerciseResult,
    examiner: SandboxExaminer,
    doing: str,
    otherwise: Callable[[ExerciseResult, str], ExerciseResult] = lambda result, why: replace(
        result, advice=why
    ),
) -> ExerciseResult:
    """Return the result of a step, or that of `otherwise` if the grader breaks there.

    A mark without its explanation is better than no mark.
    """
    try:
        return step(result, examiner)
    except GraderError:
        raise
    except Exception as error:
        why = f"the grader could not {doing} ({type(error).__name__}: {error})"
        return otherwise(result, clean(why))


def _notes_for(on_exercise: OnProgress) -> OnTraining:
    """Return a function that turns a training's reports into notes, a few times a second."""
    noted = 0.0

    def on_training(exercise: str, training: str, step: int, loss: float) -> None:
        nonlocal noted
        if time.monotonic() - noted > NOTE_SECONDS:
            noted = time.monotonic()
            on_exercise(exercise, f"training {training}, step {step}, loss {loss:.3g}")

    return on_training


def _is_unfinished(outcomes: Sequence[Outcome]) -> bool:
    """Return whether every failure is the stub's own."""
    failed = [test for test in outcomes if test.outcome == "failed"]
    earned = any(test.points for test in outcomes)
    return bool(failed) and not earned and all(t.kind == UNWRITTEN for t in failed)


def _cannot_be_called(result: ExerciseResult) -> bool:
    """Return whether cases would show nothing more: nothing works, or the work is not done."""
    kinds = {test.kind for test in result.tests if test.outcome == "failed"}
    return "Forbidden" in kinds or bool(result.advice)


def _common_problem(outcomes: Sequence[Outcome], text: str) -> str:
    """Return a sentence on an exercise whose checks all fail for one reason, or nothing."""
    failed = [test for test in outcomes if test.outcome == "failed"]
    if any(test.kind == UNWRITTEN for test in failed) and (line := line_left_above_code(text)):
        where = line_in_words(text, line)
        return f"{where} still stands above your code, which never runs: remove it"
    ways = {(test.kind, test.message, test.where) for test in failed}
    passed = any(test.outcome == "passed" for test in outcomes)
    if passed or len(failed) < 2 or len(ways) > 1 or failed[0].kind == UNWRITTEN:
        return ""
    if failed[0].loading:
        return "your file cannot be loaded, so every check fails in the same way"
    return "every check fails in the same way"
