"""Finds published marks that a new intake would change or remove, before it is published.

New students and new attempts pass. A missing student or attempt is listed, and so is a published
mark that changes although the same files count.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from grader.classroom.ledger import Ledger
from grader.classroom.standings import Standings
from grader.classroom.stored.submissions import AttemptRow

Attempts = Mapping[str, Sequence[AttemptRow]]  # by student, the oldest first


@dataclass(frozen=True)
class Replacement:
    """A published mark that would change or be removed, and why."""

    student: str
    why: str


def published_attempts(ledger: Ledger) -> Attempts:
    """Return the attempts of every student who has a published mark."""
    found: dict[str, list[AttemptRow]] = {}
    for student in ledger.published_students():
        with ledger.review.errors_of(student):
            found[student] = ledger.all_attempts(student)
    return found


def replacements(standings: Standings, before: Attempts, rules: str) -> Iterator[Replacement]:
    """Yield each published mark that the intake now in the ledger would change or remove.

    `before` are the attempts before the intake, `rules` the rules until then: a different attempt
    may count now. `refuse_changed_rules` handles marks that were published under still older
    rules.
    """
    for student, old in before.items():
        if why := _replaced(standings, student, old, rules):
            yield Replacement(student, why)


def _replaced(standings: Standings, student: str, old: Sequence[AttemptRow], rules: str) -> str:
    with standings.ledger.review.errors_of(student):
        new = standings.ledger.all_attempts(student)
        if not new:
            return "handed in nothing any more"
        if taken := _taken_away(old, new):
            return taken
        if _counted_before(standings, student, old, new):
            why = _changed_mark(standings, student, rules)
            return "" if why and _is_extended(standings, student, old, new) else why
    return ""


def _counted_before(
    standings: Standings, student: str, old: Sequence[AttemptRow], new: Sequence[AttemptRow]
) -> bool:
    """Whether the attempt that counts was there before, with the same files."""
    before, now = ({row.number: row.hash for row in rows} for rows in (old, new))
    standing = standings.standing(student)
    if standing is None:  # not graded yet
        return before == now
    return before.get(standing.report.attempt) == now[standing.report.attempt]


def _taken_away(old: Sequence[AttemptRow], new: Sequence[AttemptRow]) -> str:
    """Return the attempt that is gone, or that has other files and was not handed in later."""
    present = {row.number: row for row in new}
    for row in old:
        now = present.get(row.number)
        if now is None:
            return f"attempt {row.number} is gone"
        if now.hash != row.hash and not _is_later(now, row):
            return "other files, and nothing says that they were handed in later"
    return ""


def _is_extended(
    standings: Standings, student: str, old: Sequence[AttemptRow], new: Sequence[AttemptRow]
) -> bool:
    """Whether a mark only rises, because its student has more time now: a teacher has said so."""
    published, standing = standings.ledger.published(student), standings.standing(student)
    if published is None or standing is None or standing.report.counted < published.points:
        return False
    before = {row.number: row.due or standings.course.policy.due for row in old}
    return all(
        row.due is not None and (due := before.get(row.number)) is not None and due < row.due
        for row in new
    )


def _is_later(now: AttemptRow, before: AttemptRow) -> bool:
    if now.submitted is None:
        return False
    return before.submitted is None or now.submitted > before.submitted


def _changed_mark(standings: Standings, student: str, rules: str) -> str:
    """Return the change of a published mark although the files are the same, or nothing."""
    published = standings.ledger.published(student)
    standing = standings.standing(student)
    if published is None or published.rules not in (standings.rules, rules):
        return ""
    if standing is None:
        return "" if standings.rules == rules else "another attempt may count, not graded yet"
    now = standing.published(standings.rules)
    if (now.points, now.max_points) == (published.points, published.max_points):
        return ""
    why = f"{published.points:g} → {now.points:g} of {now.max_points:g} points"
    if standings.ledger.has_damage:  # which changes marks too, and must not stop the class
        standings.ledger.review.add(student, f"the published mark changes, {why}")
        return ""
    return why
