"""Matching each student who has a mark with exactly one row of a gradebook."""

from __future__ import annotations

import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from grader.classroom.gradebooks.table import Field
from grader.errors import RequestError
from grader.report import Person
from grader.submissions.notes import shortened

Key = tuple[str, str]  # a kind ("id", "login", "email", "number" or "name") and a value


@dataclass(frozen=True)
class StudentMark:
    """A student's mark; `student` is the name from the platform or the roster."""

    student: str
    person: Person
    points: float
    max_points: float

    @property
    def who(self) -> str:
        """The student's id, with the name beside it."""
        return self.person.beside(self.student)


@dataclass(frozen=True)
class GradebookRow:
    """A student's row: name and keys, the `line` it starts in, and the `field` for the mark.

    A row that is `excused` keeps its cell. `is_student` is False for the platform's test student.
    """

    name: str
    keys: frozenset[Key]
    line: int
    field: Field
    excused: bool = False
    is_student: bool = True


def keys(**texts: Sequence[str]) -> frozenset[Key]:
    """Return the keys of each kind for its texts, without the empty ones."""
    folded = ((kind, _folded(text)) for kind, of_kind in texts.items() for text in of_kind)
    return frozenset((kind, text) for kind, text in folded if text)


def match_rows(
    marks: Sequence[StudentMark], rows: Sequence[GradebookRow]
) -> dict[int, StudentMark]:
    """Return the mark of each row that has one, by the index of the row.

    A student matches every row that shares a key with them. If no row does, a full name decides.
    Raises `RequestError` unless each student matches one row, and each row at most one student.
    """
    by_key = _index(rows)
    found: dict[int, StudentMark] = {}
    wrong: list[str] = []
    for mark in marks:
        named = _name_keys(mark.person.name)
        matches = _matches(by_key, _keys_of(mark)) or _matches(by_key, named)
        index = next(iter(matches), -1)
        if len(matches) != 1:
            wrong.append(f"{mark.who}: {_list_lines(rows, matches)}")
        elif index in found:
            line, other = rows[index].line, found[index].who
            wrong.append(f"{mark.who}: line {line} also matches {other}")
        else:
            found[index] = mark
    if wrong:
        students = "1 student has" if len(wrong) == 1 else f"{len(wrong)} students have"
        head = f"{students} a mark, but no row of their own in the gradebook; nothing was written:"
        raise RequestError(
            "\n  ".join([head, *shortened(wrong)]),
            "add a login, an email or the full name to the roster",
        )
    return found


def _index(rows: Sequence[GradebookRow]) -> Mapping[Key, list[int]]:
    by_key: dict[Key, list[int]] = defaultdict(list)
    for index, row in enumerate(rows):
        for key in row.keys | _name_keys(row.name):
            by_key[key].append(index)
    return by_key


def _matches(by_key: Mapping[Key, list[int]], own_keys: Iterable[Key]) -> set[int]:
    return {index for key in own_keys for index in by_key.get(key, ())}


def _keys_of(mark: StudentMark) -> frozenset[Key]:
    student, person = mark.student, mark.person
    logins = (student, person.login, person.email)
    return keys(id=[student], login=logins, email=[person.email], number=[person.number])


def _folded(text: str) -> str:
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())


def _name_keys(text: str) -> frozenset[Key]:
    """Return the key of a full name, with the first name first.

    Canvas writes `="…"` around a name that begins with =, so that it is not read as a formula.
    """
    if text.startswith('="') and text.endswith('"'):
        text = text[2:-1]
    last, comma, first = text.partition(",")
    return keys(name=[f"{first} {last}" if comma else text])


def _list_lines(rows: Sequence[GradebookRow], matches: Iterable[int]) -> str:
    lines = sorted(rows[index].line for index in matches)
    if not lines:
        return "no row"
    return f"lines {', '.join(map(str, lines[:5]))}{' …' if len(lines) > 5 else ''} all match"
