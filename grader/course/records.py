"""The file of records in a students' copy, as a zip: what it holds of each exercise, as bytes."""

from __future__ import annotations

import contextlib
import io
import zipfile
from collections.abc import Iterable

from grader.errors import CourseError
from grader.files import DAMAGED_ZIP

FILE = "signatures.bin"  # in the students' folder; a zip, but not one of theirs
CASES, ANSWERS = "cases.py", "answers.msgpack"  # in the exercise's folder of the zip
MAX_BYTES = 64 * 1024**2  # of one part, unpacked; of all parts, where all are looked at


def part(archive: zipfile.ZipFile, name: str) -> bytes:
    """Return a part of an open file; raises `KeyError` without one, `ValueError` if it is huge."""
    size = archive.getinfo(name).file_size
    if size > MAX_BYTES:
        raise ValueError(f"{name} is larger than {MAX_BYTES} bytes")
    return archive.read(name)


def cases_of(data: bytes, names: Iterable[str]) -> dict[str, str]:
    """Return the cases of exercises in the bytes of a file, as texts, of those that have any.

    Raises `CourseError` if they are huge together.
    """
    parts = _parts(data, [f"{name}/{CASES}" for name in names])
    found = {place.rpartition("/")[0]: part for place, part in parts.items()}
    return {name: part.decode("utf-8", "replace") for name, part in found.items() if part}


def same_records(data: bytes, other: bytes, names: Iterable[str]) -> bool:
    """Return whether two files hold the same of some exercises, however they are packed."""
    wanted = [f"{name}/{each}" for name in names for each in (CASES, ANSWERS)]
    return _parts(data, wanted) == _parts(other, wanted)


def _parts(data: bytes, wanted: Iterable[str]) -> dict[str, bytes]:
    """Return the parts of a file by their places in it; none of a file that is damaged."""
    found: dict[str, bytes] = {}
    left = MAX_BYTES
    errors = (OSError, ValueError, RuntimeError, NotImplementedError, *DAMAGED_ZIP)
    with contextlib.suppress(*errors), zipfile.ZipFile(io.BytesIO(data)) as archive:
        for place in wanted:
            with contextlib.suppress(KeyError):
                left -= archive.getinfo(place).file_size
                if left < 0:
                    raise CourseError(f"{FILE} is larger than {MAX_BYTES} bytes, unpacked")
                found[place] = archive.read(place)
    return found
