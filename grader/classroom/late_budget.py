"""Late days that cost nothing, counted over the results folders of several assignments."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import msgspec

from grader.classroom.groups import find_members
from grader.classroom.ledger import Ledger
from grader.classroom.roster import Roster, RosterRow
from grader.classroom.storage import FILE, settings_of
from grader.classroom.stored.settings import EARLIER, FREE_DAYS_USED
from grader.errors import RequestError
from grader.report import Mark, Person
from grader.submissions.layouts import Attempt

RESULTS = "results.jsonl"  # of a results folder: a report in each line
DOUBTFUL = "may be a student of {} who used free late days there, which were not counted"
T = TypeVar("T")


@dataclass(frozen=True)
class _Result:
    """What a line of a results folder says about the days of one student."""

    submission: str
    person: Person
    mark: Mark | None


def remember_earlier(ledger: Ledger, out: Path, earlier: Sequence[Path]) -> None:
    """Store which results folders count; without any, those that were named before do."""
    own = out.resolve()
    if own in {folder.resolve() for folder in earlier}:
        raise RequestError(f"{out} is no earlier assignment, but this one", "leave it out")
    if earlier:
        ledger.put(EARLIER, [os.path.relpath(folder.resolve(), own) for folder in earlier])


def earlier_folders(ledger: Ledger, out: Path) -> list[Path]:
    """Return the results folders that count for one, with those that count for them in turn."""
    own = out.resolve()
    found = [(own / name).resolve() for name in ledger.get(EARLIER) or ()]
    for folder in found:  # which grows
        named = settings_of(folder / FILE).get(EARLIER) if (folder / FILE).is_file() else ()
        places = [(folder / name).resolve() for name in named or ()]
        if own in places:
            raise RequestError(f"{out} is an earlier assignment of {folder} itself", "leave it out")
        found += [each for each in places if each not in found]
    return found


def free_days_used(ledger: Ledger, out: Path) -> dict[str, float]:
    """Return how many free late days each student has used in the earlier results folders.

    A student whom somebody there may be, but not for certain, needs review.
    """
    used: dict[str, float] = {}
    handed_in = [Attempt(one, (), person=ledger.person(one)) for one in ledger.students()]
    for folder in earlier_folders(ledger, out):
        listed, days = _read(folder)
        for member in find_members(handed_in, listed):
            if member.row is not None and member.attempts:
                spent = days[member.row.student]
                used[member.student] = used.get(member.student, 0.0) + spent
            elif any(
                days[row.student] for each in member.attempts for row in listed.matching(each)
            ):
                ledger.review.add(member.student, DOUBTFUL.format(folder.name))
    return {student: spent for student, spent in used.items() if spent}


def store_used(ledger: Ledger, used: Mapping[str, float]) -> None:
    """Store the free late days that count from now on."""
    if used != (ledger.get(FREE_DAYS_USED) or {}):
        ledger.put(FREE_DAYS_USED, dict(used))


def _read(folder: Path) -> tuple[Roster, dict[str, float]]:
    """Return the students in a results folder, and how many free days each has used there."""
    found = list(results_in(folder, _Result, "does not say who used late days"))
    rows = tuple(RosterRow(each.submission, each.person) for each in found)
    used = {each.submission: each.mark.free_days if each.mark else 0.0 for each in found}
    return Roster(rows), used


def results_in(folder: Path, kind: type[T], problem: str) -> Iterator[T]:
    """Yield each report in a results folder, as far as `kind` has fields for it.

    Raise `RequestError` with the `problem` if they cannot be read.
    """
    try:
        # Texts in the JSON may hold other separators of lines.
        with (folder / RESULTS).open(encoding="utf-8", newline="\n") as lines:
            for line in lines:
                yield msgspec.convert(json.loads(line), kind)
    except (OSError, ValueError) as error:
        raise RequestError(
            f"{folder / RESULTS} {problem}: {error}",
            f"grader batch SUBMISSIONS --out {folder}   writes it; or name other folders",
        ) from None
