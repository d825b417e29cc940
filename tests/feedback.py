"""A class whose feedback goes home, and what goes: zips, worksheets and mails."""

from __future__ import annotations

import mailbox
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from email import policy
from email.message import EmailMessage
from email.parser import BytesParser
from pathlib import Path
from typing import Any

from classroom import TINY, hand_in
from commandline import Cli, Said

MOODLE = "One A_3001_assignsubmission_file", "Two B_3002_assignsubmission_file_"
IN_MOODLE = {f"{name}/scale.py": f"# {n + 5} points" for n, name in enumerate(MOODLE)}
WORKSHEET = (
    "Identifier,Full name,Email address,Status,Grade,Maximum Grade,Grade can be changed,"
    "Last modified (submission),Last modified (grade),Feedback comments\r\n"
    "Participant 3001,One A,,Submitted,{},8.00,Yes,-,-,{}\r\n"
    "Participant 3002,Two B,,Submitted,{},8.00,Yes,-,-,{}\r\n"
    "Participant 3003,Tri C,,No submission,,8.00,Yes,-,-,\r\n"
)
ROSTER = (
    "id,name,email\ns001,Student 001,s001@school.example\ns002,Student 002,\n"
    "s003,Studentin 003 Ä,s003@school.example\n"
)
BY_MAIL = {f"s00{n}/scale.py": f"# {n + 4} points" for n in (1, 2, 3)}
TEAM = "--from", "Course team <team@school.example>"


@dataclass(frozen=True)
class Home:
    """A class that was graded, in a folder of its own."""

    cli: Cli
    folder: Path
    course: Path = TINY

    @property
    def out(self) -> Path:
        return self.folder / "out"

    def batch(self, texts: Mapping[str, str], roster: str = "") -> Home:
        hand_in(self.folder / "class", texts)
        options: list[object] = []
        if roster:
            (self.folder / "roster.csv").write_text(roster)
            options = ["--roster", self.folder / "roster.csv"]
        arguments = "batch", self.folder / "class", "--out", self.out, "--course", self.course
        assert self.cli(*arguments, "--seed", 5, *options).code in (0, 1)
        return self

    def back(self, *arguments: object) -> Said:
        return self.cli("return", *arguments, "--in", self.out, "--course", self.course)

    def page(self, student: str) -> str:
        return (self.out / "reports" / f"{student}.html").read_text()


def inside(path: Path) -> dict[str, str]:
    """The files in a zip, in their order."""
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name).decode() for name in archive.namelist()}


def mails(path: Path) -> list[EmailMessage]:
    """The messages of an mbox."""

    def read(file: Any) -> EmailMessage:
        return BytesParser(EmailMessage, policy=policy.default).parse(file)

    return list(mailbox.mbox(path, read, create=False))  # type: ignore[arg-type]


def body(mail: EmailMessage) -> str:
    """The plain text of a message."""
    part = mail.get_body(("plain",))
    assert part is not None
    return str(part.get_content())
