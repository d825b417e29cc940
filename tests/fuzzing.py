"""Random damage to bytes, reproducible from a seed, and whom it is given to.

`FUZZERS` has one entry for each kind of file that the grader reads. `campaign` gives it any number
of cases. Nothing but an error of the grader's own may come out.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import shutil
import stat
import tarfile
import time
import unicodedata
import zipfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

from grader.classroom.gradebooks import StudentMark, fill_canvas, fill_moodle
from grader.classroom.roster import read_roster
from grader.errors import RequestError
from grader.report import Person
from grader.submissions import archives, notebook
from grader.submissions.opening import code_suffix

# Pieces with a meaning in MessagePack, JSON or zip.
TOKENS = [b"\xdd\xff\xff\xff\xff", b"\xdf\x7f\xff\xff\xff", b"\xc6\xff\xff\xff\xff", b"\xcf" * 9]
TOKENS += [b"\xcb\x7f\xf8" + bytes(6), b"\xa3\xed\xa0\x80", b"\xa1\xff", b"\xd6", b"\x90", b"\xc0"]
TOKENS += [b'{"', b"[[[[", b"\\ud800", b"PK\x05\x06", b"1e999", b"NaN", b"null", b"-1", b"\0"]
CSV_TOKENS = [
    b",",
    b";",
    b"\t",
    b'"',
    b'""',
    b"\r",
    b"\n",
    b"\r\n",
    b"\0",
    b"\xef\xbb\xbf",
    b"\xff",
]
CSV_TOKENS += [
    b"=1+1",
    b"-1",
    b"1e999",
    b"NaN",
    b"9" * 400,
    b"2026-01-01T00:00+23:59",
    b"\xe2\x80\xae",
]
CSV_TOKENS += [b"Points Possible", b"ID", b"id", b"due", b"0001-01-01T00:00+01:00", b"x" * 140_000]


def mutated(rng: Random, data: bytes, other: bytes, tokens: list[bytes] = TOKENS) -> bytes:
    """Return `data` with one to three places cut, repeated or replaced by a piece of `other`."""
    body = bytearray(data)
    for _ in range(rng.randint(1, 3)):
        at = rng.randrange(len(body) + 1)
        again, tail = body[at : at + 40] * rng.randint(1, 9), other[rng.randrange(len(other)) :]
        new = rng.choice((b"", rng.randbytes(1), rng.choice(tokens), again, tail))
        body[at : at + rng.choice((0, 1, 1, 4, 9999))] = new
    return bytes(body)


@dataclass(frozen=True)
class Fuzzer:
    """How a case is made, and what is done with it.

    `use` gets an empty folder and the case, and returns whether it was accepted. It raises for
    everything that must not happen.
    """

    make: Callable[[Random], bytes]
    use: Callable[[Path, bytes], bool]


@dataclass
class Campaign:
    """What came of many cases."""

    cases: int = 0
    accepted: int = 0
    failures: dict[str, bytes] = field(default_factory=dict)  # by error, the first case of each
    seconds: float = 0.0
    slowest: float = 0.0
    slowest_case: bytes = b""


def campaign(fuzzer: Fuzzer, cases: int, folder: Path, seed: int = 22) -> Campaign:
    """Give a fuzzer so many cases; keep one of each way to fail, and the slowest."""
    rng, did = Random(seed), Campaign()
    began = time.perf_counter()
    for _ in range(cases):
        case = fuzzer.make(rng)
        start = time.perf_counter()
        try:
            did.accepted += fuzzer.use(folder, case)
        except Exception as error:
            did.failures.setdefault(f"{type(error).__name__}: {error}"[:80], case)
        spent = time.perf_counter() - start
        if spent > did.slowest:
            did.slowest, did.slowest_case = spent, case
        did.cases += 1
    did.seconds = time.perf_counter() - began
    return did


def from_samples(samples: list[bytes], tokens: list[bytes] = TOKENS) -> Callable[[Random], bytes]:
    """Return a maker of cases that damages one of the samples."""
    return lambda rng: mutated(rng, rng.choice(samples), rng.choice(samples), tokens)


# --- zips ---------------------------------------------------------------------------------------


def zipped(members: dict[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    """Return a zip of these files."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", method) as file:
        for name, data in members.items():
            file.writestr(name, data)
    return buffer.getvalue()


def unpacked_files(root: Path, data: bytes, name: str = "a.zip") -> set[str]:
    """Unpack an archive; return its files, or none if it is refused.

    No other file may be written or changed.
    """
    into, refused = root / "into", False
    into.mkdir()
    (root / name).write_bytes(data)
    try:
        archives.unpack(root / name, into, [])
    except archives.UnreadableArchive:
        refused = True
    finally:
        files = [path for path in into.rglob("*") if not stat.S_ISDIR(path.lstat().st_mode)]
        assert all(stat.S_ISREG(path.lstat().st_mode) and code_suffix(path.name) for path in files)
        assert sum(path.stat().st_size for path in files) <= archives.MAX_UNPACKED_BYTES
        shutil.rmtree(into)
    assert [path.name for path in root.iterdir()] == [name]
    (root / name).unlink()
    return set() if refused else {str(path.relative_to(into)) for path in files}


SOUND_ZIPS = [
    zipped({"a.py": b"x = 1\n" * 9, "b/\xfc.py": b"y"}, method) for method in (0, 8, 12, 14)
]


# --- tars ---------------------------------------------------------------------------------------


def tarred(form: int) -> bytes:
    """Return a tar of files with short and long names, a link and a folder."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=form) as file:
        for name in ("a.py", "b/\xfc.py", "c/" * 40 + "long" * 30 + ".py"):
            info = tarfile.TarInfo(name)
            info.size = 6
            file.addfile(info, io.BytesIO(b"x = 1\n"))
        for name, kind in (("d", tarfile.DIRTYPE), ("e.py", tarfile.SYMTYPE)):
            info = tarfile.TarInfo(name)
            info.type, info.linkname = kind, "/etc/passwd"
            file.addfile(info)
    return buffer.getvalue()


SOUND_TARS = [tarred(form) for form in (tarfile.GNU_FORMAT, tarfile.PAX_FORMAT)]


def a_tar(rng: Random) -> bytes:
    """Return a damaged tar; half of them are damaged before they are compressed."""
    body = mutated(rng, rng.choice(SOUND_TARS), rng.choice(SOUND_TARS))
    if rng.random() < 0.5:
        body = gzip.compress(body, 1)
        return mutated(rng, body, body) if rng.random() < 0.3 else body
    return body


# --- notebooks ----------------------------------------------------------------------------------


def cells(*sources: Any) -> bytes:
    """Return a notebook with these code cells."""
    shown = {"cell_type": "code", "metadata": {}, "outputs": [], "execution_count": None}
    made = [{**shown, "id": f"c{number}", "source": text} for number, text in enumerate(sources)]
    return json.dumps(
        {"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": made}, indent=1
    ).encode()


def readable(data: bytes) -> bool:
    """Return whether the notebook can be read; its text must be valid UTF-8."""
    try:
        notebook.read_notebook(data).code.encode()
    except notebook.UnreadableNotebook:
        return False
    return True


SOUND_NOTEBOOKS = [cells("import torch\n%time x\n", ["def f(x):\n", "    return x\n"], "!ls\n(")]
OLD_CELLS = [
    {
        "cell_type": "code",
        "input": "%x\ny = 1",
        "language": "python",
        "outputs": [],
        "metadata": {},
    },
    {"cell_type": "heading", "level": 2, "source": "x", "metadata": {}},
    {"cell_type": "markdown", "source": ["x"], "metadata": {}},
]
VERSIONED = [
    {"nbformat": 3, "nbformat_minor": 0, "metadata": {}, "worksheets": [{"cells": OLD_CELLS}]},
    {"nbformat": 2, "metadata": {}, "worksheets": [{"cells": OLD_CELLS}]},
    {"nbformat": 1, "cells": [{"cell_type": "code", "code": "x = 1"}, {"cell_type": "text"}]},
]
WORDS = ("%", "!", "?", "%%", "x", "=", "/f", ",", ";", " ", "\n", "(", ")", "'", '"""', "\\", "\t")
WORDS += ("%%time", "%%bash", "get_ipython", "def f():", "\x0c", "\r", ">>> ", "In [1]: ", "\u2028")
KINDS = ("code", "markdown", "raw", "heading", "text", "html", 3, None, ["code"])
VALUES: tuple[Any, ...] = (
    None,
    0,
    -1,
    4,
    10**9,
    1.5,
    True,
    "",
    "x",
    [],
    {},
    [[]],
    {"a": {}},
    "\ud800",
)


def a_notebook(rng: Random) -> bytes:
    """Return a notebook whose parts are right or of any other kind, or a damaged one."""
    if rng.random() < 0.4:
        sound = [*SOUND_NOTEBOOKS, *(json.dumps(one).encode() for one in VERSIONED)]
        return mutated(rng, rng.choice(sound), rng.choice(sound))

    def perhaps(value: Any) -> Any:
        return value if rng.random() < 0.9 else rng.choice(VALUES)

    def a_cell() -> Any:
        text = "".join(rng.choice(WORDS) for _ in range(rng.randint(0, 9)))
        source = perhaps(text if rng.random() < 0.7 else text.splitlines(keepends=True))
        key = rng.choice(("source", "source", "source", "input", "code"))
        cell = {"cell_type": perhaps(rng.choice(KINDS[:2])), key: source, "metadata": perhaps({})}
        cell |= {"outputs": perhaps([]), "execution_count": None, "id": perhaps("c")}
        cell |= (
            {"level": rng.choice(VALUES), "cell_type": rng.choice(KINDS)}
            if rng.random() < 0.2
            else {}
        )
        return perhaps(cell)

    made = perhaps([a_cell() for _ in range(rng.randint(0, 4))])
    book = {"nbformat": perhaps(rng.choice((4, 4, 4, 3, 2, 1))), "nbformat_minor": perhaps(5)}
    book |= {"metadata": perhaps({}), "cells": made, "worksheets": perhaps([{"cells": made}])}
    return json.dumps(book).encode()


# --- tables -------------------------------------------------------------------------------------

ROSTERS = [
    b"id,login,email,number,name,section,due,submitted\n"
    b"1,ab,ab@example.org,77,Ada B,A,2026-11-30T23:59+01:00,\n"
    b'2,cd,,78,"Cyd, D",B,,2026-11-29T10:00Z\n',
    b"Student;ID;SIS Login ID;Section\r\nPoints Possible;;;\r\nAda;1;ab;A\r\n",
    b"\xef\xbb\xbfIdentifier\tFull name\tGroup\nParticipant 12\tAda B\tG1\n",
]
CANVAS = [
    b"Student,ID,SIS User ID,SIS Login ID,Section,Attention (12)\n"
    b"    Points Possible,,,,,10\n"
    b'"B, Ada",1,77,ab,A,\n"D, Cyd",2,78,cd,A,3.5\n"Student, Test",9,,t,A,\n',
]
MOODLE = [
    b"Identifier,Full name,Email address,Status,Grade,Maximum Grade,Grade can be changed,"
    b"Last modified (grade),Feedback comments\n"
    b"Participant 1,Ada B,ab@example.org,Submitted,,10.00,Yes,-,\n"
    b"Participant 2,Cyd D,cd@example.org,Submitted,3.5,10.00,Yes,-,\n",
]
MARKS = [
    StudentMark("1", Person(name="Ada B", email="ab@example.org", login="ab", number="77"), 7, 10),
    StudentMark("2", Person(name="Cyd D", email="cd@example.org", login="cd"), 1 / 3, 10),
]


def reads_roster(root: Path, data: bytes) -> bool:
    """Whether the roster is read: students with names that can be printed."""
    path = root / "roster.csv"
    path.write_bytes(data)
    try:
        roster = read_roster(path)
    except RequestError:
        return False
    for row in roster.rows:
        assert row.student
        assert not any(unicodedata.category(letter) == "Cc" for letter in row.student)
    names = [row.student.casefold() for row in roster.rows]
    assert len(set(names)) == len(names)
    return True


def _fills(fill: Callable[..., Any]) -> Callable[[Path, bytes], bool]:
    def fills(root: Path, data: bytes) -> bool:
        """Whether the gradebook is filled: as many lines, and only its own column changed."""
        try:
            filled = fill(data, MARKS, scale=True)
        except RequestError:
            return False
        limit = csv.field_size_limit(1 << 30)
        before, after = (
            list(csv.reader(io.StringIO(text.decode("utf-8-sig"), newline="")))
            for text in (data, filled.data)
        )
        csv.field_size_limit(limit)
        assert len(before) == len(after)
        return True

    return fills


FUZZERS: dict[str, Fuzzer] = {
    "notebooks": Fuzzer(a_notebook, lambda root, data: readable(data)),
    "zips": Fuzzer(from_samples(SOUND_ZIPS), lambda root, data: bool(unpacked_files(root, data))),
    "tars": Fuzzer(a_tar, lambda root, data: bool(unpacked_files(root, data, "a.tar.gz"))),
    "rosters": Fuzzer(from_samples(ROSTERS, CSV_TOKENS), reads_roster),
    "canvas": Fuzzer(from_samples(CANVAS, CSV_TOKENS), _fills(fill_canvas)),
    "moodle": Fuzzer(from_samples(MOODLE, CSV_TOKENS), _fills(fill_moodle)),
}
