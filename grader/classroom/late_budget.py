"""Late days that cost nothing, counted over the results folders of several assignments."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from grader.classroom.ledger import Ledger
from grader.classroom.roster import Roster, RosterRow
from grader.classroom.stored.settings import EARLIER, FREE_DAYS_USED
from grader.errors import RequestError
from grader.report import Mark, Person
from grader.submissions.layouts import Attempt

RESULTS = "results.jsonl"  # of a results folder: a report in each line


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


def free_days_used(ledger: Ledger, out: Path) -> dict[str, float]:
    """Return how many free late days each student has used in the earlier results folders."""
    classes = [_read(out / name) for name in ledger.get(EARLIER) or ()]
    used: dict[str, float] = {}
    for student in ledger.students() if classes else ():
        own_name = Attempt(student, (), person=ledger.person(student))
        for listed, days in classes:
            row = listed.find(own_name)
            if row is not None and days[row.student]:
                used[student] = used.get(student, 0.0) + days[row.student]
    return used


def store_used(ledger: Ledger, used: Mapping[str, float]) -> None:
    """Store the free late days that count from now on."""
    if used != (ledger.get(FREE_DAYS_USED) or {}):
        ledger.put(FREE_DAYS_USED, dict(used))


def _read(folder: Path) -> tuple[Roster, dict[str, float]]:
    """Return the students in a results folder, and how many free days each has used there."""
    try:
        # Texts in the JSON may hold other separators of lines.
        with (folder / RESULTS).open(encoding="utf-8", newline="\n") as lines:
            found = [msgspec.convert(json.loads(line), _Result) for line in lines]
    except (OSError, ValueError) as error:
        raise RequestError(
            f"{folder / RESULTS} does not say who used late days: {error}",
            f"grader batch SUBMISSIONS --out {folder}   writes it; or --earlier with other folders",
        ) from None
    rows = tuple(RosterRow(each.submission, each.person) for each in found)
    used = {each.submission: each.mark.free_days if each.mark else 0.0 for each in found}
    return Roster(rows), used
