"""Mails bring each student their page, and strange names stay harmless in them."""

from __future__ import annotations

import csv
import io
import re
import stat
import time
from dataclasses import replace
from datetime import datetime
from email.utils import format_datetime
from pathlib import Path

import pytest
from classroom import rows
from feedback import BY_MAIL, ROSTER, TEAM, Home, body, mails


def test_mails_say_the_points_and_bring_the_page(home: Home) -> None:
    home.batch(BY_MAIL, ROSTER)
    said = home.back("mail", *TEAM, "--out", home.folder / "mails.mbox")
    assert (said.code, said.err) == (0, "")
    assert f"2 mails: {home.folder / 'mails.mbox'}" in said.out
    assert "without an e-mail address, 1: s002" in said.out
    first, last = mails(home.folder / "mails.mbox")
    assert first["From"] == "Course team <team@school.example>"
    assert first["To"] == "Student 001 <s001@school.example>"
    assert last["To"].addresses[0].display_name == "Studentin 003 Ä"
    assert first["Subject"] == "A tiny course: your feedback"
    assert body(first) == (
        "Hello Student 001,\n\nhere is the feedback on A tiny course.\n\n"
        "5 of 8 points. Fix Scale first. This does not hold yet: All of it.\n\n"
        "Scale: 5 / 8, 1 of 1 checks fails\n\n"
        "The attached page is the whole report; open it in a browser.\n"
    )
    for student, mail in (("s001", first), ("s003", last)):
        (page,) = mail.iter_attachments()
        assert (page.get_content_type(), page.get_filename()) == ("text/html", f"{student}.html")
        assert page.get_content() == home.page(student)
        copy = home.folder / "mails-reports" / f"{student}.html"
        assert copy.read_text() == home.page(student)
        assert stat.S_IMODE(copy.stat().st_mode) == 0o600


def test_a_class_without_addresses_gets_no_mails(home: Home) -> None:
    home.batch(BY_MAIL)
    said = home.back("mail", *TEAM, "--out", home.folder / "mails.mbox")
    assert said.code == 2
    assert "nobody in this class has an e-mail address that can be used" in said.err
    assert not (home.folder / "mails.mbox").exists()


def test_an_mbox_is_the_same_bytes_each_time_and_as_the_standard_has_it(home: Home) -> None:
    home.batch(BY_MAIL, ROSTER)
    for name in ("one.mbox", "two.mbox"):
        home.back("mail", *TEAM, "--out", home.folder / name)
    data = (home.folder / "one.mbox").read_bytes()
    assert data == (home.folder / "two.mbox").read_bytes()
    ((at,),) = rows(home.out, "SELECT at FROM published WHERE student = 's001'")
    when = datetime.fromisoformat(at)
    start, _, rest = data.decode("ascii").partition("\nMessage-ID: ")
    assert start == (
        f"From team@school.example {time.asctime(when.timetuple())}\n"
        "From: Course team <team@school.example>\nTo: Student 001 <s001@school.example>\n"
        f"Subject: A tiny course: your feedback\nDate: {format_datetime(when)}"
    )
    assert max(map(len, rest.splitlines())) <= 78
    ids = [mail["Message-ID"] for mail in mails(home.folder / "one.mbox")]
    assert len(set(ids)) == 2
    assert all(one.endswith("@school.example>") for one in ids)


def test_the_table_of_mails_opens_in_excel_and_names_the_pages(home: Home) -> None:
    home.batch(BY_MAIL, ROSTER)
    home.back("mail", *TEAM)
    data = (home.out / "mails.csv").read_bytes()
    assert data.startswith(b"\xef\xbb\xbfemail,name,id,subject,text,attachment\r\n")
    first, last = csv.DictReader(io.StringIO(data.decode("utf-8-sig"), newline=""))
    assert first["attachment"] == "mails-reports/s001.html"
    assert (home.out / first["attachment"]).read_text() == home.page("s001")
    assert (last["email"], last["name"], last["id"]) == (
        *("s003@school.example", "Studentin 003 Ä", "s003"),
    )
    assert first["text"] == body(mails(home.out / "mails.mbox")[0])


@pytest.mark.parametrize(
    "sender", ["", "team", "a@b\r\nBcc: c@d", "a@b.example, c@d.example", "<a@b.example>x y"]
)
def test_a_sender_that_is_no_address_is_refused(sender: str, home: Home) -> None:
    home.batch(BY_MAIL, ROSTER)
    said = home.back("mail", "--from", sender)
    assert said.code == 2
    assert "team@school.example" in said.err
    assert not (home.out / "mails.mbox").exists()


def test_strange_names_stay_harmless_in_mails(home: Home, tiny_copy: Path) -> None:
    exercise = tiny_copy / "reference" / "scale" / "exercise.toml"
    exercise.write_text(re.sub('title = ".*"', 'title = "From 1"', exercise.read_text()))
    roster = (
        "id,name,email\n"
        's001,"Eve\r\nBcc: all@school.example",s001@school.example\n'
        's002,"=HYPERLINK(""http://x.example"")",s002@school.example\n'
        's003,"""Eve"" <../..>, ; x",s003@school.example\n'
        's004,Name 4,"s004@school.example, all@school.example"\n'
        's005,Name 5,"s005@school.example\r\nBcc: all@school.example"\n'
        "s006,Name 6,jörg@school.example\n"
    )
    texts = {f"s00{n}/scale.py": "# 5 points" for n in range(1, 7)}
    home = replace(home, course=tiny_copy).batch(texts, roster)
    said = home.back("mail", *TEAM)
    who = "s004 (Name 4); s005 (Name 5); s006 (Name 6)"
    assert f"with an e-mail address that cannot be used, 3: {who}" in said.out
    found = mails(home.out / "mails.mbox")
    headers = {"From", "To", "Subject", "Date", "Message-ID", "MIME-Version", "Content-Type"}
    assert [set(mail.keys()) for mail in found] == [headers] * 3
    assert [[one.addr_spec for one in mail["To"].addresses] for mail in found] == (
        [[f"s00{n}@school.example"] for n in (1, 2, 3)]
    )
    assert found[2]["To"].addresses[0].display_name == '"Eve" <../..>, ; x'
    assert "\n>From 1: 5 / 8" in body(found[0])
    with (home.out / "mails.csv").open(encoding="utf-8-sig", newline="") as file:
        names = [row["name"] for row in csv.DictReader(file)]
    assert names[1].startswith("'=HYPERLINK")
    assert sorted(path.name for path in (home.out / "mails-reports").iterdir()) == (
        ["s001.html", "s002.html", "s003.html"]
    )
