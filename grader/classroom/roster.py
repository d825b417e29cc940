"""A class's roster: a CSV that says who is in it, who may hand in later, and who handed in when."""

from __future__ import annotations

import csv
import functools
import io
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from grader.errors import RequestError
from grader.submissions.layouts.attempt import Attempt
from grader.report import Person
from grader.submissions.submission import shown

MAX_BYTES = 16 * 1024 * 1024
DELIMITERS = ",;\t"
# How the platforms, in their own exports, and people call the columns.
COLUMNS = {
    "id": ("id", "student id", "user id", "userid", "participant", "identifier", "student"),
    "login": (
        "login",
        "login id",
        "sis login id",
        "username",
        "user name",
        "github",
        "github username",
    ),
    "email": ("email", "e mail", "email address", "mail"),
    "number": ("number", "sid", "sis id", "sis user id", "student number", "id number"),
    "name": ("name", "full name", "fullname", "student name"),
    "section": ("section", "sections", "group", "groups"),
    "due": ("due", "due at", "due date", "extension", "extended due", "extended due date"),
    "submitted": ("submitted", "submitted at", "submission time"),
}
IDENTIFYING = ("id", "login", "email", "number", "name")
PARTICIPANT = re.compile(r"[^\W\d_]+ ([0-9]+)")  # Moodle's identifier, in the teacher's language
ASK = "a roster has a line of column names, such as id,name,email,due"


@dataclass(frozen=True)
class Entry:
    """One student of the class; `due` is theirs alone, `submitted` when they handed in."""

    student: str
    person: Person
    due: datetime | None = None
    submitted: datetime | None = None


@dataclass(frozen=True)
class Roster:
    """Everybody in the class, in the order of the file."""

    entries: tuple[Entry, ...]

    def find(self, attempt: Attempt) -> Entry | None:
        """Whose attempt it is, if that is sure: see `fitting`."""
        found = self.fitting(attempt)
        return found[0] if len(found) == 1 else None

    def fitting(self, attempt: Attempt) -> list[Entry]:
        """Whose attempt it may be, by id, login, address and number, or else by name.

        Where they point to several students, nobody can say which of them is right.
        """
        person, student = attempt.person, attempt.student
        known = [("id", student), ("login", person.login), ("email", person.email)]
        hits = self._hits([*known, ("number", person.number)])
        if not hits and not person.name:
            # No platform says who it is: the folder can be called by any of them.
            hits = self._hits([("login", student), ("email", student), ("number", student)])
        return hits or self._hits([("name", person.name)])

    def _hits(self, known: Iterable[tuple[str, str]]) -> list[Entry]:
        """Whom what is known points to; what several share points to nobody."""
        hits: dict[str, Entry] = {}
        for field, value in known:
            found = self._by[field].get(_key(field, value), []) if value else []
            hits |= {entry.student: entry for entry in found if len(found) == 1}
        return list(hits.values())

    def missing(self, found: Iterable[Entry]) -> list[Entry]:
        """Those who are not among `found`."""
        there = {entry.student for entry in found}
        return [entry for entry in self.entries if entry.student not in there]

    @functools.cached_property
    def _by(self) -> Mapping[str, Mapping[str, list[Entry]]]:
        """Every way to tell a student, its values, and who has them."""
        index: dict[str, dict[str, list[Entry]]] = {field: defaultdict(list) for field in COLUMNS}
        for entry in self.entries:
            person = entry.person
            values = {"id": entry.student, "login": person.login, "email": person.email}
            for field, value in {**values, "number": person.number, "name": person.name}.items():
                index[field][_key(field, value)].append(entry)
        return index


def _key(field: str, value: str) -> str:
    """What of a value counts: Canvas writes a name in lower case and without all but letters."""
    folded = value.casefold()
    return "".join(filter(str.isalnum, folded)) if field == "name" else folded


def read_roster(path: Path) -> Roster:
    """The roster in a CSV file; raises `RequestError` that names the file and the line."""
    rows = _rows(path)
    _, header = next(rows, (1, []))
    columns = _columns(header)
    if not any(field in columns for field in IDENTIFYING):
        raise RequestError(f"{path}:1: no column says who a student is", ASK)
    entries: list[Entry] = []
    lines: dict[str, int] = {}
    for line, row in rows:
        if not _is_student(row):
            continue
        entry = _entry(row, columns, _complaint(path, line))
        before = lines.setdefault(entry.student.casefold(), line)
        if before != line:
            raise _complaint(path, line)(
                f"`{entry.student}` is in line {before} already", "keep one of the two"
            )
        entries.append(entry)
    if not entries:
        raise RequestError(f"{path} lists no students", ASK)
    return Roster(tuple(entries))


def _rows(path: Path) -> Iterator[tuple[int, list[str]]]:
    """Each row with the line that it ends in, the column names first."""
    text = _text(path)
    first = text.partition("\n")[0]
    delimiter = max(DELIMITERS, key=first.count)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
    try:
        for row in reader:
            yield reader.line_num, [shown(cell.strip()) for cell in row]
    except csv.Error as error:
        raise _complaint(path, reader.line_num)(f"no CSV ({error})", ASK) from None


def _text(path: Path) -> str:
    try:
        if path.stat().st_size > MAX_BYTES:
            raise RequestError(f"{path} is larger than {MAX_BYTES >> 20} MiB", ASK)
        return path.read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise RequestError(f"cannot read {path}: {error.strerror}", "--roster FILE") from None
    except UnicodeDecodeError:
        raise RequestError(f"{path} is not UTF-8", "save it as CSV in UTF-8") from None


def _columns(header: list[str]) -> dict[str, list[int]]:
    """Where each field stands; of several columns for one, the first that is filled counts."""
    called = [" ".join(re.split(r"[\s_-]+", name.casefold())) for name in header]
    columns: dict[str, list[int]] = defaultdict(list)
    for field, names in COLUMNS.items():
        for name in names:
            columns[field] += [number for number, here in enumerate(called) if here == name]
    if "student" in called and len(columns["id"]) > 1 and not columns["name"]:
        columns["name"] = [called.index("student")]  # Canvas: `Student` is the name beside `ID`
    return {field: places for field, places in columns.items() if places}


def _is_student(row: list[str]) -> bool:
    """Whether a row is one: not an empty one, nor the one of Canvas's that says what counts."""
    return any(row) and row[0].casefold() != "points possible"


Complaint = Callable[[str, str], RequestError]


def _complaint(path: Path, line: int) -> Complaint:
    return lambda message, remedy: RequestError(f"{path}:{line}: {message}", remedy)


def _entry(row: list[str], columns: Mapping[str, list[int]], wrong: Complaint) -> Entry:
    said = {field: _cell(row, columns.get(field, [])) for field in COLUMNS}
    if match := PARTICIPANT.fullmatch(said["id"]):
        said["id"] = match[1]
    student = next((said[field] for field in IDENTIFYING if said[field]), "")
    if not student:
        raise wrong("nothing says who this is", "fill in an id, a login, an email or a name")
    fields = ("name", "email", "login", "number", "section")
    return Entry(
        student,
        Person(**{field: said[field] for field in fields}),
        _time("due", said["due"], wrong),
        _time("submitted", said["submitted"], wrong),
    )


def _cell(row: list[str], places: list[int]) -> str:
    return next((row[place] for place in places if place < len(row) and row[place]), "")


def _time(field: str, text: str, wrong: Complaint) -> datetime | None:
    if not text:
        return None
    example = "write it as 2026-11-30T23:59+01:00"
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        raise wrong(f"{field} is `{text}`, which is no ISO date and time", example) from None
    if time.tzinfo is None:
        raise wrong(f"{field} is `{text}`, which has no time zone", example)
    return time
