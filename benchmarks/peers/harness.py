"""Running one hidden test of this course from another tool's test case.

Every tool's environment can import this module. The test functions are those of reference/; they
run on the files in the tool's current folder. Exercises that build on others run on stand-ins.
"""

from __future__ import annotations

import functools
import importlib.util
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import torch

from grader.course.course import Course, load_course
from grader.course.visibility import SKIPPED_UNTIL
from grader.grading.cases import Check
from grader.grading.deciding import Given, given_for
from grader.grading.direct import DirectCode
from grader.grading.plain import files_in
from grader.grading.programs import References, program
from grader.grading.rng import Rng
from grader.grading.seeds import seed_of_test
from grader.sandbox.host.proxies import Student
from grader.sandbox.program import Program

ROOT = Path(__file__).parents[2]
SEED = 0

_failed: set[tuple[str, str]] = set()
_programs: dict[str, Program] = {}


@dataclass(frozen=True)
class Case:
    """A hidden test: its exercise, its name and its points."""

    exercise: str
    test: str
    points: int


@functools.cache
def course() -> Course:
    """Return the course of this repository, with the exercises that a command takes by itself."""
    return load_course(ROOT).choose("core")


@functools.cache
def references() -> References:
    """Return its reference solutions."""
    return References(course())


@functools.cache
def suite(exercise: str) -> ModuleType:
    """Import an exercise's hidden suite."""
    path = course().suite(exercise)
    spec = importlib.util.spec_from_file_location(f"hidden_{exercise}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def cases() -> list[Case]:
    """Return every hidden test, in the course's order."""
    return [
        Case(exercise, test, _points(function))
        for exercise in course().names
        for test, function in vars(suite(exercise)).items()
        if test.startswith("test_")
    ]


@functools.cache
def given(exercise: str) -> Given:
    """Return what asks the cases of an exercise, of which the reference's answers are kept."""
    return given_for(course(), course()[exercise], SEED)


def check(exercise: str, test: str) -> None:
    """Run a hidden test on the files in the current folder; raise what the test raises."""
    found = getattr(suite(exercise), test)
    function = found.function if isinstance(found, Check) else found
    for name in _needed(exercise, function):
        if name != test and (exercise, name) in _failed:
            raise AssertionError(SKIPPED_UNTIL.format(name))
    seed = seed_of_test(SEED, exercise, test)
    torch.manual_seed(seed)
    own_parts = any(mark.name == "own_parts" for mark in getattr(function, "pytestmark", ()))
    try:
        loaded = _program(exercise, own_parts=own_parts)
        with loaded.active():
            function(**_arguments(function, exercise, loaded, seed))
    except BaseException:
        _failed.add((exercise, test))
        raise


def _program(exercise: str, *, own_parts: bool) -> Program:
    files = {name: source.text for name, source in files_in(Path(), course().names).items()}
    stood_in = () if own_parts else None
    name, sources = program(course(), course()[exercise], files, stood_in=stood_in)
    if name not in _programs:
        _programs[name] = Program(sources)
    return _programs[name]


def _arguments(function: Any, exercise: str, loaded: Program, seed: int) -> dict[str, Any]:
    """Return the values of the fixtures that a test uses."""
    makers: dict[str, Callable[[], Any]] = {
        "student": lambda: Student(DirectCode(loaded, exercise, course()[exercise].forbidden)),
        "reference": lambda: references()[exercise],
        "rng": lambda: Rng(seed),
        "cases": lambda: given(exercise),
    }
    return {name: makers[name]() for name in inspect.signature(function).parameters}


def _points(function: Any) -> int:
    if isinstance(function, Check):
        return function.points
    marks = getattr(function, "pytestmark", ())
    return next((int(mark.args[0]) for mark in marks if mark.name == "points"), 1)


def _needed(exercise: str, function: Any) -> list[str]:
    everywhere = getattr(suite(exercise), "pytestmark", [])
    marks = [*getattr(function, "pytestmark", ()), *_listed(everywhere)]
    return [name for mark in marks if mark.name == "needs" for name in mark.args]


def _listed(marks: Any) -> list[Any]:
    return marks if isinstance(marks, list) else [marks]
