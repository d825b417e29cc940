"""`grader merge`: merge the parts of a class that several machines graded."""

from __future__ import annotations

import re
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

import click

from grader.classroom.intake import GROUPS, ROSTER
from grader.classroom.ledger import Ledger, open_ledger
from grader.classroom.publishing import Publisher
from grader.classroom.run import Run
from grader.classroom.standings import Standings
from grader.classroom.storage import FILE, settings_of
from grader.commands.graded import (
    LIST,
    SECRET,
    class_secret,
    count_students,
    echo_review,
    with_list,
)
from grader.commands.options import COURSE, FOLDER, exit_code, short_path
from grader.course.course import Course
from grader.errors import RequestError
from grader.grading.seeds import fresh_secret

SHARED = {
    SECRET: "seed",
    "request": "attempt",
    ROSTER: "roster",
    GROUPS: "groups",
    LIST: "course-list",
}  # settings that all parts must share
_NAME = re.compile(r"shard-(\d+)-of-(\d+)")


@click.command()
@click.argument("folder", type=FOLDER, metavar="DIR")
@COURSE
def merge(folder: Path, course: Course) -> int:
    """Put together the parts of a class that `grader batch --shard` graded.

    \b
    grader batch submissions/ --out results/ --seed 7 --shard 1/2
    grader batch submissions/ --out results/ --seed 7 --shard 2/2
    grader merge results/
    """
    shards = shards_in(folder)
    with open_ledger(folder) as ledger:
        absorb_all(ledger, shards)
        course = with_list(course, ledger.get(LIST))
        standings = Standings(course, ledger, class_secret(ledger) or fresh_secret())
        standings.refuse_changed_rules()
        if not Run(standings).is_done:
            raise RequestError(
                "some submissions are not graded yet, or the course has changed since",
                f"grader regrade --in {folder}   grades what is left",
            )
        worst, publisher = 0, Publisher(standings, folder)
        for student in ledger.students():
            report = publisher.publish(student)
            if report is not None:
                worst = max(worst, exit_code(report))
        publisher.finish()
        students = count_students(len(ledger.students()))
        click.echo(f"  {len(shards)} parts, {students}: {short_path(folder)}")
        return max(worst, echo_review(ledger))


class Shard(NamedTuple):
    """One part: the `number`-th of `parts`, and its ledger."""

    number: int
    parts: int
    ledger: Path

    @property
    def name(self) -> str:
        """The name of its folder."""
        return self.ledger.parent.name


def shard_folder(number: int, parts: int) -> str:
    """Return the name of a part's folder."""
    return f"shard-{number}-of-{parts}"


def shards_in(folder: Path) -> list[Shard]:
    """Return the parts in a folder, in order; raise `RequestError` if one is missing."""
    found = sorted(
        Shard(int(match[1]), int(match[2]), path / FILE)
        for path in folder.glob("shard-*-of-*")
        if (match := _NAME.fullmatch(path.name)) and (path / FILE).is_file()
    )
    sizes = {shard.parts for shard in found}
    if not found:
        raise RequestError(
            f"{folder} holds no parts of a class",
            f"grader batch SUBMISSIONS --out {folder} --seed N --shard 1/2",
        )
    if len(sizes) > 1:
        raise RequestError(
            f"{folder} holds parts of several divisions: {', '.join(one.name for one in found)}",
            "remove those that do not belong together",
        )
    (parts,) = sizes
    missing = sorted(set(range(1, parts + 1)) - {shard.number for shard in found})
    if missing:
        names = ", ".join(f"{number}/{parts}" for number in missing)
        raise RequestError(
            f"of {parts} parts these are missing: {names}",
            f"grader batch SUBMISSIONS --out {folder} --seed N --shard {missing[0]}/{parts}",
        )
    return found


def absorb_all(ledger: Ledger, shards: list[Shard]) -> None:
    """Take every part into one ledger; raise `RequestError` if they were graded differently."""
    with ExitStack() as stack:
        for shard in shards:  # all parts are checked before anything is stored
            part = stack.enter_context(open_ledger(shard.ledger.parent))
            part.check_all()
            ledger.review.include(part.review)
        settings = _shared_settings(shards)
        with ledger.taking_in():
            pass  # students that are in no part any more are gone
        for shard in shards:
            ledger.absorb(shard.ledger)
        for key, value in settings.items():
            ledger.put(key, value)


def _shared_settings(shards: list[Shard]) -> dict[str, Any]:
    first, *others = shards
    settings = settings_of(first.ledger)
    for shard in others:
        own = settings_of(shard.ledger)
        for key, option in SHARED.items():
            if own.get(key) != settings.get(key):
                raise RequestError(
                    f"{first.name} and {shard.name} were graded with different options ({option})",
                    "grade one of them again, with the same --seed, --attempt and --roster, and "
                    "the same --course-list",
                )
    return {key: settings[key] for key in SHARED if key in settings}
