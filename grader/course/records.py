"""The files of records in a students' copy, two an exercise: a zip of its cases and their answers,
and what is said of each known mistake, as JSON.
"""

from __future__ import annotations

import contextlib
import io
import zipfile

from msgspec import Struct

from grader.errors import CourseError
from grader.files import DAMAGED_ZIP

FOLDER = "records"  # in the students' folder
CASES, ANSWERS = "cases.py", "answers.msgpack"  # the parts of a file
MAX_BYTES, MAX_CASES = 64 * 1024**2, 1024**2  # of a part, and of the cases, unpacked
MAX_SAYINGS = 1024**2  # bytes of the file of sayings
ENDING = ".bin"  # a zip, but not one of a student's


class Saying(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """What a students' copy says of a known mistake, with the number that it usually has."""

    name: str
    says: str
    hint: str
    number: str = ""


def file_of(name: str) -> str:
    """Return the path of an exercise's file in the students' folder."""
    return f"{FOLDER}/{name}{ENDING}"


def sayings_of(name: str) -> str:
    """Return the path of what is said of an exercise's mistakes, in the students' folder."""
    return f"{FOLDER}/{name}.json"


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
