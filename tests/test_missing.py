"""Those who handed in nothing, and the marks as files."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest
from class_lists import (
    COURSE,
    HEADERS,
    TIMES,
    batch,
    lines,
    moodle_class,
    worksheet,
)
from classroom import TINY, Instant, hand_in
from commandline import Cli


@pytest.mark.parametrize(("rule", "points"), [("", ""), ("missing = 0\n", "0")])
def test_who_handed_in_nothing_has_a_line_in_the_marks(
    rule: str, points: str, cli: Cli, instant: Instant, tmp_path: Path, tiny_copy: Path
) -> None:
    (tiny_copy / "reference" / "course.toml").write_text(f"{COURSE}{rule}")
    hand_in(tmp_path / "class", {f"s00{n}/scale.py": f"# {n} points" for n in (1, 3)})
    listed = "id,name,section\ns004,=cmd(),A\ns002,Student Two,B\ns003,Three,B\ns001,One,A\n"
    batch(cli, tmp_path, tiny_copy, roster=listed)
    cli("export", "csv", "--in", tmp_path / "out", "--course", tiny_copy)
    for name in ("grades.csv", "marks.csv"):
        found = lines(tmp_path, name)
        assert list(found) == ["s001", "s002", "s003", "s004"]
        assert [line["state"] for line in found.values()] == (
            ["to fix", "missing", "to fix", "missing"]
        )
        assert {found["s002"][column] for column in ("points", "earned", "scale")} == {points}
        assert (found["s002"]["max_points"], found["s002"]["section"]) == ("8", "B")
        assert found["s004"]["name"] == "'=cmd()"
        assert found["s003"]["points"] == "3"


def test_a_change_of_the_rule_for_missing_students_is_published(
    cli: Cli, instant: Instant, tmp_path: Path, tiny_copy: Path
) -> None:
    settings = tiny_copy / "reference" / "course.toml"
    settings.write_text(COURSE)
    hand_in(tmp_path / "class", {"s001/scale.py": "# 1 points"})
    batch(cli, tmp_path, tiny_copy, roster="id\ns001\ns002\n")
    settings.write_text(f"{COURSE}missing = 0\n")
    said = cli("batch", "--resume", "--out", tmp_path / "out", "--course", tiny_copy)
    assert (said.code, lines(tmp_path)["s002"]["points"]) == (1, "0")
    settings.write_text(f"{COURSE}missing = 5\n")
    said = cli("batch", "--resume", "--out", tmp_path / "out", "--course", tiny_copy)
    assert (said.code, "course.toml: missing: expected 0" in said.err) == (2, True)


@pytest.mark.parametrize(("rule", "filled"), [("", ""), ("missing = 0\n", "0")])
def test_gradebooks_get_0_for_nothing_only_if_the_course_says_so(
    rule: str, filled: str, cli: Cli, instant: Instant, tmp_path: Path, tiny_copy: Path
) -> None:
    (tiny_copy / "reference" / "course.toml").write_text(f"{COURSE}{rule}")
    hand_in(tmp_path / "class", {"One_71_assignsubmission_file/scale.py": "# 8 points"})
    sheet = worksheet("de", "-", "-")
    batch(cli, tmp_path, tiny_copy, roster=sheet)
    export = ("export", "moodle", tmp_path / "roster.csv", "--in", tmp_path / "out")
    said = cli(*export, "--course", tiny_copy)
    assert said.code == 0
    made = (tmp_path / "out" / "roster-graded.csv").read_text()
    assert made == sheet.replace(",A,,", ",A,8,", 1).replace(",A,,", f",A,{filled},", 1)


@pytest.mark.parametrize("language", HEADERS)
def test_every_worksheet_that_is_a_roster_takes_the_marks(
    language: str, cli: Cli, instant: Instant, tmp_path: Path
) -> None:
    moodle_class(tmp_path, 2)
    batch(cli, tmp_path, roster=worksheet(language, TIMES[language], "-"))
    export = ("export", "moodle", tmp_path / "roster.csv", "--in", tmp_path / "out")
    assert "2 marks in column" in cli(*export, "--course", TINY).out
    made = (tmp_path / "out" / "roster-graded.csv").read_text()
    assert made == worksheet(language, TIMES[language], "-").replace(",A,,", ",A,8,")


def test_the_marks_open_in_a_spreadsheet_as_utf_8(
    cli: Cli, instant: Instant, tmp_path: Path
) -> None:
    hand_in(tmp_path / "class", {"s001/scale.py": "# 8 points"})
    batch(cli, tmp_path, roster="id,name\ns001,Zoë Žižka\n")
    cli("export", "csv", "--in", tmp_path / "out", "--course", TINY)
    for name in ("grades.csv", "marks.csv"):
        data = (tmp_path / "out" / name).read_bytes()
        assert data.startswith(b"\xef\xbb\xbfsubmission,points,")
        assert "Zoë Žižka".encode() in data


# --- the 0 for nothing, everywhere that a mark goes -----------------------------------------------

PAIR = 'title = "A pair"\npoints = 10\nmissing = 0\n'


def test_who_handed_in_nothing_gets_0_in_the_column_of_each_exercise(
    cli: Cli, instant: Instant, tmp_path: Path, pair: Path
) -> None:
    (pair / "reference" / "course.toml").write_text(PAIR)
    texts = {"s001/scale.py": "# 5 points", "s001/shift.py": "# 1 points"}
    hand_in(tmp_path / "class", texts)
    batch(cli, tmp_path, pair, roster="id\ns001\ns002\n")
    gradebook = (
        "Student,ID,Scale (11),Shift (12)\nPoints Possible,,8,2\nOne,s001,{},{}\nTwo,s002,{},{}\n"
    )
    (tmp_path / "book.csv").write_text(gradebook.format("", "", "", ""))
    export = ("export", "canvas", tmp_path / "book.csv", "--in", tmp_path / "out")
    said = cli(*export, "--course", pair, "--per-exercise")
    assert (said.code, said.err) == (0, "")
    made = (tmp_path / "out" / "book-graded.csv").read_text()
    assert made == gradebook.format(5, 1, 0, 0)


def test_a_worksheet_that_goes_back_has_the_same_grades_as_an_exported_one(
    cli: Cli, instant: Instant, tmp_path: Path, tiny_copy: Path
) -> None:
    (tiny_copy / "reference" / "course.toml").write_text(f"{COURSE}missing = 0\n")
    hand_in(tmp_path / "class", {"One_71_assignsubmission_file/scale.py": "# 5 points"})
    sheet = worksheet("en", "-", "-")
    batch(cli, tmp_path, tiny_copy, roster=sheet)
    place = ("--in", tmp_path / "out", "--course", tiny_copy)
    assert cli("export", "moodle", tmp_path / "roster.csv", *place).code == 0
    exported = (tmp_path / "out" / "roster-graded.csv").read_text()
    back = ("return", "moodle", "--worksheet", tmp_path / "roster.csv", "-o", tmp_path / "back.csv")
    assert cli(*back, *place).code == 0
    grades = [
        [line["Grade"] for line in csv.DictReader(text.splitlines())]
        for text in (exported, (tmp_path / "back.csv").read_text())
    ]
    assert grades == [["5", "0"], ["5", "0"]]
