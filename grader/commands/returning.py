"""`grader return`: give students their feedback, through Moodle, through Canvas or by mail."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from email.headerregistry import Address
from pathlib import Path
from typing import IO, cast

import click

from grader.classroom.feedback import (
    Mail,
    canvas_name,
    comment,
    is_address,
    is_own_comment,
    letter,
    mbox_entry,
    moodle_name,
    one_line,
    parse_sender,
    write_table,
)
from grader.classroom.gradebooks import CommentColumn, fill_moodle
from grader.classroom.publishing import explained, writing
from grader.classroom.standings import Standing, Standings
from grader.commands.graded import GRADED, count_students, echo_review, graded_class
from grader.commands.options import COURSE, FILE, progress_bar
from grader.commands.published import (
    Choice,
    class_marks,
    published_standings,
    read_gradebook,
    refuse_overwriting,
    visible,
    write_filled,
)
from grader.course.course import Course
from grader.errors import RequestError
from grader.files import putting_all, write_zip
from grader.reports import render
from grader.submissions.notes import folded

PLATFORMS: Mapping[str, Callable[[str, Sequence[str]], str | None]] = {
    "moodle": moodle_name,
    "canvas": lambda student, names: canvas_name(names),
}
MAIL = "mail"
DEFAULTS = {MAIL: "mails.mbox"}
NO_NAME = "without a file in the download, under whose name the feedback could go back"


@click.command(name="return")
@click.argument("way", metavar="WAY", type=click.Choice([*PLATFORMS, MAIL]))
@GRADED
@click.option(
    "--out",
    type=FILE,
    metavar="FILE",
    help="The zip or mbox to write. Default: feedback.zip or mails.mbox in DIR.",
)
@click.option(
    "--worksheet",
    type=FILE,
    metavar="FILE",
    help="moodle: a grading worksheet, to fill in grades and feedback comments.",
)
@click.option(
    "-o",
    "--output",
    type=FILE,
    metavar="FILE",
    help="Where to write the filled worksheet. Default: in DIR, beside the reports.",
)
@click.option("--column", metavar="NAME", help="The worksheet's column of grades.")
@click.option("--comments", metavar="NAME", help="The worksheet's column of feedback comments.")
@click.option("--scale", is_flag=True, help="Scale the grades to the worksheet's own maximum.")
@click.option(
    "--skip-unmatched",
    is_flag=True,
    help="Fill in the worksheet even if some students are not in it.",
)
@click.option("--from", "sender", metavar="ADDRESS", help="mail: the sender's address.")
@click.option("--force", is_flag=True, help="Replace files that exist already.")
@COURSE
def return_(
    way: str,
    folder: Path,
    out: Path | None,
    worksheet: Path | None,
    output: Path | None,
    column: str | None,
    comments: str | None,
    scale: bool,
    skip_unmatched: bool,
    sender: str | None,
    force: bool,
    course: Course,
) -> int:
    """Give students their feedback: the parts of their published reports that they may see now.

    \b
    grader return moodle --out feedback.zip    for "Upload multiple feedback files in a zip"
    grader return canvas --out feedback.zip    for "Upload Submissions"
    grader return mail --from TEAM@SCHOOL      an mbox with a mail to each student

    Students who are not graded yet are left out and listed.
    """
    choice = Choice(column, scale, skip_unmatched=skip_unmatched)
    filling = Worksheet(worksheet, output, comments, choice) if worksheet else None
    _refuse_idle_options(way, filling, sender, (output, comments, choice) != (None, None, Choice()))
    target = out or folder / DEFAULTS.get(way, "feedback.zip")
    with graded_class(course, folder) as standings:
        batch = _batch(standings, folder, force, worksheet)
        come_from = None if sender is None else parse_sender(sender)
        for line in _lines(batch, way, target, filling, come_from):
            click.echo(f"  {line}")
        return echo_review(standings.ledger)


def _lines(
    batch: FeedbackBatch, way: str, target: Path, filling: Worksheet | None, sender: Address | None
) -> Iterator[str]:
    """Write all feedback; yield lines on the result and on students who are left out."""
    if sender is not None:
        yield from _mail(batch, target, sender)
    else:
        yield from _pack(batch, way, target, filling)
    yield from batch.left_out_lines()


@dataclass(frozen=True)
class Worksheet:
    """The choices for filling in a Moodle worksheet; `comments` names its column, if necessary."""

    source: Path
    output: Path | None
    comments: str | None
    choice: Choice


def _refuse_idle_options(
    way: str, filling: Worksheet | None, sender: str | None, has_more: bool
) -> None:
    """Raise `RequestError` for options that this way of returning feedback does not have."""
    if filling and way != "moodle":
        raise RequestError("--worksheet is Moodle's", "grader export canvas GRADEBOOK.csv")
    if has_more and not filling:
        message = "-o, --column, --comments, --scale and --skip-unmatched are for a worksheet"
        raise RequestError(message, "grader return moodle --worksheet FILE")
    if sender is not None and way != MAIL:
        raise RequestError("--from is for mails", "grader return mail --from ADDRESS")
    if sender is None and way == MAIL:
        raise RequestError(
            "who sends the mails?",
            "grader return mail --from 'Course team <team@school.example>'",
        )


@dataclass
class FeedbackBatch:
    """The feedback that goes back together, and the students who are left out, by reason."""

    standings: Standings
    published: list[Standing]
    folder: Path
    force: bool
    sources: tuple[Path, ...]
    left_out: dict[str, list[str]] = field(default_factory=dict)

    def leave_out(self, student: str, why: str) -> None:
        """Leave a student out, for a reason that continues `2 students`."""
        self.left_out.setdefault(why, []).append(student)

    def left_out_lines(self) -> Iterator[str]:
        """Yield a line for each reason with the students who are left out for it."""
        for why, students in self.left_out.items():
            who = folded([self.standings.ledger.named(student) for student in sorted(students)])
            yield f"{why}, {len(students)}: {who}"

    def check(self, *outputs: Path) -> None:
        """Raise `RequestError` if one of the files must not be written."""
        for number, output in enumerate(outputs):
            sources = *self.sources, *outputs[:number]
            refuse_overwriting(output, *sources, folder=self.folder, force=self.force)

    @contextmanager
    def errors_of(self, standing: Standing) -> Iterator[None]:
        """Name the student if something breaks, and go on with the others."""
        with self.standings.ledger.review.errors_of(standing.report.submission):
            yield

    def page(self, standing: Standing) -> str:
        """Return a report as a page, as its student may see it now."""
        return render(visible(self.standings, standing), "html")


def _batch(
    standings: Standings, folder: Path, force: bool, worksheet: Path | None
) -> FeedbackBatch:
    waiting: list[str] = []
    published = list(published_standings(standings, waiting))
    sources = (worksheet,) if worksheet else ()
    batch = FeedbackBatch(standings, published, folder, force, sources)
    for student in waiting:
        batch.leave_out(student, "not graded and published yet")
    if waiting and not published:
        raise RequestError("nobody is graded yet", f"grader batch --resume --out {folder}")
    return batch


# --- Moodle and Canvas ----------------------------------------------------------------------------


def _pack(batch: FeedbackBatch, way: str, target: Path, filling: Worksheet | None) -> Iterator[str]:
    outputs = [target]
    if filling:
        source = filling.source
        written = filling.output or batch.folder / f"{source.stem}-graded{source.suffix}"
        outputs.append(written)
    named = _named(batch, way)
    batch.check(*outputs)
    if filling:  # first, because it may be refused
        yield from _fill(batch, filling, written)
    count = 0
    with writing(target) as file, progress_bar(len(named)) as step:

        def pages() -> Iterator[tuple[str, bytes]]:
            nonlocal count
            for name, standing in named:
                step(standing.report.submission)
                page: list[bytes] = []
                with batch.errors_of(standing):
                    page.append(batch.page(standing).encode("utf-8", "replace"))
                count += len(page)
                yield from ((name, data) for data in page)

        write_zip(cast(IO[bytes], file.buffer), pages())
    yield f"{count_students(count)}: {target}"


def _named(batch: FeedbackBatch, way: str) -> list[tuple[str, Standing]]:
    """Return the standings by the names of their pages, in the order of these names.

    Raise `RequestError` if the class did not come from this platform.
    """
    named: dict[str, Standing] = {}
    layouts = set()
    for standing in batch.published:
        student = standing.report.submission
        origin = batch.standings.ledger.origin(student, standing.report.attempt)
        layouts.add(origin.layout if origin else None)
        name = None
        if origin and origin.layout == way:
            with batch.errors_of(standing):
                name = PLATFORMS[way](student, origin.names)
        if name and name not in named:
            named[name] = standing
        else:
            batch.leave_out(student, NO_NAME)
    if batch.published and way not in layouts:
        _refuse_origin(batch, way, sorted(filter(None, layouts)))
    return sorted(named.items(), key=lambda one: one[0])


def _refuse_origin(batch: FeedbackBatch, way: str, layouts: list[str]) -> None:
    platform = way.capitalize()
    if layouts:
        raise RequestError(
            f"this class did not come from {platform}: its layout was {', '.join(layouts)}",
            "grader return mail   or hand out the pages in reports/",
        )
    raise RequestError(
        f"the ledger does not hold the file names of {platform}'s download",
        f"grader batch SUBMISSIONS --out {batch.folder}   stores them, and grades nothing twice",
    )


def _fill(batch: FeedbackBatch, filling: Worksheet, written: Path) -> Iterator[str]:

    def said(standings: Standings, standing: Standing) -> str:
        return comment(visible(standings, standing))

    marks = list(class_marks(batch.standings, batch.published, said))
    choice = filling.choice
    filled = fill_moodle(
        read_gradebook(filling.source),
        marks,
        column=choice.column,
        scale=choice.scale,
        skip_unmatched=choice.skip_unmatched,
        comments=CommentColumn(filling.comments, is_own_comment),
    )
    yield from write_filled(filled, written, filling.source, batch.folder)


# --- mails ----------------------------------------------------------------------------------------


def _mail(batch: FeedbackBatch, target: Path, sender: Address) -> Iterator[str]:
    table, folder = target.with_suffix(".csv"), target.with_name(f"{target.stem}-reports")
    addressed = [one for one in batch.published if _has_address(batch, one)]
    if not addressed:
        raise RequestError(
            "nobody in this class has an e-mail address that can be used",
            "grader batch, with --roster FILE, reads addresses from its column `email`",
        )
    pages = [folder / _page_name(one) for one in addressed]
    batch.check(target, table)
    for copy in pages:
        refuse_overwriting(copy, folder=batch.folder, force=batch.force)
    mails = []
    with (
        writing(target) as mbox,
        explained(folder),
        putting_all(folder) as drafts,
        progress_bar(len(addressed)) as step,
    ):
        for mail, entry in _mails(batch, addressed, sender, step):
            mbox.buffer.write(entry)
            with writing(folder / mail.attachment, drafts) as page:
                page.write(mail.page)
            mails.append((replace(mail, page=""), f"{folder.name}/{mail.attachment}"))
    with writing(table) as file:
        write_table(file, mails)
    yield f"{len(mails)} mails: {target}"
    yield f"the same as a table: {table}, and the pages in {folder}"


def _page_name(standing: Standing) -> str:
    return f"{standing.report.submission}.html"


def _has_address(batch: FeedbackBatch, standing: Standing) -> bool:
    """Return whether a student has a usable address; leave the student out if not."""
    student, email = standing.report.submission, standing.report.person.email
    if not is_address(email):
        why = "with an e-mail address that cannot be used" if email else "without an e-mail address"
        batch.leave_out(student, why)
    return is_address(email)


def _mails(
    batch: FeedbackBatch, addressed: list[Standing], sender: Address, step: Callable[[str], None]
) -> Iterator[tuple[Mail, bytes]]:
    """Yield each mail, and its text in the mbox."""
    for standing in addressed:
        step(standing.report.submission)
        made = []
        with batch.errors_of(standing):
            mail = _mail_to(batch, standing)
            made.append((mail, mbox_entry(mail, sender)))
        yield from made


def _mail_to(batch: FeedbackBatch, standing: Standing) -> Mail:
    report, title = visible(batch.standings, standing), batch.standings.course.title
    return Mail(
        student=one_line(report.submission),
        name=one_line(report.person.name),
        email=report.person.email,
        subject=one_line(f"{title}: your feedback"),
        text=letter(report, title),
        page=render(report, "html"),
        attachment=_page_name(standing),
        date=batch.standings.ledger.published_at(report.submission),
    )
