"""The file of a class's ledger: where it is, who may write it, and its tables."""

from __future__ import annotations

import contextlib
import fcntl
import os
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from grader.errors import RequestError

FILE, LOCK = "ledger.sqlite", "ledger.lock"
BUSY_SECONDS = 10.0  # how long to wait for a reader of the file
KEPT = "what was graded is kept; fix that, and run the same command again"

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
)


def existing(folder: Path) -> Path:
    """Return the folder; raise `RequestError` if no class was graded into it."""
    if not (folder / FILE).is_file():
        message = f"no class was graded into {folder}: there is no {FILE}"
        raise RequestError(message, f"grader batch SUBMISSIONS --out {folder}")
    return folder


@contextlib.contextmanager
def lock_folder(folder: Path) -> Iterator[None]:
    """Keep other graders out of `folder`; raise `RequestError` if one is at work in it."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = (folder / LOCK).open("a+")
    except OSError as error:
        raise RequestError(f"cannot write in {folder}: {error.strerror}", "--out DIR") from None
    with lock:
        _lock(lock, folder)
        yield


def _lock(lock: IO[str], folder: Path) -> None:
    """Lock the folder; the kernel unlocks it when this process ends, however it ends."""
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        lock.seek(0)
        holder = lock.read().strip() or "of another machine"
        message = f"another grader, process {holder}, is at work in {folder}"
        raise RequestError(message, "wait for it, or give another --out DIR") from None
    with contextlib.suppress(OSError):  # on a full disk the folder is locked all the same
        os.ftruncate(lock.fileno(), 0)
        os.write(lock.fileno(), f"{os.getpid()}\n".encode())


@contextlib.contextmanager
def explain_disk_errors(folder: Path) -> Iterator[None]:
    """Turn an error of the database into a `RequestError` that says what to do."""
    try:
        yield
    except sqlite3.DatabaseError as error:
        raise RequestError(f"the ledger in {folder}: {error}", KEPT) from error


def connect(folder: Path) -> sqlite3.Connection:
    """Open the ledger in `folder` to read and write, with its tables up to date."""
    path = folder / FILE
    connection = sqlite3.connect(path, timeout=BUSY_SECONDS, isolation_level=None)
    try:
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("PRAGMA synchronous=FULL")
        _migrate(connection, path)
    except BaseException:
        connection.close()
        raise
    return connection


def _migrate(connection: sqlite3.Connection, path: Path) -> None:
    """Bring the tables up to date; do not touch a ledger that a newer version wrote."""
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if version > len(MIGRATIONS):
        message = f"{path} was written by a newer attention-grader"
        raise RequestError(message, "pip install -U attention-grader")
    for number, script in enumerate(MIGRATIONS[version:], start=version + 1):
        connection.executescript(f"BEGIN; {script}; PRAGMA user_version = {number}; COMMIT;")


def settings_of(ledger: Path) -> dict[str, str]:
    """Return the settings in a ledger, as JSON, while another process may be writing it."""
    try:
        place = f"{ledger.absolute().as_uri()}?mode=ro"
        with contextlib.closing(sqlite3.connect(place, uri=True)) as connection:
            return dict(connection.execute("SELECT key, value FROM settings"))
    except sqlite3.Error as error:
        message = f"the ledger in {ledger.parent}: {error}"
        raise RequestError(message, "grade that class into another folder") from None
