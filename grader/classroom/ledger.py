"""The ledger of a class: every submission, attempt, result, adjustment and published mark.

It is one SQLite file with one writer. It keeps the files of every submission, so that a class can
be graded again without the folder it came from. Every row has a checksum: a damaged row counts as
missing, and its student is named. Public tables and columns: docs/ledger.md.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import ClassVar

from grader.classroom.storage import COLUMNS, connect, explain_disk_errors, lock_folder
from grader.classroom.stored.erasure import Erasure
from grader.classroom.stored.history import History
from grader.classroom.stored.marks import ClassMarks
from grader.classroom.stored.results import Results
from grader.classroom.stored.rows import LARGE, PRESENT, Check
from grader.classroom.stored.settings import Settings
from grader.classroom.stored.submissions import HandedIn


@contextmanager
def open_ledger(folder: Path) -> Iterator[Ledger]:
    """Open the ledger of `folder`; raise `RequestError` if it is in use or cannot be written."""
    with lock_folder(folder), explain_disk_errors(folder), closing(connect(folder)) as connection:
        ledger = Ledger(connection)
        ledger.set_damaged_rows_apart()
        ledger.rollback_trial()  # of a run that was killed during a trial
        yield ledger


class Ledger(HandedIn, Results, ClassMarks, History, Erasure):
    """Everything stored about a class. Every method that writes is one transaction."""

    CHECKS: ClassVar[Mapping[str, Check]] = {
        **Settings.CHECKS,
        **HandedIn.CHECKS,
        **Results.CHECKS,
        **ClassMarks.CHECKS,
        **History.CHECKS,
    }

    def set_damaged_rows_apart(self) -> None:
        """Check all tables but the largest two, whose rows are checked when they are read.

        Results without a submission are checked, too, and students without attempts are named,
        because nothing else would find either.
        """
        for table in ("attempts", *(name for name in COLUMNS if name not in LARGE)):
            self._rows(table)
        # No checksum covers `present`, and a damaged one would hide a student.
        self._db.execute("UPDATE attempts SET present = 1 WHERE ifnull(present, 2) NOT IN (0, 1)")
        lost = "SELECT rowid FROM results WHERE hash NOT IN (SELECT hash FROM attempts)"
        self._rows("results", f"WHERE rowid IN ({lost})")
        for student in self.vanished():
            self._note_damage("attempts", student, "")

    def class_fingerprint(self) -> str:
        """Return a hash over all published marks, the missing students, and the damaged rows."""
        marks = self._db.execute(
            f"SELECT student, fingerprint FROM published {PRESENT} ORDER BY student"
        ).fetchall()
        damaged = [(student, self.damage(student)) for student in self.damaged_students()]
        missing = [(*row, self.flags(row[0])) for row in self.missing()]
        known = repr((marks, missing, damaged))
        return hashlib.sha256(known.encode("utf-8", "replace")).hexdigest()
