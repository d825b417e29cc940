"""Feedback on its way back to students: what it says, and the files that platforms take.

It turns what a student may see into names, texts and bytes. It knows neither the ledger nor where
files are written.

Moodle reads `{name}_{participant}_{plugin}` in the name of a folder or file. Canvas reads the
numbers of the user and of the attachment in `{name}_{user}_{attachment}_{file}`. Mails are an mbox
of messages as RFC 5322 has them, and a table for other tools.
"""

from __future__ import annotations

import csv
import hashlib
import html
import io
import re
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from email import policy
from email.generator import BytesGenerator
from email.headerregistry import Address
from email.message import EmailMessage
from email.utils import format_datetime
from typing import TextIO

from grader.errors import RequestError
from grader.report import UNSEEN, Report
from grader.reports.figures import amount
from grader.reports.platforms.grades import BOM, CELL_START, FORMULA, cell
from grader.reports.text import describe_state
from grader.submissions.layouts.canvas import ANONYMOUS, NAMED
from grader.submissions.layouts.moodle import MARKER

PAGE = "feedback.html"
_PARTICIPANT = re.compile(r".*_[0-9]+", re.DOTALL)
# What no name of a download holds, and what a zip or another system reads as something else.
_STRANGE = re.compile(r"[/\\:\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff" + UNSEEN + "]")
_OWN = re.compile(r"<p>(?:&#45;)?[0-9.]+ of [0-9.]+ points\.")
_FORMULAS = re.compile(rf"({CELL_START})([{re.escape(''.join(FORMULA))}]+)")
COLUMNS = ("email", "name", "id", "subject", "text", "attachment")
MAX_ADDRESS = 254  # characters, which RFC 5321 allows
_ATOMS = r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+(?:\.[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+)*"
_ADDRESS = re.compile(rf"{_ATOMS}@[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)*")
_SENDER = re.compile(
    rf"(?P<bare>{_ADDRESS.pattern})|"
    rf"(?P<quote>\"?)(?P<name>[^<>\"]*?)(?P=quote)\s*<(?P<named>{_ADDRESS.pattern})>"
)
_POLICY = policy.default.clone(max_line_length=78)


# --- names ----------------------------------------------------------------------------------------


def moodle_name(student: str, names: Sequence[str]) -> str | None:
    """Return the name of a student's page in Moodle's zip; None if Moodle cannot tell whose it is.

    `names` are those of the student's folder or files in the download. Whoever handed in no file
    has none there; then the participant's number alone says whose the page is.
    """
    if not names:
        folder = f"Participant_{student}{MARKER}file_"  # Moodle reads the number, and no more
        return f"{folder}/{PAGE}" if student.isascii() and student.isdigit() else None
    owner, marker, content = _plain(names[0]).rpartition(MARKER)
    if not _PARTICIPANT.fullmatch(owner):
        return None
    kind, _, file = content.partition("_")
    return f"{owner}{marker}{kind}_{PAGE}" if file else f"{owner}{marker}{content}/{PAGE}"


def canvas_name(names: Sequence[str]) -> str | None:
    """Return the name of a student's page for Canvas; None if no file of the download has one.

    The page replaces the newest attachment. Its own name is not the student's: Canvas ignores a
    file whose last part begins with `link`.
    """
    found = (ANONYMOUS.fullmatch(name) or NAMED.fullmatch(name) for name in names)
    files = [match for match in found if match and match["file"]]
    if not files:
        return None
    newest = max(files, key=lambda match: int(match["attachment"][:40]))
    return f"{_plain(newest.string[: newest.start('file')])}{PAGE}"


def _plain(name: str) -> str:
    return _STRANGE.sub("-", name)


# --- texts ----------------------------------------------------------------------------------------


def one_line(text: str) -> str:
    """Return a text as one line that can be encoded, whatever a student's name holds."""
    spaced = "".join(letter if letter.isprintable() else " " for letter in text)
    return " ".join(spaced.split())


def summary(report: Report) -> str:
    """Return the points, how they were calculated, and what to fix first."""
    points = f"{amount(report.counted)} of {amount(report.max_counted)} points."
    calculation = report.mark.says if report.mark else ""
    return one_line(" ".join([points, calculation, report.advice]))


def remarks(report: Report) -> list[str]:
    """Return a line for each comment by a teacher on the code."""
    comments = (comment for result in report.exercises for comment in result.comments)
    return [one_line(f"{comment.place}: {comment.text}") for comment in comments]


def comment(report: Report) -> str:
    """Return the summary and the remarks as HTML in which a spreadsheet finds no formula."""
    texts = (html.escape(text, quote=False) for text in (summary(report), *remarks(report)))
    return "".join(f"<p>{_FORMULAS.sub(_as_entities, text)}</p>" for text in texts)


def is_own_comment(text: str) -> bool:
    """Return whether a comment is one that `comment` has made before."""
    return bool(_OWN.match(text))


def _as_entities(found: re.Match[str]) -> str:
    return found[1] + "".join(f"&#{ord(letter)};" for letter in found[2])


def letter(report: Report, title: str) -> str:
    """Return the body of a mail: the summary, and the points of each exercise."""
    greeting = one_line(f"Hello {report.person.name or report.submission}") + ","
    lines = (
        one_line(
            f"{result.title}: {amount(result.counted)} / {amount(result.max_points)}, "
            f"{describe_state(result)}"
        )
        for result in report.exercises
    )
    return "\n\n".join(
        [
            greeting,
            f"here is the feedback on {one_line(title)}.",
            summary(report),
            "\n".join(lines),
            *(["\n".join(["Comments on your code:", *own])] if (own := remarks(report)) else []),
            "The attached page is the whole report; open it in a browser.\n",
        ]
    )


# --- mails ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Mail:
    """A message to one student; `name`, `subject` and `student` are single lines.

    `attachment` is the name of the page, `date` when what it says was published.
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
    """Return a mail as it stands in an mbox, the same bytes whenever it is made."""
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
