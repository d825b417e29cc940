"""A term on one page: whose marks, who falls behind, which mistakes come back."""

from __future__ import annotations

import csv
import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from classroom import Instant, hand_in
from commandline import Cli, Said
from test_accommodations import settings
from test_late_budget import BUDGET

RULES = 'title = "A tiny course"\npoints = 8\nzone = "Europe/Berlin"\n'


@dataclass(frozen=True)
class Term:
    """The assignments of one course."""

    cli: Cli
    place: Path
    course: Path

    def assign(self, name: str, texts: dict[str, str], roster: str = "", *more: object) -> Said:
        """Grade an assignment: the text of each student's file, by folder."""
        files = {f"{student}/scale.py": text for student, text in texts.items()}
        hand_in(self.place / "handed in" / name, files)
        listed = []
        if roster:
            (self.place / f"{name}.csv").write_text(roster)
            listed = ["--roster", self.place / f"{name}.csv"]
        where = self.place / "handed in" / name, "--out", self.results / name
        said = self.cli("batch", *where, "--course", self.course, *listed, *more)
        assert said.code in (0, 1), said.err
        return said

    @property
    def results(self) -> Path:
        return self.place / "results"

    def overview(self, *more: object) -> Said:
        """Show the term, with everything that a shell would put for a star."""
        return self.cli("overview", *sorted(self.results.iterdir()), *more)

    def lines(self) -> dict[str, dict[str, str]]:
        with (self.results / "overview.csv").open(encoding="utf-8-sig", newline="") as file:
            return {row["student"]: row for row in csv.DictReader(file)}

    @property
    def page(self) -> str:
        return (self.results / "overview.html").read_text("utf-8")

    @property
    def data(self) -> Any:
        """The data of the page's table."""
        found = re.search(r'id="data">(.*?)</script>', self.page)
        assert found is not None
        return json.loads(found[1])


@pytest.fixture
def term(cli: Cli, instant: Instant, tmp_path: Path, tiny_copy: Path) -> Term:
    (tiny_copy / "reference/course.toml").write_text(RULES)
    return Term(cli, tmp_path, tiny_copy)


def points(*each: int) -> dict[str, str]:
    """Return a file for each of s001, s002 and so on that earns these points, of 8."""
    return {f"s{n:03}": f"# {count} points\n" for n, count in enumerate(each, start=1)}


def test_the_marks_of_all_assignments_stand_side_by_side(term: Term) -> None:
    term.assign("hw1", points(8, 5))
    term.assign("hw2", points(6, 7, 4))
    said = term.overview()
    assert (said.code, said.err) == (0, "")
    lines = term.lines()
    assert list(lines) == ["s001", "s002", "s003"]
    assert {s: (row["hw1"], row["hw2"], row["points"]) for s, row in lines.items()} == {
        "s001": ("8", "6", f"{8 + 6}"),
        "s002": ("5", "7", f"{5 + 7}"),
        "s003": ("", "4", "4"),
    }
    assert [row["max_points"] for row in lines.values()] == ["16", "16", "8"]
    mean = f"{100 * (6 + 7 + 4) / (3 * 8):.0f} %"
    assert f"  hw2  3 of 3 handed in, mean {mean}, 0 late\n" in said.out
    assert term.data["students"]["points_of"] == [[8, 6], [5, 7], [None, 4]]
    assert "opens on a double click: " in said.out


def test_links_lead_to_the_latest_report_and_to_each_class(term: Term) -> None:
    term.assign("hw1", points(8, 5))
    term.assign("hw 2", points(6))
    term.overview()
    pages = dict(zip(term.data["students"]["id"], term.data["students"]["page"]))
    assert pages == {"s001": "./hw%202/reports/s001.html", "s002": "./hw1/reports/s002.html"}
    term.overview("--out", term.place / "elsewhere")
    page = (term.place / "elsewhere/overview.html").read_text()
    for link in ("./../results/hw1/index.html", "./../results/hw%202/index.html"):
        assert f'href="{link}"' in page


def test_students_are_joined_by_what_rosters_say_of_them(term: Term) -> None:
    """Each assignment calls them otherwise: by id, by login, by e-mail, by name."""
    header = "id,name,login,email\n"
    term.assign(
        "hw1",
        points(8, 5),
        header + "s001,Student One,one,1@school.example\ns002,Student Two,two,\n",
    )
    term.assign("hw2", {"one": "# 7 points", "two": "# 6 points"})
    term.assign(
        "hw3",
        {"x1": "# 3 points", "x2": "# 2 points"},
        'id,name,email\nx1,,1@school.example\nx2,"Two, Student",\n',
    )
    term.overview()
    assert {s: [row[f"hw{n}"] for n in (1, 2, 3)] for s, row in term.lines().items()} == {
        "s001": ["8", "7", "3"],
        "s002": ["5", "6", "2"],
    }


def test_whoever_may_be_several_students_is_counted_apart_and_named(term: Term) -> None:
    term.assign("hw1", points(8, 5), "id,name\ns001,Student One\ns002,Student One\n")
    term.assign("hw2", {"x1": "# 7 points"}, "id,name\nx1,Student One\n")
    said = term.overview()
    assert [*term.lines()] == ["s001", "s002", "x1"]
    doubt = "x1 (Student One) of hw2 may be s001 (Student One); s002 (Student One)"
    assert f"  ! {doubt}\n" in said.out
    assert doubt in term.page


def test_a_roster_says_who_belongs_to_the_term(term: Term) -> None:
    term.assign("hw1", points(8))
    (term.place / "term.csv").write_text(
        "id,name,section\ns001,Student One,A\ns002,Student Two,B\n"
    )
    term.overview("--roster", term.place / "term.csv")
    row = term.lines()["s002"]
    assert (row["hw1"], row["name"], row["section"]) == ("", "Student Two", "B")
    assert row["falls_behind"] == "handed in nothing for hw1"


def test_nothing_handed_in_counts_as_the_course_says(term: Term) -> None:
    roster = "id\ns001\ns002\n"
    term.assign("hw1", points(8), roster)
    (term.course / "reference/course.toml").write_text(f"{RULES}missing = 0\n")
    term.assign("hw2", points(6), roster)
    said = term.overview()
    row = term.lines()["s002"]
    assert (row["hw1"], row["hw2"], row["points"], row["max_points"]) == ("", "0", "0", "8")
    assert "  hw1  1 of 2 handed in, mean 100 %, 0 late\n" in said.out
    assert "  hw2  1 of 2 handed in, mean 75 %, 0 late\n" in said.out


# --- who falls behind -----------------------------------------------------------------------------


def test_who_hands_in_nothing_any_more_falls_behind(term: Term) -> None:
    term.assign("hw1", points(8, 8))
    term.assign("hw2", points(8))
    term.assign("hw3", {**points(8), "s003": "# 8 points"})  # who has joined since
    term.overview()
    reasons = {student: row["falls_behind"] for student, row in term.lines().items()}
    assert reasons == {"s001": "", "s002": "handed in nothing for hw2, hw3", "s003": ""}


@pytest.mark.parametrize(
    ("last", "reason"),
    [
        # Three are at 8 and 4 of 8, so the medians are 100 % and 50 %. Until then s004 is at the
        # median; in the last assignment 0.5 − 3/8 or 0.5 − 2/8 below it.
        (3, ""),
        (2, "worse than before: 25 % in hw3, 100 % on average until then"),
    ],
)
def test_who_gets_worse_than_the_class_falls_behind(term: Term, last: int, reason: str) -> None:
    assert (0.5 - last / 8 >= 0.2) == bool(reason)
    term.assign("hw1", points(8, 8, 8, 8))
    term.assign("hw2", points(8, 8, 8, 8))
    term.assign("hw3", points(4, 4, 4, last))  # hard for everybody
    term.overview()
    found = {student: row["falls_behind"] for student, row in term.lines().items()}
    assert found == {"s001": "", "s002": "", "s003": "", "s004": reason}


def test_who_is_far_below_the_class_on_the_whole_falls_behind(term: Term) -> None:
    term.assign("hw1", points(8, 7, 4))
    term.assign("hw2", points(7, 6, 4))
    said = term.overview()
    shares = [(8 + 7) / 16, (7 + 6) / 16, (4 + 4) / 16]
    assert sorted(shares)[1] - shares[2] >= 0.2
    reason = "far below the class: 50 %, where the median is 81 %"
    assert [row["falls_behind"] for row in term.lines().values()] == ["", "", reason]
    assert f"  falling behind: 1 student\n    s003: {reason}\n" in said.out
    assert term.data["students"]["flags"] == [[], [], [reason]]


# --- mistakes that come back ----------------------------------------------------------------------


def made(*mistakes: str) -> dict[str, str]:
    """Return a file for each of s001, s002 and so on that makes a mistake, or none."""
    names = [f"# mistake {name}\n# 6 points" if name else "# 8 points" for name in mistakes]
    return {f"s{n:03}": text for n, text in enumerate(names, start=1)}


def test_a_mistake_in_several_assignments_comes_back(term: Term) -> None:
    term.assign("hw1", made("no_scale", "no_scale", "wrong_axis"))
    term.assign("hw2", made("", "no_scale", "no_scale"))
    term.assign("hw3", made("no_scale", "", "off_by_one"))
    said = term.overview()
    # s001 makes it in the first and the third, s002 in the first two; s003 only once.
    assert "  mistakes that come back: 1\n    no_scale: 2 students, hw1, hw2, hw3\n" in said.out
    repeated = {student: row["comes_back"] for student, row in term.lines().items()}
    assert repeated == {"s001": "no_scale", "s002": "no_scale", "s003": ""}
    assert term.data["mistakes"] == [[0, 1]]
    assert "This is no_scale." in term.page
    assert "wrong_axis" not in term.page


# --- late days ------------------------------------------------------------------------------------


def late(*days: float) -> str:
    """Return a roster in which s001, s002 … hand in so many hours after midday of the due date."""
    times = [f"2026-11-{12 + int(day)} {12 + round(24 * (day % 1))}:00" for day in days]
    rows = [f"s{n:03},{time}" for n, time in enumerate(times, start=1)]
    return "\n".join(["id,submitted", *rows, ""])


def test_late_days_add_up_over_the_term(term: Term) -> None:
    settings(term.course, late=BUDGET)  # three free days; a quarter for each other day
    term.assign("hw1", points(8, 8), late(1.25, 0))
    term.assign("hw2", points(8, 8), late(1.25, 0.25), "--earlier", term.results / "hw1")
    said = term.overview()
    rows = term.lines()
    days = {
        s: tuple(r[k] for k in ("late_days", "free_days", "free_days_left"))
        for s, r in rows.items()
    }
    assert days == {"s001": (f"{2 + 2}", "3", "0"), "s002": ("1", "1", f"{3 - 1}")}
    assert rows["s001"]["hw2"] == f"{8 * 0.75:g}"  # one day that is not free
    assert term.data["students"]["free_left"] == [0, 2]
    assert "!" not in said.out


def test_days_that_were_not_counted_are_named(term: Term) -> None:
    settings(term.course, late=BUDGET)
    term.assign("hw1", points(8, 8), late(1.25, 0))
    term.assign("hw2", points(8, 8), late(1.25, 0))
    said = term.overview()
    assert "  ! hw2 does not count the free late days of hw1: grader batch … --earlier" in said.out
    # An extension afterwards gives a day back, which the second assignment does not know.
    term.assign("hw2", points(8, 8), late(1.25, 0), "--earlier", term.results / "hw1", "--replace")
    assert "!" not in term.overview().out
    due = (
        late(1.25, 0)
        .replace("submitted\n", "submitted,due\n", 1)
        .replace("18:00", "18:00,2026-11-13 12:00")
    )
    term.assign("hw1", points(8, 8), due)
    changed = "since hw2 was graded, the free late days used before it have changed, of s001"
    assert f"  ! {changed}: grader regrade --in hw2 counts them\n" in term.overview().out


# --- what is given --------------------------------------------------------------------------------


def test_folders_come_in_the_order_of_their_numbers(term: Term) -> None:
    for name in ("hw10", "hw2", "hw1"):
        term.assign(name, points(8))
    term.overview()
    assert [key for key in term.lines()["s001"] if key.startswith("hw")] == ["hw1", "hw2", "hw10"]
    given = [term.results / name for name in ("hw10", "hw1", "hw2")]
    term.cli("overview", *given)
    assert [key for key in term.lines()["s001"] if key.startswith("hw")] == ["hw10", "hw1", "hw2"]


def test_folders_of_one_name_are_told_apart(term: Term) -> None:
    for name in ("hw1/out", "hw2/out"):
        term.assign(name, points(8))
    said = term.cli("overview", *(term.results / name for name in ("hw1/out", "hw2/out")))
    assert said.code == 0
    assert {"hw1/out", "hw2/out"} <= set(term.lines()["s001"])


def test_whatever_else_a_pattern_hits_is_left_out_and_folders_are_named(term: Term) -> None:
    term.assign("hw1", points(8))
    (term.results / "notes").mkdir()
    assert term.overview().err == f"  left out: no class was graded into {term.results / 'notes'}\n"
    said = term.overview()  # now with its own files among what the pattern hits
    assert (said.code, [*term.lines()]) == (0, ["s001"])
    for paths, why in (
        ([term.results / "hw9"], f"there is no {term.results / 'hw9'}"),
        ([term.results / "notes"], "no class was graded into any of these"),
        ([term.results / "hw1"] * 2, "a folder of results is named twice"),
    ):
        said = term.cli("overview", *paths)
        assert (said.code, why in said.err) == (2, True)


def test_an_assignment_that_is_not_finished_is_named(term: Term, instant: Instant) -> None:
    def breaks(job: object) -> None:
        raise RuntimeError("the grader breaks")

    term.assign("hw1", points(8))
    instant.before = breaks
    hand_in(term.place / "2", {"s001/scale.py": "# 8 points"})
    term.cli("batch", term.place / "2", "--out", term.results / "hw2", "--course", term.course)
    said = term.overview()
    assert "  ! hw2 is not finished, so marks may be missing: grader batch --resume" in said.out


def test_hostile_names_stay_text(term: Term) -> None:
    name = "</script><script>document.title=1</script>"
    term.assign("hw1", points(8), f'id,name,section\ns001,"{name}","=1+1"\n')
    term.assign("hw2", {"s002": "# 8 points"}, "id,name\ns002,x\n")
    term.overview()
    assert name not in term.page
    assert term.data["students"]["name"][0] == name
    row = term.lines()["s001"]
    assert (row["name"], row["section"]) == (name, "'=1+1")
