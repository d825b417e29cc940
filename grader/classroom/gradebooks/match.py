"""Matching each student who has a mark with exactly one row of a gradebook."""

from __future__ import annotations

import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from grader.classroom.gradebooks.table import CsvRecord
from grader.errors import RequestError
from grader.report import Person
from grader.submissions.notes import shortened

# A kind ("id", "login", "email", "number", "digits" or "name") and a value. The digits of a number
# are those after every 0 at its start, which a spreadsheet drops.
Key = tuple[str, str]


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

    `exercises` are the points that it is made of, `comment` what is said about it, as HTML, and
    `listed` is the roster's id if it differs.
    """

    student: str
    person: Person
    points: float
    max_points: float
    exercises: tuple[ExercisePoints, ...] = ()
    comment: str = ""
    listed: str = ""

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
    plain = ((kind, text.lstrip("0") if kind == "digits" else text) for kind, text in folded)
    return frozenset((kind, text) for kind, text in plain if text)


@dataclass(frozen=True)
class Matches:
    """The mark of each row, by the index of the row, and the students without a row of their own.

    `without_row` says of each of these students which rows match, and `guessed` whose row was found
    by a number without the 0 at its start.
    """

    found: Mapping[int, StudentMark]
    without_row: tuple[str, ...]
    guessed: tuple[str, ...] = ()

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
    number there decides, then a number without the 0 at its start, then a full name.
    A row that several students match is that of the one who matches it in the surest way, and
    nobody's if there are two of them.
    """
    by_key = _index(rows)
    claims: dict[int, list[tuple[int, StudentMark]]] = defaultdict(list)  # by row, with the way
    wrong: list[str] = []
    guessed: list[str] = []
    for mark in marks:
        ways = ((way, _matches(by_key, own)) for way, own in enumerate(_ways(mark)))
        way, matches = next(((way, found) for way, found in ways if found), (0, set()))
        if len(matches) == 1:
            claims[matches.pop()].append((way, mark))
        else:
            wrong.append(f"{mark.who}: {_list_lines(rows, matches)}")
    found: dict[int, StudentMark] = {}
    for index, claiming in claims.items():
        surest = min(way for way, _ in claiming)
        first = [mark for way, mark in claiming if way == surest]
        if len(first) == 1:
            found[index] = first[0]
            if surest == BY_DIGITS:
                guessed.append(f"{first[0].who}: line {rows[index].line}")
        for _, mark in claiming:
            if mark is not found.get(index):
                others = ", ".join(other.who for _, other in claiming if other is not mark)
                wrong.append(f"{mark.who}: line {rows[index].line} also matches {others}")
    return Matches(found, tuple(wrong), tuple(guessed))


BY_DIGITS = 2  # the way, of those below, that a number is found without the 0 at its start


def _ways(mark: StudentMark) -> Iterator[frozenset[Key]]:
    """Yield the keys by which a student is looked for, the surest first."""
    yield _keys_of(mark)
    yield keys(number=[mark.student, mark.listed])
    yield keys(digits=list(filter(str.isdecimal, [mark.student, mark.listed, mark.person.number])))
    yield _name_keys(mark.person.name)


def _index(rows: Sequence[GradebookRow]) -> Mapping[Key, list[int]]:
    by_key: dict[Key, list[int]] = defaultdict(list)
    for index, row in enumerate(rows):
        numbers = [text for kind, text in row.keys if kind in ("id", "number") and text.isdecimal()]
        for key in row.keys | keys(digits=numbers) | _name_keys(row.name):
            by_key[key].append(index)
    return by_key


def _matches(by_key: Mapping[Key, list[int]], own_keys: Iterable[Key]) -> set[int]:
    return {index for key in own_keys for index in by_key.get(key, ())}


def _keys_of(mark: StudentMark) -> frozenset[Key]:
    student, person = mark.student, mark.person
    logins = (student, person.login, person.email)
    ids = student, mark.listed
    return keys(id=ids, login=logins, email=[person.email], number=[person.number])


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
