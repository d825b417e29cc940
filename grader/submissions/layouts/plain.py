"""A folder in which each student has a folder, a zip, a Python file or a notebook."""

from __future__ import annotations

from pathlib import Path

from grader.course.course import Course
from grader.errors import RequestError
from grader.submissions.layouts.attempt import Attempt, Found, LeftOut, Listing, Part, student_names
from grader.submissions.submission import CODE, shown


def recognises(listing: Listing) -> bool:
    """Whatever no platform has made."""
    return True


def read(listing: Listing, course: Course) -> Found:
    """An attempt for every folder, zip, Python file and notebook."""
    refuse_one_submission(listing.folder, course)
    taken, left_out = [], []
    for path in listing.entries:
        if path.is_dir() or path.suffix.lower() in (*CODE, ".zip"):
            taken.append(path)
        else:
            left_out.append(LeftOut(shown(path.name), "is neither a folder nor a zip"))
    taken.sort(key=lambda path: not path.is_dir())  # a folder's name comes before a zip's
    names = student_names(
        [(path.name if path.is_dir() else path.stem, path.name) for path in taken]
    )
    return [Attempt(name, (Part(path, path.name),)) for path, name in zip(taken, names)], left_out


def refuse_one_submission(folder: Path, course: Course) -> None:
    """Raise `RequestError` if the folder holds exercises rather than students."""
    for name in course.names:
        for file in (f"{name}.py", f"{name}/solution.py", f"{name}.ipynb"):
            if (folder / file).is_file():
                raise RequestError(
                    f"{folder} looks like one submission, not like a class: it holds {file}",
                    f"grader check {folder}",
                )
