"""The roster of a class: a CSV file of its students, with due dates and times of submission."""

from __future__ import annotations

import csv
import functools
import io
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec

from grader.errors import RequestError
from grader.files import read_bounded
from grader.report import Person
from grader.submissions.layouts import Attempt
from grader.submissions.notes import printable_name

MAX_BYTES = 16 * 1024 * 1024
DELIMITERS = ",;\t"
# The names that the platforms' exports and teachers give to the columns.
COLUMNS = {
    "id": "id, student id, user id, userid, participant, identifier, student",
    "login": "login, login id, sis login id, username, user name, github, github username",
    "email": "email, e mail, email address, mail",
    "number": "number, sid, sis id, sis user id, student number, id number",
    "name": "name, full name, fullname, student name",
    "section": "section, sections, group, groups",
    "due": "due, due at, due date, extension, extended due, extended due date",
    "submitted": "submitted, submitted at, submission time",
}
IDENTIFYING = ("id", "login", "email", "number", "name")
# Moodle writes an id as "Participant 12", in the language of the teacher.
PARTICIPANT = re.compile(r"[^\W\d_]+ ([0-9]+)")
EXPECTED = "a roster has a line of column names, such as id,name,email,due"


@dataclass(frozen=True)
class RosterRow:
    """One student, with their own due date and the time when they handed in, if given."""

    student: str
    person: Person
    due: datetime | None = None
    submitted: datetime | None = None


@dataclass(frozen=True)
class Roster:
    """All students of the class, in the order of the file."""

    rows: tuple[RosterRow, ...] = ()
    file: str = ""  # the name of the file that it was read from

    def to_setting(self) -> Any:
        """Return the roster as a ledger keeps it."""
        return msgspec.to_builtins(self)

    @staticmethod
    def from_setting(setting: object) -> Roster:
        """Return the roster that a ledger keeps; an empty one if there is none that can be read."""
        try:
            return msgspec.convert(setting, Roster)
        except msgspec.ValidationError:
            return NO_ROSTER

    def find(self, attempt: Attempt) -> RosterRow | None:
        """Return the row of an attempt's student; None unless exactly one row matches."""
        found = self.matching(attempt)
        return found[0] if len(found) == 1 else None

    def matching(self, attempt: Attempt) -> list[RosterRow]:
        """Return the rows that match an attempt by id, login, email or number, else by name.

        Several rows match if the attempt has the id of one student and the email of another, say.
        """
        person, student = attempt.person, attempt.student
        known = [("id", student), ("login", person.login), ("email", person.email)]
        matches = self._matches([*known, ("number", person.number)])
        if not matches and not person.name:
            # No platform names the student, so the submission's name can be any of these.
            matches = self._matches([("login", student), ("email", student), ("number", student)])
        return matches or self._matches([("name", person.name)])

    def _matches(self, known: Iterable[tuple[str, str]]) -> list[RosterRow]:
        """Return the rows with one of the known values; a value in several rows matches none."""
        matches: dict[str, RosterRow] = {}
        for field, value in known:
            found = self._index.get(_key(field, value), []) if value else []
            matches |= {row.student: row for row in found if len(found) == 1}
        return list(matches.values())

    def missing(self, found: Iterable[RosterRow]) -> list[RosterRow]:
        """Return the rows that are not among `found`."""
        students = {row.student for row in found}
        return [row for row in self.rows if row.student not in students]

    @functools.cached_property
    def _index(self) -> Mapping[tuple[str, str], list[RosterRow]]:
        index: dict[tuple[str, str], list[RosterRow]] = defaultdict(list)
        for row in self.rows:
            for field in IDENTIFYING:
                value = row.student if field == "id" else getattr(row.person, field)
                index[_key(field, value)].append(row)
        return index


NO_ROSTER = Roster()


def _key(field: str, value: str) -> tuple[str, str]:
    """Return a value for comparison; Canvas writes names in lower case, with letters only."""
    folded = value.casefold()
    return field, "".join(filter(str.isalnum, folded)) if field == "name" else folded


def read_roster(path: Path) -> Roster:
    """Read the roster in a CSV file; raise `RequestError` that names the file and the line."""
    lines = _read_lines(path)
    _, header = next(lines, (1, []))
    columns = _columns(header)
    if not any(field in columns for field in IDENTIFYING):
        raise RequestError(f"{path}:1: no column identifies the students", EXPECTED)
    rows: list[RosterRow] = []
    seen: dict[str, int] = {}
    for line, cells in lines:
        if not any(cells) or cells[0].casefold() == "points possible":  # Canvas's maximum points
            continue
        row = _row(cells, columns, f"{path}:{line}")
        before = seen.setdefault(row.student.casefold(), line)
        if before != line:
            raise RequestError(
                f"{path}:{line}: `{row.student}` is already in line {before}",
                "keep one of the two lines",
            )
        rows.append(row)
    if not rows:
        raise RequestError(f"{path} lists no students", EXPECTED)
    return Roster(tuple(rows), path.name)


def _read_lines(path: Path) -> Iterator[tuple[int, list[str]]]:
    text = _read_text(path)
    first = text.partition("\n")[0]
    delimiter = max(DELIMITERS, key=first.count)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
    try:
        for cells in reader:
            yield reader.line_num, [printable_name(cell.strip()) for cell in cells]
    except csv.Error as error:
        where = f"{path}:{reader.line_num}"
        raise RequestError(f"{where}: this is not valid CSV ({error})", EXPECTED) from None


def _read_text(path: Path) -> str:
    try:
        return read_bounded(path, MAX_BYTES).decode("utf-8-sig")
    except OSError as error:
        raise RequestError(f"cannot read {path}: {error.strerror}", "--roster FILE") from None
    except UnicodeDecodeError:
        raise RequestError(f"{path} is not UTF-8", "save it as CSV in UTF-8") from None


def _columns(header: list[str]) -> dict[str, list[int]]:
    """Return the columns of each field; if there are several, the first filled cell counts."""
    names = [" ".join(re.split(r"[\s_-]+", name.casefold())) for name in header]
    columns: dict[str, list[int]] = defaultdict(list)
    for field, known in COLUMNS.items():
        for name in known.split(", "):
            columns[field] += [index for index, here in enumerate(names) if here == name]
    if "student" in names and len(columns["id"]) > 1 and not columns["name"]:
        columns["name"] = [names.index("student")]  # Canvas: `Student` is the name, `ID` the id
    return {field: indexes for field, indexes in columns.items() if indexes}


def _row(cells: list[str], columns: Mapping[str, list[int]], where: str) -> RosterRow:
    values = {field: _first_filled(cells, columns.get(field, [])) for field in COLUMNS}
    if match := PARTICIPANT.fullmatch(values["id"]):
        values["id"] = match[1]
    student = next((values[field] for field in IDENTIFYING if values[field]), "")
    if not student:
        raise RequestError(
            f"{where}: nothing in this line identifies a student",
            "fill in an id, a login, an email or a name",
        )
    fields = ("name", "email", "login", "number", "section")
    return RosterRow(
        student,
        Person(**{field: values[field] for field in fields}),
        _time(f"{where}: due", values["due"]),
        _time(f"{where}: submitted", values["submitted"]),
    )


def _first_filled(cells: list[str], indexes: list[int]) -> str:
    return next((cells[index] for index in indexes if index < len(cells) and cells[index]), "")


def _time(what: str, text: str) -> datetime | None:
    """Return a time with its zone, None for an empty text; `what` names the cell in errors."""
    if not text:
        return None
    problem = "has no time zone"
    try:
        if (time := datetime.fromisoformat(text)).tzinfo:
            return time
    except ValueError:
        problem = "is not an ISO date and time"
    example = "write it as 2026-11-30T23:59+01:00"
    raise RequestError(f"{what} is `{text}`, which {problem}", example)
