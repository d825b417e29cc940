"""Erases a student: deletes every row about the student, and its bytes on the disk."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping

from grader.classroom.stored.rows import Rows, decoded

# The tables with rows about one student, and the column with the student.
OWNED: Mapping[str, str] = {
    "attempts": "student",
    "origins": "student",
    "missing": "student",
    "remarks": "student",
    "adjustments": "student",
    "published": "student",
    "history": "about",
    "damaged": "student",
}
SHARED = ("submissions", "results", "set_aside")  # their rows name a submission, not a student
SENTENCES = {"attempts": "notes", "remarks": "flags"}  # columns that may name other students


class Erasure(Rows):
    """The data of a ledger about each student, and its removal."""

    def known(self) -> set[str]:
        """Return every student with a row."""
        queries = (f"SELECT {column} FROM {table}" for table, column in OWNED.items())
        found = {student for (student,) in self._db.execute(" UNION ".join(queries))}
        return found - {"", None}

    def erase(self, student: str) -> dict[str, int]:
        """Delete all rows about a student; return how many by table.

        Files and results are deleted as well, unless somebody else handed in the same. Files of
        replaced attempts no longer name their students, so they are deleted for everybody.
        """
        counts = {}
        self._db.execute("PRAGMA secure_delete=ON")  # even if the command ends before the purge
        with self.writing():
            self._forget_places(student)
            for table, column in OWNED.items():
                counts[table] = self._deleted(f"{table} WHERE {column} = ?", student)
            for table in SHARED:
                orphans = f"{table} WHERE hash NOT IN (SELECT hash FROM attempts)"
                counts[table] = self._deleted(orphans)
        return {table: count for table, count in counts.items() if count}

    def _deleted(self, what: str, *values: object) -> int:
        return self._db.execute(f"DELETE FROM {what}", values).rowcount

    def _forget_places(self, student: str) -> None:
        """Delete the places in the download that other students share with this one.

        Such a place may be named after this student, if the student handed in for a group.
        """
        same = "(layout, names) IN (SELECT layout, names FROM origins WHERE student = ?)"
        self._deleted(f"origins WHERE student != ? AND {same}", student, student)

    def reword(self, reworded: Callable[[str, str], str]) -> list[str]:
        """Reword the notes on each student; return the students whose notes changed."""
        concerned = set()
        with self.writing():
            for table, column in SENTENCES.items():
                for student, key, before in self._sentences(table, column):
                    after = [reworded(student, text) for text in before]
                    if after != before:
                        self._reseal(table, column, key, json.dumps(after))
                        concerned.add(student)
        return sorted(concerned)

    def _sentences(self, table: str, column: str) -> Iterator[tuple[str, int, list[str]]]:
        query = f"SELECT student, rowid, {column} FROM {table} WHERE {column} != '[]'"
        for student, rowid, texts in self._db.execute(query).fetchall():
            yield student, rowid, decoded(texts, list[str])

    def _reseal(self, table: str, column: str, rowid: int, value: str) -> None:
        """Change one value of a row, and give the row its new checksum."""
        update = f"UPDATE {table} SET {column} = ?, checksum = NULL WHERE rowid = ?"
        self._db.execute(update, [value, rowid])
        self._rows(table, "WHERE rowid = ?", rowid)

    def purge(self) -> bool:
        """Leave no byte of deleted rows on the disk; return False while another process reads.

        SQLite only marks deleted rows as free, and the log beside the file has their pages, too.
        """
        self._db.execute("VACUUM")
        (busy, *_) = self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        return not busy
