"""The check of a students' copy beside its public tests: the cases are answered rightly."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from grader.grading.cases import Case
from grader.grading.diagnosis.answers import Raised
from grader.grading.diagnosis.asked import Answers
from grader.grading.diagnosis.catalogue import AnyCatalogue
from grader.grading.diagnosis.facts import ERRORS
from grader.report import CASES_CHECK, Diagnosis, ExerciseResult, Outcome, Verdict

SENTENCE = "Other calls give the answers of the reference solution."
MAX_SHOWN = 3  # calls in the message


def with_cases(
    result: ExerciseResult,
    catalogue: AnyCatalogue,
    answers: Answers,
    diagnosis: Diagnosis | None,
) -> ExerciseResult:
    """Return a result with the check by cases, which is required but worth no points.

    It fails if a case has a wrong answer that no right code gives. If the diagnosis names a
    mistake, it also fails for answers that right code may give.
    """
    is_named = diagnosis is not None and diagnosis.faults
    wrong = catalogue.disproving(answers)
    if wrong or is_named:
        wrong = list(dict.fromkeys([*catalogue.wrong(answers), *wrong]))
    if not wrong:
        return _checked(result, "passed")
    return _checked(result, "failed", _message(wrong, answers, len(catalogue.cases)), "Mismatch")


def unasked(result: ExerciseResult, why: str) -> ExerciseResult:
    """Return a result whose code could not answer the cases, so the exercise is not done."""
    return _checked(result, "error", why)


def _checked(
    result: ExerciseResult, outcome: Verdict, message: str = "", kind: str = ""
) -> ExerciseResult:
    check = Outcome(CASES_CHECK, SENTENCE, outcome, 0, 0, message, kind, required=True)
    return replace(result, tests=(*result.tests, check))


def _message(wrong: Sequence[Case], answers: Answers, count: int) -> str:
    shown = "; ".join(_shown(case, answers) for case in wrong[:MAX_SHOWN])
    more = f", and {len(wrong) - MAX_SHOWN} more" if len(wrong) > MAX_SHOWN else ""
    comes = "comes" if len(wrong) == 1 else "come"
    return f"of {count} other calls, {len(wrong)} {comes} out otherwise: {shown}{more}"


def _shown(case: Case, answers: Answers) -> str:
    """Return the sentence of a case, with the error if the code raised one."""
    sentence, answer = f"“{case.sentence.rstrip('.')}”", answers.get(case.name)
    if not isinstance(answer, Raised) or case.is_misuse:
        return sentence
    error = f"your code {ERRORS[answer.subject]}" if answer.subject in ERRORS else answer.kind
    return f"{sentence} ({error})"
