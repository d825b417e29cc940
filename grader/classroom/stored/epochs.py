"""The epochs of a class: what was collected before any feedback on it was published.

All submissions of an epoch get the same inputs. Nobody in it has seen any of them: what the first
report shows is of use only to whoever hands in after it, which is in the next epoch.
"""

from __future__ import annotations

from collections.abc import Iterable

from grader.classroom.stored.settings import Settings

PUBLISHED_EPOCH = "published_epoch"  # the setting with the last epoch of which a report was written
UNKNOWN_EPOCH = 0  # of what an older ledger took in, whose inputs had a seed of their own


class Epochs(Settings):
    """The epochs to which the submissions of a class belong, numbered from 1."""

    @property
    def open_epoch(self) -> int:
        """The epoch of what is taken in now."""
        published = self.get(PUBLISHED_EPOCH)
        if published is None:  # nothing was published yet, or nobody knows any more
            (last,) = self._db.execute("SELECT max(epoch) FROM submissions").fetchone()
            published = last if isinstance(last, int) else UNKNOWN_EPOCH
            self.put(PUBLISHED_EPOCH, published)
        return int(published) + 1

    def epoch_of(self, digest: str) -> int:
        """Return the epoch of a stored submission.

        One of an older ledger that is graded again belongs to the open epoch from then on.
        """
        if (epoch := self._stored_epoch(digest)) != UNKNOWN_EPOCH:
            return epoch
        with self.writing():
            epoch = self.open_epoch
            for _, files, _ in self._rows("submissions", "WHERE hash = ?", digest):
                self._put("submissions", [digest, files, epoch])
        return epoch

    def end_epochs_of(self, students: Iterable[str]) -> None:
        """Record that feedback is published on what these students have handed in.

        What is new from now on belongs to a later epoch.
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
