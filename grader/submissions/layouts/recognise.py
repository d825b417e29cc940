"""Recognising the layout of a class's submissions, and finding the attempts in it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

from grader.course.course import Course
from grader.course.settings import did_you_mean
from grader.errors import RequestError
from grader.submissions.archives import CLASS, UnreadableArchive, is_zip, unpacked
from grader.submissions.layouts import canvas, git, gradescope, moodle, plain
from grader.submissions.layouts.attempt import FoundAttempts, LeftOut, Listing, list_folder
from grader.submissions.notes import LEFT_OUT, printable_name

# The first layout that recognises a folder reads it; `plain` recognises every folder.
_LAYOUTS: dict[str, ModuleType] = {
    "gradescope": gradescope,
    "moodle": moodle,
    "canvas": canvas,
    "clones": git,
    "plain": plain,
}
LAYOUTS = tuple(sorted(_LAYOUTS))
EXPECTED = "pass a folder, or a zip, that holds a folder or a zip for each student"


@contextlib.contextmanager
def open_submissions(submissions: Path, left_out: list[LeftOut] | None = None) -> Iterator[Path]:
    """Yield the folder itself or, for a zip of the whole class, a temporary folder with its files.

    Files of the zip that are not unpacked are added to `left_out`. Raises `RequestError` if
    `submissions` is neither a folder nor a readable zip.
    """
    if submissions.is_dir():
        yield submissions
        return
    if not submissions.is_file():
        raise RequestError(f"there is no folder {submissions}", "grader batch --help")
    if not is_zip(submissions):
        raise RequestError(f"{submissions} is neither a folder nor a zip", EXPECTED)
    notes: list[str] = []
    with contextlib.ExitStack() as stack:
        try:
            folder = stack.enter_context(unpacked(submissions, notes, CLASS))
        except UnreadableArchive as error:
            remedy = "download it again, or unpack it and pass the folder"
            raise RequestError(f"{submissions}: {error}", remedy) from None
        if left_out is not None:
            name, why = printable_name(submissions.name), "holds a file that is not unpacked"
            left_out += [LeftOut(name, f"{why}: {note.removesuffix(LEFT_OUT)}") for note in notes]
        yield _class_folder(folder)


def _class_folder(folder: Path) -> Path:
    """Return the folder that holds the class: `folder`, or the only folder in it.

    That only folder can also be the only submission. It is one if a platform gives such names to
    submissions, or if it holds nothing but files, without a platform's names.
    """
    top = list_folder(folder)
    if len(top.entries) != 1 or not top.entries[0].is_dir() or _layout_of(top) != "plain":
        return folder
    inner = list_folder(top.entries[0])
    is_class = any(path.is_dir() or is_zip(path) for path in inner.entries)
    return inner.folder if is_class or _layout_of(inner) != "plain" else folder


def find_attempts(
    folder: Path, course: Course, layout: str | None = None, without: Path | None = None
) -> FoundAttempts:
    """Return every attempt in the folder, in the given layout or in the one it seems to have.

    The folder `without` (where results go) is skipped. Raises `RequestError` if the layout does
    not exist, or the folder holds no attempts.
    """
    if layout is not None and layout not in _LAYOUTS:
        raise RequestError(
            f"there is no layout `{layout}`{did_you_mean(layout, LAYOUTS)}",
            f"one of {', '.join(LAYOUTS)}",
        )
    if not folder.is_dir():
        raise RequestError(f"there is no folder {folder}", "grader batch --help")
    listing = list_folder(folder, without)
    name = layout or _layout_of(listing)
    attempts = _LAYOUTS[name].read(listing, course)
    if not attempts:
        reasons = "".join(f"; {one.what} {one.why}" for one in listing.left_out[:3])
        raise RequestError(f"{printable_name(str(folder))} holds no submissions{reasons}", EXPECTED)
    attempts.sort(key=lambda attempt: (attempt.student, attempt.number))
    return FoundAttempts(name, tuple(attempts), tuple(listing.left_out))


def _layout_of(listing: Listing) -> str:
    return next(name for name, module in _LAYOUTS.items() if module.recognises(listing))
