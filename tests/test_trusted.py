"""Programs of the course's own earn in the grader's process what they earn in a worker."""

from __future__ import annotations

import random
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import pytest
from corpus.programs import load
from msgspec import structs
from turns import in_turn

from grader.course.course import Course, Exercise
from grader.course.known_mistakes import edited, load_mistakes
from grader.course.stubs import make_stub
from grader.grading.programs import solutions
from grader.grading.session import with_grader
from grader.report import ExerciseResult, Outcome
from grader.sandbox.host.zygote import Zygote
from grader.submissions.submission import Submission

SEED = 7
Texts = Mapping[tuple[str, str], str]  # by exercise and kind of program
Outcomes = dict[tuple[str, str], tuple[Outcome, ...]]


def programs(exercise: Exercise) -> Iterator[tuple[str, str]]:
    """Yield the kinds and the texts of six programs of an exercise."""
    solution = exercise.read("solution.py")
    yield "reference", solution
    yield "stub", make_stub(exercise)
    for fault in load_mistakes(exercise)[:2]:
        yield fault.name, edited(solution, next(iter(fault.programs()))) or solution
    for sets in (("right",), ("broken", "outside")):
        program = next(each for each in load(*sets) if each.exercise == exercise.name)
        yield f"{program.set}/{program.name}", program.text


def chosen(course: Course) -> Texts:
    """Return half of these of each exercise whose turn it is; one trains, and it is a reference."""
    texts: dict[tuple[str, str], str] = {}
    for number, exercise in enumerate(in_turn([e for e in course.exercises if not e.training])):
        for kind, text in [*programs(exercise)][number % 2 :: 2]:
            texts[exercise.name, kind] = text
    trains = course["histogram_transformer"]  # the fastest of those that train
    assert trains.training is not None
    return {**texts, (trains.name, "reference"): trains.read("solution.py")}


def outcomes(course: Course, texts: Texts, zygote: Zygote | None) -> Outcomes:
    """Return the outcomes of every check on these programs."""

    def body(grader: Any) -> Outcomes:
        found = {}
        for (name, kind), text in texts.items():
            submission = Submission("s001", {**solutions(course, name), name: text})
            checks = [item.name for item in grader.suite.items[name]]  # so that no mistake is named
            (result,) = grader.grade(submission, [name], SEED, only=checks).results
            found[name, kind] = result.tests
        return found

    names = list(dict.fromkeys(name for name, _ in texts))
    return with_grader(course, names, zygote, body)


@pytest.mark.slow
def test_programs_earn_and_hear_the_same_here_and_in_a_worker(
    course: Course, zygote: Zygote
) -> None:
    texts = chosen(course)
    names = {name for name, _ in texts}
    assert len(texts) == 3 * (len(names) - 1) + 1
    assert len(names) > len(course.names) // 12
    here, there = outcomes(course, texts, None), outcomes(course, texts, zygote)
    for place in texts:
        assert here[place] == there[place], place


# --- what the code and the grader share -----------------------------------------------------------


@pytest.fixture
def grade_here(tiny_course: Course) -> Callable[..., ExerciseResult]:
    """Grade texts of the tiny course in this process, one after the other; return the last."""
    hasty = structs.replace(tiny_course["scale"], call_seconds=0.7)
    course = replace(tiny_course, exercises=(hasty,))

    def grade(*texts: str) -> ExerciseResult:
        def body(grader: Any) -> ExerciseResult:
            for text in texts:
                submission = Submission("s001", {"scale": text}, {"scale": "scale.py"})
                grading = grader.grade(submission, ["scale"], SEED, only=["test_twice"])
            return grading.results[0]  # type: ignore[no-any-return]

        return with_grader(course, ["scale"], None, body)

    return grade


LINE = "    return x * factor"


@pytest.mark.parametrize(
    "line",
    [
        "    input()",
        "    raise SystemExit(2)",
        "    return scale(x, factor)",
        "    print('twice'); import sys; print('no', file=sys.stderr); return x",
        "    return torch.randn(2, 3)",
        "    return x.numpy()",
        "    return x.mul_(factor)",
        "    return x[5]",
        "    import transformers_of_nobody",
        "    return (",
    ],
)
def test_what_goes_wrong_is_told_as_through_the_boundary(
    tiny_course: Course, zygote: Zygote, tiny_solution: str, line: str
) -> None:
    texts = {("scale", "one"): tiny_solution.replace(LINE, line)}
    assert outcomes(tiny_course, texts, None) == outcomes(tiny_course, texts, zygote)


def test_an_endless_loop_ends(
    grade_here: Callable[..., ExerciseResult], tiny_solution: str
) -> None:
    loop = "    while True:\n        x = x * 1"
    (outcome,) = grade_here(tiny_solution.replace(LINE, loop)).tests
    assert outcome.kind == "Timeout"
    assert outcome.where is not None
    assert outcome.where.file == "scale.py"
    assert "it was at `" in outcome.message


SETS = """
import random, sys, torch, warnings
torch.set_default_dtype(torch.float64)
torch.set_grad_enabled(False)
torch.manual_seed(1)
random.seed(1)
sys.setrecursionlimit(500)
warnings.simplefilter("error")
"""


def test_what_a_program_sets_is_gone_with_it(
    grade_here: Callable[..., ExerciseResult], tiny_solution: str
) -> None:
    import sys

    import torch

    def state() -> tuple[Any, ...]:
        drawn = random.getstate(), sys.getrecursionlimit(), list(warnings.filters)
        return torch.get_default_dtype(), torch.is_grad_enabled(), *drawn, "scale" in sys.modules

    before = state()
    result = grade_here(tiny_solution + SETS, tiny_solution)
    assert [outcome.points for outcome in result.tests] == [2]
    assert state() == before


def test_what_a_program_draws_changes_nothing_that_a_test_draws(
    tiny_course: Course, tiny_solution: str
) -> None:
    import torch

    def body(grader: Any) -> list[float]:
        drawn = []
        for line in (LINE, "    torch.rand(9); return x * factor"):
            files = {"scale": tiny_solution.replace(LINE, line)}
            with grader.examining(Submission("s001", files), SEED, ["scale"]) as examiner:
                student: Any = examiner.module(tiny_course["scale"], seed=0)
                torch.manual_seed(5)
                student.scale(torch.ones(2), 2.0)
                drawn.append(torch.rand(()).item())
        return drawn

    drawn = with_grader(tiny_course, ["scale"], None, body)
    assert drawn[0] == drawn[1]
