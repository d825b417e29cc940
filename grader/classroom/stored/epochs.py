"""The epochs of a class: submissions that were collected before any feedback on them.

All submissions of an epoch get the same inputs. No student of the epoch has seen them: the first
report could only help later submissions, which belong to the next epoch.
"""

from __future__ import annotations

from collections.abc import Iterable

from grader.classroom.stored.settings import Settings

PUBLISHED_EPOCH = "published_epoch"  # the setting with the last epoch that has a report
UNKNOWN_EPOCH = 0  # the epoch of an older ledger's submissions, whose inputs had their own seed


class Epochs(Settings):
    """The epochs to which the submissions of a class belong, numbered from 1."""

    @property
    def open_epoch(self) -> int:
        """The epoch of submissions that are taken in now."""
        published = self.get(PUBLISHED_EPOCH)
        if published is None:  # nothing was published yet, or the setting is lost
            (last,) = self._db.execute("SELECT max(epoch) FROM submissions").fetchone()
            published = last if isinstance(last, int) else UNKNOWN_EPOCH
            self.put(PUBLISHED_EPOCH, published)
        return int(published) + 1

    def epoch_of(self, digest: str) -> int:
        """Return the epoch of a stored submission.

        If a submission of an older ledger is graded again, it joins the open epoch.
        """
        if (epoch := self._stored_epoch(digest)) != UNKNOWN_EPOCH:
            return epoch
        with self.writing():
            epoch = self.open_epoch
            for _, files, _ in self._rows("submissions", "WHERE hash = ?", digest):
                self._put("submissions", [digest, files, epoch])
        return epoch

    def end_epochs_of(self, students: Iterable[str]) -> None:
        """Record that feedback on the submissions of these students is published.

        New submissions belong to a later epoch from now on.
        """
        hashes = "SELECT DISTINCT hash FROM attempts WHERE student = ? AND present AND graded"
        found = [
            self._stored_epoch(digest)
            for student in students
            for (digest,) in self._db.execute(hashes, [student]).fetchall()
        ]
        if (last := max(found, default=UNKNOWN_EPOCH)) >= self.open_epoch:
            self.put(PUBLISHED_EPOCH, last)

    def _stored_epoch(self, digest: str) -> int:
        rows = self._rows("submissions", "WHERE hash = ?", digest)
        return int(rows[0][2]) if rows else UNKNOWN_EPOCH
