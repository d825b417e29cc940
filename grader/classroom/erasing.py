"""Erases one student from a folder of results: ledger, lists, pages, and others' reports."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import re
import secrets
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from markupsafe import escape

from grader.classroom.intake import GROUPS, ROSTER
from grader.classroom.ledger import Ledger
from grader.classroom.publishing import (
    CLASS,
    CODE,
    DASHBOARD,
    GRADES,
    REPORTS,
    RESULTS,
    SIMILAR,
    VIEWS,
    Publisher,
    explained,
    writing,
)
from grader.classroom.roster import Roster
from grader.classroom.standings import Standings
from grader.classroom.stored.history import HistoryRow
from grader.classroom.stored.settings import FREE_DAYS_USED
from grader.classroom.waivers import strike
from grader.report import Person
from grader.reports.platforms.grades import BOM, cell
from grader.submissions.layouts import Attempt

ERASED = "erased"  # the setting by which an erased student is recognised, who is not named there
SOMEBODY = "somebody who was erased"
# Files on the whole class by other commands, which can write them again.
CLASS_FILES = (
    *("marks.csv", "junit.xml", "*-graded.*", "feedback.zip"),
    *("mails.mbox", "mails.csv", "mails-reports", "shared"),
)
STUDENT_FOLDERS = ("gradescope", "classroom50")  # with a folder for each student
MAX_SEARCHED = 64 << 20  # bytes of a file that is searched for a name


@dataclass
class Erased:
    """The data of one student that was erased in one folder, and the data that was not."""

    rows: dict[str, int] = field(default_factory=dict)
    lines: int = 0  # of the roster and the groups
    pages: list[str] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)  # files about the whole class
    rewritten: list[str] = field(default_factory=list)
    told: list[str] = field(default_factory=list)  # students whose reports named this one
    stale: bool = False  # the reports of these, and the dashboard, could not be written again
    purged: bool = True


def erase(standings: Standings, out: Path, student: str) -> Erased:
    """Erase a student from the results in a folder.

    If it is interrupted before the ledger has forgotten the student, the same call continues.
    """
    ledger, done = standings.ledger, Erased()
    person, teammates = ledger.person(student), _teammates(ledger, student)
    with ledger.writing():
        done.pages = list(_remove_pages(out, student))
        done.removed = list(_remove_class_files(out, [student, *sorted(teammates - {student})]))
        is_current = standings.is_as_published
        done.lines = _strike(ledger, student, person)
        strike(ledger, student)
        done.rows = ledger.erase(student)
        done.told = ledger.reword(
            lambda other, text: _reworded(text, student, person, is_teammate=other in teammates)
        )
        ledger.put(CLASS, None)  # so that the pages of the class are written in any case
        ledger.put(ERASED, [*(ledger.get(ERASED) or []), _mark_of(student)])
        if done.rows:
            ledger.remember(HistoryRow("gone", "a student was erased, with all that was stored"))
        if is_current:
            _publish(standings, out, done)
        else:
            _cut_out(out, student, done)
    done.purged = ledger.purge()
    return done


def _teammates(ledger: Ledger, student: str) -> set[str]:
    teams = ledger.teams()
    return {one for one, team in teams.items() if team == teams.get(student)}


# --- coming back ----------------------------------------------------------------------------------


def _mark_of(student: str, salt: str | None = None) -> str:
    """Return a salted hash by which a student's id is recognised."""
    salt = salt or secrets.token_hex(16)
    return f"{salt}:{hashlib.sha256(f'{salt}:{student}'.encode()).hexdigest()}"


def come_back(ledger: Ledger) -> list[str]:
    """Return the students of an intake who were erased from this class before."""
    marks = ledger.get(ERASED) or []
    students = [*ledger.students(), *(student for student, _ in ledger.missing())]
    return [one for one in students if any(_is_of(mark, one) for mark in marks)]


def take_back(ledger: Ledger, students: Sequence[str]) -> None:
    """Forget that these students were erased."""
    marks = ledger.get(ERASED) or []
    kept = [mark for mark in marks if not any(_is_of(mark, one) for one in students)]
    ledger.put(ERASED, kept)


def _is_of(mark: str, student: str) -> bool:
    return mark == _mark_of(student, mark.partition(":")[0])


# --- the ledger -----------------------------------------------------------------------------------


def _strike(ledger: Ledger, student: str, person: Person) -> int:
    """Strike a student off the roster and the groups; return from how many lines."""
    used = ledger.get(FREE_DAYS_USED) or {}
    count = 0
    if used.pop(student, None) is not None:
        ledger.put(FREE_DAYS_USED, used)
    for key in (ROSTER, GROUPS):
        kept = Roster.from_setting(ledger.get(key))
        row = kept.find(Attempt(student, (), person=person))  # by name, where the id is another
        own = {one.student for one in kept.rows if one.student == student or one is row}
        if own:
            rows = tuple(row for row in kept.rows if row.student not in own)
            ledger.put(key, replace(kept, rows=rows).to_setting())
            count += len(own)
    return count


def _reworded(text: str, student: str, person: Person, *, is_teammate: bool) -> str:
    """Return the notes on another student, without the id and the name of this one."""
    if is_teammate:
        text = text.replace(person.beside(student), SOMEBODY) if person.name else text
        # Only where a sentence names a member, because an id may be an ordinary number.
        text = re.sub(rf"(\bby |\bof |, ){re.escape(student)}(?!\w)", rf"\1{SOMEBODY}", text)
    if "more than once" in text:  # namesakes, by their lines of the roster
        text = text.replace(f"({student})", "(erased)")
    return text


# --- the files ------------------------------------------------------------------------------------


def _remove_pages(out: Path, student: str) -> Iterator[str]:
    """Remove every page about a student; yield its name."""
    for folder, ends in ((REPORTS, tuple(VIEWS)), (CODE, (".html",))):
        own = {f"{student}{end}" for end in ends}
        attempt = re.compile(rf"{re.escape(student)}\.attempt-[0-9]+\.\w+")
        for page in sorted((out / folder).glob("*")):
            if page.name in own or attempt.fullmatch(page.name):
                with explained(page):
                    page.unlink()
                yield f"{folder}/{page.name}"


def _remove_class_files(out: Path, group: Sequence[str]) -> Iterator[str]:
    """Remove exports and feedback: each file is about the whole class, or about a group."""
    own = [out / form / student for form in STUDENT_FOLDERS for student in group]
    for path in (*own, *(path for pattern in CLASS_FILES for path in sorted(out.glob(pattern)))):
        with explained(path):
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            elif path.exists():
                path.unlink()
            else:
                continue
        yield str(path.relative_to(out))


def _publish(standings: Standings, out: Path, done: Erased) -> None:
    """Write the pages of the class again, and those of students whose reports named this one."""
    publisher = Publisher(standings, out, "a member of the group was erased")
    for other in done.told:
        publisher.publish(other)
    publisher.finish()
    done.rewritten = [GRADES, RESULTS, DASHBOARD]


def _cut_out(out: Path, student: str, done: Erased) -> None:
    """Take a student out of the lists without grading anybody under today's rules."""
    done.stale = True
    for name, remaining in ((GRADES, _marks_without), (RESULTS, _results_without)):
        if (out / name).is_file():
            with (out / name).open(encoding="utf-8", newline="") as file:
                text = remaining(file.read(), student)
            with writing(out / name) as file:
                file.write(text)
            done.rewritten.append(name)
    for page in (out / DASHBOARD, *sorted((out / SIMILAR).glob("*.html"))):
        if page.is_file():
            with explained(page):
                page.unlink()
            done.removed.append(page.relative_to(out).as_posix())


def _marks_without(text: str, student: str) -> str:
    kept = io.StringIO()
    rows = csv.reader(io.StringIO(text.removeprefix(BOM), newline=""))
    own = cell(student)
    csv.writer(kept, lineterminator="\r\n").writerows(row for row in rows if row[:1] != [own])
    return BOM + kept.getvalue()


def _results_without(text: str, student: str) -> str:
    lines = io.StringIO(text, newline="\n")  # a text in the JSON may hold other separators
    return "".join(line for line in lines if json.loads(line)["submission"] != student)


def still_naming(out: Path, *names: str) -> list[str]:
    """Return the files in a folder that still contain one of some names, other than ledgers.

    Names that are short numbers are not searched for, because those occur everywhere.
    """
    telling = {name for name in names if name and not (name.isdecimal() and len(name) < 4)}
    telling |= {str(escape(name)) for name in telling}  # as pages have it
    wanted = re.compile(rf"(?<!\w)(?:{'|'.join(map(re.escape, telling))})(?!\w)".encode())
    return [
        str(path.relative_to(out))
        for path in (sorted(out.rglob("*")) if telling else ())
        if _is_searched(path) and wanted.search(path.read_bytes())
    ]


def _is_searched(path: Path) -> bool:
    if path.is_symlink() or not path.is_file() or path.name.startswith("ledger."):
        return False
    return path.stat().st_size <= MAX_SEARCHED
