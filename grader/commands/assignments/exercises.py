"""Questions → exercises: their names, their points in whole numbers, and the text of each file."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace

from grader.commands.assignments.definitions import Code, statements_of
from grader.commands.assignments.prose import PICTURE, statement_of
from grader.commands.assignments.question import (
    Assignment,
    CodeCell,
    MarkedTest,
    Question,
    first_line,
)
from grader.commands.assignments.solutions import idea_in, prepare, solution_of
from grader.commands.assignments.suites import convertible, suite_of
from grader.errors import RequestError, did_you_mean

FINEST_SCALE = 120  # the largest factor that makes points whole
ROUNDED_SCALE = 100
UNTOLD = re.compile(r"^\s*(?:import |from |#|get_ipython\(\)).*$", re.MULTILINE)


@dataclass
class NewExercise:
    """An exercise made of a question, with its files except `exercise.toml`."""

    name: str  # empty if nothing in the question can name a module
    question: Question
    implements: list[str]
    values: list[str]  # of these, the functions that stand for variables
    title: str = ""
    points: int = 0
    about: dict[str, str] = field(default_factory=dict)  # its summary and idea, if there are any
    requires: list[str] = field(default_factory=list)
    texts: dict[str, str] = field(default_factory=dict)
    tests: int = 0  # of the hidden suite
    to_do: int = 0  # cells that could not be turned into tests


@dataclass(frozen=True)
class Imported:
    """The exercises of a notebook, the parts left out, and the factor of the points."""

    exercises: Sequence[NewExercise]
    left: Sequence[str]
    scale: int


def exercises_of(
    assignment: Assignment,
    can_be_name: Callable[[str], bool],
    only: Sequence[str] = (),
    name: str = "",
) -> Imported:
    """Return the exercises of a notebook, in its order. Raises `RequestError`.

    `only` names questions or their exercises; without it all are taken. `name` replaces the name of
    the only exercise.
    """
    left, every = list(assignment.left), list[NewExercise]()
    for question in assignment.questions:
        implements, variables = prepare(question)
        if implements:
            called = _name((question.name, implements[0]), can_be_name)
            every.append(NewExercise(called, question, implements, variables))
        else:
            called = f" `{question.name}`" if question.name else ""
            says = "its answer defines no function or class, nor a variable that a test reads"
            left.append(f"cell {question.cell}{called}: {says}")
    wanted = _chosen(every, only, name)
    scale = math.lcm(
        1, *(worth.denominator for one in every for worth in one.question.share_points())
    )
    scale = scale if scale <= FINEST_SCALE else ROUNDED_SCALE
    code = _code_of(assignment, every)
    values = {each for one in every for each in one.values}
    for one in wanted:
        left += _fill(one, code, values, scale)
    for cell in () if only else assignment.plain:
        if cell not in code.used and UNTOLD.sub("", cell.code).strip():
            left.append(f"cell {cell.cell}, `{first_line(cell.code)}`")
    return Imported(wanted, left, scale)


def _chosen(every: Sequence[NewExercise], only: Sequence[str], name: str) -> list[NewExercise]:
    """Return the exercises that are wanted, the only one under its new name."""
    known = [text for one in every for text in dict.fromkeys((one.question.name, one.name)) if text]
    for each in only:
        if each not in known:
            problem = f"there is no question `{each}`{did_you_mean(each, known)}"
            raise RequestError(problem, f"--only {known[0]}" if known else "")
    wanted = [one for one in every if not only or {one.question.name, one.name} & set(only)]
    if name and len(wanted) > 1:
        names = ", ".join(one.name or one.question.name for one in wanted)
        problem = f"--name is for one exercise, and there are {len(wanted)}: {names}"
        raise RequestError(problem, f"--only {wanted[0].question.name or wanted[0].name}")
    for one in wanted:
        one.name = name or one.name
        if not one.name:
            called = one.question.name or one.implements[0]
            problem = f"cell {one.question.cell}: `{called}` cannot name a module"
            raise RequestError(problem, f"--only {called} --name my_exercise")
    return wanted


def _name(candidates: Iterable[str], can_be_name: Callable[[str], bool]) -> str:
    """Return the first that can name a module when it is in snake case; nothing if none can."""
    snakes = (re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", each).lower() for each in candidates)
    names = (re.sub(r"\W+", "_", each).strip("_") for each in snakes)
    return next(filter(can_be_name, names), "")


def _code_of(assignment: Assignment, every: Sequence[NewExercise]) -> Code:
    """Return the code of a notebook; of answers it is known which exercise asks for what."""
    asked = {
        (answer, name): one.name or one.implements[0]
        for one in every
        for answer in one.question.answers
        for name in one.implements
    }
    cells = list(assignment.plain)
    for question in assignment.questions:
        cells += question.answers
        cells += [CodeCell(case.cell, case.shown, part="shown") for case in question.cases]
        cells += [CodeCell(case.cell, case.code, part="hidden") for case in question.cases]
    return Code(
        [
            replace(each, exercise=asked.get((cell, min(each.binds, default="")), ""))
            for cell in sorted(cells, key=lambda cell: cell.cell)
            for each in statements_of(cell)
        ]
    )


def _fill(one: NewExercise, code: Code, values: Collection[str], scale: int) -> list[str]:
    """Write the files of an exercise; return what is left out."""
    question = one.question
    cases = [replace(case, points=round((case.points or 0) * scale)) for case in question.cases]
    one.points = sum(int(case.points or 0) for case in cases)
    own = {name: f"student.{name}{'()' * (name in one.values)}" for name in one.implements}
    one.title, statement, summary = statement_of(question.prose)
    solution, one.requires, left = solution_of(question, one.name, code, values, one.title)
    found = {"summary": summary, "idea": idea_in(solution, one.implements)}
    one.about = {key: text for key, text in found.items() if text}
    seen = convertible(one.name, cases, own, code)
    shown, *_ = suite_of(one.name, _shared_out(one.points, seen), own, code, hidden=False)
    hidden, one.tests, one.to_do = suite_of(
        one.name, cases, own, code, hidden=True, values=one.values
    )
    one.texts = {
        "statement.md": statement,
        "solution.py": solution,
        "test_public.py": shown,
        "test_hidden.py": hidden,
    }
    pictures = (each[0] for text in question.prose for each in PICTURE.finditer(text))
    return left + [f"the picture {each[:60]}" for each in pictures]


def _shared_out(total: int, seen: Sequence[MarkedTest]) -> list[MarkedTest]:
    """Return the cases that students see, with all points of the exercise shared among them."""
    weights = [int(case.points or 0) for case in seen]
    weights = weights if any(weights) else [1] * len(seen)
    ends = [total * sum(weights[:n]) // (sum(weights) or 1) for n in range(len(seen) + 1)]
    return [replace(case, points=ends[n + 1] - ends[n]) for n, case in enumerate(seen)]
