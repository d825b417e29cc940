"""The files of a students' copy's records: a zip of cases and answers, a JSON file of texts."""

from __future__ import annotations

import contextlib
import io
import zipfile

from msgspec import Struct

from grader.errors import CourseError
from grader.files import DAMAGED_ZIP

FOLDER = "records"  # the folder of the records, in the students' folder
CASES, ANSWERS = "cases.py", "answers.msgpack"  # the parts of a zip
MAX_BYTES, MAX_CASES = 64 * 1024**2, 1024**2  # bytes of a part, and of the cases, unpacked
MAX_SAYINGS = 1024**2  # bytes of the JSON file
ENDING = ".bin"  # a zip, but not a student's


class Saying(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The texts of a students' copy about a known mistake, with its usual number."""

    name: str
    says: str
    hint: str
    number: str = ""


def file_of(name: str) -> str:
    """Return the path of an exercise's file in the students' folder."""
    return f"{FOLDER}/{name}{ENDING}"


def sayings_of(name: str) -> str:
    """Return the path of the texts about an exercise's mistakes, in the students' folder."""
    return f"{FOLDER}/{name}.json"


def part(archive: zipfile.ZipFile, name: str) -> bytes:
    """Return a part of an open zip; raises `KeyError` if missing, `ValueError` if too large."""
    most = MAX_CASES if name == CASES else MAX_BYTES
    if archive.getinfo(name).file_size > most:
        raise ValueError(f"{name} is larger than {most} bytes, unpacked")
    return archive.read(name)


def cases_in(data: bytes, name: str) -> str:
    """Return the cases in the bytes of the file `name`, as text; empty if it is damaged.

    Raises `CourseError` if they are too large.
    """
    errors = (OSError, KeyError, RuntimeError, NotImplementedError, *DAMAGED_ZIP)
    with contextlib.suppress(*errors), zipfile.ZipFile(io.BytesIO(data)) as archive:
        try:
            return part(archive, CASES).decode("utf-8", "replace")
        except ValueError as error:
            raise CourseError(f"{name}: {error}") from None
    return ""
