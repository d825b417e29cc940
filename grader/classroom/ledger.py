"""The ledger of a class: every submission, attempt, result, adjustment and published mark.

It is one SQLite file with one writer. It keeps the files of every submission, so that a class can
be graded again without the folder it came from. Every row has a checksum: one that is damaged
counts as not there, and its student is named. Public tables and columns: docs/ledger.md.
"""

from __future__ import annotations

import hashlib
import json
import math
import sqlite3
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, TypedDict, TypeVar

import msgspec

from grader.classroom.review import DamagedRowError, NeedsReview
from grader.classroom.storage import COLUMNS, checksum, connect, explain_disk_errors, lock_folder
from grader.classroom.workers.messages import GradedJob, decode_result
from grader.report import Adjustment, Person, clean
from grader.sandbox.cells import NOTEBOOK
from grader.submissions.submission import Submission

T = TypeVar("T")
MAX_ADJUSTMENT = 1e6  # points: sums of them are far from infinity
TWIN = " (copy)"  # the end of the key under which a setting is stored again
MAX_SHOWN = 255  # characters of a damaged value


@dataclass(frozen=True)
class ResultKey:
    """What a result depends on, beside the submission and the exercise's part of the course."""

    versions: str
    seed: int


@dataclass(frozen=True)
class AttemptRow:
    """One attempt as the ledger stores it, without its files; `graded` means that it is graded."""

    student: str
    number: int
    hash: str
    person: Person = field(default_factory=Person)
    submitted: datetime | None = None
    due: datetime | None = None
    late: bool = False
    paths: Mapping[str, str] = field(default_factory=dict)
    problems: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    graded: bool = True

    @cached_property
    def graded_paths(self) -> Mapping[str, str]:
        """The names of the files while they are graded, by exercise, instead of the `paths`."""
        notebooks = {name for name, path in self.paths.items() if path.endswith(NOTEBOOK)}
        return {name: f"{name}{NOTEBOOK if name in notebooks else '.py'}" for name in self.paths}


@dataclass(frozen=True)
class StoredResult:
    """A result as the ledger stores it: the JSON of an `ExerciseResult`, and its confinement."""

    result: bytes
    confinement: tuple[str, ...]


@dataclass(frozen=True)
class PublishedMark:
    """A student's published mark and the rules behind it; `exercises` has the points of each.

    `pages` are the size and hash of each file that was written for it.
    """

    fingerprint: str
    rules: str
    seed: int
    points: float
    max_points: float
    exercises: Mapping[str, float]
    pages: Mapping[str, list[int | str]] = field(default_factory=dict)


@contextmanager
def open_ledger(folder: Path) -> Iterator[Ledger]:
    """Open the ledger of `folder`; raise `RequestError` if it is in use or cannot be written."""
    with lock_folder(folder), explain_disk_errors(folder), closing(connect(folder)) as connection:
        ledger = Ledger(connection)
        ledger.set_damaged_rows_apart()
        ledger.rollback_trial()  # of a run that was killed during a trial
        yield ledger


class Ledger:
    """Everything stored about a class. Every method that writes is one transaction.

    `review` names the students over whom something broke in this run.
    """

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._db = connection
        self._run = 0
        self._decodable: set[tuple[str, str]] = set()  # tables and checksums of rows
        self.review = NeedsReview()

    # --- rows with a checksum ---------------------------------------------------------------------

    def _put(self, table: str, *rows: Sequence[Any], conflict: str = "OR REPLACE") -> None:
        """Store rows, whose values are the table's `COLUMNS` and then the `more` of it."""
        names, more = COLUMNS[table], _MORE.get(table, "")
        covered = names.count(",") + 1
        columns = ", ".join(filter(None, [names, more, "checksum"]))
        marks = ", ".join("?" * (columns.count(",") + 1))
        self._db.executemany(
            f"INSERT {conflict} INTO {table} ({columns}) VALUES ({marks})",
            [(*row, checksum(row[:covered])) for row in rows],
        )

    def _rows(self, table: str, condition: str = "", *values: object) -> list[list[Any]]:
        """Return the sound rows of a table; take out the damaged ones and name their students.

        A row of an older ledger, which had no checksums, gets one if it can be decoded. The largest
        tables are decoded only for that: what has a checksum there was decoded when it was stored.
        """
        query = f"SELECT rowid, checksum, {COLUMNS[table]} FROM {table} {condition}"
        sound = []
        for rowid, seal, *row in self._db.execute(query, values).fetchall():
            expected = checksum(row)
            is_sound = seal in (None, expected)
            known = (table, seal) in self._decodable
            if is_sound and not known and (seal is None or table not in _LARGE):
                is_sound = _can_be_decoded(table, row)
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
        """Delete a damaged row; remember whose it was, as far as it still says so."""
        named = dict(zip(COLUMNS[table].split(", "), row))
        exercise = named.get("exercise", named.get("key", ""))
        students = [named.get("student", "")]
        if "hash" in named and "student" not in named:
            query = "SELECT DISTINCT student FROM attempts WHERE hash = ? AND present"
            with suppress(sqlite3.Error, UnicodeError):  # the hash is what was damaged
                students = [one for (one,) in self._db.execute(query, [named["hash"]])] or [""]
        for student in students:
            self._note_damage(table, _printable(student), _printable(exercise))
        self._db.execute(f"DELETE FROM {table} WHERE rowid = ?", [rowid])

    def _note_damage(self, table: str, student: str, exercise: str) -> None:
        self._db.execute(
            "INSERT INTO damaged (found_in, student, exercise, at) SELECT ?1, ?2, ?3, ?4 WHERE NOT "
            "EXISTS (SELECT 1 FROM damaged WHERE (found_in, student, exercise) = (?1, ?2, ?3))",
            [table, student, exercise, _now()],
        )
        self.review.add(student, _says(table, exercise))

    def set_damaged_rows_apart(self) -> None:
        """Check all tables but the largest two, whose rows are checked when they are read.

        Results of no submission are checked too, and students whose attempts are gone are named:
        nothing else would find either.
        """
        for table in ("attempts", *(name for name in COLUMNS if name not in _LARGE)):
            self._rows(table)
        # No checksum covers `present`, without which a student would be gone unseen.
        self._db.execute("UPDATE attempts SET present = 1 WHERE ifnull(present, 2) NOT IN (0, 1)")
        lost = "SELECT rowid FROM results WHERE hash NOT IN (SELECT hash FROM attempts)"
        self._rows("results", f"WHERE rowid IN ({lost})")
        for student in self.vanished():
            self._note_damage("attempts", student, "")

    def vanished(self) -> list[str]:
        """Return the students who have a published mark, and no attempt is stored of them."""
        query = "SELECT student FROM published EXCEPT SELECT student FROM attempts"
        return [student for (student,) in self._db.execute(query)]

    def damage(self, student: str) -> tuple[str, ...]:
        """Return what was damaged of what is stored about a student, in words."""
        query = "SELECT found_in, exercise FROM damaged WHERE student = ? ORDER BY id"
        found = self._db.execute(query, [student]).fetchall()
        return tuple(_says(table, exercise) for table, exercise in found)

    def damaged_students(self) -> list[str]:
        """Return the students of whom something that decides the mark was damaged."""
        decides = "found_in NOT IN ('settings', 'published')"
        query = f"SELECT DISTINCT student FROM damaged WHERE {decides}"
        return sorted(_printable(student) for (student,) in self._db.execute(query) if student)

    def _repaired(self, *tables: str, student: str | None = None, exercise: str = "") -> None:
        """Forget what was damaged: it is stored again."""
        self._db.execute(
            f"DELETE FROM damaged WHERE found_in IN ({', '.join('?' * len(tables))}) "
            "AND student = ifnull(?, student) AND ? IN ('', exercise)",
            [*tables, student, exercise],
        )

    # --- settings and runs ------------------------------------------------------------------------

    def get(self, key: str) -> Any:
        """Return a setting, or None."""
        for name in (key, f"{key}{TWIN}"):
            for _, value in self._rows("settings", "WHERE key = ?", name):
                return json.loads(value)
        return None

    def put(self, key: str, value: Any) -> None:
        """Store a setting, twice: without the secret, for one, all would be graded again."""
        text = json.dumps(value)
        with self._writing():
            self._put("settings", [key, text], [f"{key}{TWIN}", text])
            self._repaired("settings", exercise=key)

    def begin(self, course: str, key: ResultKey) -> None:
        """Record that a run begins; results belong to it from now on."""
        cursor = self._db.execute(
            "INSERT INTO runs (started, course, versions, seed) VALUES (?, ?, ?, ?)",
            [_now(), course, key.versions, key.seed],
        )
        self._run = cursor.lastrowid or 0

    def finish(self) -> None:
        """Record that the run has ended."""
        self._db.execute("UPDATE runs SET finished = ? WHERE run = ?", [_now(), self._run])

    # --- what was handed in -----------------------------------------------------------------------

    @contextmanager
    def taking_in(self) -> Iterator[None]:
        """Take in a whole class at once; attempts that the block does not `take` count as gone."""
        with self._writing():
            self._db.execute("UPDATE attempts SET present = 0")
            self._db.execute("DELETE FROM missing")
            self._repaired("attempts", "missing", "submissions")
            yield

    def take(self, row: AttemptRow, files: Mapping[str, str]) -> None:
        """Store an attempt and its files."""
        packed = zlib.compress(json.dumps(files).encode("utf-8", "surrogatepass"))
        (same,) = self._db.execute(
            "SELECT count(*) FROM submissions WHERE hash = ? AND files = ? AND checksum = ?",
            [row.hash, packed, checksum((row.hash, packed))],
        ).fetchone()
        if not same:
            self._put("submissions", [row.hash, packed])
        values = [
            *(row.student, row.number, row.hash, json.dumps(asdict(row.person))),
            *(time and time.isoformat() for time in (row.submitted, row.due)),
            *(int(row.late), json.dumps(dict(row.paths)), json.dumps(dict(row.problems))),
            *(json.dumps(row.notes), int(row.graded), 1),
        ]
        self._put("attempts", values)

    def miss(self, student: str, person: Person) -> None:
        """Record that a student of the roster has handed in nothing."""
        self._put("missing", [student, json.dumps(asdict(person))])

    def missing(self) -> list[tuple[str, Person]]:
        """Return the students of the roster who have handed in nothing."""
        rows = self._rows("missing", "ORDER BY student")
        return [(student, _decoded(person, Person)) for student, person in rows]

    def students(self) -> list[str]:
        """Return every student who has handed in, in order."""
        return self._students("WHERE present")

    def attempts(self, student: str) -> list[AttemptRow]:
        """Return a student's attempts that are to be graded, the oldest first."""
        condition = "WHERE student = ? AND present AND graded ORDER BY number"
        return [_attempt_row(row) for row in self._rows("attempts", condition, student)]

    def to_grade(self) -> Iterator[AttemptRow]:
        """Yield one attempt for each submission that is to be graded, in the order of students."""
        chosen = self._db.execute(
            "SELECT min(rowid) FROM attempts WHERE present AND graded "
            "GROUP BY hash ORDER BY min(student), number"
        ).fetchall()
        for row in chosen:
            yield from map(_attempt_row, self._rows("attempts", "WHERE rowid = ?", *row))

    def has_results(self) -> bool:
        """Return whether anything was ever graded."""
        return self._db.execute("SELECT 1 FROM results LIMIT 1").fetchone() is not None

    def handed_in_by(self, digest: str) -> list[str]:
        """Return the students who handed in this submission."""
        return self._students("WHERE hash = ? AND present AND graded", digest)

    def graded_now(self) -> list[str]:
        """Return the students for whom this run has stored a result."""
        join = "JOIN results USING (hash)"
        return self._students(f"{join} WHERE run = ? AND present AND graded", self._run)

    def _students(self, condition: str, *values: object) -> list[str]:
        query = f"SELECT DISTINCT student FROM attempts {condition} ORDER BY student"
        return [student for (student,) in self._db.execute(query, values)]

    def submission(self, row: AttemptRow) -> Submission:
        """Return an attempt with its files, under the names by which they are graded.

        Another student with the same files must not read this student's own file names.
        """
        rows = self._rows("submissions", "WHERE hash = ?", row.hash)
        if not rows:
            self._note_damage("submissions", row.student, "")
            raise DamagedRowError(_says("submissions", ""))
        files = _unpacked(rows[0][1])
        identity = row.hash  # over the files as handed in, of which notebooks are not stored
        return Submission(row.student, files, row.graded_paths, row.problems, row.notes, identity)

    # --- results ----------------------------------------------------------------------------------

    def record(
        self, digest: str, courses: Mapping[str, str], key: ResultKey, job: GradedJob
    ) -> None:
        """Store the results of a submission's exercises; `courses` has the exercises' hashes.

        A result that is stored already stays.
        """
        shared = json.dumps(job.confinement), job.seconds / len(job.results), self._run, _now()
        rows = [
            (digest, name, courses[name], key.versions, key.seed, result.decode(), *shared)
            for name, result in job.results.items()
        ]
        with self._writing():
            self._put("results", *rows, conflict="OR IGNORE")

    def begin_trial(self, student: str) -> None:
        """Set a student's results aside, so that they are graded again on trial."""
        of = "hash IN (SELECT hash FROM attempts WHERE student = ?)"
        with self._writing():
            copied = f"SELECT {_COPIED} FROM results WHERE {of}"
            self._db.execute(f"INSERT OR REPLACE INTO set_aside ({_RESULT}) {copied}", [student])
            self._db.execute(f"DELETE FROM results WHERE {of}", [student])

    def rollback_trial(self) -> None:
        """End the trial; put back the results that were set aside."""
        with self._writing():
            copied = f"SELECT {_COPIED} FROM set_aside"
            self._db.execute(f"INSERT OR REPLACE INTO results ({_RESULT}) {copied}")
            self._db.execute("DELETE FROM set_aside")

    def commit_trial(self) -> None:
        """End the trial; keep the new results."""
        with self._writing():
            for (student,) in self._db.execute(
                "SELECT DISTINCT student FROM attempts JOIN set_aside USING (hash)"
            ).fetchall():
                self._repaired("results", "set_aside", student=student)
            self._db.execute("DELETE FROM set_aside")

    def results(
        self, digest: str, courses: Mapping[str, str], key: ResultKey
    ) -> dict[str, StoredResult]:
        """Return the stored results of a submission's exercises, for the course as it is now."""
        now = (key.versions, key.seed)
        return {
            name: StoredResult(result.encode(), tuple(json.loads(confinement)))
            for _, name, course, *of, result, confinement in self._rows(
                "results", "WHERE hash = ?", digest
            )
            if courses.get(name) == course and tuple(of) == now
        }

    # --- adjustments ------------------------------------------------------------------------------

    def adjust(self, student: str, exercise: str, points: float, why: str) -> None:
        """Adjust a student's points for an exercise; this replaces an earlier adjustment of it."""
        with self._writing():
            self._put("adjustments", [student, exercise, float(points), why, _now()])
            self._repaired("adjustments", student=student, exercise=exercise)

    def adjustments(self, student: str) -> dict[str, Adjustment]:
        """Return a student's adjustments that count, by exercise.

        The last one made counts, whatever the clock said then.
        """
        rows = self._rows("adjustments", "WHERE student = ? ORDER BY id", student)
        latest = {exercise: Adjustment(points, why) for _, exercise, points, why, _ in rows}
        return {name: adjustment for name, adjustment in latest.items() if adjustment.points}

    # --- published marks --------------------------------------------------------------------------

    def publish(self, marks: Mapping[str, PublishedMark]) -> None:
        """Store the marks that are published, by student."""
        rows = []
        for student, mark in marks.items():
            points = float(mark.points), float(mark.max_points)
            kept = json.dumps(dict(mark.exercises)), json.dumps(dict(mark.pages))
            rows.append([student, mark.fingerprint, mark.rules, mark.seed, *points, *kept, _now()])
        with self._writing():
            self._put("published", *rows)
            for student in marks:
                self._repaired("published", student=student)

    def published(self, student: str) -> PublishedMark | None:
        """Return the mark last published for a student, or None."""
        rows = self._rows("published", "WHERE student = ?", student)
        if not rows:
            return None
        _, mark, rules, seed, points, max_points, exercises, pages = rows[0]
        counted, written = json.loads(exercises), json.loads(pages)
        return PublishedMark(mark, rules, seed, points, max_points, counted, written)

    def class_fingerprint(self) -> str:
        """Return a hash over all published marks, over who is missing, and over what is damaged."""
        marks = self._db.execute(
            f"SELECT student, fingerprint FROM published {_PRESENT} ORDER BY student"
        ).fetchall()
        damaged = [(student, self.damage(student)) for student in self.damaged_students()]
        known = repr((marks, self.missing(), damaged))
        return hashlib.sha256(known.encode("utf-8", "replace")).hexdigest()

    def published_under(self) -> list[tuple[str, int]]:
        """Return the rules (a hash) and the seeds under which marks were published here."""
        return self._db.execute(f"SELECT DISTINCT rules, seed FROM published {_PRESENT}").fetchall()

    # --- merging ----------------------------------------------------------------------------------

    def check_all(self) -> None:
        """Take out the damaged rows of the largest tables too, before others read them."""
        for table in _LARGE:
            for (rowid,) in self._db.execute(f"SELECT rowid FROM {table}").fetchall():
                self._rows(table, "WHERE rowid = ?", rowid)

    def absorb(self, other: Path) -> None:
        """Take in another ledger, which was checked before.

        Its attempts replace this one's, as they were graded there.
        """
        self._db.execute("ATTACH DATABASE ? AS other", [str(other)])
        try:
            with self._writing():
                for table, (conflict, columns, values) in _ABSORBED.items():
                    self._db.execute(
                        f"INSERT {conflict} INTO main.{table} ({columns}) "
                        f"SELECT {values} FROM other.{table}"
                    )
                for table, columns in _APPENDED.items():
                    self._db.execute(
                        f"INSERT INTO main.{table} ({columns}) SELECT {columns} FROM other.{table} "
                        f"WHERE ({columns}) NOT IN (SELECT {columns} FROM main.{table}) ORDER BY id"
                    )
        finally:
            self._db.execute("DETACH DATABASE other")

    @contextmanager
    def _writing(self) -> Iterator[None]:
        self._db.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            with suppress(sqlite3.OperationalError):  # a full disk has rolled back
                self._db.execute("ROLLBACK")
            raise
        self._db.execute("COMMIT")


_LARGE = ("submissions", "results")
_MORE = {  # columns that no checksum covers
    "attempts": "present",
    "results": "seconds, run, at",
    "published": "at",
}
_RESULT = f"{COLUMNS['results']}, seconds, at, run, checksum"
# What no checksum covers is copied as what it should be, damaged or not.
_TIMES = "CAST(ifnull(seconds, 0) AS REAL), CAST(ifnull(at, '') AS TEXT)"
_COPIED = f"{COLUMNS['results']}, {_TIMES}, CAST(ifnull(run, 0) AS INTEGER), checksum"
_SUBMISSION, _MISSING = f"{COLUMNS['submissions']}, checksum", f"{COLUMNS['missing']}, checksum"
_ATTEMPT, _ADJUSTMENT = f"{COLUMNS['attempts']}, checksum", f"{COLUMNS['adjustments']}, checksum"
_NOTE = "found_in, student, exercise, at"
_ABSORBED = {  # by table: how, which columns, and their values in the other ledger
    "submissions": ("OR IGNORE", _SUBMISSION, _SUBMISSION),
    # Every ledger knows only its own runs: 0 is a run of another ledger.
    "results": ("OR IGNORE", _RESULT, f"{COLUMNS['results']}, {_TIMES}, 0, checksum"),
    "attempts": ("OR REPLACE", f"{_ATTEMPT}, present", f"{_ATTEMPT}, present IS NOT 0"),
    "missing": ("OR REPLACE", _MISSING, _MISSING),
}
_APPENDED = {"adjustments": _ADJUSTMENT, "damaged": _NOTE}  # unless they were taken in before
_PRESENT = "WHERE student IN (SELECT student FROM attempts WHERE present)"
_DAMAGE = {
    "settings": "the setting {} of this class was damaged",
    "submissions": "the stored files were damaged",
    "attempts": "the stored attempt was damaged",
    "missing": "the row in the list of those who handed in nothing was damaged",
    "results": "the stored result of {} was damaged and does not count: it is graded again",
    "set_aside": "the result of {} before the regrade was damaged and does not count",
    "adjustments": "the adjustment of {} was damaged and does not count",
    "published": "the record of the published mark was damaged",
}


def _says(table: str, exercise: str) -> str:
    return _DAMAGE.get(table, "something stored was damaged").format(exercise or "an exercise")


def _printable(value: object) -> str:
    """Return a value of a damaged row as text that can be printed and stored."""
    if value is None:
        return ""
    return clean(str(value)[:MAX_SHOWN].encode("utf-8", "replace").decode())


# --- decoding -------------------------------------------------------------------------------------


def _attempt_row(row: Sequence[Any]) -> AttemptRow:
    student, number, digest, person, submitted, due, late, paths, problems, notes, graded = row
    return AttemptRow(
        *(student, number, digest, _decoded(person, Person)),
        submitted and datetime.fromisoformat(submitted),
        due and datetime.fromisoformat(due),
        *(bool(late), _decoded(paths, dict[str, str]), _decoded(problems, dict[str, str])),
        notes=_decoded(notes, tuple[str, ...]),
        graded=bool(graded),
    )


def _decoded(text: str, kind: type[T]) -> T:
    return msgspec.convert(json.loads(text), kind)


def _unpacked(packed: bytes) -> dict[str, str]:
    text = zlib.decompress(packed).decode("utf-8", "surrogatepass")
    return _decoded(text, dict[str, str])


def _is_setting(row: Sequence[Any]) -> bool:
    key, value = row
    _decoded(value, _SETTINGS.get(key.removesuffix(TWIN), Any))
    return True


def _is_result(row: Sequence[Any]) -> bool:
    _, name, *_, result, confinement = row
    _decoded(confinement, tuple[str, ...])
    return bool(decode_result(result.encode()).name == name)


def _is_mark(row: Sequence[Any]) -> bool:
    *_, points, max_points, exercises, pages = row
    _decoded(pages, dict[str, tuple[int, str]])
    counted = _decoded(exercises, dict[str, float]).values()
    return all(math.isfinite(number) for number in (points, max_points, *counted))


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
    graded: Annotated[int, msgspec.Meta(ge=0, le=1)]
    key: str
    value: str
    files: bytes
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


_SETTINGS: Mapping[str, Any] = {
    "request": dict[str, str],
    "seed": int,
    "secret": Annotated[str, msgspec.Meta(pattern="^([0-9a-f]{2})+$")],
}
_CHECKS: Mapping[str, Callable[[Sequence[Any]], bool]] = {
    "settings": _is_setting,
    "submissions": lambda row: _unpacked(row[1]) is not None,
    "attempts": lambda row: bool(_attempt_row(row).student),
    "missing": lambda row: isinstance(_decoded(row[1], Person), Person),
    "results": _is_result,
    "set_aside": _is_result,
    "adjustments": lambda row: abs(row[2]) <= MAX_ADJUSTMENT,
    "published": _is_mark,
}


def _can_be_decoded(table: str, row: Sequence[Any]) -> bool:
    """Return whether the values of a row are what they should be."""
    try:
        msgspec.convert(dict(zip(COLUMNS[table].split(", "), row)), _Values)
        return bool(_CHECKS[table](row))
    except Exception:  # whatever decoding says of damaged values
        return False


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")
