"""Rows with a checksum: a damaged row counts as missing, and its student is named."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from typing import Annotated, Any, ClassVar, TypedDict, TypeVar

import msgspec

from grader.classroom.review import NeedsReview
from grader.classroom.storage import COLUMNS, checksum
from grader.report import clean

T = TypeVar("T")
Check = Callable[[Sequence[Any]], bool]  # whether the values of a row can be decoded
MAX_SHOWN = 255  # characters of a damaged value
LARGE = ("submissions", "results")  # tables whose rows are checked when they are read
PRESENT = "WHERE student IN (SELECT student FROM attempts WHERE present)"
_MORE = {  # columns that no checksum covers
    "attempts": "present",
    "results": "seconds, run, at",
    "published": "at",
}
_SAYINGS = {
    "settings": "the setting {} of this class was damaged",
    "submissions": "the stored files were damaged",
    "attempts": "the stored attempt was damaged",
    "origins": "the record of the names in the platform's download was damaged",
    "missing": "the row in the list of those who handed in nothing was damaged",
    "remarks": "what was to be reviewed of this student was damaged",
    "results": "the stored result of {} was damaged and does not count: it is graded again",
    "set_aside": "the result of {} before the regrade was damaged and does not count",
    "adjustments": "the adjustment of {} was damaged and does not count",
    "published": "the record of the published mark was damaged",
    "history": "an entry of the history was damaged",
}


class Rows:
    """The rows of a ledger; `CHECKS` has, for each table, a test whether a row can be decoded.

    `review` names the students who need review after this run.
    """

    CHECKS: ClassVar[Mapping[str, Check]] = {}

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._db = connection
        self._decodable: set[tuple[str, str]] = set()  # tables and checksums of rows
        self.review = NeedsReview()

    def _put(self, table: str, *rows: Sequence[Any], conflict: str = "OR REPLACE") -> None:
        """Store rows, whose values are the table's `COLUMNS` and then the `more` of it."""
        names, more = COLUMNS[table], _MORE.get(table, "")
        covered = names.count(",") + 1
        columns = ", ".join(filter(None, [names, more, "checksum"]))
        marks = ", ".join("?" * (columns.count(",") + 1))
        sealed = [(*row, checksum(row[:covered])) for row in rows]
        self._db.executemany(f"INSERT {conflict} INTO {table} ({columns}) VALUES ({marks})", sealed)
        self._decodable.update((table, seal) for *_, seal in sealed)

    def _rows(self, table: str, condition: str = "", *values: object) -> list[list[Any]]:
        """Return the sound rows of a table; take out the damaged ones and name their students.

        A row of an older ledger, which had no checksums, gets one if it can be decoded. The
        largest tables are decoded only for that, because their rows with a checksum were decoded
        when they were stored.
        """
        query = f"SELECT rowid, checksum, {COLUMNS[table]} FROM {table} {condition}"
        sound = []
        for rowid, seal, *row in self._db.execute(query, values).fetchall():
            expected = checksum(row)
            is_sound = seal in (None, expected)
            known = (table, seal) in self._decodable
            if is_sound and not known and (seal is None or table not in LARGE):
                is_sound = self._can_be_decoded(table, row)
            if not is_sound:
                self._take_out(table, rowid, row)
                continue
            if seal is None:
                update = f"UPDATE {table} SET checksum = ? WHERE rowid = ?"
                self._db.execute(update, [expected, rowid])
            self._decodable.add((table, expected))
            sound.append(row)
        return sound

    def _take_out(self, table: str, rowid: int, row: Sequence[Any]) -> None:
        """Delete a damaged row; remember its student, if the row still names one."""
        named = dict(zip(COLUMNS[table].split(", "), row))
        exercise = named.get("exercise", named.get("key", ""))
        students = [named.get("student", named.get("about", ""))]
        if "hash" in named and "student" not in named:
            query = "SELECT DISTINCT student FROM attempts WHERE hash = ? AND present"
            with suppress(sqlite3.Error, UnicodeError):  # the damage is in the hash itself
                students = [one for (one,) in self._db.execute(query, [named["hash"]])] or [""]
        for student in students:
            self._note_damage(table, _printable(student), _printable(exercise))
        self._db.execute(f"DELETE FROM {table} WHERE rowid = ?", [rowid])

    def _note_damage(self, table: str, student: str, exercise: str) -> None:
        self._db.execute(
            "INSERT INTO damaged (found_in, student, exercise, at) "
            "SELECT :table, :student, :exercise, :at WHERE NOT EXISTS (SELECT 1 FROM damaged "
            "WHERE (found_in, student, exercise) = (:table, :student, :exercise))",
            {"table": table, "student": student, "exercise": exercise, "at": now()},
        )
        self.review.add(student, says(table, exercise))

    def damage(self, student: str) -> tuple[str, ...]:
        """Return a sentence for each damaged piece of a student's stored data."""
        query = "SELECT found_in, exercise FROM damaged WHERE student = ? ORDER BY id"
        found = self._db.execute(query, [student]).fetchall()
        return tuple(says(table, exercise) for table, exercise in found)

    @property
    def has_damage(self) -> bool:
        """Whether any stored data of this class is damaged."""
        return self._db.execute("SELECT 1 FROM damaged LIMIT 1").fetchone() is not None

    def damaged_students(self) -> list[str]:
        """Return the students with damaged data that decides their mark."""
        decides = "found_in NOT IN ('settings', 'origins', 'published', 'history')"
        query = f"SELECT DISTINCT student FROM damaged WHERE {decides}"
        return sorted(_printable(student) for (student,) in self._db.execute(query) if student)

    def _repaired(self, *tables: str, student: str | None = None, exercise: str = "") -> None:
        """Forget some damage, because the data is stored again."""
        self._db.execute(
            f"DELETE FROM damaged WHERE found_in IN ({', '.join('?' * len(tables))}) "
            "AND student = ifnull(?, student) AND ? IN ('', exercise)",
            [*tables, student, exercise],
        )

    def _students(self, condition: str, *values: object) -> list[str]:
        query = f"SELECT DISTINCT student FROM attempts {condition} ORDER BY student"
        return [student for (student,) in self._db.execute(query, values)]

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Store everything in the block, or nothing; an inner block is part of the outer one."""
        if self._db.in_transaction:
            yield
            return
        self._db.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            with suppress(sqlite3.OperationalError):  # a full disk has rolled back
                self._db.execute("ROLLBACK")
            raise
        self._db.execute("COMMIT")

    def _can_be_decoded(self, table: str, row: Sequence[Any]) -> bool:
        """Return whether the values of a row have the right types and contents."""
        try:
            msgspec.convert(dict(zip(COLUMNS[table].split(", "), row)), _Values)
            return bool(self.CHECKS[table](row))
        except Exception:  # damaged values may raise any error
            return False


def says(table: str, exercise: str) -> str:
    """Return a sentence on the damage."""
    return _SAYINGS.get(table, "something stored was damaged").format(exercise or "an exercise")


def _printable(value: object) -> str:
    """Return a value of a damaged row as text that can be printed and stored."""
    if value is None:
        return ""
    return clean(str(value)[:MAX_SHOWN].encode("utf-8", "replace").decode())


def decoded(text: str, kind: type[T]) -> T:
    """Return a value from its JSON; raise an error unless it is of this kind."""
    return msgspec.convert(json.loads(text), kind)


def now() -> str:
    """Return the time as the ledger stores it."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")


class _Values(TypedDict, total=False):
    """The types of the values of a row; SQLite does not check what is on the disk."""

    student: Annotated[str, msgspec.Meta(min_length=1, max_length=MAX_SHOWN)]
    number: Annotated[int, msgspec.Meta(ge=1)]
    hash: str
    person: str
    submitted: str | None
    due: str | None
    late: Annotated[int, msgspec.Meta(ge=0, le=1)]
    paths: str
    problems: str
    notes: str
    team: str
    flags: str
    graded: Annotated[int, msgspec.Meta(ge=0, le=1)]
    layout: str
    names: str
    key: str
    value: str
    files: bytes
    epoch: Annotated[int, msgspec.Meta(ge=0)]
    exercise: str
    course: str
    versions: str
    seed: int
    result: str
    confinement: str
    points: float
    why: str
    at: str
    fingerprint: str
    rules: str
    max_points: float
    exercises: str
    pages: str
    what: str
    about: str
