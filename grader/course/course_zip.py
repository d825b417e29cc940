"""Unpacks the zip of a course, which anybody may have made: within limits, or not at all.

Its members are counted before they are parsed, and only the folders of the course are written. One
member that no course needs (a link, an encrypted file, a name that leads out) is enough to refuse
the zip.
"""

from __future__ import annotations

import io
import unicodedata
from pathlib import Path
from typing import Any

from grader.course.bundle import ANOTHER, MAX_BYTES
from grader.errors import RequestError
from grader.files import DAMAGED_ZIP
from grader.packed import PackedFile, UnreadableArchive, read_within, stays_inside
from grader.report import clean
from grader.zips import zip_members

FOLDERS = ("reference", "exercises")  # of a course; other folders stay in the zip
MAX_MEMBERS, MAX_LISTING = 10_000, 4 << 20  # files of the whole repository; bytes of the zip's list
MAX_DEPTH, MAX_NAME = 24, 255


def unzip(data: bytes, folder: Path) -> None:
    """Write the files of a course into a folder; raises `RequestError` if the zip is not usable."""
    raw: Any = io.BytesIO(data)  # works like a file
    try:
        with zip_members(io.BufferedReader(raw), MAX_MEMBERS, MAX_LISTING) as members:
            # A folder of a course may be in one other folder.
            wanted = [each for each in members if not {*FOLDERS}.isdisjoint(each.path.parts[:2])]
            _refuse_unusable(wanted)
            room = MAX_BYTES
            for member in wanted:
                content = read_within(member, room)
                room -= len(content)
                file = folder / member.path
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_bytes(content)
    except (*DAMAGED_ZIP, UnreadableArchive, OSError, RuntimeError, ValueError) as error:
        why = getattr(error, "strerror", None) or clean(str(error))
        raise RequestError(f"the zip of the course cannot be read: {why}", ANOTHER) from None


def _refuse_unusable(members: list[PackedFile]) -> None:
    """Raise `UnreadableArchive` with the first member that makes a zip unusable."""
    seen: set[str] = set()
    for member in members:
        path = member.path
        name = unicodedata.normalize("NFC", str(path)).casefold()  # as some systems compare names
        reason = member.refusal
        if not stays_inside(path):
            reason = "points outside the archive"
        elif len(path.parts) > MAX_DEPTH or any(len(part) > MAX_NAME for part in path.parts):
            reason = "is nested too deeply, or has too long a name"
        elif not str(path).isprintable():
            reason = "has characters in its name that cannot be printed"
        elif name in seen:
            reason = "has the name of another file"
        if reason:
            raise UnreadableArchive(f"{clean(str(path))} {reason}")
        seen.add(name)
