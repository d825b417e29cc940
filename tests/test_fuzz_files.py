"""Any file from a student is either read or reported as unreadable, within limits."""

from __future__ import annotations

import stat
import struct
import time
import tracemalloc
import zlib
from pathlib import Path

import pytest
from fuzzing import (
    FUZZERS,
    SOUND_NOTEBOOKS,
    campaign,
    cells,
    readable,
    unpacked_files,
    zipped,
)

from grader.submissions import archives

pytestmark = pytest.mark.in_turn

MANY = 5_000


# --- archives -----------------------------------------------------------------------------------


def archive(
    *names: bytes,
    data: bytes = b"x = 1\n",
    method: int = 0,
    flags: int = 0,
    mode: int = 0,
    sizes: tuple[int, int] | None = None,
) -> bytes:
    """Build a zip by hand, in which every name is an entry for the same member."""
    facts = (flags, method, 0, 33, zlib.crc32(data), *(sizes or (len(data), len(data))))
    body = struct.pack("<4sH4H3I2H", b"PK\3\4", 20, *facts, len(names[0]), 0) + names[0] + data
    index = bytearray()
    for name in names:
        rest = (len(name), 0, 0, 0, 0, mode << 16, 0)
        index += struct.pack("<4s2H4H3I5H2I", b"PK\1\2", 20, 20, *facts, *rest) + name
    count = len(names) % 2**16
    end = struct.pack("<4s4H2IH", b"PK\5\6", 0, 0, count, count, len(index), len(body), 0)
    return body + index + end


JUNK = b"\x09\x04\x05\0" + b"junk" * 99  # starts like LZMA data in a zip
CRAFTED = {  # each of them may yield a.py, but no other file
    "nothing": b"",
    "an end alone": b"PK\5\6" + bytes(18),
    "ways out": zipped({"../evil.py": b"", "d/../../evil.py": b"", "..": b"", "a.py": b""}),
    "backslashes": zipped({"..\\evil.py": b"", "\\evil.py": b"", "d\\..\\..\\evil.py": b""}),
    "drive letters": zipped({"C:/evil.py": b"", "C:\\evil.py": b"", "C:evil.py": b""}),
    "a NUL inside a name": archive(b"a.py\0/../../evil.py"),
    "a NUL before a name": archive(b"\0evil.py"),
    "no name": archive(b""),
    "a symbolic link": archive(b"evil.py", data=b"/etc/passwd", mode=stat.S_IFLNK | 0o777),
    "a FIFO": archive(b"evil.py", mode=stat.S_IFIFO | 0o666),
    "a device": archive(b"evil.py", mode=stat.S_IFCHR | 0o666),
    "one name twice": archive(b"a.py", b"a.py"),
    "a file that is a folder": zipped({"a.py": b"", "a.py/evil.py": b"", "a.py/": b""}),
    "a hundred thousand members": archive(*[b"evil.py"] * 100_000),
    "members that overlap": archive(*(b"evil%03d.py" % n for n in range(999)), data=bytes(60_000)),
    "members that fill the room": zipped({f"{n}.py": bytes(60_000) for n in range(600)}),
    "encryption": archive(b"evil.py", flags=1),
    "strong encryption": archive(b"evil.py", flags=0x41),
    "a patch": archive(b"evil.py", flags=0x20),
    "unknown compression": archive(b"evil.py", method=99),
    "sizes of 0": archive(b"evil.py", sizes=(0, 0)),
    "sizes of 4 GiB": archive(b"evil.py", sizes=(2**32 - 2, 2**32 - 2)),
    "sizes for a larger header": archive(b"evil.py", sizes=(2**32 - 1, 2**32 - 1)),
    "broken deflate": archive(b"evil.py", data=JUNK, method=8),
    "broken bzip2": archive(b"evil.py", data=JUNK, method=12),
    "broken lzma": archive(b"evil.py", data=JUNK, method=14),
    "an archive in an archive": zipped({"evil.zip": zipped({"evil.py": b""})}),
    "folders too deep": zipped({"d/" * 99 + "evil.py": b""}),
    "names too long": zipped({"e" * 5000 + ".py": b"", "e" * 300 + "/evil.py": b""}),
    "a name of surrogates": archive(b"\xed\xa0\x80evil.py", flags=0x800),
}


@pytest.mark.slow
@pytest.mark.parametrize("what", CRAFTED)
def test_no_hostile_file_is_unpacked(what: str, tmp_path: Path) -> None:
    assert unpacked_files(tmp_path, CRAFTED[what]) <= {"a.py"}


def test_a_member_that_points_outside_the_archive_is_left_out(tmp_path: Path) -> None:
    names = (f"{tmp_path}/evil.py", f"/{tmp_path}/evil.py", "a.py", "b/\xfc.py")
    assert unpacked_files(tmp_path, zipped(dict.fromkeys(names, b""))) == {"a.py", "b/\xfc.py"}


def test_a_note_on_a_member_is_one_printable_line(tmp_path: Path) -> None:
    notes: list[str] = []
    (tmp_path / "a.zip").write_bytes(zipped({"x\n\x1b[2Jy.zip": b"", "z.pyc": b""}))
    archives.unpack(tmp_path / "a.zip", tmp_path, notes)
    assert notes == ["`x y.zip` is an archive in an archive and was left out; needs review"]


@pytest.mark.slow
@pytest.mark.parametrize("method", [8, 12, 14], ids=["deflate", "bzip2", "lzma"])
def test_a_zip_bomb_stays_within_the_memory_limit(method: int, tmp_path: Path) -> None:
    bomb = zipped({"a.py": bytes(3 * archives.MAX_UNPACKED_BYTES)}, method)
    tracemalloc.start()
    try:
        assert not unpacked_files(tmp_path, bomb)
        assert tracemalloc.get_traced_memory()[1] < 2 * archives.MAX_UNPACKED_BYTES
    finally:
        tracemalloc.stop()


@pytest.mark.slow
def test_mutated_tars_are_unpacked_or_reported_as_unreadable(tmp_path: Path) -> None:
    did = campaign(FUZZERS["tars"], MANY, tmp_path)
    assert did.failures == {}
    assert 0 < did.accepted < did.cases


@pytest.mark.slow
def test_mutated_archives_are_unpacked_or_reported_as_unreadable(tmp_path: Path) -> None:
    did = campaign(FUZZERS["zips"], MANY, tmp_path)
    assert did.failures == {}
    assert 0 < did.accepted < did.cases


# --- notebooks ----------------------------------------------------------------------------------


HOSTILE_NOTEBOOKS = {
    "many magics": cells("!ls\n" * 5000),
    "magics in a long cell": cells("!ls\n" * 100 + "x = 1\n" * 20_000),
    "magics in many long cells": cells(*["a," * 9000 + "\n" + "%x\n" * 49] * 60),
    "half a character": cells("x = '\ud800'"),
    "a version that is none": SOUND_NOTEBOOKS[0].replace(
        b'"nbformat_minor": 5', b'"nbformat_minor": {}'
    ),
    "nested lists": cells([[["x"]]]),
    "a source of numbers": cells([1, 2]),
    "brackets": cells("(" * 50_000),
    "a long expression": cells("x = " + "-" * 100_000 + "1"),
    "null bytes": cells("x = '\0'"),
    "its own markers": cells("# %% notebook cell 99\nx = 1\n# %% notebook cell x\n"),
}


@pytest.mark.slow
@pytest.mark.parametrize("what", HOSTILE_NOTEBOOKS)
def test_a_hostile_notebook_is_read_or_refused_within_seconds(what: str) -> None:
    start = time.process_time()
    readable(HOSTILE_NOTEBOOKS[what])  # raises any unexpected error
    assert time.process_time() - start < 30


@pytest.mark.slow
def test_any_notebook_is_read_or_reported_as_unreadable(tmp_path: Path) -> None:
    did = campaign(FUZZERS["notebooks"], MANY, tmp_path, seed=5)
    assert did.failures == {}
    assert 0 < did.accepted < did.cases
