"""A whole term through the command line, in every layout: from the dry run to the feedback.

After the hand-ins of `downloads.py`, a hidden suite changes, two marks are adjusted, and marks and
feedback go back. Every expected mark is worked out here, by `mark`.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from classroom import Instant, grade_lines, marks, report_of
from commandline import Cli, Said
from downloads import (
    ABSENT,
    CSV,
    DUE,
    EXTENDED,
    FIRST,
    HANDING_IN,
    LATE,
    LATER,
    LAYOUTS,
    NAMES,
    NEAR,
    PROMPT,
    STUDENTS,
    HandIn,
    Layout,
)
from feedback import TEAM, inside, mails
from regrading import pages, touch

pytestmark = pytest.mark.in_turn

COURSE = f"""
title = "A pair"
points = 10
due = {DUE.isoformat()}
missing = 0
extra_credit = ["shift"]
late.per_day = 25
weights = {{ scale = 1.5, shift = 2 }}
"""
MOST = f"{1.5 * 8:g}"  # `shift` is extra credit
NEARLY_FITS = "`{}` was used for scale because its name nearly fits; needs review"
NOT_LATER = "other files, and nothing says that they were handed in later"
Points = Mapping[int, float]  # by student


def mark(scale: float, shift: float, keeps: float = 1, final: float = 0) -> float:
    """Return a mark by the rules of `COURSE`, for the points of both exercises."""
    return (1.5 * scale + 2 * shift) * keeps + final


# --- the term -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Term:
    """The commands of a course on one class, and what they leave."""

    cli: Cli
    layout: Layout
    place: Path
    course: Path

    @property
    def out(self) -> Path:
        return self.place / "out"

    def hand_in(self, handed: Sequence[HandIn]) -> None:
        """Write the download with what was handed in until now, and the roster."""
        shutil.rmtree(self.place / "class", ignore_errors=True)
        self.layout.write(self.place / self.layout.download, handed)
        (self.place / "class.csv").write_text(self.layout.roster(handed))

    def batch(self, *more: object, roster: bool = True) -> Said:
        listed = ["--roster", self.place / "class.csv"] if roster else []
        where = self.place / self.layout.download, "--out", self.out, "--course", self.course
        return self.cli("batch", *where, *listed, *more)

    def ask(self, *what: object) -> str:
        said = self.cli(*what, "--in", self.out, "--course", self.course)
        assert (said.code, said.err) == (0, ""), said
        return said.out

    def pages(self) -> dict[str, bytes]:
        """Return everything that people read."""
        return pages(self.place / "class")

    def report(self, student: int) -> dict[str, object]:
        return report_of(self.out, self.layout.id(student))


@pytest.mark.slow
@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)
def test_a_whole_term(
    layout: Layout, cli: Cli, instant: Instant, tmp_path: Path, pair: Path
) -> None:
    term, keeps = Term(cli, layout, tmp_path, pair), layout.keeps
    first = {PROMPT: mark(5, 2), LATE: mark(4, 2, keeps), EXTENDED: mark(7, 1), NEAR: mark(5, 0)}
    later = {**first, PROMPT: mark(6, 2)}
    regraded = {**later, PROMPT: mark(6, 1), LATE: mark(4, 1, keeps)}
    final = {**regraded, LATE: mark(4 + 2, 1, keeps), EXTENDED: mark(7, 1, final=-0.5)}

    (pair / "reference/course.toml").write_text(COURSE)
    term.hand_in(FIRST)
    check_dry_run(term, instant)
    assert term.batch().code == 1
    check_marks(term, first)
    check_flags(term)
    instant.jobs.clear()
    check_same(term)
    assert instant.jobs == []

    hand_in_later(term)
    check_marks(term, later)
    assert instant.graded == [(layout.id(PROMPT), ("scale", "shift"))]
    change_suite(term, instant, later, regraded)
    check_marks(term, regraded)
    term.ask("adjust", layout.id(LATE), "scale", "+2", "--why", "a sign")
    term.ask("adjust", layout.id(EXTENDED), "--final", "-0.5", "--why", "a delay")
    check_marks(term, final)
    check_same(term)

    check_history(term, first, later, regraded, final)
    check_explanations(term, final)
    check_export(term, final)
    check_feedback(term)


def check_dry_run(term: Term, instant: Instant) -> None:
    """Check that a dry run names everybody, and grades nobody."""
    said = term.batch("--dry-run")
    assert (said.code, instant.jobs, term.out.exists()) == (0, [], False)
    assert f"{term.layout.name} layout: 4 students\n" in said.err
    assert f"of the roster, 1 handed in nothing: {term.layout.who(ABSENT)}\n" in said.err
    assert all(term.layout.who(student) in said.out for student in HANDING_IN)


def check_marks(term: Term, points: Points) -> None:
    """Compare the marks in grades.csv and in the reports with what they should be."""
    found = marks(term.out)
    assert found == {term.layout.id(student): f"{points[student]:g}" for student in HANDING_IN}
    for student in HANDING_IN:
        assert term.report(student)["mark"]["points"] == points[student]  # type: ignore[index]
    missing = grade_lines(term.out)[term.layout.id(ABSENT)]
    assert (missing["state"], missing["points"]) == ("missing", "0")


def check_flags(term: Term) -> None:
    """Check what needs review: a name that nearly fits, and not a delay that nobody knows."""
    assert {student: term.report(student)["flags"] for student in HANDING_IN} == {
        PROMPT: [],
        LATE: [],
        EXTENDED: [],
        NEAR: [NEARLY_FITS.format(term.layout.near)],
    }


def check_same(term: Term) -> None:
    """Check that the same command, with the roster and without, changes no byte."""
    before = term.pages()
    for roster in (True, False):
        assert term.batch(roster=roster).code == 1
        assert term.pages() == before


def hand_in_later(term: Term) -> None:
    """Hand in once more; if nothing says that it is later, it is listed first."""
    term.hand_in(LATER)
    before, said = term.pages(), term.batch()
    if not term.layout.has_signs:
        assert (said.code, f"{term.layout.who(PROMPT)}: {NOT_LATER}\n" in said.err) == (2, True)
        assert term.pages() == before
        said = term.batch("--replace")
    assert said.code == 1
    assert term.report(PROMPT)["attempt"] == term.layout.attempt


def change_suite(term: Term, instant: Instant, old: Points, new: Points) -> None:
    """Change the hidden suite of `shift`, which gives one point now; grade again, and publish."""
    touch(term.course, "shift")
    instant.points = {"shift": 1}
    instant.jobs.clear()
    before, said = term.pages(), term.batch()
    assert (said.code, "grader regrade" in said.err, instant.jobs) == (2, True, [])
    lines = [" ".join(line.split()) for line in term.ask("regrade").splitlines()]
    assert lines[:3] == [
        *(
            f"{term.layout.who(one)} {old[one]:g} → {new[one]:g} of {MOST} shift -1"
            for one in (PROMPT, LATE)
        ),
        "2 change, 2 stay as they were",
    ]
    assert {names for _, names in instant.graded} == {("shift",)}
    assert term.pages() == before
    assert f"published: {term.out}" in term.ask("regrade", "--publish")


def check_history(term: Term, *stages: Points) -> None:
    """Compare every entry of the history; `stages` are the marks in the order of the term."""
    who, (first, later, regraded, final) = term.layout.who, stages

    def entry(student: int, new: Points, why: str, old: Points | None = None) -> str:
        was = f"{old[student]:g}" if old else "new"
        return f"{who(student)}  {was} → {new[student]:g} of {MOST}: {why}"

    roster = "the class  roster: the roster class.csv: 5 students, 1 with a due date of their own"
    counts = f"attempt {term.layout.attempt} counts, with other files than before (scale +1)"
    wanted = [
        roster,
        *(entry(student, first, "graded for the first time") for student in HANDING_IN),
        *([roster] if PROMPT in term.layout.timed else []),  # the roster has the later time
        *([] if term.layout.has_signs else [f"{who(PROMPT)}  replaced: {NOT_LATER}"]),
        entry(PROMPT, later, counts, first),
        "the class  rules: regraded after a change of the grading of shift",
        entry(PROMPT, regraded, "regraded (shift −1)", later),
        entry(LATE, regraded, "regraded (shift −1)", later),
        f"{who(LATE)}  adjustment: scale +2: a sign",
        entry(LATE, final, "adjusted (scale +2)", regraded),
        f"{who(EXTENDED)}  adjustment: the mark −0.5: a delay",
        entry(EXTENDED, final, "adjusted", regraded),
    ]
    said = term.ask("history").splitlines()
    assert [line.strip().partition("  ")[2] for line in said] == wanted  # without the times


def check_explanations(term: Term, final: Points) -> None:
    """Check that `grader explain` names every step of a mark."""
    steps = {
        PROMPT: ("Scale: 6 of 8, × 1.5", "Shift: 1 of 2, × 2, extra credit", "regraded (shift −1)"),
        LATE: ("adjusted +2 = 6: a sign", f"{term.layout.keeps * 100:g} % count"),
        EXTENDED: ("10 Nov 2026, 20:00 (an extension); in time", "adjusted: a delay −0.5"),
        NEAR: (NEARLY_FITS.format(term.layout.near), "there is no shift.py"),
    }
    for student, parts in steps.items():
        said = " ".join(term.ask("explain", term.layout.id(student)).split())
        for part in (term.layout.who(student), *parts, f"exported {final[student]:g} by"):
            assert part in said, (part, said)


def check_export(term: Term, final: Points) -> None:
    """Export the marks to the platform's gradebook, or as CSV, and compare every byte."""
    layout, made = term.layout, term.place / "made.csv"
    target = ["csv"] if layout.gradebook is CSV else [layout.name, gradebook(term)]
    term.ask("export", *target, "-o", made)
    near = NEARLY_FITS.format(layout.near)
    prompt, near = ",", f",{near}"  # without times
    if layout.has_times:
        prompt = "2026-11-06T20:00:00+01:00,"
        near = f"2026-11-07T20:00:00+01:00,{NEARLY_FITS.format(layout.near)}"
    points = [f"{final.get(student, 0):g}" for student in STUDENTS]
    filled = layout.gradebook.format(
        *("", *points),
        **{"attempt": layout.attempt, "prompt": prompt, "near": near},
        own=["", *(layout.own.format(n) if n in HANDING_IN else "," for n in STUDENTS)],
    )
    assert made.read_bytes() == filled.encode()


def gradebook(term: Term) -> Path:
    """Write the platform's gradebook, in which nobody has a mark yet."""
    path = term.place / "book.csv"
    path.write_bytes(term.layout.gradebook.format(*[""] * 6).encode())
    return path


def check_feedback(term: Term) -> None:
    """Check that everybody who handed in gets their own page."""
    ids = [term.layout.id(student) for student in HANDING_IN]
    reports = [(term.out / f"reports/{name}.html").read_text() for name in ids]
    if term.layout.feedback:
        term.ask("return", term.layout.name, "--out", term.place / "back.zip")
        assert inside(term.place / "back.zip") == dict(zip(term.layout.feedback, reports))
        return
    term.ask("return", "mail", *TEAM, "--out", term.place / "back.mbox")
    found = mails(term.place / "back.mbox")
    people = [f"Student {NAMES[student]}" for student in HANDING_IN]
    assert [mail["To"] for mail in found] == [
        f"{person} <{name}@school.example>" for person, name in zip(people, ids)
    ]
    assert [page.get_content() for mail in found for page in mail.iter_attachments()] == reports


# --- faults that a term has shown -----------------------------------------------------------------


def graded(term: Term) -> Term:
    """Return a term after its first hand-ins."""
    (term.course / "reference/course.toml").write_text(COURSE)
    term.hand_in(FIRST)
    assert term.batch().code == 1
    return term


def test_marks_above_the_maximum_go_to_moodle_as_the_message_says(
    cli: Cli, instant: Instant, tmp_path: Path, pair: Path
) -> None:
    """Extra credit takes `EXTENDED` above the maximum, which the worksheet does not take."""
    term = graded(Term(cli, LAYOUTS["moodle"], tmp_path, pair))
    sheet, made = gradebook(term), tmp_path / "made.csv"
    export = "export", "moodle", sheet, "-o", made, "--in", term.out, "--course", pair
    said = cli(*export)
    assert (said.code, "raise the maximum there and download it again" in said.err) == (2, True)
    sheet.write_text(sheet.read_text().replace("12.00", "15.00"))
    said = cli(*export)
    assert (said.code, said.err) == (0, "")
    assert f"Student Three,,Submitted,{mark(7, 1):g},15.00" in made.read_text()


def test_an_explanation_says_a_flag_once(
    cli: Cli, instant: Instant, tmp_path: Path, pair: Path
) -> None:
    term = graded(Term(cli, LAYOUTS["folders"], tmp_path, pair))
    said = " ".join(term.ask("explain", term.layout.id(NEAR)).split())
    assert said.count(NEARLY_FITS.format(term.layout.near)) == 1
