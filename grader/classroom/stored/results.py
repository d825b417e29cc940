"""The results of a class: of each run, and those set aside during a trial."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from grader.classroom.storage import COLUMNS
from grader.classroom.stored.rows import Check, Rows, decoded, now
from grader.classroom.workers.messages import GradedJob, decode_result
from grader.report import ExerciseResult

_RESULT = f"{COLUMNS['results']}, seconds, at, run, checksum"
# What no checksum covers is copied as what it should be, damaged or not.
_TIMES = "CAST(ifnull(seconds, 0) AS REAL), CAST(ifnull(at, '') AS TEXT)"
_COPIED = f"{COLUMNS['results']}, {_TIMES}, CAST(ifnull(run, 0) AS INTEGER), checksum"


@dataclass(frozen=True)
class ResultKey:
    """The conditions of a result, besides the submission and the exercise's part of the course."""

    versions: str
    seed: int


@dataclass(frozen=True)
class StoredResult:
    """A result as the ledger stores it: the JSON of an `ExerciseResult`, and its confinement."""

    result: bytes
    confinement: tuple[str, ...]


def _is_result(row: Sequence[Any]) -> bool:
    _, name, *_, result, confinement = row
    decoded(confinement, tuple[str, ...])
    return bool(decode_result(name, result.encode()))


class Results(Rows):
    """The results of a class. Recorded results belong to the run that has begun."""

    CHECKS: ClassVar[Mapping[str, Check]] = {"results": _is_result, "set_aside": _is_result}

    def __init__(self, connection: sqlite3.Connection) -> None:
        super().__init__(connection)
        self._run = 0

    def begin(self, course: str, key: ResultKey) -> None:
        """Record that a run begins; results belong to it from now on."""
        cursor = self._db.execute(
            "INSERT INTO runs (started, course, versions, seed) VALUES (?, ?, ?, ?)",
            [now(), course, key.versions, key.seed],
        )
        self._run = cursor.lastrowid or 0

    def finish(self) -> None:
        """Record that the run has ended."""
        self._db.execute("UPDATE runs SET finished = ? WHERE run = ?", [now(), self._run])

    def record(
        self, digest: str, courses: Mapping[str, str], key: ResultKey, job: GradedJob
    ) -> None:
        """Store the results of a submission's exercises; `courses` has the exercises' hashes.

        A result that is already stored stays.
        """
        shared = json.dumps(job.confinement), job.seconds / len(job.results), self._run, now()
        rows = [
            (digest, name, courses[name], key.versions, key.seed, result.decode(), *shared)
            for name, result in job.results.items()
        ]
        with self.writing():
            self._put("results", *rows, conflict="OR IGNORE")

    def begin_trial(self, student: str) -> None:
        """Set a student's results aside, so that they are graded again on trial."""
        of = "hash IN (SELECT hash FROM attempts WHERE student = ?)"
        with self.writing():
            copied = f"SELECT {_COPIED} FROM results WHERE {of}"
            self._db.execute(f"INSERT OR REPLACE INTO set_aside ({_RESULT}) {copied}", [student])
            self._db.execute(f"DELETE FROM results WHERE {of}", [student])

    def rollback_trial(self) -> None:
        """End the trial; put back the results that were set aside."""
        with self.writing():
            copied = f"SELECT {_COPIED} FROM set_aside"
            self._db.execute(f"INSERT OR REPLACE INTO results ({_RESULT}) {copied}")
            self._db.execute("DELETE FROM set_aside")

    def commit_trial(self) -> None:
        """End the trial; keep the new results."""
        with self.writing():
            for (student,) in self._db.execute(
                "SELECT DISTINCT student FROM attempts JOIN set_aside USING (hash)"
            ).fetchall():
                self._repaired("results", "set_aside", student=student)
            self._db.execute("DELETE FROM set_aside")

    def results(
        self, digest: str, courses: Mapping[str, str], key: ResultKey
    ) -> dict[str, StoredResult]:
        """Return the stored results of a submission's exercises, for the course as it is now."""
        current = (key.versions, key.seed)
        return {
            name: StoredResult(result.encode(), tuple(json.loads(confinement)))
            for _, name, course, *of, result, confinement in self._rows(
                "results", "WHERE hash = ?", digest
            )
            if courses.get(name) == course and tuple(of) == current
        }

    def results_of(self, exercise: str, course: str = "") -> dict[str, ExerciseResult]:
        """Return the last stored result of an exercise for each submission.

        With the exercise's hash in a `course`, only those that were graded with that course.
        """
        condition = "WHERE exercise = ? AND ? IN ('', course) ORDER BY run"
        rows = self._rows("results", condition, exercise, course)
        return {row[0]: decode_result(exercise, row[5].encode()) for row in rows}

    def has_results(self) -> bool:
        """Return whether anything was ever graded."""
        return self._db.execute("SELECT 1 FROM results LIMIT 1").fetchone() is not None

    def graded_now(self) -> list[str]:
        """Return the students for whom this run has stored a result."""
        join = "JOIN results USING (hash)"
        return self._students(f"{join} WHERE run = ? AND present AND graded", self._run)
