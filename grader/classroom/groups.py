"""Groups that hand in together: a submission by one member counts for every member."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime, tzinfo
from pathlib import Path

from grader.classroom.roster import Roster, RosterRow, read_roster
from grader.errors import RequestError
from grader.report import Person
from grader.submissions.layouts import Attempt
from grader.submissions.layouts.attempt import student_names
from grader.submissions.notes import folded

EXPECTED = "a file of groups has a line for each student, with the columns group,id"
# A column of sections looks like one of groups, but in most sections several students hand in.
FEWEST_SECTIONS = 3
MAX_NAMED = 5  # members of a group
CONTESTED = "as another hand-in does, so it was not used"


@dataclass(frozen=True)
class Member:
    """A student of the class: their row of the roster, and what they handed in themselves."""

    student: str
    row: RosterRow | None
    attempts: tuple[Attempt, ...] = ()
    person: Person = field(default_factory=Person)
    is_group: bool = False  # a submission that has the name of a group
    claims: str = ""  # the flag if others fit the same line of the roster

    @property
    def who(self) -> str:
        """The id, with the name beside it."""
        return self.person.beside(self.student)

    @property
    def handed_in(self) -> datetime | None:
        """The time of the latest attempt, if it is known."""
        return (self.row and self.row.submitted) or self.attempts[-1].submitted


@dataclass
class Shared:
    """The students of a class after each group's hand-in was given to its members.

    `teams` has the group of every student who is in one, `flags` the reasons for review, and
    `said` the same for the console.
    """

    members: list[Member] = field(default_factory=list)
    teams: dict[str, str] = field(default_factory=dict)
    flags: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    said: list[str] = field(default_factory=list)


def read_groups(path: Path, zone: tzinfo | None) -> Roster:
    """Return the rows of a file of groups; raise `RequestError` if it names none."""
    groups = groups_of(read_roster(path, zone, "--groups"))
    if not groups.rows:
        raise RequestError(f"{path} names no groups", EXPECTED)
    return groups


def groups_of(roster: Roster) -> Roster:
    """Return the rows of a roster that name a group."""
    return replace(roster, rows=tuple(row for row in roster.rows if row.group))


def find_members(attempts: Sequence[Attempt], roster: Roster) -> list[Member]:
    """Return everybody who handed in, and everybody else on the roster."""
    own: dict[str, list[Attempt]] = defaultdict(list)
    for attempt in attempts:
        own[attempt.student].append(attempt)
    latest = {student: theirs[-1] for student, theirs in own.items()}
    rows = {student: roster.find(attempt) for student, attempt in latest.items()}
    owners = _owners(latest, rows)
    members = []
    for student, theirs in own.items():
        row, claims = rows[student], ""
        if row is not None and owners[row.student] != student:
            claims = f"fits line {row.line} of the roster, {CONTESTED}"
            row = None
        person = merged(latest[student].person, row)
        members.append(Member(student, row, tuple(theirs), person, claims=claims))
    missing = roster.missing(row for row in rows.values() if row)
    return [*members, *(Member(row.student, row, person=row.person) for row in missing)]


def _owners(
    latest: Mapping[str, Attempt], rows: Mapping[str, RosterRow | None]
) -> Mapping[str, str]:
    """Return the owner of each roster row: if several match, the one who matches exactly.

    If several match exactly, or none, the row has no owner.
    """
    fitting: dict[str, list[str]] = defaultdict(list)
    exact: dict[str, list[str]] = defaultdict(list)
    for student, row in rows.items():
        if row is not None:
            fitting[row.student].append(student)
            if row.is_named_by(latest[student]):
                exact[row.student].append(student)
    owners = {}
    for row_student, students in fitting.items():
        found = students if len(students) == 1 else exact[row_student]
        owners[row_student] = found[0] if len(found) == 1 else ""
    return owners


def merged(person: Person, row: RosterRow | None) -> Person:
    """Return the platform's data about a person, with the roster's data in its place."""
    known = asdict(row.person) if row else {}
    return replace(person, **{name: said for name, said in known.items() if said})


def share(members: Sequence[Member], groups: Roster, *, chosen: bool) -> Shared:
    """Give each group's hand-in to its members; the latest, if several of them handed in.

    Without times, the hand-in of the first member in the file counts. Either way the members are
    flagged. `chosen` means that the teacher has named a file of groups. Raises `RequestError` if
    the groups of a roster seem to be sections.
    """
    shared = Shared()
    teams, others = _teams(members, groups)
    if not chosen:
        _refuse_sections(teams)
    shared.members += others
    for name, team in teams.items():
        _share(name, team, shared)
    return shared


def _teams(
    members: Sequence[Member], groups: Roster
) -> tuple[dict[str, list[Member]], list[Member]]:
    """Return the members of each group, in the order of the file, and those who are in none.

    A submission that has the name of a group, and of no student, is a member that hands in.
    """
    found: dict[str, Member] = {}
    others = []
    for member in members:
        row = None if member.claims else _row_of(member, groups)
        if row and row.student not in found:
            found[row.student] = member
        else:
            others.append(member)
    for row, student in zip(groups.rows, _new_names(members, groups)):
        found.setdefault(row.student, Member(student, None, person=row.person))
    teams: dict[str, list[Member]] = defaultdict(list)
    for row in groups.rows:
        teams[row.group].append(found[row.student])
    names = {name.casefold(): name for name in teams}
    for member in [one for one in others if one.row is None and one.student.casefold() in names]:
        teams[names[member.student.casefold()]].append(replace(member, is_group=True))
        others.remove(member)
    return teams, others


def _row_of(member: Member, groups: Roster) -> RosterRow | None:
    """Return a student's row in the groups, by any of the student's names."""
    person, row = member.person, member.row
    names = (member.student, row.student if row else "", person.login, person.email, person.number)
    attempts = (Attempt(name, (), person=person) for name in names if name)
    return next((found for attempt in attempts if (found := groups.find(attempt))), None)


def _new_names(members: Sequence[Member], groups: Roster) -> list[str]:
    """Return a name for each row of the groups that can be a file's, and that no student has."""
    taken = [(member.student, member.student) for member in members]
    names = student_names([*taken, *((row.student, row.student) for row in groups.rows)])
    return names[len(taken) :]


def _refuse_sections(teams: Mapping[str, Sequence[Member]]) -> None:
    several = [name for name, team in teams.items() if len(_handing_in(team)) > 1]
    handed_in = [name for name, team in teams.items() if _handing_in(team)]
    if len(several) >= FEWEST_SECTIONS and 2 * len(several) > len(handed_in):
        raise RequestError(
            f"in {len(several)} of {len(handed_in)} groups of the roster, several members handed "
            "in, so the groups seem to be sections",
            "call the column `section`, or pass the roster as --groups too",
        )


def _handing_in(team: Sequence[Member]) -> list[Member]:
    return [member for member in team if member.attempts]


def _share(name: str, team: Sequence[Member], shared: Shared) -> None:
    handing_in = _handing_in(team)
    students = [member for member in team if not member.is_group]
    if not handing_in:
        shared.members += students
        return
    counting, flag = _counting(name, handing_in)
    if flag:
        shared.said.append(flag)
    for member in students:
        shared.members.append(_with_hand_in_of(counting, member, name))
        shared.teams[member.student] = name
        shared.flags[member.student] += [flag] if flag else []


def _counting(name: str, handing_in: Sequence[Member]) -> tuple[Member, str]:
    """Return the member whose hand-in counts for the group, and the remark on it."""
    if len(handing_in) == 1:
        return handing_in[0], ""
    who = folded([member.who for member in handing_in], MAX_NAMED)
    says = f"{len(handing_in)} hand-ins of one group ({name}), of {who}: "
    times = [member.handed_in for member in handing_in]
    known = [time for time in times if time]
    if len(known) == len(times) and times.count(max(known)) == 1:
        counting = handing_in[times.index(max(known))]
        return counting, f"{says}the latest counts, that of {counting.who}"
    first = handing_in[0]
    return first, f"{says}no times say which is the latest, so that of {first.who} counts"


def _with_hand_in_of(counting: Member, member: Member, name: str) -> Member:
    """Return a member with the hand-in that counts for the group, and its time."""
    time = counting.handed_in
    attempts = list(_attempts_for(counting, member, name))
    attempts[-1] = replace(attempts[-1], submitted=time)
    row = member.row and replace(
        member.row,
        submitted=time or member.row.submitted,
        unread="" if time else member.row.unread,
    )
    return replace(member, attempts=tuple(attempts), row=row)


def _attempts_for(counting: Member, member: Member, name: str) -> Iterator[Attempt]:
    note = f"handed in by {counting.who} for the group {name}"
    for attempt in counting.attempts:
        if member.student == counting.student:
            yield attempt
        else:
            notes = *attempt.notes, note
            yield replace(attempt, student=member.student, person=member.person, notes=notes)
