"""Attacks on whoever unpacks a zip."""

from __future__ import annotations

import io
import stat
import struct
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path

from attacks.corpus import KIT, RIGHT, Fill, Place

WORK = b"softmax = 1\n"
EVIL = b"import nothing_at_all\n"


def entry(name: bytes, data: bytes = WORK, **facts: int) -> tuple[bytes, bytes]:
    """A member, and its entry in the index without the place where it lies."""
    method, flags, mode = (facts.get(key, 0) for key in ("method", "flags", "mode"))
    packed, size = facts.get("packed", len(data)), facts.get("size", len(data))
    time, extra = facts.get("time", 0), bytes(facts.get("extra", 0))
    common = struct.pack(
        "<4H3I2H", flags, method, time, facts.get("date", 33), zlib.crc32(data), packed, size,
        len(name), len(extra),
    )  # fmt: skip
    body = b"PK\3\4" + struct.pack("<H", 20) + common[:-2] + b"\0\0" + name + data
    index = b"PK\1\2" + struct.pack("<2H", 20, 20) + common
    return body, index + struct.pack("<3HI", 0, 0, 0, mode << 16) + b"@@@@" + name + extra


def assembled(*members: tuple[bytes, bytes], count: int | None = None, gap: int = 0) -> bytes:
    """A zip of these members; `count` is how many it says there are."""
    bodies, index, at = bytearray(gap), bytearray(), gap
    for body, record in members:
        index += record.replace(b"@@@@", struct.pack("<I", at), 1)
        bodies += body
        at += len(body)
    number = len(members) if count is None else count
    return bytes(bodies) + index + struct.pack(
        "<4s4H2IH", b"PK\5\6", 0, 0, number % 2**16, number % 2**16, len(index), at, 0
    )  # fmt: skip


def zipped(members: dict[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    """An honest zip."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", method) as file:
        for name, data in members.items():
            file.writestr(name, data)
    return buffer.getvalue()


def extra_fields() -> bytes:
    """Too many: tiny extra fields, sixteen megabytes."""
    return assembled(*[entry(f"{n}.py".encode(), extra=65_532) for n in range(240)])


def long_names() -> bytes:
    """Names: of sixty thousand bytes."""
    return assembled(*[entry(b"a/" * 32_000 + b"%d.py" % n) for n in range(100)])


def long_comment() -> bytes:
    """Header: a comment with the ends of a thousand zips."""
    end = struct.pack("<4s4H2IH", b"PK\5\6", 0, 0, 1, 1, 50, 0, 0)
    comment = (end * 3000)[:65_535]
    data = zipped({"blend.py": WORK})
    return data[:-2] + struct.pack("<H", len(comment)) + comment


def false_count() -> bytes:
    """Header: no files, where there are thirty thousand."""
    body, index = entry(b"blend.py", b"")
    return assembled((body, index), *[(b"", index)] * 30_000, count=0)


def count_of_64_bits() -> bytes:
    """Header: a 64-bit count of all files there are."""
    data = zipped({"blend.py": WORK})
    start = data.index(b"PK\1\2")
    many = 2**64 - 1
    large = struct.pack("<4sQ2H2I4Q", b"PK\6\6", 44, 45, 45, 0, 0, many, many, many, start)
    locator = struct.pack("<4sIQI", b"PK\6\7", 0, len(data) - 22, 1)
    return data[:-22] + large + locator + b"PK\5\6" + b"\xff" * 16 + b"\0\0"


def index_before_the_start() -> bytes:
    """Header: an index that lies before the file."""
    data = bytearray(zipped({"blend.py": WORK}))
    data[-6:-2] = b"\xff\xff\xff\x7f"
    return bytes(data)


def overlapping() -> bytes:
    """Too many: members that share their bytes, two thousand."""
    packed = zlib.compressobj(9, zlib.DEFLATED, -15)
    data = packed.compress(bytes(250_000)) + packed.flush()
    facts = {"method": 8, "packed": len(data), "size": 250_000}
    body, index = entry(b"blend.py", data, **facts)
    return assembled((body, index), *[(b"", index)] * 1999)


def within_each_other() -> bytes:
    """Members: each holds the next in its bytes."""
    inner, records = b"", []
    for number in range(200):
        body, index = entry(b"%d.py" % number, inner or WORK)
        inner = body
        records.append(index)
    return assembled((inner, records[-1]), *[(b"", record) for record in records[:-1]])


def many_small_bombs() -> bytes:
    """Too many: members just below the limit, a hundred."""
    return zipped({f"{n}.py": bytes(60_000 + n) for n in range(560)})


def nested_folders() -> bytes:
    """Too many: nested folders, a thousand."""
    return zipped({"d/" * depth + "blend.py": b"" for depth in range(1, 700)}, 0)


def many_folders() -> bytes:
    """Too many: empty folders, twenty thousand."""
    return assembled(*[entry(b"%d/" % n, b"", mode=stat.S_IFDIR | 0o755) for n in range(20_000)])


def same_name() -> bytes:
    """Has the work twice, with the same name, once good and once bad."""
    return assembled(entry(b"blend.py", EVIL), entry(b"blend.py", RIGHT.encode()))


def name_in_two_places() -> bytes:
    """Names: different between index and member."""
    body, _ = entry(b"other.py")
    _, index = entry(b"blend.py")
    return assembled((body, index))


def name_in_the_extra_field() -> bytes:
    """Names: a second one, in Unicode, in an extra field."""
    name = b"../../s001/blend.py"
    field = struct.pack("<2HBI", 0x7075, 5 + len(name), 1, zlib.crc32(b"blend.py")) + name
    info = zipfile.ZipInfo("blend.py")
    info.extra = field
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as file:
        file.writestr(info, WORK)
    return buffer.getvalue()


def names_of_two_cases() -> bytes:
    """Names: different in case, accents and final dots."""
    names = (
        "blend.py",
        "BLEND.PY",
        "blend.py.",
        "blend.py ",
        "blénd.py",
        "ble\u0301nd.py",
        "blend.py\u200b",
    )
    return zipped(dict.fromkeys(names, WORK))


def names_of_controls() -> bytes:
    """Names: controls, markup, formulas and undecodable bytes."""
    names = (
        b"\x1b[2J.py",
        b"<b>.py",
        b"=1+1.py",
        b"a\nb.py",
        b"\xff\xfe.py",
        b"\xe2\x80\xae.py",
        b"",
        b"/",
        b".",
        b"..",
    )
    return assembled(
        *[entry(name) for name in names], *[entry(name, flags=0x800) for name in names]
    )


def folder_and_file() -> bytes:
    """Names: one for a file and a folder."""
    return zipped({"blend.py": WORK, "blend.py/a.py": b"", "a.py/blend.py": b"", "a.py": b""})


def link_to_a_folder() -> bytes:
    """Members: a link upwards, and a file through it."""
    return assembled(
        entry(b"out", b"../s001", mode=stat.S_IFLNK | 0o777), entry(b"out/blend.py", EVIL)
    )


def devices() -> bytes:
    """Members: devices, pipes and sockets."""
    kinds = (stat.S_IFCHR, stat.S_IFBLK, stat.S_IFIFO, stat.S_IFSOCK, stat.S_IFDIR, 0o170000)
    return assembled(*[entry(b"blend.py", mode=kind | 0o6777) for kind in kinds])


def impossible_times() -> bytes:
    """Header: an impossible date."""
    return assembled(entry(b"blend.py", date=0), entry(b"a.py", date=0xFFFF, time=0xFFFF))


def unknown_methods() -> bytes:
    """Compression: it needs much memory, or is unknown."""
    junk = b"\x09\x04\x05\0]\0\0\xff\xff" + b"junk" * 99
    return assembled(
        *[entry(b"%d.py" % n, junk, method=n, size=10**8) for n in (1, 6, 9, 12, 14, 93, 97, 98)]
    )


def encrypted() -> bytes:
    """Encrypted in four ways."""
    return assembled(*[entry(b"blend.py", flags=flags) for flags in (1, 0x41, 0x2001, 0x20)])


def endless_deflate() -> bytes:
    """Compression: a thousandfold, up to the limit of one file."""
    return zipped({"blend.py": bytes(8 << 20)})


def broken_deflate() -> bytes:
    """Compression: it breaks within the work."""
    data = bytearray(zipped({"blend.py": bytes(range(256)) * 200}))
    data[60:64] = b"\xff" * 4
    return bytes(data)


def behind_another_file() -> bytes:
    """A picture, a program and a zip at once."""
    return b"\x89PNG\r\n\x1a\n#!/bin/sh\ntouch @DROP@/x\n" + zipped({"blend.py": WORK})


def holes() -> bytes:
    """Fifteen megabytes of nothing before the first member."""
    return assembled(entry(b"blend.py"), gap=15 << 20)


def empty() -> bytes:
    """An empty file."""
    return b""


def only_an_end() -> bytes:
    """A zip of no files."""
    return b"PK\5\6" + bytes(18)


def of_a_class() -> bytes:
    """Names: other students' folders.

    Honest points: 10
    """
    return zipped({f"s{n:03}/blend.py": RIGHT.encode() for n in range(1, 30, 2)})


def of_results() -> bytes:
    """Members: its own ledger, reports and marks."""
    names = ("grades.csv", "results.jsonl", "index.html", "reports/s001.html", "ledger.sqlite")
    return zipped(dict.fromkeys((*names, "blend.py"), EVIL))


ZIPS_OF: tuple[Callable[[], bytes], ...] = (
    *(extra_fields, long_names, long_comment, false_count, count_of_64_bits),
    *(index_before_the_start, overlapping, within_each_other, many_small_bombs, nested_folders),
    *(many_folders, name_in_two_places, name_in_the_extra_field, names_of_two_cases),
    *(names_of_controls, folder_and_file, link_to_a_folder, devices, impossible_times),
    *(unknown_methods, encrypted, endless_deflate, broken_deflate, behind_another_file, holes),
    *(empty, only_an_end, of_a_class, of_results),
)


def _placed(make: Callable[[], bytes]) -> Place:
    def place(folder: Path, name: str, fill: Fill) -> None:
        (folder / f"{name}.zip").write_bytes(make())

    place.__name__, place.__doc__ = make.__name__, make.__doc__
    return place


def many_zips(folder: Path, name: str, fill: Fill) -> None:
    """Too many: zips just below the limits, a hundred."""
    (folder / name).mkdir()
    data = zipped({f"{n}.py": bytes(60_000) for n in range(200)})
    for number in range(100):
        (folder / name / f"{number}.zip").write_bytes(data)
    (folder / name / "blend.py").write_text(fill(KIT))


def zip_beside_a_pipe(folder: Path, name: str, fill: Fill) -> None:
    """Beside the work: a pipe named as a zip."""
    import os

    (folder / name).mkdir()
    (folder / name / "a.zip").write_bytes(zipped({"blend.py": WORK}))
    os.mkfifo(folder / name / "b.zip")


def zip_of_a_neighbour(folder: Path, name: str, fill: Fill) -> None:
    """Beside the work: a hard link to another student's zip."""
    import os

    theirs = fill.path("root") / "theirs.zip"
    if not theirs.exists():
        theirs.write_bytes(zipped({"blend.py": RIGHT.encode()}))
    (folder / name).mkdir()
    (folder / name / "a.zip").write_bytes(zipped({"notes.py": b""}))
    os.link(theirs, folder / name / "b.zip")


def zip_behind_a_link(folder: Path, name: str, fill: Fill) -> None:
    """Beside the work: a link to a folder with another student's zip."""
    theirs = fill.path("root") / "theirs"
    theirs.mkdir(exist_ok=True)
    (theirs / "blend.zip").write_bytes(zipped({"blend.py": RIGHT.encode()}))
    (theirs / "blend.py").write_text(RIGHT)
    (folder / name).mkdir()
    (folder / name / "a.zip").write_bytes(zipped({"notes.py": b""}))
    (folder / name / "linked").symlink_to(theirs)


def same_name_twice(folder: Path, name: str, fill: Fill) -> None:
    """Has the work twice, with the same name, once good and once bad.

    Honest points: 10
    """
    (folder / f"{name}.zip").write_bytes(same_name())


ZIPS = (
    *map(_placed, ZIPS_OF),
    *(many_zips, zip_beside_a_pipe, zip_of_a_neighbour, zip_behind_a_link, same_name_twice),
)
