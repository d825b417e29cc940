"""Recognising the layout of a class's submissions, and finding the attempts in it."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType, ModuleType

from grader.course.course import Course
from grader.errors import RequestError, did_you_mean
from grader.scratch import scratch_folder
from grader.submissions.archives import CLASS, is_opened
from grader.submissions.layouts import canvas, git, gradescope, moodle, plain
from grader.submissions.layouts.attempt import (
    Attempt,
    FoundAttempts,
    LeftOut,
    Listing,
    list_folder,
)
from grader.submissions.notes import LEFT_OUT, NEEDS_REVIEW, printable_name, shortened
from grader.submissions.reader import messages
from grader.submissions.reader.exchange import ReadingFailed, ReadingImpossible, ReadingLimits
from grader.submissions.reader.host import readers

# The first layout that recognises a folder reads it; `plain` recognises every folder.
_LAYOUTS: dict[str, ModuleType] = {
    "gradescope": gradescope,
    "moodle": moodle,
    "canvas": canvas,
    "clones": git,
    "plain": plain,
}
LAYOUTS = tuple(sorted(_LAYOUTS))
CLASS_SECONDS = 60  # to unpack the zip of a class, and one second more for each
SLOWEST = 1 << 20  # bytes of it
EXPECTED = "pass a folder, or a zip, that holds a folder or a zip for each student"


@contextlib.contextmanager
def open_submissions(
    submissions: Path,
    left_out: list[LeftOut] | None = None,
    notes: dict[Path, tuple[str, ...]] | None = None,
) -> Iterator[Path]:
    """Yield the folder itself or, for a zip of the whole class, a temporary folder with its files.

    Files of the zip that are not unpacked are added to `left_out`; `notes` gets the notes for
    their students, by the folder of each. Raises `RequestError` if `submissions` is neither a
    folder nor a readable zip.
    """
    if os.path.isdir(submissions):
        yield submissions
        return
    if not os.path.isfile(submissions):
        raise RequestError(f"there is no folder {submissions}", "grader batch --help")
    if not is_opened(submissions.name):
        raise RequestError(f"{submissions} is neither a folder nor a zip", EXPECTED)
    with contextlib.ExitStack() as stack:
        try:
            folder = stack.enter_context(scratch_folder("zip"))
            unpacked = _unpacked_by_reader(submissions, folder)
        except (ReadingFailed, ReadingImpossible) as error:
            remedy = "download it again, or unpack it and pass the folder"
            raise RequestError(f"{submissions}: {error}", remedy) from None
        if left_out is not None:
            name, why = printable_name(submissions.name), "holds a file that is not unpacked"
            left_out += [
                LeftOut(name, f"{why}: {note.removesuffix(NEEDS_REVIEW).removesuffix(LEFT_OUT)}")
                for note in shortened(unpacked.notes)
            ]
        if notes is not None:
            notes.update((folder / part.path, part.notes) for part in unpacked.parts)
        yield _class_folder(folder)


def _unpacked_by_reader(archive: Path, into: Path) -> messages.ClassUnpacked:
    """Let a reader unpack the zip of a class; return its notes on files left out."""
    seconds = CLASS_SECONDS + archive.stat().st_size // SLOWEST
    limits = ReadingLimits(seconds, int(seconds), memory=2 << 30, file=CLASS.member)
    job = messages.UnpackClass(os.fsencode(archive.absolute()), os.fsencode(into.absolute()))
    return readers().ask(job, messages.ClassUnpacked, [archive], into, limits)


def _class_folder(folder: Path) -> Path:
    """Return the folder that holds the class: `folder`, or the only folder in it.

    That only folder can also be the only submission: if it has a platform's name for submissions,
    or if it holds only files, without a platform's names.
    """
    top = list_folder(folder)
    if len(top.entries) != 1 or not top.entries[0].is_folder or _layout_of(top) != "plain":
        return folder
    inner = list_folder(top.entries[0].path)
    is_class = any(entry.is_folder or is_opened(entry.name) for entry in inner.entries)
    return inner.folder if is_class or _layout_of(inner) != "plain" else folder


def find_attempts(
    folder: Path,
    course: Course,
    layout: str | None = None,
    without: Path | None = None,
    notes: Mapping[Path, tuple[str, ...]] = MappingProxyType({}),
) -> FoundAttempts:
    """Return every attempt in the folder, in the given layout or in the recognised one.

    The folder `without` (where results go) is skipped. An attempt gets the `notes` on its files
    and folders (see `open_submissions`). Raises `RequestError` if the layout does not exist, or
    the folder holds no attempts.
    """
    if layout is not None and layout not in _LAYOUTS:
        raise RequestError(
            f"there is no layout `{layout}`{did_you_mean(layout, LAYOUTS)}",
            f"one of {', '.join(LAYOUTS)}",
        )
    if not os.path.isdir(folder):
        raise RequestError(f"there is no folder {folder}", "grader batch --help")
    listing = list_folder(folder, without)
    name = layout or _layout_of(listing)
    attempts = _LAYOUTS[name].read(listing, course)
    if not attempts:
        reasons = "".join(f"; {one.what} {one.why}" for one in listing.left_out[:3])
        raise RequestError(f"{printable_name(str(folder))} holds no submissions{reasons}", EXPECTED)
    attempts.sort(key=lambda attempt: (attempt.student, attempt.number))
    found = tuple(
        replace(attempt, root=folder, notes=(*attempt.notes, *_notes_on(attempt, notes)))
        for attempt in attempts
    )
    return FoundAttempts(name, found, listing.left_out)


def _notes_on(attempt: Attempt, notes: Mapping[Path, tuple[str, ...]]) -> Iterator[str]:
    for part in attempt.parts:
        yield from notes.get(part.path, ())


def _layout_of(listing: Listing) -> str:
    return next(name for name, module in _LAYOUTS.items() if module.recognises(listing))
