"""The file of a class's ledger: its place, its lock, and its tables."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import re
import socket
import sqlite3
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any

from grader.errors import RequestError
from grader.files import make_folder, open_private
from grader.installing import NEWER
from grader.report import clean
from grader.trees import UNFINISHED

FILE, LOCK = "ledger.sqlite", "ledger.lock"
HOLDER = re.compile(r"(\d+) ?(.{0,255})")  # in the lock: a process, and its machine
HOLDER_TRIES, HOLDER_SECONDS = 10, 0.05  # to wait for the name of a process after its lock
BUSY_SECONDS = 10.0  # seconds to wait for a reader of the file
KEPT = "what was graded is kept; fix that, and run the same command again"
WRITABLE = "make the folder and its files writable, copy it, or give another --out DIR"

_RESULT = """(
        hash TEXT NOT NULL, exercise TEXT NOT NULL, course TEXT NOT NULL,
        versions TEXT NOT NULL, seed INTEGER NOT NULL,
        result TEXT NOT NULL, confinement TEXT NOT NULL, seconds REAL NOT NULL,
        run INTEGER NOT NULL, at TEXT NOT NULL,
        PRIMARY KEY (hash, exercise, course, versions, seed)
    ) STRICT;"""
MIGRATIONS = (
    f"""
    CREATE TABLE settings (key TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT;
    CREATE TABLE runs (
        run INTEGER PRIMARY KEY, started TEXT NOT NULL, finished TEXT,
        course TEXT NOT NULL, versions TEXT NOT NULL, seed INTEGER NOT NULL
    ) STRICT;
    CREATE TABLE submissions (hash TEXT PRIMARY KEY, files BLOB NOT NULL) STRICT;
    CREATE TABLE attempts (
        student TEXT NOT NULL, number INTEGER NOT NULL, hash TEXT NOT NULL,
        person TEXT NOT NULL, submitted TEXT, due TEXT, late INTEGER NOT NULL,
        paths TEXT NOT NULL, problems TEXT NOT NULL, notes TEXT NOT NULL,
        graded INTEGER NOT NULL, present INTEGER NOT NULL,
        PRIMARY KEY (student, number)
    ) STRICT;
    CREATE INDEX attempts_by_hash ON attempts (hash);
    CREATE TABLE missing (student TEXT PRIMARY KEY, person TEXT NOT NULL) STRICT;
    CREATE TABLE results {_RESULT}
    CREATE TABLE set_aside {_RESULT}
    CREATE TABLE adjustments (
        id INTEGER PRIMARY KEY, student TEXT NOT NULL, exercise TEXT NOT NULL,
        points REAL NOT NULL, why TEXT NOT NULL, at TEXT NOT NULL
    ) STRICT;
    CREATE TABLE published (
        student TEXT PRIMARY KEY, fingerprint TEXT NOT NULL, rules TEXT NOT NULL,
        seed INTEGER NOT NULL, points REAL NOT NULL, max_points REAL NOT NULL,
        exercises TEXT NOT NULL, at TEXT NOT NULL
    ) STRICT;
    """,
    """
    ALTER TABLE settings ADD COLUMN checksum TEXT;
    ALTER TABLE submissions ADD COLUMN checksum TEXT;
    ALTER TABLE attempts ADD COLUMN checksum TEXT;
    ALTER TABLE missing ADD COLUMN checksum TEXT;
    ALTER TABLE results ADD COLUMN checksum TEXT;
    ALTER TABLE set_aside ADD COLUMN checksum TEXT;
    ALTER TABLE adjustments ADD COLUMN checksum TEXT;
    ALTER TABLE published ADD COLUMN pages TEXT NOT NULL DEFAULT '{}';
    ALTER TABLE published ADD COLUMN checksum TEXT;
    CREATE TABLE damaged (
        id INTEGER PRIMARY KEY, found_in TEXT NOT NULL, student TEXT NOT NULL,
        exercise TEXT NOT NULL, at TEXT NOT NULL
    ) STRICT;
    """,
    """
    CREATE TABLE history (
        id INTEGER PRIMARY KEY, what TEXT NOT NULL, why TEXT NOT NULL, about TEXT NOT NULL,
        hash TEXT NOT NULL, points REAL NOT NULL, max_points REAL NOT NULL, at TEXT NOT NULL,
        checksum TEXT
    ) STRICT;
    """,
    """
    CREATE TABLE origins (
        student TEXT NOT NULL, number INTEGER NOT NULL, layout TEXT NOT NULL,
        names TEXT NOT NULL, checksum TEXT,
        PRIMARY KEY (student, number)
    ) STRICT;
    """,
    """
    CREATE TABLE remarks (
        student TEXT PRIMARY KEY, team TEXT NOT NULL, flags TEXT NOT NULL, checksum TEXT
    ) STRICT;
    """,
    """
    CREATE INDEX history_by_student ON history (about);
    """,
    # The checksums are computed again when the rows are read, and then cover the epoch.
    """
    ALTER TABLE submissions ADD COLUMN epoch INTEGER NOT NULL DEFAULT 0;
    UPDATE submissions SET checksum = NULL;
    CREATE INDEX submissions_by_epoch ON submissions (epoch);
    """,
)
# The columns that a row's checksum covers. `present` is left out: it changes for all rows at once.
COLUMNS: Mapping[str, str] = {
    "settings": "key, value",
    "submissions": "hash, files, epoch",
    "attempts": (
        "student, number, hash, person, submitted, due, late, paths, problems, notes, graded"
    ),
    "origins": "student, number, layout, names",
    "missing": "student, person",
    "remarks": "student, team, flags",
    "results": "hash, exercise, course, versions, seed, result, confinement",
    "set_aside": "hash, exercise, course, versions, seed, result, confinement",
    "adjustments": "student, exercise, points, why, at",
    "published": "student, fingerprint, rules, seed, points, max_points, exercises, pages",
    "history": "what, why, about, hash, points, max_points, at",
}


def checksum(values: Sequence[Any]) -> str:
    """Return a checksum of the values of a row, which is the same on every machine."""
    parts: list[bytes] = []
    for value in values:
        if isinstance(value, str):
            kind, data = b"s", value.encode("utf-8", "surrogatepass")
        elif isinstance(value, bytes):
            kind, data = b"b", value
        else:
            kind, data = b"n", repr(value).encode()
        parts += (b"%b%d " % (kind, len(data)), data)
    return hashlib.sha256(b"".join(parts)).hexdigest()[:32]


def existing(folder: Path) -> Path:
    """Return the folder; raise `RequestError` if no class was graded into it."""
    if not (folder / FILE).is_file():
        message = f"no class was graded into {folder}: there is no {FILE}"
        raise RequestError(message, f"grader batch SUBMISSIONS --out {folder}")
    return folder


@contextlib.contextmanager
def lock_folder(folder: Path) -> Iterator[None]:
    """Lock `folder` against other graders; raise `RequestError` if one is working in it."""
    try:
        make_folder(folder)
        lock = open_private(folder / LOCK, "a")
    except OSError as error:
        raise RequestError(f"cannot write in {folder}: {error.strerror}", WRITABLE) from None
    with lock:
        _lock(lock, folder)
        _remove_drafts(folder)
        yield


def _remove_drafts(folder: Path) -> None:
    """Remove the unfinished files of killed processes from a folder of results.

    A process that works in the folder holds its lock, so only a file written without the lock, by
    another command on this machine, may still be in use; then its process is alive.
    """
    with contextlib.suppress(OSError):
        inner = [
            Path(each.path) for each in os.scandir(folder) if each.is_dir(follow_symlinks=False)
        ]
        # Another class in a folder inside has a lock of its own, which another grader may hold.
        for place in (folder, *(each for each in inner if not (each / LOCK).exists())):
            for entry in os.scandir(place):
                draft = UNFINISHED.fullmatch(entry.name)
                if draft and entry.is_file(follow_symlinks=False) and not _is_alive(int(draft[1])):
                    Path(entry.path).unlink(missing_ok=True)


def _is_alive(pid: int) -> bool:
    """Return whether another process on this machine has this number."""
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        return True
    return pid not in (0, os.getpid())


def _lock(lock: IO[str], folder: Path) -> None:
    """Lock the folder; the kernel unlocks it when this process ends in any way."""
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        message = f"another grader{_holder(folder)} is at work in {folder}"
        raise RequestError(message, "wait for it, or give another --out DIR") from None
    with contextlib.suppress(OSError):  # on a full disk the folder is locked all the same
        os.ftruncate(lock.fileno(), 0)
        os.write(lock.fileno(), f"{os.getpid()} {socket.gethostname()}\n".encode())


def _holder(folder: Path) -> str:
    """Return the process that holds a folder's lock, and its machine if that is another one.

    The process writes these just after it has locked the folder.
    """
    for _ in range(HOLDER_TRIES):
        with contextlib.suppress(OSError):
            if found := HOLDER.fullmatch((folder / LOCK).read_text("utf-8", "replace").strip()):
                machine = clean(found[2])
                here = machine in ("", socket.gethostname())
                return f", process {found[1]}{'' if here else f' on the machine {machine}'},"
        time.sleep(HOLDER_SECONDS)
    return ""


@contextlib.contextmanager
def explain_disk_errors(folder: Path) -> Iterator[None]:
    """Turn an error of the database into a `RequestError` that says what to do."""
    try:
        yield
    except sqlite3.DatabaseError as error:
        raise RequestError(f"the ledger in {folder}: {error}", _remedy(error, folder)) from error


def _remedy(error: sqlite3.Error, folder: Path) -> str:
    if not folder.is_dir() or not (folder / FILE).exists():
        return "it was removed while the run went on: run the same command again"
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF  # the primary code
    if code in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN):
        return WRITABLE
    if code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
        return f"move {folder / FILE} away and grade again, or restore it from a backup"
    return KEPT


def connect(folder: Path) -> sqlite3.Connection:
    """Open the ledger in `folder` to read and write, with its tables up to date."""
    path = folder / FILE
    with contextlib.suppress(OSError):  # then SQLite reports the problem
        open_private(path, "a").close()
        _restore_modes(path)
    connection = sqlite3.connect(path, timeout=BUSY_SECONDS, isolation_level=None)
    connection.text_factory = _text
    try:
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("PRAGMA synchronous=FULL")
        _migrate(connection, path)
    except BaseException:
        connection.close()
        raise
    return connection


def _restore_modes(path: Path) -> None:
    """Make SQLite's own files writable: they have the mode that the ledger had before."""
    for end in ("-wal", "-shm"):
        with contextlib.suppress(FileNotFoundError):
            own = path.with_name(path.name + end)
            own.chmod(path.stat().st_mode & 0o777)


def _text(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")  # so that a damaged row does not end the query


def _migrate(connection: sqlite3.Connection, path: Path) -> None:
    """Bring the tables up to date; do not change a ledger of a newer version.

    A new ledger has version 0, and so has one whose creation was cut off: each step is one
    transaction, with its number.
    """
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if version > len(MIGRATIONS):
        message = f"{path} was written by a newer attention-grader"
        raise RequestError(message, NEWER)
    for number, script in enumerate(MIGRATIONS[version:], start=version + 1):
        connection.executescript(f"BEGIN; {script}; PRAGMA user_version = {number}; COMMIT;")


def settings_of(ledger: Path) -> dict[str, Any]:
    """Return the settings in a ledger, even while another process writes it.

    Damaged settings are left out. A ledger whose creation was cut off has none.
    """
    try:
        # Not `mode=ro`, with which SQLite cannot roll back a killed process's transaction.
        place = f"{ledger.absolute().as_uri()}?mode=rw"
        with contextlib.closing(sqlite3.connect(place, uri=True)) as connection:
            connection.text_factory = _text
            if connection.execute("PRAGMA user_version").fetchone() == (0,):
                return {}
            found = connection.execute("SELECT * FROM settings").fetchall()
    except sqlite3.Error as error:
        message = f"the ledger in {ledger.parent}: {error}"
        raise RequestError(message, _remedy(error, ledger.parent)) from None
    settings = {}
    for key, value, *seal in found:
        # An older ledger has no checksums.
        with contextlib.suppress(ValueError, TypeError, RecursionError):
            if seal in ([], [None], [checksum((key, value))]):
                settings[key] = json.loads(value)
    return settings
