"""The assignments of a term side by side: the marks of each student, late days and mistakes.

The results folders are joined by the data that they have about people: an id, a login, an e-mail
address, a number, else a name. What is said here decides no mark.
"""

from __future__ import annotations

import csv
import os
import statistics
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import get_args

from grader.classroom.groups import find_members, merged
from grader.classroom.late_budget import earlier_folders, results_in
from grader.classroom.ledger import open_ledger
from grader.classroom.publishing import CLASS, DASHBOARD, GRADES, REPORTS
from grader.classroom.roster import NO_ROSTER, Roster, RosterRow
from grader.classroom.storage import existing
from grader.classroom.stored.settings import FREE_DAYS_USED
from grader.errors import RequestError
from grader.report import Mark, Person, State
from grader.reports.dashboard import percent
from grader.reports.platforms.grades import cell
from grader.reports.summary import AssignmentSummary, RecurringMistake, StudentRow, TermSummary
from grader.submissions.layouts import Attempt
from grader.submissions.notes import folded

FAR = 0.2  # of all points: who is as far below the median falls behind
MAX_NAMED = 5  # students in a sentence


@dataclass(frozen=True)
class _Diagnosed:
    """The named mistakes of an exercise, in a line of a results folder."""

    faults: tuple[str, ...] = ()
    each: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Exercise:
    unfinished: bool = False
    diagnosis: _Diagnosed | None = None


@dataclass(frozen=True)
class _Line:
    """A line of a results folder, as far as a term needs it."""

    submission: str
    person: Person
    points: float
    max_points: float
    exercises: tuple[_Exercise, ...]
    mark: Mark | None = None


@dataclass(frozen=True)
class Work:
    """A student's result in one assignment, or the lack of one: then `page` is empty.

    `points` is None without a mark. `mistakes` has the text of each named mistake.
    """

    points: float | None
    of: float
    state: State = "not graded"
    late_days: float = 0.0
    free_days: float = 0.0
    free_left: float | None = None
    mistakes: Mapping[str, str] = field(default_factory=dict)
    page: str = ""

    @property
    def share(self) -> float | None:
        """The share of the points; None for a student who has handed in nothing."""
        if not self.page or self.points is None:
            return None
        return self.points / self.of if self.of else 0.0


@dataclass(frozen=True)
class GradedAssignment:
    """A results folder: its name in the term, and the person and the work of each student.

    `earlier` are the folders whose free late days count here, and `counted` is how many of them
    each student had used there when this assignment was graded. It `is_whole` if every student is
    graded, and its files were written since.
    """

    name: str
    folder: Path
    people: Mapping[str, Person]
    works: Mapping[str, Work]
    earlier: Sequence[Path] = ()
    counted: Mapping[str, float] = field(default_factory=dict)
    is_whole: bool = True


def read_assignment(name: str, folder: Path) -> GradedAssignment:
    """Read what was published of an assignment; raise `RequestError` if it cannot be read."""
    with open_ledger(existing(folder)) as ledger:
        lines = list(results_in(folder, _Line, "cannot be read"))
        grades = _grades(folder)
        works = {line.submission: _work(line, grades) for line in lines}
        people = {line.submission: line.person for line in lines}
        most = max((work.of for work in works.values()), default=0.0)
        for student, person in ledger.missing():
            points = grades.get(cell(student), {}).get("points", "")
            works.setdefault(student, Work(float(points) if points else None, most))
            people.setdefault(student, person)
        return GradedAssignment(
            *(name, folder.resolve(), people, works),
            earlier_folders(ledger, folder),
            ledger.get(FREE_DAYS_USED) or {},
            is_whole=ledger.get(CLASS) is not None,
        )


def _grades(folder: Path) -> Mapping[str, Mapping[str, str]]:
    """Return the lines of the marks of a class by the cell with the student's id."""
    try:
        with (folder / GRADES).open(encoding="utf-8-sig", newline="") as file:
            return {line["submission"]: line for line in csv.DictReader(file)}
    except (OSError, ValueError, KeyError, csv.Error) as error:
        raise RequestError(
            f"{folder / GRADES} cannot be read: {error}",
            f"grader batch --resume --out {folder}   writes it again",
        ) from None


def _work(line: _Line, grades: Mapping[str, Mapping[str, str]]) -> Work:
    said = grades.get(cell(line.submission), {}).get("state")
    state: State = next((state for state in get_args(State) if state == said), "not graded")
    diagnosed = [each.diagnosis for each in line.exercises if not each.unfinished]
    mistakes = {
        fault: says for found in diagnosed if found for fault, says in zip(found.faults, found.each)
    }
    page = f"{REPORTS}/{line.submission}.html"
    mark = line.mark or Mark(line.points, line.max_points, line.points)
    days = mark.late_days, mark.free_days, mark.free_left
    return Work(mark.points, mark.max_points, state, *days, mistakes, page)


# --- the students of all folders ------------------------------------------------------------------


@dataclass
class TermStudent:
    """A student of the term; `works` has the place of an assignment, and what was done there."""

    row: RosterRow
    works: dict[int, Work] = field(default_factory=dict)
    ids: dict[int, str] = field(default_factory=dict)  # by assignment
    doubt: str = ""
    is_listed: bool = False  # on the roster of the term

    @property
    def first(self) -> int:
        """The first assignment that the student was to do: who joins later lacks none before."""
        return 0 if self.is_listed else min(self.works)

    def share(self, place: int) -> float | None:
        """Return the share of the points in an assignment; None if nothing was handed in."""
        return self.works[place].share if place in self.works else None


def join(assignments: Sequence[GradedAssignment], roster: Roster = NO_ROSTER) -> list[TermStudent]:
    """Return the students of a roster and of all assignments, each of them once.

    Who may be one of several students, or the same as another one, is counted apart and named.
    """
    students = [TermStudent(row, is_listed=True) for row in roster.rows]
    for place, assignment in enumerate(assignments):
        known = {student.row.student: student for student in students}
        listed = Roster(tuple(student.row for student in students))
        attempts = [Attempt(one, (), person=who) for one, who in assignment.people.items()]
        for member in find_members(attempts, listed):
            if not member.attempts:
                continue
            (attempt,) = member.attempts
            if member.row is not None:
                student = known[member.row.student]
                student.row = replace(student.row, person=merged(attempt.person, student.row))
            else:
                student = _new(attempt, assignment, listed)
                students.append(student)
            student.works[place] = assignment.works[attempt.student]
            student.ids[place] = attempt.student
    return sorted(students, key=lambda student: student.row.student)


def _new(attempt: Attempt, assignment: GradedAssignment, listed: Roster) -> TermStudent:
    """Return a student whom no earlier assignment has, or none for certain."""
    name = attempt.student
    if any(row.student == name for row in listed.rows):
        name = f"{name} ({assignment.name})"
    student = TermStudent(RosterRow(name, attempt.person))
    if fitting := listed.matching(attempt):
        who = folded([row.person.beside(row.student) for row in fitting], MAX_NAMED)
        student.doubt = f"{attempt.person.beside(name)} of {assignment.name} may be {who}"
    return student


# --- the summary ----------------------------------------------------------------------------------


def summarise(
    assignments: Sequence[GradedAssignment], out: Path, roster: Roster = NO_ROSTER
) -> TermSummary:
    """Return the summary of a term; links lead from the folder `out`."""
    students = join(assignments, roster)
    places = range(len(assignments))
    medians = [_median(student.share(place) for student in students) for place in places]
    middle = _median(map(_total_share, students))
    names = [assignment.name for assignment in assignments]
    rows = []
    for student in students:
        reasons = _behind(student, names, medians, middle)
        rows.append(_row(student, assignments, out, reasons))
    behind = [at for at, row in enumerate(rows) if row.flags]
    last = len(assignments) - 1
    behind.sort(key=lambda at: (students[at].share(last) is not None, _share_of(rows[at])))
    return TermSummary(
        tuple(
            _assignment(place, assignment, students, out, medians[place])
            for place, assignment in enumerate(assignments)
        ),
        tuple(rows),
        tuple(behind),
        tuple(_recurring(students, names)),
        (*_remarks(assignments, students), *(one.doubt for one in students if one.doubt)),
    )


def _median(shares: Iterable[float | None]) -> float | None:
    known = [share for share in shares if share is not None]
    return statistics.median(known) if known else None


def _marks(student: TermStudent) -> tuple[float, float]:
    """Return the sum of a student's marks, and the most that it could be."""
    marked = [work for work in student.works.values() if work.points is not None]
    return sum(work.points or 0.0 for work in marked), sum(work.of for work in marked)


def _total_share(student: TermStudent) -> float | None:
    points, of = _marks(student)
    return points / of if of else None


def _share_of(row: StudentRow) -> float:
    return row.points / row.max_points if row.max_points else 0.0


def _behind(
    student: TermStudent,
    names: Sequence[str],
    medians: Sequence[float | None],
    middle: float | None,
) -> Iterator[str]:
    """Yield why a student falls behind: by the last assignment, by a trend, or on the whole.

    All is compared with the median of the class,
    so that an assignment that is hard for everybody makes nobody fall behind.
    """
    last = len(names) - 1
    shares = {place: work.share for place, work in student.works.items()}
    known = {place: share for place, share in shares.items() if share is not None}
    if last not in known:
        lacking = [names[at] for at in range(student.first, len(names)) if at not in known]
        yield f"handed in nothing for {', '.join(lacking)}"
    else:
        distances = {place: share - (medians[place] or 0.0) for place, share in known.items()}
        before = [distances[place] for place in known if place != last]
        if before and _is_far(statistics.fmean(before) - distances[last]):
            mean = statistics.fmean(share for place, share in known.items() if place != last)
            yield (
                f"worse than before: {percent(known[last], 1)} in {names[last]}, "
                f"{percent(mean, 1)} on average until then"
            )
    total = _total_share(student)
    if total is not None and middle is not None and _is_far(middle - total):
        yield f"far below the class: {percent(total, 1)}, where the median is {percent(middle, 1)}"


def _is_far(distance: float) -> bool:
    return round(distance, 9) >= FAR


def _row(
    student: TermStudent, assignments: Sequence[GradedAssignment], out: Path, reasons: Iterable[str]
) -> StudentRow:
    points, of = _marks(student)
    person = student.row.person
    works = [student.works.get(place) for place in range(len(assignments))]
    states: list[State] = [work.state if work else "not graded" for work in works]
    left = [work.free_left for work in works if work and work.free_left is not None]
    pages = [
        _link(out, assignment.folder / work.page)
        for work, assignment in zip(works, assignments)
        if work and work.page
    ]
    return StudentRow(
        *(student.row.student, person.name, person.section, person.login, person.email),
        points=round(points, 2),
        max_points=round(of, 2),
        points_of=tuple(work.points if work else None for work in works),
        states=tuple(states),
        state="passed" if set(states) == {"passed"} else "to fix",
        attempt=1,
        submitted="",
        late_days=round(sum(work.late_days for work in works if work), 2),
        flags=tuple(reasons),
        page=pages[-1] if pages else "",
        free_days=sum(work.free_days for work in works if work),
        free_left=left[-1] if left else None,
    )


def _link(out: Path, page: Path) -> str:
    return os.path.relpath(page, out.resolve())


def _assignment(
    place: int,
    assignment: GradedAssignment,
    students: Sequence[TermStudent],
    out: Path,
    median: float | None,
) -> AssignmentSummary:
    works = [student.works[place] for student in students if place in student.works]
    done = [work for work in works if work.page]
    expected = sum(student.first <= place for student in students)
    shares = [share for work in done if (share := work.share) is not None]
    return AssignmentSummary(
        *(assignment.name, expected, len(done)),
        passed=sum(work.state == "passed" for work in done),
        mean=statistics.fmean(shares) if shares else None,
        median=median,
        late=sum(work.late_days > 0 for work in done),
        free_days=sum(work.free_days for work in done),
        page=_link(out, assignment.folder / DASHBOARD),
    )


def _recurring(students: Sequence[TermStudent], names: Sequence[str]) -> list[RecurringMistake]:
    """Return the mistakes that somebody made in several assignments, the most frequent first."""
    made: dict[str, Counter[int]] = {}
    who: dict[str, list[int]] = {}
    says: dict[str, str] = {}
    for at, student in enumerate(students):
        own = Counter[str]()
        for place, work in sorted(student.works.items()):
            says |= work.mistakes
            for fault in work.mistakes:
                made.setdefault(fault, Counter())[place] += 1
                own[fault] += 1
        for fault, times in own.items():
            if times > 1:
                who.setdefault(fault, []).append(at)
    found = [
        RecurringMistake(
            *(fault, says[fault], tuple(several)),
            tuple((names[place], count) for place, count in sorted(made[fault].items())),
        )
        for fault, several in who.items()
    ]
    return sorted(found, key=lambda each: (-len(each.who), each.fault))


# --- what does not add up -------------------------------------------------------------------------


def _remarks(
    assignments: Sequence[GradedAssignment], students: Sequence[TermStudent]
) -> Iterator[str]:
    """Yield what needs attention: unfinished folders, and late days that were not counted."""
    for place, assignment in enumerate(assignments):
        if not assignment.is_whole:
            yield (
                f"{assignment.name} is not finished, so marks may be missing: "
                f"grader batch --resume --out {assignment.folder.name}"
            )
        yield from _uncounted(place, assignments, students)


def _uncounted(
    place: int, assignments: Sequence[GradedAssignment], students: Sequence[TermStudent]
) -> Iterator[str]:
    """Yield a remark if an assignment with a budget counts other days than were used before it."""
    here = assignments[place]
    with_budget = [one for one in students if _free_left(one, place) is not None]
    before = [other for other in range(place) if assignments[other].folder not in here.earlier]
    forgotten = [
        assignments[other].name
        for other in before
        if any(_free_days(one, other) for one in with_budget)
    ]
    if forgotten:
        yield (
            f"{here.name} does not count the free late days of {', '.join(forgotten)}: "
            "grader batch … --earlier counts them"
        )
    folders = {assignment.folder: other for other, assignment in enumerate(assignments)}
    if not set(here.earlier) <= folders.keys():
        return  # of some of the days, this term does not know who used them
    counting = [folders[folder] for folder in here.earlier]
    changed = [
        one.row.person.beside(one.row.student)
        for one in with_budget
        if sum(_free_days(one, other) for other in counting)
        != here.counted.get(one.ids[place], 0.0)
    ]
    if changed:
        yield (
            f"since {here.name} was graded, the free late days used before it have changed, of "
            f"{folded(changed, MAX_NAMED)}: grader regrade --in {here.folder.name} counts them"
        )


def _free_left(student: TermStudent, place: int) -> float | None:
    return student.works[place].free_left if place in student.works else None


def _free_days(student: TermStudent, place: int) -> float:
    return student.works[place].free_days if place in student.works else 0.0
