"""The files of records in a students' copy, one zip an exercise: what they hold, as bytes."""

from __future__ import annotations

import contextlib
import io
import zipfile

from grader.errors import CourseError
from grader.files import DAMAGED_ZIP

FOLDER = "records"  # in the students' folder
CASES, ANSWERS = "cases.py", "answers.msgpack"  # the parts of a file
MAX_BYTES, MAX_CASES = 64 * 1024**2, 1024**2  # of a part, and of the cases, unpacked


def file_of(name: str) -> str:
    """Return the path of an exercise's file in the students' folder."""
    return f"{FOLDER}/{name}.bin"  # a zip, but not one of theirs


def part(archive: zipfile.ZipFile, name: str) -> bytes:
    """Return a part of an open file; raises `KeyError` without one, `ValueError` if it is huge."""
    most = MAX_CASES if name == CASES else MAX_BYTES
    if archive.getinfo(name).file_size > most:
        raise ValueError(f"{name} is larger than {most} bytes, unpacked")
    return archive.read(name)


def cases_in(data: bytes, name: str) -> str:
    """Return the cases in the bytes of the file `name`, as text; nothing if it is damaged.

    Raises `CourseError` if they are huge.
    """
    errors = (OSError, KeyError, RuntimeError, NotImplementedError, *DAMAGED_ZIP)
    with contextlib.suppress(*errors), zipfile.ZipFile(io.BytesIO(data)) as archive:
        try:
            return part(archive, CASES).decode("utf-8", "replace")
        except ValueError as error:
            raise CourseError(f"{name}: {error}") from None
    return ""
