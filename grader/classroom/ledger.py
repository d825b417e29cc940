"""The ledger of a class: every submission, attempt, result, adjustment and published mark.

It is one SQLite file with one writer. It keeps the files of every submission, so that a class can
be graded again without the folder it came from. Public tables and columns: docs/ledger.md.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any

from grader.classroom.storage import connect, explain_disk_errors, lock_folder
from grader.classroom.workers.messages import GradedJob
from grader.report import Adjustment, Person
from grader.sandbox.cells import NOTEBOOK
from grader.submissions.submission import Submission


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
    """A student's published mark and the rules behind it; `exercises` has the points of each."""

    fingerprint: str
    rules: str
    seed: int
    points: float
    max_points: float
    exercises: Mapping[str, float]


@contextmanager
def open_ledger(folder: Path) -> Iterator[Ledger]:
    """Open the ledger of `folder`; raise `RequestError` if it is in use or cannot be written."""
    with lock_folder(folder), explain_disk_errors(folder), closing(connect(folder)) as connection:
        ledger = Ledger(connection)
        ledger.rollback_trial()  # of a run that was killed during a trial
        yield ledger


class Ledger:
    """Everything stored about a class. Every method that writes is one transaction."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._db = connection
        self._run = 0

    # --- settings and runs ------------------------------------------------------------------------

    def get(self, key: str) -> Any:
        """Return a setting, or None."""
        row = self._db.execute("SELECT value FROM settings WHERE key = ?", [key]).fetchone()
        return json.loads(row[0]) if row else None

    def put(self, key: str, value: Any) -> None:
        """Store a setting."""
        self.put_text(key, json.dumps(value))

    def put_text(self, key: str, text: str) -> None:
        """Store a setting that is JSON already."""
        self._db.execute("INSERT OR REPLACE INTO settings VALUES (?, ?)", [key, text])

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
            yield

    def take(self, row: AttemptRow, files: Mapping[str, str]) -> None:
        """Store an attempt and its files."""
        self._db.execute(
            "INSERT OR IGNORE INTO submissions VALUES (?, ?)",
            [row.hash, zlib.compress(json.dumps(files).encode("utf-8", "surrogatepass"))],
        )
        self._db.execute(
            "INSERT OR REPLACE INTO attempts VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 1)",
            [
                *(row.student, row.number, row.hash, json.dumps(asdict(row.person))),
                *(time and time.isoformat() for time in (row.submitted, row.due)),
                *(row.late, json.dumps(dict(row.paths)), json.dumps(dict(row.problems))),
                *(json.dumps(row.notes), row.graded),
            ],
        )

    def miss(self, student: str, person: Person) -> None:
        """Record that a student of the roster has handed in nothing."""
        values = [student, json.dumps(asdict(person))]
        self._db.execute("INSERT OR REPLACE INTO missing VALUES (?, ?)", values)

    def missing(self) -> list[tuple[str, Person]]:
        """Return the students of the roster who have handed in nothing."""
        rows = self._db.execute("SELECT student, person FROM missing ORDER BY student")
        return [(student, Person(**json.loads(person))) for student, person in rows]

    def students(self) -> list[str]:
        """Return every student who has handed in, in order."""
        return self._students("WHERE present")

    def attempts(self, student: str) -> list[AttemptRow]:
        """Return a student's attempts that are to be graded, the oldest first."""
        query = f"SELECT {_ATTEMPT} FROM attempts WHERE student = ? AND present AND graded"
        rows = self._db.execute(f"{query} ORDER BY number", [student])
        return [_attempt_row(row) for row in rows]

    def to_grade(self) -> Iterator[AttemptRow]:
        """Yield one attempt for each submission that is to be graded, in the order of students."""
        chosen = self._db.execute(
            "SELECT min(rowid) FROM attempts WHERE present AND graded "
            "GROUP BY hash ORDER BY min(student), number"
        ).fetchall()
        for row in chosen:
            query = f"SELECT {_ATTEMPT} FROM attempts WHERE rowid = ?"
            yield _attempt_row(self._db.execute(query, row).fetchone())

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
        query = "SELECT files FROM submissions WHERE hash = ?"
        (packed,) = self._db.execute(query, [row.hash]).fetchone()
        files = json.loads(zlib.decompress(packed).decode("utf-8", "surrogatepass"))
        return Submission(row.student, files, row.graded_paths, row.problems, row.notes)

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
            query = "INSERT OR IGNORE INTO results VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
            self._db.executemany(query, rows)

    def begin_trial(self, student: str) -> None:
        """Set a student's results aside, so that they are graded again on trial."""
        of = "hash IN (SELECT hash FROM attempts WHERE student = ?)"
        with self._writing():
            self._db.execute(f"INSERT INTO set_aside SELECT * FROM results WHERE {of}", [student])
            self._db.execute(f"DELETE FROM results WHERE {of}", [student])

    def rollback_trial(self) -> None:
        """End the trial; put back the results that were set aside."""
        with self._writing():
            self._db.execute("INSERT OR REPLACE INTO results SELECT * FROM set_aside")
            self._db.execute("DELETE FROM set_aside")

    def commit_trial(self) -> None:
        """End the trial; keep the new results."""
        self._db.execute("DELETE FROM set_aside")

    def results(
        self, digest: str, courses: Mapping[str, str], key: ResultKey
    ) -> dict[str, StoredResult]:
        """Return the stored results of a submission's exercises, for the course as it is now."""
        rows = self._db.execute(
            "SELECT exercise, course, result, confinement FROM results "
            "WHERE hash = ? AND versions = ? AND seed = ?",
            [digest, key.versions, key.seed],
        )
        return {
            name: StoredResult(result.encode(), tuple(json.loads(confinement)))
            for name, course, result, confinement in rows
            if courses.get(name) == course
        }

    # --- adjustments ------------------------------------------------------------------------------

    def adjust(self, student: str, exercise: str, points: float, why: str) -> None:
        """Adjust a student's points for an exercise; this replaces an earlier adjustment of it."""
        self._db.execute(
            "INSERT INTO adjustments (student, exercise, points, why, at) VALUES (?, ?, ?, ?, ?)",
            [student, exercise, points, why, _now()],
        )

    def adjustments(self, student: str) -> dict[str, Adjustment]:
        """Return a student's adjustments that count, by exercise."""
        query = "SELECT exercise, points, why FROM adjustments WHERE student = ? ORDER BY at, id"
        rows = self._db.execute(query, [student])
        latest = {exercise: Adjustment(points, why) for exercise, points, why in rows}
        return {name: adjustment for name, adjustment in latest.items() if adjustment.points}

    # --- published marks --------------------------------------------------------------------------

    def publish(self, student: str, mark: PublishedMark) -> None:
        """Store the mark that is published for a student."""
        points = mark.points, mark.max_points, json.dumps(dict(mark.exercises))
        self._db.execute(
            "INSERT OR REPLACE INTO published VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            [student, mark.fingerprint, mark.rules, mark.seed, *points, _now()],
        )

    def published(self, student: str) -> PublishedMark | None:
        """Return the mark last published for a student, or None."""
        columns = "fingerprint, rules, seed, points, max_points, exercises"
        query = f"SELECT {columns} FROM published WHERE student = ?"
        row = self._db.execute(query, [student]).fetchone()
        if row is None:
            return None
        values = (*row[:-1], json.loads(row[-1]))
        return PublishedMark(*values)

    def class_fingerprint(self) -> str:
        """Return a hash over every published mark of the class, and over who is missing."""
        marks = self._db.execute(
            f"SELECT student, fingerprint FROM published {_PRESENT} ORDER BY student"
        ).fetchall()
        return hashlib.sha256(repr((marks, self.missing())).encode("utf-8", "replace")).hexdigest()

    def published_under(self) -> list[tuple[str, int]]:
        """Return the rules (a hash) and the seeds under which marks were published here."""
        return self._db.execute(f"SELECT DISTINCT rules, seed FROM published {_PRESENT}").fetchall()

    # --- merging ----------------------------------------------------------------------------------

    def absorb(self, other: Path) -> None:
        """Take in another ledger; its attempts replace this one's, as they were graded there."""
        self._db.execute("ATTACH DATABASE ? AS other", [str(other)])
        try:
            with self._writing():
                for table, columns in _ABSORBED.items():
                    self._db.execute(
                        f"INSERT OR IGNORE INTO main.{table} SELECT {columns} FROM other.{table}"
                    )
                columns = "student, exercise, points, why, at"
                self._db.execute(  # those that were not taken in before
                    f"INSERT INTO main.adjustments ({columns}) "
                    f"SELECT {columns} FROM other.adjustments EXCEPT "
                    f"SELECT {columns} FROM main.adjustments ORDER BY at"
                )
                for table in ("attempts", "missing"):
                    self._db.execute(f"REPLACE INTO main.{table} SELECT * FROM other.{table}")
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


_ABSORBED = {  # every ledger knows only its own runs: 0 is a run of another ledger
    "submissions": "*",
    "results": "hash, exercise, course, versions, seed, result, confinement, seconds, 0, at",
}
_PRESENT = "WHERE student IN (SELECT student FROM attempts WHERE present)"
_ATTEMPT = "student, number, hash, person, submitted, due, late, paths, problems, notes, graded"


def _attempt_row(row: Sequence[Any]) -> AttemptRow:
    student, number, digest, person, submitted, due, late, paths, problems, notes, graded = row
    return AttemptRow(
        *(student, number, digest, Person(**json.loads(person))),
        submitted and datetime.fromisoformat(submitted),
        due and datetime.fromisoformat(due),
        *(bool(late), json.loads(paths), json.loads(problems)),
        notes=tuple(json.loads(notes)),
        graded=bool(graded),
    )


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")
