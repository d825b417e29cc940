"""The roster of a class: a CSV file of its students, with due dates and times of submission."""

from __future__ import annotations

import dataclasses
import functools
import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, tzinfo
from pathlib import Path
from typing import Any

import msgspec

from grader.classroom.csv_files import read_lines
from grader.classroom.gradebooks import canvas, moodle
from grader.classroom.times import (
    UnreadableTimeError,
    day_comes_first,
    has_twelve_hours,
    read_time,
)
from grader.course.policy import Policy
from grader.course.zones import change_of_clock, offset
from grader.errors import RequestError
from grader.report import Person
from grader.submissions.layouts import Attempt
from grader.submissions.notes import printable_text

# The names that teachers and the platforms' exports, in several languages, give to the columns.
COLUMNS = {
    "id": "id, student id, user id, userid, participant, identifier, student, identifiant, "
    "identificador, identificativo, identificatie, identyfikator",
    "login": "login, login id, sis login id, username, user name, github, github username",
    "email": "email, e mail, email address, mail, e mail adresse, adresse de courriel, "
    "dirección de correo, indirizzo email, endereço de e mail, endereço de email, e mailadres, "
    "adres e mail",
    "number": "number, sid, sis id, sis user id, student number, id number, id nummer",
    "name": "name, full name, fullname, student name, vollständiger name, nom complet, "
    "nombre completo, nome completo, volledige naam, pełna nazwa, imię i nazwisko",
    "first": "first name, firstname, first, given name, vorname, prénom, nombre, nome, voornaam, "
    "imię",
    "last": "last name, lastname, last, surname, family name, nachname, nom, apellidos, cognome, "
    "apelido, sobrenome, achternaam, nazwisko",
    "section": "section, sections, group, groups, gruppe, groupe, grupo, gruppo, groep, grupa",
    "group": "group, groups, team",
    "due": "due, due at, due date, extension, extended due, extended due date",
    "extra": "extra time, time extension",
    "submitted": "submitted, submitted at, submission time",
    "status": "status, statut, estado, stato",
    "modified": "last modified (submission), zuletzt geändert (abgabe), "
    "dernière modification (travail remis), dernière modification (remise), "
    "última modificación (entrega), ultima modifica (consegna), "
    "última modificação (submissão), última modificação (envio), última modificação (entrega), "
    "laatst gewijzigd (inzending), laatst gewijzigd (insturing), ostatnia modyfikacja (zadanie)",
}
IDENTIFYING = ("id", "login", "email", "number", "name")
# What a worksheet of Moodle has no column for; whatever has one is a teacher's own roster.
OWN_COLUMNS = ("login", "due", "extra", "submitted")
MOODLES_FEWEST = 6  # columns of a worksheet
# Moodle writes an id as "Participant 12", in the language of the teacher.
PARTICIPANT = re.compile(
    r"(?:[^\W\d_]+(?:/[^\W\d_]+)? |"
    r"(?:participant|participante|partecipante|teilnehmer/in|deelnemer|uczestnik))([0-9]+)",
    re.IGNORECASE,
)
NO_TIME = ("", "-", "–", "—")
YEAR = re.compile(r"\b20[0-9]{2}\b")
EXTRA = re.compile(r"([0-9]+(?:[.,][0-9]+)?)\s*(%|h|hours?|d|days?|weeks?)", re.IGNORECASE)
HOURS = {"h": 1, "d": 24, "w": 7 * 24}  # by the first letter of the unit
EXPECTED = "a roster has a line of column names, such as id,name,email,due"


@dataclass(frozen=True)
class RosterRow:
    """One student, with their own due date and the time when they handed in, if given.

    `group` is the group that hands in together. `unread` says which time cannot be read, or only by
    a clock that may be wrong; nobody is on time because of that. Extra time counts from the due
    date of the course, in hours or in percent of the time that everybody has.
    """

    student: str
    person: Person
    due: datetime | None = None
    submitted: datetime | None = None
    group: str = ""
    unread: str = ""
    extra_hours: float = 0.0
    extra_percent: float = 0.0
    line: int = dataclasses.field(default=0, compare=False)

    def is_named_by(self, attempt: Attempt) -> bool:
        """Return whether an attempt has one of this row's identifiers, letter by letter."""
        one, row = attempt.person, self.person
        pairs = ((one.login, row.login), (one.email, row.email), (one.number, row.number))
        return attempt.student == self.student or any(a == b != "" for a, b in pairs)

    def number_of(self, attempt: Attempt) -> str:
        """Return the number that an attempt is found by if only a 0 at its start differs, or ""."""
        ours, theirs = ({one.student, one.person.number} - {""} for one in (self, attempt))
        digits = {_key("digits", value)[1] for value in theirs} - {""}
        same = [value for value in sorted(ours - theirs) if _key("digits", value)[1] in digits]
        return "" if ours & theirs or not same else same[0]

    @property
    def extra(self) -> str:
        """The extra time in words; nothing without any."""
        percent = f"{self.extra_percent:g} %" if self.extra_percent else ""
        return percent or (f"{self.extra_hours:g} hours" if self.extra_hours else "")

    def with_extra(self, policy: Policy) -> RosterRow:
        """Return the row with the later of its own due date and the course's with extra time."""
        if not self.extra:
            return self
        extended = policy.extended(self.extra_hours, self.extra_percent)
        if extended is None:
            lacks = "`start`" if policy.due else "`due`"
            raise RequestError(
                f"line {self.line} of the roster gives {self.extra} of extra time, and course.toml "
                f"has no {lacks} to count from",
                f"add {lacks}, such as {lacks.strip('`')} = 2026-10-06T08:00:00",
            )
        return dataclasses.replace(self, due=max(extended, self.due or extended))

    def doubted(self, course_due: datetime | None) -> RosterRow:
        """Return the row, with a remark if a time without a zone is read by the wrong clock.

        That is a time in the fixed offset of the course's due date, after the clocks change.
        """
        for time in (self.due, self.submitted):
            if time is None or course_due is None or time.tzinfo is not course_due.tzinfo:
                continue
            if name := change_of_clock(course_due, time):
                says = (
                    f"a time in the roster was read with the offset {offset(time)} of `due`, but "
                    f'clocks change before it; in course.toml, write such as zone = "{name}"'
                )
                return dataclasses.replace(self, unread=self.unread or says)
        return self


@dataclass(frozen=True)
class Roster:
    """All students of the class, in the order of the file."""

    rows: tuple[RosterRow, ...] = ()
    file: str = ""  # the name of the file that it was read from

    def to_setting(self) -> Any:
        """Return the roster as a ledger stores it."""
        return msgspec.to_builtins(self)

    @staticmethod
    def from_setting(setting: object) -> Roster:
        """Return the roster that a ledger stores; an empty one if none can be read."""
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

        Several rows match if the attempt has the id of one student and the email of another, say,
        or a name that two students share.
        """
        several: list[RosterRow] = []
        for known in _ways_to_know(attempt):
            found = [self._index.get(_key(field, value), []) for field, value in known]
            if clear := {rows[0].student: rows[0] for rows in found if len(rows) == 1}:
                return list(clear.values())
            several = several or [row for rows in found for row in rows]
        return several

    def missing(self, found: Iterable[RosterRow]) -> list[RosterRow]:
        """Return the rows that are not among `found`."""
        students = {row.student for row in found}
        return [row for row in self.rows if row.student not in students]

    def namesakes(self, name: str) -> list[RosterRow]:
        """Return the rows with a name, if there are several."""
        rows = self._index.get(_key("name", name), []) if name else []
        return rows if len(rows) > 1 else []

    @functools.cached_property
    def _index(self) -> Mapping[tuple[str, str], list[RosterRow]]:
        index: dict[tuple[str, str], list[RosterRow]] = defaultdict(list)
        for row in self.rows:
            person = row.person
            named = [("id", row.student), ("login", person.login), ("email", person.email)]
            named += [("number", person.number), ("name", person.name), ("words", person.name)]
            numbers = [("digits of id", row.student), ("digits of number", person.number)]
            for field, value in (*named, *numbers):
                if (key := _key(field, value))[1] and row not in index[key]:
                    index[key].append(row)
        return index


NO_ROSTER = Roster()


Known = list[tuple[str, str]]  # values that may be in a row, each with its field


def _ways_to_know(attempt: Attempt) -> Iterator[Known]:
    """Yield the values that an attempt can be found by, the surest first."""
    person, student = attempt.person, attempt.student
    ids = [("id", student), ("login", person.login), ("email", person.email)]
    yield [*ids, ("number", person.number)]
    if not person.name:
        # No platform names the student, so the submission's name can be any of these.
        yield [("login", student), ("email", student), ("number", student)]
    numbers = [("digits of id", student), ("digits of number", person.number)]
    yield numbers if person.name else [*numbers, ("digits of number", student)]
    name = person.name or student
    yield [("name", name)]
    yield [("words", name)]


def _key(field: str, value: str) -> tuple[str, str]:
    """Return a value for comparison; Canvas writes names in lower case, with letters only.

    An accent may be a letter's own or stand behind it, as on a Mac; vowel signs are letters, too.
    The `words` of a name may be in any order. Of the `digits` of a number, a spreadsheet drops
    every 0 at the start.
    """
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", value).casefold())
    if field.startswith("digits"):
        return field, folded.lstrip("0") if folded.isdecimal() else ""
    if field == "words":
        parts = "".join(sign if _is_letter(sign) else " " for sign in folded).split()
        return field, " ".join(sorted(parts))
    return field, "".join(filter(_is_letter, folded)) if field == "name" else folded


def _is_letter(sign: str) -> bool:
    return sign.isalnum() or unicodedata.category(sign).startswith("M")


def read_roster(path: Path, zone: tzinfo | None = None, option: str = "--roster") -> Roster:
    """Read the roster in a CSV file; raise `RequestError` that names the file and the line.

    Times without a time zone are in `zone`, if it is given.
    """
    lines = list(read_lines(path, option, EXPECTED))
    (header_line, header), records = lines[0] if lines else (1, []), lines[1:]
    columns = _columns(header, [cells for _, cells in records])
    if not any(field in columns.cells for field in (*IDENTIFYING, "last")):
        raise RequestError(f"{path}:{header_line}: no column identifies the students", EXPECTED)
    reader = _RowReader(path, columns, zone, [cells for _, cells in records])
    rows: list[RosterRow] = []
    seen: dict[str, int] = {}
    for line, cells in records:
        if canvas.is_no_student(cells) or (columns.of_canvas and canvas.TEST_STUDENT in cells):
            continue
        row = reader.row(line, cells)
        before = seen.setdefault(_key("id", row.student)[1], line)
        if before != line:
            raise RequestError(
                f"{path}:{line}: `{row.student}` is already in line {before}",
                "keep one of the two lines",
            )
        rows.append(row)
    if not rows:
        raise RequestError(f"{path} lists no students", EXPECTED)
    return Roster(tuple(rows), path.name)


@dataclass(frozen=True)
class _Columns:
    """The columns of each field; if there are several, the first filled cell counts."""

    cells: Mapping[str, list[int]]
    of_canvas: bool = False
    of_moodle: bool = False  # recognised by its values, in any language


def _columns(header: Sequence[str], records: Sequence[list[str]]) -> _Columns:
    names = [_column_name(name) for name in header]
    columns: dict[str, list[int]] = defaultdict(list)
    for field_name, known in COLUMNS.items():
        for name in known.split(", "):
            columns[field_name] += [index for index, here in enumerate(names) if here == name]
    if worksheet := _worksheet(header, columns, records):
        columns["id"] = [worksheet.identifier]
        for name in ("name", "email", "modified"):
            index = getattr(worksheet, name)
            columns[name] = columns[name] or ([] if index is None else [index])
    if worksheet or columns["modified"]:
        columns["group"] = []  # Moodle's are those of the course, whose members hand in alone
    of_canvas = "student" in names and len(columns["id"]) > 1
    if of_canvas and not columns["name"]:
        columns["name"] = [names.index("student")]  # Canvas: `Student` is the name, `ID` the id
    found = {name: indexes for name, indexes in columns.items() if indexes}
    return _Columns(found, of_canvas, worksheet is not None)


def _column_name(text: str) -> str:
    return " ".join(re.split(r"[\s_-]+", _key("", text)[1]))


def _worksheet(
    header: Sequence[str], columns: Mapping[str, list[int]], records: Sequence[list[str]]
) -> moodle.WorksheetColumns | None:
    """Return the columns of a worksheet that is recognised by its values; None for another file."""
    if any(columns[name] for name in OWN_COLUMNS) or len(header) < MOODLES_FEWEST or not records:
        return None
    width = len(header)
    try:
        return moodle.find_columns(
            header, [[*cells[:width], *[""] * (width - len(cells))] for cells in records]
        )
    except RequestError:
        return None


class _RowReader:
    """Reads the rows of one file, whose columns are known."""

    def __init__(
        self,
        path: Path,
        columns: _Columns,
        zone: tzinfo | None,
        records: Sequence[list[str]],
    ) -> None:
        self._path, self._columns, self._zone = path, columns, zone
        self._day_first = {
            name: self._order([self._cell(cells, name) for cells in records], name)
            for name in ("due", "submitted", "modified")
        }

    def _cell(self, cells: list[str], name: str) -> str:
        """Return the first filled cell of a field."""
        indexes = self._columns.cells.get(name, [])
        return next((cells[i] for i in indexes if i < len(cells) and cells[i]), "")

    @staticmethod
    def _order(texts: list[str], name: str) -> bool | None:
        """Return whether the dates of a column begin with the day, as Moodle's do with 24 hours."""
        proven = day_comes_first(texts)
        if proven is None and name == "modified" and not has_twelve_hours(texts):
            return True
        return proven

    def row(self, line: int, cells: list[str]) -> RosterRow:
        """Return a student's row; raise `RequestError` if it names none, or for a wrong time."""
        values = {name: printable_text(self._cell(cells, name)) for name in COLUMNS}
        if not values["name"] and values["last"]:
            values["name"] = f"{values['first']} {values['last']}".strip()
        if self._columns.of_moodle:
            values["id"] = moodle.participant_number(values["id"]) or values["id"]
        elif match := PARTICIPANT.fullmatch(values["id"]):
            values["id"] = match[1]
        student = next((values[name] for name in IDENTIFYING if values[name]), "")
        if not student:
            raise RequestError(
                f"{self._path}:{line}: nothing in this line identifies a student",
                "fill in an id, a login, an email or a name",
            )
        due = self._time(line, "due", values["due"], self._zone)
        unread = ""
        if due is None and self._zone is not None:
            due, unread = self._extension(line, values["status"], self._zone)
        zone = self._zone or (due.tzinfo if due else None)
        submitted = self._time(line, "submitted", values["submitted"], zone)
        if submitted is None and zone is not None:  # without any due date nobody is late
            submitted, why = self._modified(line, values["modified"], zone)
            unread = unread or why
        fields = ("name", "email", "login", "number", "section")
        person = Person(**{name: values[name] for name in fields})
        extra = self._extra(line, values["extra"])
        return RosterRow(student, person, due, submitted, values["group"], unread, *extra, line)

    def _extra(self, line: int, text: str) -> tuple[float, float]:
        """Return extra time in hours and in percent, one of which is 0."""
        found = EXTRA.fullmatch(text)
        if text and not found:
            raise RequestError(
                f"{self._path}:{line}: extra time is `{text}`",
                "write it as 24 hours, 2 days or 25 %",
            )
        number = float(found[1].replace(",", ".")) if found else 0.0
        unit = found[2][0].casefold() if found else "%"
        return (0.0, number) if unit == "%" else (HOURS[unit] * number, 0.0)

    def _time(self, line: int, name: str, text: str, zone: tzinfo | None) -> datetime | None:
        if not text:
            return None
        try:
            return read_time(text, zone, self._day_first[name])
        except UnreadableTimeError as error:
            what = f"{self._path}:{line}: {name} is `{printable_text(text)}`, which {error}"
            raise RequestError(what, error.remedy) from None

    def _extension(self, line: int, text: str, zone: tzinfo) -> tuple[datetime | None, str]:
        """Return the due date that Moodle writes into the status of a student with an extension.

        Such a status ends in "…: " and a date. A status that cannot be read is reported.
        """
        written = text.rpartition(": ")[2] if ": " in text else ""
        if not YEAR.search(written):
            return None, ""
        try:
            return read_time(written, zone, self._day_first["modified"]), ""
        except UnreadableTimeError as error:
            says = f"line {line} of the roster gives `{printable_text(written)}` as an extension"
            return None, f"{says}, which {error}"

    def _modified(self, line: int, text: str, zone: tzinfo) -> tuple[datetime | None, str]:
        """Return the time that Moodle gives, or why it cannot be read."""
        if text in NO_TIME:
            return None, ""
        try:
            return read_time(text, zone, self._day_first["modified"]), ""
        except UnreadableTimeError as error:
            says = f"line {line} of the roster gives `{printable_text(text)}` as time of submission"
            return None, f"{says}, which {error}"
