"""A plain folder: each student has a folder, a zip, a Python file or a notebook in it."""

from __future__ import annotations

from pathlib import Path

from grader.course.course import Course
from grader.errors import RequestError
from grader.submissions.archives import is_code_or_zip
from grader.submissions.exercise_files import exercise_paths
from grader.submissions.layouts.attempt import Attempt, AttemptPart, Listing, student_names


def recognises(listing: Listing) -> bool:
    """Return True: a folder that no platform has made is read as a plain one."""
    return True


def read(listing: Listing, course: Course) -> list[Attempt]:
    """Return an attempt for every folder, zip, Python file and notebook."""
    _refuse_one_submission(listing.folder, course)
    paths = []
    # The folder keeps its name if a file would have the same.
    for path in sorted(listing.entries, key=lambda path: not path.is_dir()):
        if path.is_dir() or is_code_or_zip(path):
            paths.append(path)
        else:
            listing.leave_out(path.name, "is neither a folder nor a zip")
    names = student_names((path.name if path.is_dir() else path.stem, path.name) for path in paths)
    return [Attempt(name, (AttemptPart(path, path.name),)) for path, name in zip(paths, names)]


def _refuse_one_submission(folder: Path, course: Course) -> None:
    files = (file for name in course.names for file in exercise_paths(name))
    if file := next((file for file in files if (folder / file).is_file()), None):
        raise RequestError(
            f"{folder} looks like one submission, not like a class: it holds {file}",
            f"grader check {folder}",
        )
