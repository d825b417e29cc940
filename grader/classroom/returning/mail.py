"""Mails to students: an mbox of messages after RFC 5322, and a table for other tools."""

from __future__ import annotations

import csv
import hashlib
import io
import re
import time
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from email import policy
from email.generator import BytesGenerator
from email.headerregistry import Address
from email.message import EmailMessage
from email.utils import format_datetime
from typing import TextIO

from grader.errors import RequestError
from grader.reports.platforms.grades import BOM, cell

COLUMNS = ("email", "name", "id", "subject", "text", "attachment")
MAX_ADDRESS = 254  # characters, which RFC 5321 allows
_ATOMS = r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+(?:\.[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+)*"
_ADDRESS = re.compile(rf"{_ATOMS}@[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)*")
_SENDER = re.compile(
    rf"(?P<bare>{_ADDRESS.pattern})|"
    rf"(?P<quote>\"?)(?P<name>[^<>\"]*?)(?P=quote)\s*<(?P<named>{_ADDRESS.pattern})>"
)
_POLICY = policy.default.clone(max_line_length=78)


@dataclass(frozen=True)
class Mail:
    """A message to one student; `name`, `subject` and `student` are single lines.

    `attachment` is the name of the page, `date` the time at which the mark was published.
    """

    student: str
    name: str
    email: str
    subject: str
    text: str
    page: str
    attachment: str
    date: datetime | None = None


def is_address(text: str) -> bool:
    """Return whether a text is one plain e-mail address that every mail server takes."""
    return len(text) <= MAX_ADDRESS and bool(_ADDRESS.fullmatch(text))


def parse_sender(text: str) -> Address:
    """Return the sender, written as an address or as `Name <address>`."""
    found = _SENDER.fullmatch(text.strip())
    if found is None or not text.isprintable():
        message = f"--from is {text!r}, which is not an e-mail address"
        raise RequestError(message, "--from 'Course team <team@school.example>'")
    return Address(found["name"] or "", addr_spec=found["named"] or found["bare"])


def mbox_entry(mail: Mail, sender: Address) -> bytes:
    """Return a mail as an entry of an mbox, with the same bytes every time."""
    when = (mail.date or datetime.fromtimestamp(0, UTC)).astimezone(UTC)
    stream = io.BytesIO()
    stream.write(f"From {sender.addr_spec} {time.asctime(when.timetuple())}\n".encode())
    generator = BytesGenerator(stream, mangle_from_=True, policy=_POLICY)
    generator.flatten(_message(mail, sender))
    return stream.getvalue() + b"\n"


def _message(mail: Mail, sender: Address) -> EmailMessage:
    message = EmailMessage(_POLICY)
    message["From"] = sender
    message["To"] = Address(mail.name, addr_spec=mail.email)
    message["Subject"] = mail.subject
    if mail.date is not None:
        message["Date"] = format_datetime(mail.date)
    said = "\0".join([mail.email, mail.subject, mail.text, mail.page])
    digest = hashlib.sha256(said.encode("utf-8", "replace")).hexdigest()[:32]
    message["Message-ID"] = f"<{digest}@{sender.domain}>"
    message.set_content(_encodable(mail.text), cte="quoted-printable")
    page = _encodable(mail.page)
    message.add_attachment(page, subtype="html", cte="base64", filename=mail.attachment)
    message.set_boundary(f"={digest}=")  # else a random one
    return message


def _encodable(text: str) -> str:
    return text.encode("utf-8", "replace").decode()


def write_table(stream: TextIO, mails: Iterable[tuple[Mail, str]]) -> None:
    """Write a line for each mail with the path of its attachment; the page itself is not in it.

    A spreadsheet opens the cells as text, never as formulas.
    """
    stream.write(BOM)
    writer = csv.writer(stream, lineterminator="\r\n")
    writer.writerow(COLUMNS)
    for mail, path in mails:
        values = mail.email, mail.name, mail.student, mail.subject, mail.text, path
        writer.writerow(map(cell, values))
