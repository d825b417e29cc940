"""The file of records in a students' copy, as a zip: what it holds of each exercise, as bytes."""

from __future__ import annotations

import contextlib
import io
import zipfile
from collections.abc import Iterable

from grader.files import DAMAGED_ZIP

FILE = "signatures.bin"  # in the students' folder; a zip, but not one of theirs
PROBES, ANSWERS = "probes.py", "answers.msgpack"  # in the exercise's folder of the zip
MAX_BYTES = 64 * 1024**2  # of one part, unpacked


def part(archive: zipfile.ZipFile, name: str) -> bytes:
    """Return a part of an open file; raises `KeyError` without one, `ValueError` if it is huge."""
    size = archive.getinfo(name).file_size
    if size > MAX_BYTES:
        raise ValueError(f"{name} is larger than {MAX_BYTES} bytes")
    return archive.read(name)


def probes_of(data: bytes, name: str) -> str:
    """Return the probes of an exercise in the bytes of a file, as text; empty without any."""
    return "".join(each.decode("utf-8", "replace") for each in _parts(data, name)[:1])


def same_records(data: bytes, other: bytes, names: Iterable[str]) -> bool:
    """Return whether two files hold the same of some exercises, however they are packed."""
    return all(_parts(data, name) == _parts(other, name) for name in names)


def _parts(data: bytes, name: str) -> list[bytes]:
    errors = (OSError, ValueError, KeyError, RuntimeError, NotImplementedError, *DAMAGED_ZIP)
    with contextlib.suppress(*errors), zipfile.ZipFile(io.BytesIO(data)) as archive:
        return [part(archive, f"{name}/{each}") for each in (PROBES, ANSWERS)]
    return []
