"""The zip of a course may be anybody's: it is measured first, and unpacked as a whole or not."""

from __future__ import annotations

import io
import stat
import struct
import time
import zipfile
from pathlib import Path

import pytest
from commandline import Cli, Said

from grader.course import course_zip

SUITE = "reference/scale/test_hidden.py"
LISTED, PLACE_OF_FLAGS, PLACE_OF_SIZE = b"PK\x01\x02", 8, 24
Members = dict[str, bytes]


def zip_of(members: Members | list[tuple[str, bytes]], mode: int = 0, method: int = 8) -> bytes:
    """Return a zip; `mode` is that of its last member, as Unix says it."""
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as archive:
        pairs = list(members.items()) if isinstance(members, dict) else members
        for number, (name, content) in enumerate(pairs):
            info = zipfile.ZipInfo(name)
            info.compress_type = method
            if mode and number == len(pairs) - 1:
                info.create_system, info.external_attr = 3, mode << 16
            archive.writestr(info, content)
    return data.getvalue()


@pytest.fixture
def whole(tiny_copy: Path) -> Members:
    """The files of a course that can be used."""
    return {
        path.relative_to(tiny_copy).as_posix(): path.read_bytes()
        for path in sorted((tiny_copy / "reference").rglob("*"))
        if path.is_file()
    }


def checked(cli: Cli, data: bytes, tmp_path: Path) -> Said:
    """Look at a zip with a command that needs its course."""
    file = tmp_path / "course.zip"
    file.write_bytes(data)
    return cli("status", "--course", file)


def refused(cli: Cli, data: bytes, tmp_path: Path, says: str) -> None:
    before = set(tmp_path.rglob("*"))
    said = checked(cli, data, tmp_path)
    assert (said.code, says in said.err) == (2, True), said.err
    assert set(tmp_path.rglob("*")) - before <= {tmp_path / "course.zip"}


def test_a_whole_repository_with_a_course_in_it_can_be_used(
    cli: Cli, whole: Members, tmp_path: Path
) -> None:
    """What a course does not need is passed over, a link among it as well."""
    beside = {"course-main/README.md": b"hello", "course-main/link": b"/etc/passwd"}
    inside = {f"course-main/{name}": data for name, data in whole.items()}
    said = checked(cli, zip_of(inside | beside, stat.S_IFLNK | 0o777), tmp_path)
    assert said.code == 0, said.err


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("reference/../../outside.py", "points outside"),
        ("../reference/outside.py", "points outside"),
        ("/reference/outside.py", "points outside"),
        ("C:/reference/outside.py", "points outside"),
        (f"reference/{'d/' * 30}deep.py", "nested too deeply"),
        (f"reference/{'n' * 300}.py", "too long a name"),
        (SUITE.upper().replace("REFERENCE", "reference"), "has the name of another file"),
        ("reference/scale/\x1b[2J.py", "cannot be printed"),
        (f"{SUITE}/below.py", "cannot be read"),
    ],
)
def test_a_name_that_no_course_has_refuses_the_zip(
    name: str, says: str, cli: Cli, whole: Members, tmp_path: Path
) -> None:
    refused(cli, zip_of(whole | {name: b"x = 1\n"}), tmp_path, says)


def test_two_members_of_one_name_refuse_the_zip(cli: Cli, whole: Members, tmp_path: Path) -> None:
    with pytest.warns(UserWarning, match="Duplicate name"):
        data = zip_of([*whole.items(), (SUITE, b"def test_nothing(student): pass\n")])
    refused(cli, data, tmp_path, "has the name of another file")


@pytest.mark.parametrize(
    ("kind", "says"),
    [
        (stat.S_IFLNK, "is a link"),
        (stat.S_IFCHR, "is not a regular file"),
        (stat.S_IFIFO, "is not a regular file"),
    ],
)
def test_links_and_devices_refuse_the_zip(
    kind: int, says: str, cli: Cli, whole: Members, tmp_path: Path
) -> None:
    refused(cli, zip_of(whole | {"reference/odd.py": b"/etc/passwd"}, kind | 0o644), tmp_path, says)


def test_an_encrypted_member_refuses_the_zip(cli: Cli, whole: Members, tmp_path: Path) -> None:
    data = bytearray(zip_of(whole))
    data[data.rindex(LISTED) + PLACE_OF_FLAGS] |= 1
    refused(cli, bytes(data), tmp_path, "is encrypted")


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_a_method_that_unpacks_without_a_limit_of_memory_refuses_the_zip(
    method: int, cli: Cli, whole: Members, tmp_path: Path
) -> None:
    refused(cli, zip_of(whole, method=method), tmp_path, "unsupported compression method")


def test_too_many_members_are_counted_before_one_is_parsed(
    cli: Cli, whole: Members, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    many = {f"reference/{n}": b"" for n in range(course_zip.MAX_MEMBERS + 1)}
    data = zip_of(whole | many, method=0)
    monkeypatch.setattr(zipfile.ZipInfo, "__init__", lambda *_: pytest.fail("a member is parsed"))
    refused(cli, data, tmp_path, "holds more than 10000 files")


def test_200_000_empty_members_cost_no_time_and_no_file(cli: Cli, tmp_path: Path) -> None:
    """Nor do they if they say that they are few."""
    entry = bytearray(zip_of({"reference/a/0000000.py": b""}, method=0))
    start, end = entry.index(LISTED), entry.index(b"PK\x05\x06")
    listing = bytes(entry[start:end]) * 200_000
    tail = struct.pack("<4s4H2LH", b"PK\x05\x06", 0, 0, 1, 1, len(listing), start, 0)
    before = time.process_time()
    refused(cli, bytes(entry[:start]) + listing + tail, tmp_path, "list of files is too long")
    assert time.process_time() - before < 5


def test_what_unpacks_to_too_much_is_not_unpacked(
    cli: Cli, whole: Members, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bomb = {"reference/bomb.py": bytes(4 << 20)}
    refused(cli, zip_of(whole | bomb), tmp_path, "looks like a zip bomb")
    monkeypatch.setattr(course_zip, "MAX_BYTES", 1 << 20)
    refused(cli, zip_of(whole | bomb, method=0), tmp_path, "more bytes than the limit allows")


@pytest.mark.parametrize("size", [0, 1, 0xFFFF_FFFE, 0xFFFF_FFFF])
def test_a_lie_about_a_size_is_not_believed(
    size: int, cli: Cli, whole: Members, tmp_path: Path
) -> None:
    """The last one points to a number of a large zip, which is not there."""
    data = bytearray(zip_of(whole))
    struct.pack_into("<L", data, data.rindex(LISTED) + PLACE_OF_SIZE, size)
    said = checked(cli, bytes(data), tmp_path)
    assert said.code in ((0, 2) if size > 1 else (2,))
    assert "the grader itself failed" not in said.err
