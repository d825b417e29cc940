"""Matching each student who has a mark with exactly one row of a gradebook."""

from __future__ import annotations

import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from grader.classroom.gradebooks.table import CsvRecord
from grader.errors import RequestError
from grader.report import Person
from grader.submissions.notes import shortened

Key = tuple[str, str]  # a kind ("id", "login", "email", "number" or "name") and a value


@dataclass(frozen=True)
class ExercisePoints:
    """The points of one exercise, which a column can be called after."""

    name: str
    title: str
    points: float
    max_points: float


@dataclass(frozen=True)
class StudentMark:
    """A student's mark; `student` is the name from the platform or the roster.

    `exercises` are the points that it is made of, `comment` what is said about it, as HTML.
    """

    student: str
    person: Person
    points: float
    max_points: float
    exercises: tuple[ExercisePoints, ...] = ()
    comment: str = ""

    @property
    def who(self) -> str:
        """The student's id, with the name beside it."""
        return self.person.beside(self.student)

    def of(self, exercise: str) -> StudentMark:
        """Return the mark for one exercise alone; 0 of 0 points if it has none."""
        own = (each for each in self.exercises if each.name == exercise)
        found = next(own, ExercisePoints(exercise, "", 0, 0))
        return replace(self, points=found.points, max_points=found.max_points)


@dataclass(frozen=True)
class GradebookRow:
    """A student's row: name and keys, the `line` it starts in, and the `record` of its cells.

    `is_student` is False for the platform's test student.
    """

    name: str
    keys: frozenset[Key]
    line: int
    record: CsvRecord
    is_student: bool = True


def keys(**texts: Sequence[str]) -> frozenset[Key]:
    """Return the keys of each kind for its texts, without the empty ones."""
    folded = ((kind, _folded(text)) for kind, of_kind in texts.items() for text in of_kind)
    return frozenset((kind, text) for kind, text in folded if text)


@dataclass(frozen=True)
class Matches:
    """The mark of each row, by the index of the row, and the students without a row of their own.

    `without_row` says of each of these students which rows match.
    """

    found: Mapping[int, StudentMark]
    without_row: tuple[str, ...]

    def require_all(self) -> None:
        """Raise `RequestError` unless each student has a row of their own."""
        if not self.without_row:
            return
        count = len(self.without_row)
        students = "1 student has" if count == 1 else f"{count} students have"
        head = f"{students} a mark, but no row of their own in the gradebook; nothing was written:"
        raise RequestError(
            "\n  ".join([head, *shortened(self.without_row)]),
            "add a login, an email, a number or the full name to the roster; or --skip-unmatched",
        )


def match_rows(marks: Sequence[StudentMark], rows: Sequence[GradebookRow]) -> Matches:
    """Match each mark with the row of its student.

    A student matches every row that shares a key with them. If no row does, an id that is the
    number in a row decides, then a full name. A row that two students match belongs to neither.
    """
    by_key = _index(rows)
    found: dict[int, StudentMark] = {}
    disputed: dict[int, str] = {}
    wrong: list[str] = []
    for mark in marks:
        ways = _keys_of(mark), keys(number=[mark.student]), _name_keys(mark.person.name)
        matches = next(filter(None, (_matches(by_key, way) for way in ways)), set())
        index = next(iter(matches), -1)
        if len(matches) != 1:
            wrong.append(f"{mark.who}: {_list_lines(rows, matches)}")
        elif index in found:
            line, other = rows[index].line, found[index].who
            wrong.append(f"{mark.who}: line {line} also matches {other}")
            disputed[index] = mark.who
        else:
            found[index] = mark
    for index, other in disputed.items():
        wrong.append(f"{found.pop(index).who}: line {rows[index].line} also matches {other}")
    return Matches(found, tuple(wrong))


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
