"""`grader batch`: a folder of submissions, one warm slot, a report and a mark for each."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from grader.catalog import Course
from grader.errors import RequestError
from grader.files import write_whole
from grader.records import Report
from grader.reports import FORMATS
from grader.reports.grades import to_csv
from grader.sandbox import landlock
from grader.sandbox.confine import Confinement, Isolation
from grader.sandbox.zygote import Zygote
from grader.submissions import Submission, discover, name_of, shown
from grader.visibility import for_student

REPORTS, GRADES = "reports", "grades.csv"
MAX_NAME = 120  # bytes; what is longer is cut
VIEWS = {".html": "html", ".json": "json", ".md": "markdown"}
IGNORED = ("__MACOSX", "Thumbs.db")


@dataclass(frozen=True)
class Handed:
    """What was handed in: one submission's place, or why an entry is none."""

    path: Path
    left_out: str = ""


def survey(folder: Path, out: Path) -> list[Handed]:
    """Every entry of the folder of submissions; raises `RequestError` if there is nothing."""
    if not folder.is_dir():
        raise RequestError(f"there is no folder {folder}", "grader batch --help")
    if out.absolute() == folder.absolute():
        raise RequestError(f"{out} holds the submissions", "--out another-folder")
    entries = sorted(folder.iterdir(), key=lambda path: path.name)
    handed = [
        Handed(path, _left_out(path))
        for path in entries
        if not path.name.startswith(".") and path.name not in IGNORED
        if path.absolute() != out.absolute()
    ]
    if all(entry.left_out for entry in handed):
        raise RequestError(
            f"{folder} holds no submissions", "a submission is a folder, or a zip, for each student"
        )
    return handed


def _left_out(path: Path) -> str:
    if path.is_symlink():
        return "is a link"
    if path.is_dir() or (path.is_file() and path.suffix == ".zip"):
        return ""
    return "is neither a folder nor a zip"


def batch(
    course: Course,
    handed: list[Handed],
    out: Path,
    *,
    seed: int | None,
    isolation: Isolation,
    told: Callable[[Report], None],
) -> list[Report]:
    """Grade every submission and write its report at once; `told` of each.

    The marks are written at the end, also when that comes early.
    """
    if isolation == "confined":
        _refuse_readable(course)
    reports: list[Report] = []
    with Zygote(Confinement(isolation)) as zygote:
        from grader.grading import Slot, fresh_seed, with_slot

        chosen = fresh_seed() if seed is None else seed

        def body(slot: Slot) -> None:
            slot.try_confinement()
            for submission in _read(handed, course):
                report = slot.grade(submission, course.names, chosen)
                _write_report(report, course, out)
                reports.append(report)
                told(report)

        try:
            with_slot(course, course.names, zygote, body)
        finally:
            if reports:
                _write(out / GRADES, to_csv([report.to_json() for report in reports]))
    return reports


def _refuse_readable(course: Course) -> None:
    """Student code may read the Python installation: no course may lie in it."""
    for folder in landlock.readable() if landlock.version() else ():
        if course.root.resolve().is_relative_to(folder):
            raise RequestError(
                f"the course lies in {folder}, where student code may read",
                "move the course out of the Python installation",
            )


def _read(handed: list[Handed], course: Course) -> Iterator[Submission]:
    """Each submission in turn; one that cannot be read has its reason for a problem."""
    taken = [entry.path for entry in handed if not entry.left_out]
    for path, name in zip(taken, _names(taken)):
        try:
            found = discover([path], course)
            yield Submission(name, found.files, found.paths, found.problems, found.notes)
        except (RequestError, OSError) as error:
            # Students read this: where the class lies on this machine is not for them.
            reason = shown(str(error)).replace(shown(str(path)), path.name)
            yield Submission(name, {}, problems=dict.fromkeys(course.names, reason))


def _names(paths: Sequence[Path]) -> list[str]:
    """What each submission is called. A name that can be a file's is its own; any other gets a
    mark made from all of it, so that nobody is given a neighbour's name by cleaning or cutting.
    """
    plain = {path.name for path in paths if path.is_dir() and _is_plain(path.name)}
    names = []
    for path in paths:
        name = name_of(path)
        if path.name not in plain and (name in plain or name in names or not _is_plain(path.stem)):
            mark = hashlib.sha256(os.fsencode(path.name)).hexdigest()[:8]
            short = os.fsencode(name)[:MAX_NAME].decode("utf-8", "ignore").strip(". ")
            name = f"{short or 'submission'}-{mark}"
        names.append(name)
    return names


def _is_plain(name: str) -> bool:
    """Whether a name is printable, short enough and nothing that cleaning would change."""
    return shown(name) == name and name.isprintable() and len(os.fsencode(name)) <= MAX_NAME


def _write_report(report: Report, course: Course, out: Path) -> None:
    data = for_student(report, course.due).to_json()
    for suffix, form in VIEWS.items():
        _write(out / REPORTS / f"{report.submission}{suffix}", FORMATS[form](data))


def _write(path: Path, text: str) -> None:
    try:
        write_whole(path, text)
    except OSError as error:
        raise RequestError(f"cannot write {path}: {error.strerror}", "--out DIR") from None
