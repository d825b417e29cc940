"""A zip of texts that comes out the same, byte for byte, whenever it is written."""

from __future__ import annotations

import zipfile
from collections.abc import Iterable
from typing import IO

from grader.files import FILE_MODE

EARLIEST = (1980, 1, 1, 0, 0, 0)  # the first time that a zip can hold
UNIX = 3  # the system of the file modes
REGULAR = 0o100000


def write_zip(stream: IO[bytes], pages: Iterable[tuple[str, str]]) -> None:
    """Write a zip of pages, given as names and texts; each is read when it is written."""
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in pages:
            member = zipfile.ZipInfo(name, EARLIEST)
            member.compress_type = zipfile.ZIP_DEFLATED
            member.create_system = UNIX
            member.external_attr = (REGULAR | FILE_MODE) << 16
            archive.writestr(member, text.encode("utf-8", "replace"))
