"""The cases of an exercise, and the answers of a program to all of them."""

from __future__ import annotations

import functools
import linecache
import traceback
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from grader.course.course import Exercise
from grader.course.suite_text import SUITE, has_cases, shipped_cases
from grader.errors import CheckFailure, CourseError, StudentFailure
from grader.grading.cases import Case, cases_of
from grader.grading.diagnosis.answers import (
    NO_REFUSALS,
    REFUSALS,
    Answer,
    Raised,
    failure_of,
    values_of,
)
from grader.report import UNWRITTEN
from grader.sandbox.host.proxies import Student
from grader.sandbox.program import Program
from grader.sandbox.wire import Source

# After these failures the worker is gone or out of time, and cannot answer any more.
FATAL = ("Timeout", "Crash")

Answers = Mapping[str, Answer]  # by the name of the case


def load_cases(
    exercise: Exercise, *, shipped: bool = False
) -> tuple[tuple[Case, ...], tuple[str, ...]]:
    """Return the cases of an exercise in the order of their aspects, and the names of the axes.

    The cases are those of its suite that tell mistakes apart, or those in a file of their own;
    without either, both results are empty. With `shipped`, only the cases in students' copies. The
    axes are the last ones of the exercise's outputs.
    """
    if not has_cases(exercise):
        return (), ()
    text = shipped_cases(exercise) if shipped else exercise.read(SUITE)
    return cases_in(Source(str(exercise.folder / SUITE), text))


@functools.lru_cache(maxsize=64)
def cases_in(source: Source) -> tuple[tuple[Case, ...], tuple[str, ...]]:
    """Return the cases in a text, and its `AXES`."""
    try:
        module = Program({"cases": source}).load("cases")
    except Exception as error:
        problem = f"{source.file} cannot be loaded: {type(error).__name__}: {error}"
        raise CourseError(problem) from None
    found = cases_of(vars(module), source.file)
    found.sort(key=lambda case: case.about.rank)
    return tuple(found), tuple(getattr(module, "AXES", ()))


@dataclass(frozen=True)
class Asked:
    """The answer of some code to a case, and the error behind it, if there is one."""

    answer: Answer
    error: Exception | None = None


def answer_of(ask: Callable[[], Any], *, misuse: bool = False) -> Answer:
    """Return the answer of `ask`: its result, or its error.

    For a `misuse`, all exceptions that refuse it are the same answer.
    """
    return asked(ask, misuse=misuse).answer


def asked(ask: Callable[[], Any], *, misuse: bool = False) -> Asked:
    """Return the answer of `ask`, as `answer_of` does, with the error behind it."""
    error: Exception
    try:
        return Asked(values_of(ask()))
    except StudentFailure as failure:
        line = failure.frames[-1].source if failure.frames else ""
        kind, message, error = failure.kind, failure.message, failure
    except CheckFailure as failure:
        kind, message, line, error = "Mismatch", failure.message, "", failure
    except Exception as failure:
        kind, message, line = type(failure).__name__, str(failure), _last_line(failure)
        error = failure
    by_hand = line.strip().startswith(("raise", "assert"))
    if misuse:  # it does not matter whether the code or Python raises one of REFUSALS
        refuses = kind in REFUSALS or (by_hand and kind not in NO_REFUSALS)
        return Asked(Raised("refused" if refuses else kind, ""), error)
    return Asked(failure_of(kind, message, by_hand=by_hand), error)


def _last_line(error: Exception) -> str:
    """Return the last line of a program's own files on the way to an error, as a worker does."""
    line = ""
    for frame, number in traceback.walk_tb(error.__traceback__):
        program = frame.f_globals.get("__loader__")
        if isinstance(program, Program) and program.sources[frame.f_globals["__name__"]].own:
            line = linecache.getline(frame.f_code.co_filename, number)
    return line


def ask_all(
    cases: Iterable[Case],
    student: Student,
    seed: int,
    exercise: str,
    given: Mapping[str, Answer] = {},
) -> dict[str, Answer]:
    """Ask a student's code the cases; return its answers, up to one that ends the worker.

    If its code is not written yet, a case gets no answer. The cases in `given` were asked before,
    for checks.
    """
    answers: dict[str, Answer] = {}
    for case in cases:
        if case.name in given:
            answers[case.name] = given[case.name]
            continue
        answer = answer_of(
            functools.partial(case.ask, student, seed, exercise), misuse=case.is_misuse
        )
        if getattr(answer, "kind", "") in FATAL:
            break
        if getattr(answer, "kind", "") not in UNWRITTEN:
            answers[case.name] = answer
    return answers
