"""Questions → exercises: their names, their points in whole numbers, and the text of each file."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

from grader.commands.assignments.definitions import Definitions
from grader.commands.assignments.prose import pictures_in, statement_of_cells, title_of
from grader.commands.assignments.question import Assignment, MarkedTest, Question, first_line
from grader.commands.assignments.solutions import Solution, solution_of, to_implement
from grader.commands.assignments.suites import (
    cells_of_cases,
    has_statements,
    suite_of,
)
from grader.errors import RequestError, did_you_mean

FINEST_SCALE = 120  # the largest factor that makes points whole
ROUNDED_SCALE = 100


@dataclass(frozen=True)
class NewExercise:
    """An exercise made of a question, with its files except `exercise.toml`."""

    name: str
    question: Question
    title: str
    points: int
    implements: tuple[str, ...]
    requires: tuple[str, ...]
    texts: dict[str, str]
    tests: int  # tests of the hidden suite
    to_do: int  # cells that could not be converted into tests


@dataclass(frozen=True)
class Imported:
    """The exercises of a notebook, the parts left out, and the factor of the points."""

    exercises: tuple[NewExercise, ...]
    left: tuple[str, ...]
    scale: int


@dataclass(frozen=True)
class _Code:
    """The code of a whole notebook, which each of the files may use."""

    solutions: Definitions
    shown: Definitions
    hidden: Definitions

    @property
    def used(self) -> set[int]:
        """The cells with code that is in a file."""
        return self.solutions.used | self.shown.used | self.hidden.used


@dataclass
class _Named:
    """A question with the names that students write, and the name of its exercise."""

    question: Question
    implements: list[str]
    name: str  # empty if nothing in the question can name a module


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
    left, named = list(assignment.left), list[_Named]()
    for question in assignment.questions:
        if implements := to_implement(question):
            named.append(_Named(question, implements, _name(question, implements, can_be_name)))
        else:
            left.append(f"{_called(question)}: its answer defines no function or class")
    wanted = _chosen(named, only, name)
    code = _code(assignment, named)
    scale = _scale([points for one in named for _, points in worth(one.question)])
    made = []
    for one in wanted:
        solution = solution_of(one.question, code.solutions)
        made.append(_exercise(one.question, one.name, solution, code, scale))
        left += solution.left
        left += [f"the picture {each[:60]}" for each in pictures_in(one.question.prose)]
    unused = [cell for cell in assignment.plain if cell.cell not in code.used and not only]
    left += [f"cell {c.cell}, `{first_line(c.code)}`" for c in unused if not _only_imports(c.code)]
    return Imported(tuple(made), tuple(left), scale)


def _chosen(named: Sequence[_Named], only: Sequence[str], name: str) -> list[_Named]:
    """Return the wanted questions; a single one gets its new name."""
    known = [text for one in named for text in dict.fromkeys((one.question.name, one.name)) if text]
    for each in only:
        if each not in known:
            problem = f"there is no question `{each}`{did_you_mean(each, known)}"
            raise RequestError(problem, f"--only {known[0]}" if known else "")
    wanted = [one for one in named if not only or {one.question.name, one.name} & set(only)]
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


def _name(question: Question, implements: Sequence[str], can_be_name: Callable[[str], bool]) -> str:
    """Return a name made of the question's own or of its first function's; nothing if none fits."""
    for candidate in (question.name, implements[0]):
        snake = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", candidate).lower()
        cleaned = re.sub(r"\W+", "_", snake).strip("_")
        if can_be_name(cleaned):
            return cleaned
    return ""


def _called(question: Question) -> str:
    return f"cell {question.cell}" + (f" `{question.name}`" if question.name else "")


def _code(assignment: Assignment, named: Sequence[_Named]) -> _Code:
    asked = [
        (one.question.answers[-1].cell, each, one.name) for one in named for each in one.implements
    ]
    questions, plain = assignment.questions, assignment.plain
    answers = [answer for question in questions for answer in question.answers]
    cases = [case for question in questions for case in question.cases]
    return _Code(
        Definitions([*plain, *answers], asked),
        Definitions([*plain, *cells_of_cases(cases, hidden=False)], asked),
        Definitions([*plain, *cells_of_cases(cases, hidden=True)], asked),
    )


def worth(question: Question) -> list[tuple[MarkedTest, Fraction]]:
    """Return the cases with their points; cases without any share the rest of the question's."""
    given = sum((case.points for case in question.cases if case.points is not None), Fraction(0))
    without = [case for case in question.cases if case.points is None]
    total = question.points
    if total is None:
        total = given if len(without) < len(question.cases) else Fraction(1)
    share = max(total - given, Fraction(0)) / max(len(without), 1)
    return [(case, share if case.points is None else case.points) for case in question.cases]


def _scale(points: Sequence[Fraction]) -> int:
    """Return the factor that makes all points whole numbers, within a limit."""
    scale = math.lcm(1, *(each.denominator for each in points))
    return scale if scale <= FINEST_SCALE else ROUNDED_SCALE


def _exercise(
    question: Question, name: str, solution: Solution, code: _Code, scale: int
) -> NewExercise:
    cases = [(case, round(points * scale)) for case, points in worth(question)]
    total, own = sum(points for _, points in cases), solution.implements
    shown = _shared_out(total, cases)
    public = suite_of(name, shown, code.shown, own, hidden=False)
    hidden = suite_of(name, cases, code.hidden, own, hidden=True)
    title = title_of(question.prose)
    texts = {
        "statement.md": statement_of_cells(question.prose, title),
        "solution.py": solution.text,
        "test_public.py": public.text,
        "test_hidden.py": hidden.text,
    }
    return NewExercise(
        *(name, question, title, total, tuple(own), tuple(solution.requires), texts),
        *(hidden.tests, hidden.to_do),
    )


def _shared_out(
    total: int, cases: Sequence[tuple[MarkedTest, int]]
) -> list[tuple[MarkedTest, int]]:
    """Return the cases that students see, which share all points of the exercise."""
    seen = [(case, points) for case, points in cases if has_statements(case.shown)]
    weights = sum(points for _, points in seen)
    shared, given, sofar = [], 0, 0
    for number, (case, points) in enumerate(seen, start=1):
        sofar += points
        upto = total * sofar // weights if weights else total * number // len(seen)
        shared.append((case, upto - given))
        given = upto
    return shared


def _only_imports(code: str) -> bool:
    """Return whether each line of a cell is an import, a comment, or a command of IPython."""
    return all(
        not line.strip() or line.lstrip().startswith(("import ", "from ", "#", "get_ipython()"))
        for line in code.splitlines()
    )
