"""What a hidden suite hands to students' functions, and which of it is the same in every run.

A report can show whatever a function was given, so a constant is known after the first report.
Small literals, sizes and shapes are no secrets; a text or a table of many numbers is one, unless
students have it anyway.
"""

from __future__ import annotations

import ast
import itertools
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from grader.course.course import Course
from grader.grading.session import with_grader
from grader.sandbox import wire
from grader.sandbox.host.connection import WorkerConnection
from grader.sandbox.host.zygote import Zygote
from grader.submissions.submission import Submission

LETTERS = 8  # of a text, from which on it counts
# Steps from one number to the next, and different ones among them, from which on a table counts.
CHANGES, KINDS = 10, 5
# What students have; of the solution, the stub.
PUBLIC = ("statement.md", "solution.py", "test_public.py", "text.txt")

Value = str | tuple[Any, ...]  # a text, or numbers in a row


def constants_of(course: Course, name: str, zygote: Zygote) -> list[Value]:
    """Return what an exercise's hidden suite hands over in two runs with different seeds."""
    solutions = {each: course[each].read("solution.py") for each in course.names}
    submission = Submission("s001", solutions)
    # What a drawing asks of the code is public, and no test.
    undrawn = tuple(structs.replace(each, drawing="") for each in course.exercises)
    course = replace(course, exercises=undrawn)

    def handed_over(seed: int) -> set[Value]:
        with pytest.MonkeyPatch.context() as patch:
            found = _recorded(patch)
            report = with_grader(
                course,
                [name],
                zygote,
                lambda grader: grader.grade(submission, [name], seed).report,
                trainings="of this seed",
            )
        assert report.points == report.max_points
        return found

    paths = [course[name].folder / file for file in PUBLIC]
    public = [text for path in paths if path.is_file() for text in _texts_in(path)]
    both = handed_over(7) & handed_over(8)
    return sorted((each for each in both if not _is_public(each, public)), key=repr)


def _texts_in(path: Path) -> Iterator[str]:
    """Yield the text of a file, and of a Python file the texts in it as well."""
    text = path.read_text("utf-8")
    yield text
    if path.suffix == ".py":
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield node.value


def _recorded(patch: pytest.MonkeyPatch) -> set[Value]:
    """Record from now on what is handed to student code."""
    found: set[Value] = set()
    ask, send_quiet = WorkerConnection.ask, WorkerConnection.send_quiet

    def asking(self: WorkerConnection, subject: Any, request: Any, name: str = "") -> wire.Reply:
        found.update(_values_in(request))
        return ask(self, subject, request, name)

    def sending(self: WorkerConnection, request: Any) -> None:
        found.update(_values_in(request))
        send_quiet(self, request)

    patch.setattr(WorkerConnection, "ask", asking)
    patch.setattr(WorkerConnection, "send_quiet", sending)
    return found


def _values_in(value: Any) -> Iterator[Value]:
    match value:
        case wire.Call():
            yield from _values_in(wire.WireList([*value.args, *value.kwargs.values()]))
        case wire.Adopt():
            yield from _values_in(value.values)
        case str() if len(value) >= LETTERS:
            yield value
        case wire.WireBytes():
            yield from _values_in(value.data.decode("latin-1"))
        case wire.WireTensor():
            yield from _table(wire.unpack_tensor(value).detach().flatten().tolist())
        case wire.WireList() | wire.WireTuple():
            yield from _table([each for each in value.items if isinstance(each, int | float)])
            for each in value.items:
                yield from _values_in(each)
        case wire.WireDict():
            for each in itertools.chain.from_iterable(value.pairs):
                yield from _values_in(each)


def _table(numbers: list[Any]) -> Iterator[Value]:
    """Yield numbers that no short rule makes: neither few in turn, nor a row, nor a repeated one.

    Zeros and ones do not count: they make masks and unit matrices.
    """
    others = [number for number in numbers if number not in (0, 1)]
    steps = [round(other - one, 6) for one, other in itertools.pairwise(others)]
    if sum(map(bool, steps)) >= CHANGES and len({*steps}) >= KINDS:
        yield tuple(numbers)


def _is_public(value: Value, texts: Sequence[str]) -> bool:
    """Return whether a text is in a public one or a parameter's name, or numbers encode one."""
    if isinstance(value, str):
        return bool(re.fullmatch(r"\w+(\.\w+)+", value)) or any(value in text for text in texts)
    return any(_pattern(value) == _pattern(text) for text in texts if len(text) == len(value))


def _pattern(items: Sequence[Any]) -> list[int]:
    """Return for each item the place of its first like: the same for a text and its tokens."""
    first: dict[Any, int] = {}
    return [first.setdefault(item, place) for place, item in enumerate(items)]
