"""A class as each platform hands it over: five students, of whom four hand in, one of them twice.

One is in time, one late, one late with an extension; one hands in nothing, and one a file whose
name nearly fits.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from classroom import hand_in
from handed_in import zipped
from test_archives import tarred
from test_clones_of_a_class import commit

STUDENTS = PROMPT, LATE, EXTENDED, ABSENT, NEAR = range(1, 6)
HANDING_IN = PROMPT, LATE, EXTENDED, NEAR
NAMES = dict(zip(STUDENTS, ("One", "Two", "Three", "Four", "Five")))
DUE = datetime.fromisoformat("2026-11-08T20:00:00+01:00")
DAY = timedelta(days=1)
EXTENSION = {EXTENDED: DUE + 2 * DAY}


@dataclass(frozen=True)
class HandIn:
    """What a student hands in: the points of each file, by its name without `.py`."""

    student: int
    when: datetime
    points: Mapping[str, int]
    again: str = ""  # what Canvas adds to the name of a file that is handed in again

    def files(self, pattern: str = "{file}", number: int = 0) -> dict[str, str]:
        """Return the text of each file, which says its points, by its place in the download."""
        late, name, n = "_LATE" if self.when > DUE else "", NAMES[self.student], self.student
        about = {"n": n, "name": name, "number": number, "late": late, "again": self.again}
        return {
            pattern.format(file=file, **about): f"# {points} points\nx = {points}\n"
            for file, points in self.points.items()
        }


FIRST = (
    HandIn(PROMPT, DUE - 3 * DAY, {"scale": 5, "shift": 2}),
    HandIn(LATE, DUE + 1.5 * DAY, {"scale": 4, "shift": 2}),
    HandIn(EXTENDED, DUE + 1 * DAY, {"scale": 7, "shift": 1}),
    HandIn(NEAR, DUE - 1 * DAY, {"scale (1)": 5}),
)
LATER = (*FIRST, HandIn(PROMPT, DUE - 2 * DAY, {"scale": 6, "shift": 2}, again="-1"))
Pack = Callable[[Path, Mapping[str, str]], Path]
Writer = Callable[[Path, Sequence[HandIn]], object]


def packed(pattern: str, pack: Pack) -> Writer:
    """Return a function that writes a download in which files are called like `pattern`."""

    def write(path: Path, handed: Sequence[HandIn]) -> object:
        files: dict[str, str] = {}
        for number, one in enumerate(handed, start=1):
            files |= one.files(pattern, number)
        return pack(path, files)

    return write


def zips(path: Path, handed: Sequence[HandIn]) -> None:
    for one in handed:
        zipped(path / f"s00{one.student}.zip", one.files("work/{file}.py"))


def clones(path: Path, handed: Sequence[HandIn]) -> None:
    for one in handed:
        commit(path / f"lab-1-s00{one.student}", one.when, **one.files())


def gradescope(path: Path, handed: Sequence[HandIn]) -> None:
    lines = []
    for number, one in enumerate(handed, start=1):
        lines += [f"submission_{number}:", "  :submitters:"]
        lines += [f"  - :name: Student {NAMES[one.student]}", f"    :sid: s00{one.student}"]
        lines += [f"    :email: s00{one.student}@school.example"]
        lines += [f"  :created_at: {one.when.isoformat(' ')}"]
    hand_in(path, {"submission_metadata.yml": "\n".join(lines)})
    packed("submission_{number}/{file}.py", hand_in)(path, handed)


# --- the layouts ----------------------------------------------------------------------------------

CANVAS = (
    "Student,ID,SIS User ID,SIS Login ID,Section,A pair (99),Final Score\r\n"
    "    Points Possible,,,,,12.00,(read only)\r\n"
    '"One, Student",501,k1,one,A,{1},\r\n"Two, Student",502,k2,two,A,"{2}",\r\n'
    '"Three, Student",503,k3,three,A,{3},\r\n"Four, Student",504,k4,four,A,{4},\r\n'
    '"Five, Student",505,k5,five,A,{5},\r\n"Student, Test",509,,test,A,,\r\n'
)
MOODLE = (
    "Identifier,Full name,Email address,Status,Grade,Maximum Grade,Feedback comments\n"
    "Participant 71,Student One,,Submitted,{1},12.00,\n"
    "Participant 72,Student Two,,Submitted,{2},12.00,<p>seen in class</p>\n"
    "Participant 73,Student Three,,Submitted,{3},12.00,\n"
    "Participant 74,Student Four,,No submission,{4},12.00,\n"
    "Participant 75,Student Five,,Submitted,{5},12.00,\n"
)
CSV = (
    "\ufeffsubmission,points,max_points,name,section,email,login,number,earned,late_days,attempt,"
    "submitted,flags,state,scale,shift\r\n"
    "s001,{1},12,Student One,,s001@school.example,{own[1]},"
    "11,0,{attempt},{prompt},to fix,6,1\r\n"
    "s002,{2},12,Student Two,,s002@school.example,{own[2]},"
    "11,2,1,2026-11-10T08:00:00+01:00,,to fix,6,1\r\n"
    "s003,{3},12,Student Three,,s003@school.example,{own[3]},"
    "12.5,0,1,2026-11-09T20:00:00+01:00,,to fix,7,1\r\n"
    "s004,{4},12,Student Four,,s004@school.example,{own[4]},"
    "0,,,,,missing,0,0\r\n"
    "s005,{5},12,Student Five,,s005@school.example,{own[5]},"
    "7.5,0,1,{near},to fix,5,0\r\n"
)


@dataclass(frozen=True)
class Layout:
    """How a class comes from a platform, and how its marks and feedback go back.

    `timed` are the students whose time the roster has, because the download has none. Without
    `has_times`, nothing says when `PROMPT` and `NEAR` handed in. `attempt` is the number of what
    is handed in later. `feedback` are the names in the zip that goes back; without any, mails do.
    """

    name: str
    write: Writer
    download: str = "class"  # the name of the folder or archive
    ids: str = "s00{}"
    listed: str = "s00{}"  # the id in the roster
    own: str = ","  # login and number of those who hand in, as far as the download has them
    header: str = "id,name,email,submitted,due"
    time: str = "%Y-%m-%d %H:%M"
    timed: Sequence[int] = ()
    has_times: bool = True
    attempt: int = 1
    keeps: float = 0.5  # of the points of `LATE`
    near: str = "scale (1).py"
    gradebook: str = CSV
    feedback: Sequence[str] = ()

    def id(self, student: int) -> str:
        return self.ids.format(student)

    def who(self, student: int) -> str:
        return f"{self.id(student)} (Student {NAMES[student]})"

    @property
    def has_signs(self) -> bool:
        """Whether a time, or another attempt, says that something was handed in later."""
        return self.has_times or self.attempt > 1

    def roster(self, handed: Sequence[HandIn]) -> str:
        """Return the roster, with the times that the download does not have."""
        times = {one.student: f"{one.when:{self.time}}" for one in handed}
        lines = [self.header]
        for student in STUDENTS:
            due = EXTENSION[student].isoformat() if student in EXTENSION else ""
            time = times.get(student, "") if student in self.timed else ""
            who = f"{self.listed.format(student)},Student {NAMES[student]}"
            lines.append(f'{who},s00{student}@school.example,"{time}",{due}')
        return "\n".join(lines)


PLAIN = {"timed": (LATE, EXTENDED), "has_times": False}
LAYOUTS = {
    "folders": Layout("plain", packed("s00{n}/{file}.py", hand_in), **PLAIN),
    "zips": Layout("plain", zips, near="work/scale (1).py", **PLAIN),
    "one archive": Layout(
        "plain", packed("class/s00{n}/{file}.py", tarred), "class.tar.gz", **PLAIN
    ),
    "clones": Layout("clones", clones, own="s00{},"),
    "gradescope": Layout("gradescope", gradescope, own=",s00{}", attempt=2),
    "canvas": Layout(
        "canvas",
        packed("student{n}{late}_50{n}_90{number}_{file}{again}.py", zipped),
        *("class.zip", "50{}", "50{}"),
        timed=[EXTENDED],
        has_times=False,
        attempt=2,
        keeps=0.75,  # Canvas does not say how late: one day
        gradebook=CANVAS,
        feedback=[
            *("student1_501_905_feedback.html", "student2_LATE_502_902_feedback.html"),
            *("student3_LATE_503_903_feedback.html", "student5_505_904_feedback.html"),
        ],
    ),
    "moodle": Layout(
        "moodle",
        packed("Student {name}_7{n}_assignsubmission_file/{file}.py", zipped),
        *("class.zip", "7{}", "Participant 7{}"),
        header="Identifier,Full name,Email address,Last modified (submission),Extended due date",
        time="%A, %d %B %Y, %I:%M %p",
        timed=STUDENTS,
        gradebook=MOODLE,
        feedback=[
            f"Student {NAMES[n]}_7{n}_assignsubmission_file/feedback.html" for n in HANDING_IN
        ],
    ),
}
