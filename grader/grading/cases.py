"""Checks made of cases: the questions of a suite, written once.

A case is a few calls with one answer, the same for everybody. The student's code, the reference
and every known mistake answer it; the very same answers decide a check, name the mistake, and price
it. A check is one line of a report, with points: it passes if all its deciding cases are right.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar, overload

from grader.errors import CourseError
from grader.grading.aspects import ASPECTS, Aspect, aspect_of
from grader.grading.rng import Rng
from grader.grading.seeds import seed_of_test, seed_of_worker
from grader.sandbox.host.proxies import Student, code_of

Ask = Callable[[Any, Rng], Any]
F = TypeVar("F", bound=Ask)
MAX_NAME = 80  # characters of a case's name, if that is made from its sentence


@dataclass(frozen=True, eq=False)
class Case:
    """One case: its name, its aspect, its question as a sentence, and its function."""

    name: str
    about: Aspect
    sentence: str
    function: Ask
    decides: bool = True  # whether right code gives the reference's answer
    tells: bool = True  # whether its answers tell one mistake from another
    hidden: bool = False  # whether it stays out of students' copies
    within: tuple[float, float] | None = None  # the tolerance, relative and absolute
    of: Check | None = None

    @property
    def aspect(self) -> str:
        """The name of its aspect."""
        return self.about.name

    @property
    def is_misuse(self) -> bool:
        """Whether the calls must be refused."""
        return self.aspect == "refusals"

    @property
    def check(self) -> str:
        """The name of the check that it decides; empty if it belongs to none."""
        return self.of.name if self.of and self.decides else ""

    def ask(self, student: Student, seed: int, exercise: str) -> Any:
        """Return the answer of this code to the case; raises the errors of the code."""
        name = f"case {self.name}"
        code_of(student).manual_seed(seed_of_worker(seed, exercise, name))
        return self.function(student, Rng(seed_of_test(seed, exercise, name)))


class Check:
    """One line of a report, with points, and the cases that decide it.

    A case is a function, or a line: `test_weights.case("One query.", lambda student, rng: ...)`.

    Example::

        test_weights = Check("The weights are the softmax over the keys.", points=1)

        @test_weights.case
        def ordinary(student, rng):
            \"\"\"Three queries, five keys.\"\"\"
            return student.tempered_softmax(rng.randn(3, 5), 0.5)
    """

    def __init__(
        self,
        sentence: str,
        *,
        points: int = 1,
        about: str | Aspect = "values",
        visible: str = "always",
    ) -> None:
        self.sentence, self.points, self.visible = sentence, points, visible
        self._about = _aspect(about)
        self.name = ""  # the name of the suite's variable, once it is collected
        self.cases: list[Case] = []

    @overload
    def case(self, what: F) -> F: ...

    @overload
    def case(
        self,
        what: str = "",
        ask: Ask | None = None,
        *,
        about: str | Aspect = "",
        decides: bool = True,
        tells: bool = True,
        hidden: bool = False,
        within: tuple[float, float] | None = None,
    ) -> Callable[[F], F]: ...

    def case(
        self,
        what: Any = "",
        ask: Ask | None = None,
        *,
        about: str | Aspect = "",
        decides: bool = True,
        tells: bool = True,
        hidden: bool = False,
        within: tuple[float, float] | None = None,
    ) -> Any:
        """Add a case: a sentence and a function of `(student, rng)`, or mark a function as one.

        The sentence of a marked function is its docstring, unless one is given. `about` is the
        case's own aspect. If right code may answer otherwise than the reference, the case must not
        decide (`decides=False`): it then only tells mistakes apart. A case with `tells=False` only
        decides. A hidden case stays out of students' copies. `within` is a tolerance of its own,
        relative and absolute.

        Example::

            test_edges = Check("Edges.", about="single")

            @test_edges.case(hidden=True)
            def one_query(student, rng):
                \"\"\"One query.\"\"\"
                return student.tempered_softmax(rng.randn(1, 5), 0.5)
        """

        def add(function: F, sentence: str = "") -> F:
            sentence = sentence or (function.__doc__ or "").strip().partition("\n")[0]
            name = function.__name__ if not what or callable(what) else _name_from(what)
            chosen = _aspect(about) if about else self._about
            self.cases.append(
                Case(name, chosen, sentence, function, decides, tells, hidden, within, self)
            )
            return function

        if callable(what):
            return add(what)
        return functools.partial(add, sentence=what) if ask is None else add(ask, what)

    @property
    def function(self) -> Callable[..., None]:
        """The test that pytest runs."""

        def test(student: Any, cases: Any) -> None:
            cases.decide(self, student)

        test.__doc__, test.__name__ = self.sentence, self.name
        test.check = self  # type: ignore[attr-defined]
        return test


def _aspect(about: str | Aspect) -> Aspect:
    """Return an aspect of `ASPECTS` by its name, or an exercise's own."""
    found = aspect_of(about) if isinstance(about, str) else about
    if found.name in ASPECTS and found != aspect_of(found.name):
        raise ValueError(f"there is an aspect {found.name!r} already; choose another name")
    return found


def _name_from(sentence: str) -> str:
    words = re.sub(r"-(?=\d)", "minus ", sentence.lower())
    return re.sub(r"\W+", "_", words).strip("_")[:MAX_NAME]


def cases_of(names: dict[str, Any], file: str) -> list[Case]:
    """Return the cases of all checks among the names of a suite; raises `CourseError`."""
    found: dict[str, Case] = {}
    for name, value in names.items():
        if isinstance(value, Check) and name.startswith("test_"):
            value.name = name
            for case in value.cases:
                if not case.sentence:
                    raise CourseError(f"{file}: the case {case.name} of {name} has no sentence")
                if case.name in found:
                    raise CourseError(f"{file}: two cases are called {case.name}")
                found[case.name] = case
    return [*found.values()]
