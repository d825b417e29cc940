"""The submissions of a class: the attempts of each student, and the files of each submission."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from datetime import datetime
from functools import cached_property
from typing import Any, ClassVar

import msgspec

from grader.classroom.review import DamagedRowError
from grader.classroom.storage import COLUMNS, checksum
from grader.classroom.stored.epochs import Epochs
from grader.classroom.stored.rows import Check, decoded, says
from grader.report import Person
from grader.sandbox.cells import NOTEBOOK
from grader.submissions.submission import Submission


@dataclass(frozen=True)
class AttemptRow:
    """One attempt as the ledger stores it, without its files; `graded` if it is to be graded."""

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
class Origin:
    """The place of an attempt in the platform's download: its layout and the names of its parts."""

    layout: str
    names: tuple[str, ...]


def _attempt_row(row: Sequence[Any]) -> AttemptRow:
    student, number, digest, person, submitted, due, late, paths, problems, notes, graded = row
    return AttemptRow(
        *(student, number, digest, decoded(person, Person)),
        submitted and datetime.fromisoformat(submitted),
        due and datetime.fromisoformat(due),
        *(bool(late), decoded(paths, dict[str, str]), decoded(problems, dict[str, str])),
        notes=decoded(notes, tuple[str, ...]),
        graded=bool(graded),
    )


def _unpacked(packed: bytes) -> dict[str, str]:
    text = zlib.decompress(packed).decode("utf-8", "surrogatepass")
    return decoded(text, dict[str, str])


class HandedIn(Epochs):
    """The submissions of a class, and the students who have handed in nothing."""

    CHECKS: ClassVar[Mapping[str, Check]] = {
        "submissions": lambda row: _unpacked(row[1]) is not None,
        "attempts": lambda row: bool(_attempt_row(row).student),
        "origins": lambda row: isinstance(decoded(row[3], tuple[str, ...]), tuple),
        "missing": lambda row: isinstance(decoded(row[1], Person), Person),
        "remarks": lambda row: isinstance(decoded(row[2], tuple[str, ...]), tuple),
    }

    @contextmanager
    def taking_in(self) -> Iterator[None]:
        """Take in a whole class at once; attempts that the block does not `take` or `keep` count
        as gone.
        """
        with self.writing():
            self._db.execute("UPDATE attempts SET present = 0")
            self._db.execute("DELETE FROM missing")
            self._db.execute("DELETE FROM remarks")
            self._repaired("attempts", "missing", "origins", "remarks", "submissions")
            yield

    def take(self, row: AttemptRow, files: Mapping[str, str], origin: Origin | None = None) -> None:
        """Store an attempt, its files and, if known, where it lay in the platform's download.

        A submission that is already stored stays in its epoch.
        """
        packed = zlib.compress(json.dumps(files).encode("utf-8", "surrogatepass"))
        query = f"SELECT checksum, {COLUMNS['submissions']} FROM submissions WHERE hash = ?"
        seal, *stored = self._db.execute(query, [row.hash]).fetchone() or [""]
        is_sound = seal in (None, checksum(stored))
        submission = [row.hash, packed, stored[2] if is_sound else self.open_epoch]
        if not is_sound or stored != submission:
            self._put("submissions", submission)
        values = [
            *(row.student, row.number, row.hash, json.dumps(asdict(row.person))),
            *(time and time.isoformat() for time in (row.submitted, row.due)),
            *(int(row.late), json.dumps(dict(row.paths)), json.dumps(dict(row.problems))),
            *(json.dumps(row.notes), int(row.graded), 1),
        ]
        self._put("attempts", values)
        if origin is not None:
            where = origin.layout, json.dumps(origin.names)
            self._put("origins", [row.student, row.number, *where])

    def keep(self, student: str, number: int) -> None:
        """Let an attempt that was taken in before count as handed in again."""
        query = "UPDATE attempts SET present = 1 WHERE student = ? AND number = ?"
        self._db.execute(query, [student, number])

    def miss(self, student: str, person: Person) -> None:
        """Record that a student of the roster has handed in nothing."""
        self._put("missing", [student, json.dumps(asdict(person))])

    def missing(self) -> list[tuple[str, Person]]:
        """Return the students of the roster who have handed in nothing."""
        rows = self._rows("missing", "ORDER BY student")
        return [(student, decoded(person, Person)) for student, person in rows]

    def remark(self, student: str, team: str, flags: Sequence[str]) -> None:
        """Record a student's group, and the reasons for review found when it was read."""
        self._put("remarks", [student, team, json.dumps(flags)])

    def flags(self, student: str) -> tuple[str, ...]:
        """Return the reasons for review found when a student's submission was read."""
        rows = self._rows("remarks", "WHERE student = ?", student)
        return tuple(flag for *_, flags in rows for flag in decoded(flags, tuple[str, ...]))

    def teams(self) -> dict[str, str]:
        """Return the group of every student who hands in with one."""
        rows = self._rows("remarks", "WHERE team != ''")
        return {student: team for student, team, _ in rows}

    def person(self, student: str) -> Person:
        """Return the data about a student; nothing if it is missing or damaged."""
        query = "SELECT person FROM {} WHERE student = ? ORDER BY rowid DESC"
        for table in ("attempts", "missing"):
            for (person,) in self._db.execute(query.format(table), [student]):
                with suppress(ValueError, msgspec.ValidationError):
                    return decoded(person, Person)
        return Person()

    def named(self, student: str) -> str:
        """Return a student's id with the name beside it."""
        return self.person(student).beside(student)

    def students(self) -> list[str]:
        """Return every student who has handed in, in order."""
        return self._students("WHERE present")

    def without_time(self) -> list[str]:
        """Return the students whose attempts have no time, nor a platform that says who is late."""
        tells = "student IN (SELECT student FROM origins WHERE layout = 'canvas')"
        return self._students(f"WHERE present AND graded AND submitted IS NULL AND NOT {tells}")

    def late_without_time(self) -> list[str]:
        """Return the students whose platform says that they are late, but not by how much."""
        return self._students("WHERE present AND graded AND submitted IS NULL AND late")

    def attempts(self, student: str) -> list[AttemptRow]:
        """Return a student's attempts that are to be graded, the oldest first."""
        condition = "WHERE student = ? AND present AND graded ORDER BY number"
        return [_attempt_row(row) for row in self._rows("attempts", condition, student)]

    def all_attempts(self, student: str) -> list[AttemptRow]:
        """Return a student's attempts, also those that are not to be graded, the oldest first."""
        condition = "WHERE student = ? AND present ORDER BY number"
        return [_attempt_row(row) for row in self._rows("attempts", condition, student)]

    def origin(self, student: str, number: int) -> Origin | None:
        """Return where an attempt lay in the platform's download; None if it is not known."""
        condition = "WHERE student = ? AND number = ?"
        for *_, layout, names in self._rows("origins", condition, student, number):
            return Origin(layout, decoded(names, tuple[str, ...]))
        return None

    def to_grade(self) -> Iterator[AttemptRow]:
        """Yield one attempt for each submission that is to be graded, in the order of students.

        One epoch comes after the other, because data that an epoch shares is computed only once.
        """
        chosen = self._db.execute(
            "SELECT min(attempts.rowid) FROM attempts LEFT JOIN submissions USING (hash) "
            "WHERE present AND graded GROUP BY hash ORDER BY epoch, min(student), number"
        ).fetchall()
        for row in chosen:
            yield from map(_attempt_row, self._rows("attempts", "WHERE rowid = ?", *row))

    def handed_in_by(self, digest: str) -> list[str]:
        """Return the students who handed in this submission."""
        return self._students("WHERE hash = ? AND present AND graded", digest)

    def submission(self, row: AttemptRow) -> Submission:
        """Return an attempt with its files, under the names by which they are graded.

        Another student with the same files must not read this student's own file names.
        """
        rows = self._rows("submissions", "WHERE hash = ?", row.hash)
        if not rows:
            self._note_damage("submissions", row.student, "")
            raise DamagedRowError(says("submissions", ""))
        files = _unpacked(rows[0][1])
        identity = row.hash  # over the files as handed in, of which notebooks are not stored
        return Submission(row.student, files, row.graded_paths, row.problems, row.notes, identity)
