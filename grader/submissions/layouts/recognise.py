"""From a folder or a zip of submissions to the attempts in it, in whichever layout it has."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

from grader.submissions.archives import CLASS, Unreadable, unpacked
from grader.course.course import Course, did_you_mean
from grader.errors import RequestError
from grader.submissions.layouts import canvas
from grader.submissions.layouts import git as clones
from grader.submissions.layouts import gradescope
from grader.submissions.layouts import moodle
from grader.submissions.layouts import plain
from grader.submissions.layouts.attempt import HandedIn, LeftOut, Listing, listing
from grader.submissions.submission import shown

# The first that recognises a folder reads it; anything is plain.
_LAYOUTS: dict[str, ModuleType] = {
    "gradescope": gradescope,
    "moodle": moodle,
    "canvas": canvas,
    "clones": clones,
    "plain": plain,
}
LAYOUTS = tuple(sorted(_LAYOUTS))
ASK = "a submission is a folder, or a zip, for each student"


@contextlib.contextmanager
def opened(submissions: Path, left_out: list[LeftOut] | None = None) -> Iterator[Path]:
    """The folder itself or, of a zip of the whole class, a folder with what it holds.

    What of the zip is not unpacked joins `left_out`. Raises `RequestError` for anything else.
    """
    if submissions.is_dir():
        yield submissions
        return
    if not submissions.is_file():
        raise RequestError(f"there is no folder {submissions}", "grader batch --help")
    if submissions.suffix.lower() != ".zip":
        raise RequestError(f"{submissions} is neither a folder nor a zip", ASK)
    notes: list[str] = []
    with contextlib.ExitStack() as stack:
        try:
            folder = stack.enter_context(unpacked(submissions, notes, CLASS))
        except Unreadable as error:
            raise RequestError(
                f"{submissions}: {error}", "download it again, or unpack it and pass the folder"
            ) from None
        if left_out is not None:
            left_out += [_not_unpacked(submissions, note) for note in notes]
        yield _unwrapped(folder)


def _not_unpacked(submissions: Path, note: str) -> LeftOut:
    why = f"holds a file that is not unpacked: {note.removesuffix(' and was left out')}"
    return LeftOut(shown(submissions.name), why)


def _unwrapped(folder: Path) -> Path:
    """The folder or, where a download wraps all in one top folder, that one.

    A folder that is itself a submission is no wrapping: it is named as one, or holds files alone.
    """
    inside = listing(folder).entries
    if len(inside) != 1 or not inside[0].is_dir() or _layout_of(listing(folder)) != "plain":
        return folder
    below = listing(inside[0])
    wraps = any(path.is_dir() or path.suffix.lower() == ".zip" for path in below.entries)
    return inside[0] if wraps or _layout_of(below) != "plain" else folder


def survey(
    folder: Path, course: Course, layout: str | None = None, without: Path | None = None
) -> HandedIn:
    """Every attempt in the folder, whose layout is recognised if it is not said.

    Raises `RequestError` if there is nothing. The folder `without` (of results) is passed over.
    """
    if layout is not None and layout not in _LAYOUTS:
        raise RequestError(
            f"there is no layout `{layout}`{did_you_mean(layout, LAYOUTS)}",
            f"one of {', '.join(LAYOUTS)}",
        )
    if not folder.is_dir():
        raise RequestError(f"there is no folder {folder}", "grader batch --help")
    found = listing(folder, without)
    name = layout or _layout_of(found)
    attempts, left_out = _LAYOUTS[name].read(found, course)
    if not attempts:
        reasons = [f"; {one.what} {one.why}" for one in (*found.left_out, *left_out)][:3]
        raise RequestError(f"{shown(str(folder))} holds no submissions{''.join(reasons)}", ASK)
    attempts.sort(key=lambda attempt: (attempt.student, attempt.number))
    return HandedIn(name, tuple(attempts), (*found.left_out, *left_out))


def _layout_of(found: Listing) -> str:
    return next(name for name, module in _LAYOUTS.items() if module.recognises(found))
