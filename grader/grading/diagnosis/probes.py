"""The probes of an exercise, and asking a program all of them."""

from __future__ import annotations

import functools
import linecache
import traceback
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from grader.course.course import Exercise
from grader.errors import CheckFailure, CourseError, StudentFailure
from grader.grading.aspects import Aspect
from grader.grading.diagnosis.answers import REFUSALS, Answer, Raised, failure_of, values_of
from grader.grading.rng import Rng
from grader.grading.seeds import seed_of_test, seed_of_worker
from grader.report import UNWRITTEN
from grader.sandbox.host.proxies import Student, code_of
from grader.sandbox.program import Program
from grader.sandbox.wire import Source

FILE = "probes.py"
# After these the worker is gone or out of time, and cannot answer anything else.
FATAL = ("Timeout", "Crash")

Answers = Mapping[str, Answer]  # by the name of the probe


@dataclass(frozen=True)
class Probe:
    """One probe: its name, its aspect, what it asks in a sentence, and its function."""

    name: str
    about: Aspect
    sentence: str
    function: Callable[[Any, Rng], Any]
    decides: bool = True  # whether right code gives the reference's answer

    @property
    def aspect(self) -> str:
        """The name of what it is about."""
        return self.about.name

    @property
    def is_misuse(self) -> bool:
        """Whether the calls must be refused."""
        return self.aspect == "refusals"

    def ask(self, student: Student, seed: int, exercise: str) -> Any:
        """Return what the probe returns on this code; raises what the code raises."""
        name = f"probe {self.name}"
        code_of(student).manual_seed(seed_of_worker(seed, exercise, name))
        return self.function(student, Rng(seed_of_test(seed, exercise, name)))


def load_probes(exercise: Exercise) -> tuple[tuple[Probe, ...], tuple[str, ...]]:
    """Return the probes of an exercise in the order of their aspects, and the names of the axes.

    Without the file both are empty. The axes are the last ones of the exercise's outputs.
    """
    path = exercise.folder / FILE
    if not exercise.folder.name or not path.is_file():
        return (), ()
    return probes_in(Source(str(path), exercise.read(FILE)))


@functools.lru_cache(maxsize=64)
def probes_in(source: Source) -> tuple[tuple[Probe, ...], tuple[str, ...]]:
    """Return the probes in a text, and its `AXES`."""
    try:
        module = Program({"probes": source}).load("probes")
    except Exception as error:
        problem = f"{source.file} cannot be loaded: {type(error).__name__}: {error}"
        raise CourseError(problem) from None
    found = [
        Probe(name, function.__aspect__, _sentence(function), function, function.__decides__)
        for name, function in vars(module).items()
        if hasattr(function, "__aspect__")
    ]
    found.sort(key=lambda probe: probe.about.rank)
    return tuple(found), tuple(getattr(module, "AXES", ()))


def _sentence(function: Callable[..., Any]) -> str:
    return (function.__doc__ or "").strip().partition("\n")[0]


def answer_of(ask: Callable[[], Any], *, misuse: bool = False) -> Answer:
    """Return the answer of `ask`: what it returns, or its error.

    After a `misuse` any exception that refuses it is the same answer.
    """
    try:
        return values_of(ask())
    except StudentFailure as failure:
        line = failure.frames[-1].source if failure.frames else ""
        kind, message = failure.kind, failure.message
    except CheckFailure as failure:
        kind, message, line = "Mismatch", failure.message, ""
    except Exception as error:
        kind, message, line = type(error).__name__, str(error), _last_line(error)
    if misuse:  # whether the code or Python raises it says nothing
        return Raised("refused" if kind in REFUSALS else kind, "")
    return failure_of(kind, message, by_hand=line.strip().startswith(("raise", "assert")))


def _last_line(error: Exception) -> str:
    """Return the last line of a program's own files that an error came from, as a worker does."""
    line = ""
    for frame, number in traceback.walk_tb(error.__traceback__):
        program = frame.f_globals.get("__loader__")
        if isinstance(program, Program) and program.sources[frame.f_globals["__name__"]].own:
            line = linecache.getline(frame.f_code.co_filename, number)
    return line


def ask_all(
    probes: Iterable[Probe], student: Student, seed: int, exercise: str
) -> dict[str, Answer]:
    """Ask a student's code the probes; return its answers, up to one that ends the worker.

    A probe of code that is not written yet gets no answer.
    """
    answers: dict[str, Answer] = {}
    for probe in probes:
        answer = answer_of(
            functools.partial(probe.ask, student, seed, exercise), misuse=probe.is_misuse
        )
        if getattr(answer, "kind", "") in FATAL:
            break
        if getattr(answer, "kind", "") not in UNWRITTEN:
            answers[probe.name] = answer
    return answers
