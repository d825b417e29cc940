"""Rosters as they are written, and whose submission is on which line of them."""

from __future__ import annotations

import unicodedata
from pathlib import Path

import pytest
from class_lists import (
    batch,
    flags,
    lines,
)
from classroom import TINY, Instant, hand_in, marks
from commandline import Cli


@pytest.mark.parametrize(
    ("time", "points"),
    [
        ("2026-11-13 12:00", "6"),
        ("13.11.2026 12:00", "6"),
        ("11/13/2026 12:00 PM", "6"),
        ("13 Nov 2026 12:00", "6"),
        ("2026-11-13T12:00:00Z", "4"),
        ("2026-11-13 12:00:00 +0200", "6"),
    ],
)
def test_times_are_in_the_zone_of_the_due_date(
    time: str, points: str, cli: Cli, instant: Instant, tmp_path: Path, strict: Path
) -> None:
    hand_in(tmp_path / "class", {"s001/scale.py": "# 8 points"})
    batch(cli, tmp_path, strict, roster=f"id;submitted\ns001;{time}\n")
    assert marks(tmp_path / "out") == {"s001": points}


@pytest.mark.parametrize(
    ("time", "why", "remedy"),
    [
        (
            "11/8/2026 12:00 PM",
            "could be two days: nothing says whether the day or the month comes first",
            "write it as 2026-11-08 or as 2026-08-11, with the time behind it",
        ),
        ("2026-11-08", "has no time of day", "write it as 2026-11-30T23:59+01:00"),
        ("31.2.2026 12:00", "is no time that exists", "write it as"),
    ],
)
def test_a_time_that_could_be_two_is_refused(
    time: str, why: str, remedy: str, cli: Cli, tmp_path: Path, strict: Path
) -> None:
    hand_in(tmp_path / "class", {"s001/scale.py": "# 8 points"})
    said = batch(cli, tmp_path, strict, roster=f"id,due\ns001,{time}\n")
    assert said.code == 2
    assert f"roster.csv:2: due is `{time}`, which {why}" in said.err
    assert remedy in " ".join(said.err.split())
    assert not (tmp_path / "out").exists()


def test_names_match_however_their_accents_are_written(
    cli: Cli, instant: Instant, tmp_path: Path
) -> None:
    apart, whole = (unicodedata.normalize(form, "Zoë Žižka") for form in ("NFD", "NFC"))
    name = f"{apart}_71_assignsubmission_file"
    hand_in(tmp_path / "class", {f"{name}/scale.py": "# 8 points"})
    said = batch(cli, tmp_path, roster=f"name,section\n{whole},B\n")
    assert "on no line" not in said.err
    assert lines(tmp_path)["71"]["section"] == "B"


@pytest.mark.parametrize(
    "header", ["LastName,FirstName,ID", "Last Name,First Name,id", "Nachname,Vorname,ID"]
)
def test_a_name_in_two_columns_is_one_name(
    header: str, cli: Cli, instant: Instant, tmp_path: Path
) -> None:
    hand_in(tmp_path / "class", {"studentone_501_101_scale.py": "# 8 points"})
    said = batch(cli, tmp_path, roster=f"{header}\nOne,Student,501\nTwo,Student,502\n")
    assert "1 handed in nothing: 502 (Student Two)" in said.err
    assert lines(tmp_path)["501"]["name"] == "Student One"


@pytest.mark.parametrize(
    "maxima",
    [
        "    Points Possible,,,,,8,(read only)",
        ",Points Possible,,,,8,",
        '"Points Possible (read only)",,,,,8,',
    ],
)
def test_rows_of_a_canvas_gradebook_that_are_no_students_are_skipped(
    maxima: str, cli: Cli, instant: Instant, tmp_path: Path
) -> None:
    hand_in(tmp_path / "class", {"studentone_501_101_scale.py": "# 8 points"})
    gradebook = (
        "Student,ID,SIS User ID,SIS Login ID,Section,Attention (99),Final Score\n"
        f",,,,,Manual Posting,\n{maxima}\n"
        '"One, Student",501,k1,one,A,,\n"Two, Student",502,k2,two,A,,\n'
        '"Student, Test",509,,test,A,,\n,,,,,Manual Posting (hidden),\n'
    )
    said = batch(cli, tmp_path, roster=gradebook)
    assert "of the roster, 1 handed in nothing: 502 (Two, Student)\n" in said.err


def test_a_workbook_is_no_roster(cli: Cli, tmp_path: Path) -> None:
    hand_in(tmp_path / "class", {"s001/scale.py": "# 8 points"})
    said = batch(cli, tmp_path, roster=b"PK\x03\x04 and so on")
    assert (said.code, "is a workbook, not a CSV file" in said.err) == (2, True)
    assert "save it as CSV in UTF-8" in said.err


# --- who is on the roster -------------------------------------------------------------------------


SEVERAL = "fits several lines of the roster, so none was used"
SIX = "id,name,login,email\n906,Student Six,s6,s006@school.example\n"


@pytest.mark.parametrize(
    "folder", ["906", "s6", "s006@school.example", "Student Six", "Six, Student", "student_six"]
)
def test_a_folder_may_have_any_name_that_the_roster_knows(
    folder: str, cli: Cli, instant: Instant, tmp_path: Path, zeros: Path
) -> None:
    hand_in(tmp_path / "class", {f"{folder}/scale.py": "# 6 points", "907/scale.py": ""})
    said = batch(cli, tmp_path, zeros, roster=f"{SIX}907,Student Seven,s7,\n")
    assert "on no line of the roster" not in said.err
    found = lines(tmp_path)
    assert set(found) == {folder, "907"}  # nobody is missing
    assert (found[folder]["points"], found[folder]["name"]) == ("6", "Student Six")
    page = (tmp_path / "out" / "reports" / f"{folder}.html").read_text()
    assert "Student Six" in page
    gradebook = "Student,ID,SIS Login ID,Attention (1)\nPoints Possible,,,8\n"
    gradebook += '"Six, Student",906,other,\n"Seven, Student",907,s7,\n'
    (tmp_path / "book.csv").write_text(gradebook)
    export = ("export", "canvas", tmp_path / "book.csv", "--in", tmp_path / "out")
    assert cli(*export, "--course", zeros).code == 0
    made = (tmp_path / "out" / "book-graded.csv").read_text()
    assert made == gradebook.replace("other,", "other,6").replace("s7,", "s7,8")


@pytest.mark.parametrize(("folder", "listed"), [("12345", "0012345"), ("0012345", "12345")])
def test_a_number_that_lost_its_zeros_is_found_and_said(
    folder: str, listed: str, cli: Cli, instant: Instant, tmp_path: Path, zeros: Path
) -> None:
    hand_in(tmp_path / "class", {f"{folder}/scale.py": "# 6 points", "s002/scale.py": ""})
    said = batch(cli, tmp_path, zeros, roster=f"id,name\n{listed},Student One\ns002,\n")
    says = f"1 found by a number without the 0 at its start: {folder} (Student One) is {listed}\n"
    assert says in said.err
    found = lines(tmp_path)
    assert (list(found), found[folder]["points"]) == ([folder, "s002"], "6")
    # Excel dropped the zeros of one of the files; the gradebook has them.
    gradebook = "Student,ID,SIS User ID,Attention (1)\nPoints Possible,,,8\n"
    gradebook += '"One, S",71,0012345,\n"Two, S",72,s002,\n'
    (tmp_path / "book.csv").write_text(gradebook)
    export = ("export", "canvas", tmp_path / "book.csv", "--in", tmp_path / "out")
    assert cli(*export, "--course", zeros).code == 0
    made = (tmp_path / "out" / "book-graded.csv").read_text()
    assert made == gradebook.replace("0012345,", "0012345,6").replace("s002,", "s002,8")


def test_a_hand_in_that_fits_two_lines_is_asked_and_gives_nobody_0(
    cli: Cli, instant: Instant, tmp_path: Path, zeros: Path
) -> None:
    hand_in(tmp_path / "class", {"Same Name/scale.py": "# 6 points", "s003/scale.py": ""})
    listed = "id,name\ns001,Same Name\ns002,Same Name\ns003,Three\ns004,Four\n"
    said = batch(cli, tmp_path, zeros, roster=listed)
    assert f"Same Name {SEVERAL}: line 2 (s001); line 3 (s002)" in said.err
    asked = "a hand-in that was not used fits the line of the roster: s001 (Same Name); s002 (Same"
    assert asked in said.out
    assert asked in (tmp_path / "out" / "index.html").read_text()
    found = lines(tmp_path)
    points = {name: (line["state"], line["points"]) for name, line in found.items()}
    assert points == {
        "Same Name": ("to fix", "6"),
        "s001": ("missing", ""),
        "s002": ("missing", ""),
        "s003": ("passed", "8"),
        "s004": ("missing", "0"),
    }
    why = "may have handed in, because a hand-in that was not used fits this line of the roster"
    assert [found[name]["flags"] for name in ("s001", "s004")] == [why, ""]
    # Once the folder says who it is, the other one has handed in nothing.
    (tmp_path / "class" / "Same Name").rename(tmp_path / "class" / "s002")
    batch(cli, tmp_path, zeros, "--replace")
    assert [lines(tmp_path)[name]["points"] for name in ("s001", "s002")] == ["0", "6"]


@pytest.mark.slow
def test_submissions_on_no_roster_are_said_and_flagged(
    cli: Cli, instant: Instant, tmp_path: Path
) -> None:
    texts = {f"s{n:03}/scale.py": f"# {n % 9} points" for n in range(1, 31)}
    hand_in(tmp_path / "class", texts)
    said = batch(cli, tmp_path, roster="id,name\ns001,Student One\n")
    assert "29 on no line of the roster: s002; s003; " in said.err
    assert "; s021; and 9 more\n" in said.err
    assert flags(tmp_path, "s001") == []
    assert flags(tmp_path, "s002") == ["on no line of the roster"]
    batch(cli, tmp_path, TINY, "--no-roster")  # without a roster nobody is on none
    assert flags(tmp_path, "s002") == []


def test_two_lines_of_one_name_are_said_and_flagged(
    cli: Cli, instant: Instant, tmp_path: Path
) -> None:
    names = ["Same Name_71", "Same Name_72", "Other_73"]
    texts = {f"{name}_assignsubmission_file/scale.py": "# 8 points" for name in names}
    hand_in(tmp_path / "class", texts)
    listed = "number,name\n1,Same Name\n2,same name\n3,Other\n"
    said = batch(cli, tmp_path, roster=listed)
    says = "the roster has the name Same Name more than once"
    assert said.err.count(f"{says}: line 2 (1); line 3 (2)") == 1
    for student in ("71", "72"):
        # Students read it, and are told nothing of one another.
        assert flags(tmp_path, student) == [SEVERAL, says]
        assert f"{student} (Same Name) {SEVERAL}: line 2 (1); line 3 (2)" in said.err
    assert flags(tmp_path, "73") == []


@pytest.mark.parametrize(
    ("first", "second", "owners"),
    [("s001", "S001", ["s001"]), ("s001", "ｓ００１", ["s001"]), ("S001", "ｓ００１", [])],
)
def test_a_line_of_the_roster_is_that_of_one_student(
    first: str, second: str, owners: list[str], cli: Cli, instant: Instant, tmp_path: Path
) -> None:
    hand_in(tmp_path / "class", {f"{name}/scale.py": "# 8 points" for name in (first, second)})
    said = batch(cli, tmp_path, roster="id,name,section\ns001,Student One,B\n")
    found = lines(tmp_path)
    assert [name for name in (first, second) if found[name]["section"] == "B"] == owners
    why = "fits line 2 of the roster, as another hand-in does, so it was not used"
    for name in {first, second} - {*owners}:
        assert flags(tmp_path, name) == [why]
        assert f"{name} {why}" in said.err
    for name in owners:
        assert flags(tmp_path, name) == []


def test_a_group_is_that_of_the_student_who_has_the_line(
    cli: Cli, instant: Instant, tmp_path: Path
) -> None:
    texts = {"S001/scale.py": "# 2 points", "s001/scale.py": "# 8 points"}
    hand_in(tmp_path / "class", texts)
    batch(cli, tmp_path, roster="id,group\ns001,A\ns002,A\n")
    assert marks(tmp_path / "out") == {"S001": "2", "s001": "8", "s002": "8"}
