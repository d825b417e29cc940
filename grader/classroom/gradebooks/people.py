"""Whose row it is: each student who has a mark is found in exactly one row of the gradebook."""

from __future__ import annotations

import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from grader.errors import RequestError
from grader.classroom.gradebooks.table import Field
from grader.report import Person

SHOWN = 20  # students that a message names
Key = tuple[str, str]  # what it is (id, login, email, number), and itself


@dataclass(frozen=True)
class Graded:
    """A mark, and whose: `student` is what the platform or the roster calls them."""

    student: str
    person: Person
    points: float
    max_points: float


@dataclass(frozen=True)
class Row:
    """A student's row: whom it says it is, in which `line`, and the field their mark goes to.

    A mark is not to be filled in where the row is `excused`; `is_student` is False for the one
    that tries the course out.
    """

    name: str
    keys: frozenset[Key]
    line: int
    field: Field
    excused: bool = False
    is_student: bool = True


def key(kind: str, text: str) -> Iterable[Key]:
    """What is looked up of an id, a login, an email or a number: nothing if it is empty."""
    folded = _folded(text)
    return [(kind, folded)] if folded else []


def matched(graded: Sequence[Graded], rows: Sequence[Row]) -> dict[int, Graded]:
    """The student of each row that has one, by the row's index.

    Ids decide, all of them together: where two lead to different rows, nobody knows which is
    right. A full name decides only where no id is found, and only if it is unique.
    """
    by_key, by_name = _indexed(rows)
    found: dict[int, Graded] = {}
    wrong: list[str] = []
    for one in graded:
        hits = set().union(*(by_key.get(each, ()) for each in _keys(one)))
        hits = hits or set(by_name.get(_name(one.person.name), ()))
        index = next(iter(hits), -1)
        if len(hits) != 1:
            wrong.append(f"{one.student}: {_lines(rows, hits)}")
        elif index in found:
            line = rows[index].line
            wrong.append(f"{one.student}: line {line} is {found[index].student}'s as well")
        else:
            found[index] = one
    if wrong:
        raise RequestError(_told(wrong), "write a login, an email or the full name in the roster")
    return found


def _indexed(rows: Sequence[Row]) -> tuple[Mapping[Key, list[int]], Mapping[str, list[int]]]:
    by_key: dict[Key, list[int]] = defaultdict(list)
    by_name: dict[str, list[int]] = defaultdict(list)
    for index, row in enumerate(rows):
        for each in row.keys:
            by_key[each].append(index)
        if name := _name(row.name):
            by_name[name].append(index)
    return by_key, by_name


def _keys(one: Graded) -> set[Key]:
    person = one.person
    return {
        *key("id", one.student),
        *(
            each
            for text in (one.student, person.login, person.email)
            for each in key("login", text)
        ),
        *key("email", person.email),
        *key("number", person.number),
    }


def _folded(text: str) -> str:
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())


def _name(text: str) -> str:
    """A full name, first name first; Canvas keeps one that begins with = from being a formula."""
    if text.startswith('="') and text.endswith('"'):
        text = text[2:-1]
    last, comma, first = text.partition(",")
    return _folded(f"{first} {last}" if comma else text)


def _lines(rows: Sequence[Row], hits: Iterable[int]) -> str:
    lines = sorted(rows[index].line for index in hits)
    if not lines:
        return "no row"
    return f"lines {', '.join(map(str, lines[:5]))}{' …' if len(lines) > 5 else ''} could all be it"


def _told(wrong: Sequence[str]) -> str:
    more = [f"and {len(wrong) - SHOWN} more"] if len(wrong) > SHOWN else []
    students = "1 student has" if len(wrong) == 1 else f"{len(wrong)} students have"
    head = f"{students} a mark, but no row of their own in the gradebook; nothing was written:"
    return "\n  ".join([head, *wrong[:SHOWN], *more])
