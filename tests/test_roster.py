"""A roster is read under any usual column names, and errors name the file and line."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest

from grader.classroom.roster import Roster, RosterRow, read_roster
from grader.errors import RequestError
from grader.report import Person
from grader.submissions.layouts import Attempt


def roster(tmp_path: Path, text: str | bytes) -> Roster:
    path = tmp_path / "roster.csv"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return read_roster(path)


def found(listed: Roster, student: str = "x", **person: str) -> str | None:
    row = listed.find(Attempt(student, (), person=Person(**person)))
    return row.student if row else None


EVERYTHING = "id,name,email,login,number,section,due,submitted\n" + (
    "s001,Student One,s001@example.org,one,4711,B,2026-11-30T23:59+01:00,2026-11-29T08:00:00Z\n"
)


def test_every_column_is_read(tmp_path: Path) -> None:
    person = Person("Student One", "s001@example.org", "one", "4711", "B")
    due = datetime(2026, 11, 30, 23, 59, tzinfo=timezone(timedelta(hours=1)))
    submitted = datetime(2026, 11, 29, 8, tzinfo=UTC)
    assert roster(tmp_path, EVERYTHING).rows == (RosterRow("s001", person, due, submitted),)


@pytest.mark.parametrize(
    "text",
    [
        "Student_ID,E-Mail\ns001,s001@example.org\n",
        "\ufeffUSER ID;email address\r\ns001;s001@example.org\r\n",
        "participant\tMail\tfavourite colour\ns001\ts001@example.org\tred\n",
        'mail,"student"\n"s001@example.org","s001",one,too,many\n\n,,\n',
    ],
)
def test_columns_are_found_by_their_usual_names(text: str, tmp_path: Path) -> None:
    assert roster(tmp_path, text).rows == (RosterRow("s001", Person(email="s001@example.org")),)


def test_a_canvas_gradebook_is_a_roster(tmp_path: Path) -> None:
    text = (
        "Student,ID,SIS User ID,SIS Login ID,Section,Attention (99)\n"
        "    Points Possible,,,,,100\n"
        '"One, Student",501,k1,one,A,\n'
    )
    person = Person("One, Student", "", "one", "k1", "A")
    assert roster(tmp_path, text).rows == (RosterRow("501", person),)


def test_a_moodle_worksheet_is_a_roster(tmp_path: Path) -> None:
    listed = roster(tmp_path, "Identifier,Full name,Email address\nTeilnehmer 77,Student One,\n")
    assert listed.rows == (RosterRow("77", Person("Student One")),)


def test_without_ids_students_are_named_by_another_field(tmp_path: Path) -> None:
    text = "login,email,sid,name\none,,,\n,s002@example.org,,\n,,3,\n,,,Student Four\n"
    students = [row.student for row in roster(tmp_path, text).rows]
    assert students == ["one", "s002@example.org", "3", "Student Four"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("id,name\ns001,One\n,\n,  \nS001,Two\n", ":5: `S001` is already in line 2"),
        ("id,section\ns001,A\n,B\n", ":3: nothing in this line identifies a student"),
        (
            "id,due\ns001,tomorrow\n",
            ":2: due is `tomorrow`, which cannot be read as a date and time",
        ),
        ("id,due\ns001,2026-11-30\n", ":2: due is `2026-11-30`, which has no time of day"),
        (
            "id,submitted\ns001,2026-11-30T10:00\n",
            ":2: submitted is `2026-11-30T10:00`, which has no time zone",
        ),
        ("colour,size\nred,1\n", ":1: no column identifies the students"),
        ("", ":1: no column identifies the students"),
        ("id\n", "lists no students"),
        (b"id\ncaf\x81\n", "is not text in UTF-8, UTF-16 or Windows-1252"),
        ('id,name\ns001,One\ns002,"Two\ns003,Three\n', ":3: this is not valid CSV (unexpected end"),
        ("id\n" + "x" * 200_000 + "\n", ":2: this is not valid CSV (field larger than field limit"),
    ],
)
def test_an_error_in_a_roster_names_the_file_and_line(
    text: str | bytes, said: str, tmp_path: Path
) -> None:
    with pytest.raises(RequestError) as raised:
        roster(tmp_path, text)
    assert str(tmp_path / "roster.csv") in raised.value.message
    assert said in raised.value.message
    assert raised.value.remedy


def test_a_missing_roster_is_a_wrong_request(tmp_path: Path) -> None:
    with pytest.raises(RequestError, match=r"cannot read .*No such file"):
        read_roster(tmp_path / "nowhere.csv")


CLASS = """id,name,email,login,number
s001,"One, Student",s001@example.org,one,4711
s002,"Two, Student",s002@example.org,two,s001
s003,"Same, Name",s003@example.org,three,4713
s004,"Same, Name",s003@example.org,four,4714
"""


@pytest.mark.parametrize(
    ("student", "person", "whose"),
    [
        ("S001", {}, "s001"),
        ("x", {"login": "TWO", "name": "One, Student"}, "s002"),
        ("x", {"email": "S002@Example.org"}, "s002"),
        ("x", {"number": "4713"}, "s003"),
        ("x", {"name": "onestudent"}, "s001"),
        ("x", {"name": "Same, Name"}, None),
        ("x", {"email": "s003@example.org"}, None),
        ("four", {}, "s004"),
        ("4711", {}, "s001"),
        ("4711", {"name": "Somebody Else"}, None),
        ("x", {}, None),
        ("", {}, None),
    ],
)
def test_an_attempt_is_matched_with_its_own_student(
    student: str, person: dict[str, str], whose: str | None, tmp_path: Path
) -> None:
    assert found(roster(tmp_path, CLASS), student, **person) == whose


def test_names_that_differ_in_a_vowel_sign_are_two_names(tmp_path: Path) -> None:
    listed = roster(tmp_path, "id,name\ns001,राम\ns002,रमा\ns003,\n")
    assert found(listed, "x", name="राम") == "s001"
    assert found(listed, "x", name="रमा") == "s002"


def test_a_name_without_a_letter_is_nobodys(tmp_path: Path) -> None:
    listed = roster(tmp_path, "id,name\ns001,One\ns002,\n")
    assert found(listed, "x", name="--") is None


def test_a_line_of_blanks_is_left_out(tmp_path: Path) -> None:
    assert len(roster(tmp_path, "id;name\ns001;One\n ; \n").rows) == 1


def test_students_without_an_attempt_are_missing(tmp_path: Path) -> None:
    listed = roster(tmp_path, CLASS)
    there = [listed.rows[0], listed.rows[2]]
    assert [row.student for row in listed.missing(there)] == ["s002", "s004"]


def test_an_attempt_that_matches_several_lines_belongs_to_none(tmp_path: Path) -> None:
    listed = roster(tmp_path, "id,name,email,number\n4711,One,one@example.org,1\n2,Two,,4711\n")
    ours = Attempt("4711", (), person=Person(number="4711", name="Two"))
    assert [row.student for row in listed.matching(ours)] == ["4711", "2"]
    assert listed.find(ours) is None
