"""The ledger of a class: every submission, attempt, result, adjustment and published mark.

One SQLite file, one writer. A result is written whole, and is on the disk, before it counts. What
is in here needs no second source: the files of every submission are kept, so that a class can be
graded again without the folder it came from. Public tables and columns: docs/ledger.md.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import sqlite3
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any

from grader.errors import RequestError
from grader.report import Adjustment, Person
from grader.sandbox.cells import NOTEBOOK
from grader.submissions.submission import Submission

FILE, LOCK = "ledger.sqlite", "ledger.lock"
BUSY_SECONDS = 10.0  # that a reader may make us wait

MIGRATIONS = (
    """
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
    CREATE TABLE results (
        hash TEXT NOT NULL, exercise TEXT NOT NULL, course TEXT NOT NULL,
        versions TEXT NOT NULL, seed INTEGER NOT NULL,
        result TEXT NOT NULL, confinement TEXT NOT NULL, seconds REAL NOT NULL,
        run INTEGER NOT NULL, at TEXT NOT NULL,
        PRIMARY KEY (hash, exercise, course, versions, seed)
    ) STRICT;
    CREATE TABLE set_aside (
        hash TEXT NOT NULL, exercise TEXT NOT NULL, course TEXT NOT NULL,
        versions TEXT NOT NULL, seed INTEGER NOT NULL,
        result TEXT NOT NULL, confinement TEXT NOT NULL, seconds REAL NOT NULL,
        run INTEGER NOT NULL, at TEXT NOT NULL,
        PRIMARY KEY (hash, exercise, course, versions, seed)
    ) STRICT;
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


@dataclass(frozen=True)
class Key:
    """What a result depends on beside the submission and the exercise's own part of the course."""

    versions: str
    seed: int


@dataclass(frozen=True)
class Entry:
    """One attempt as the ledger holds it: everything but the files.

    `graded` says whether it is to be graded: of several attempts often only one is.
    """

    student: str
    number: int
    hash: str
    person: Person = field(default_factory=Person)
    submitted: datetime | None = None
    due: datetime | None = None
    late: bool = False
    paths: Mapping[str, str] = field(default_factory=dict)
    problems: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    graded: bool = True


@dataclass(frozen=True)
class Kept:
    """A result as the ledger holds it: the JSON of an `ExerciseResult`, and under which layers."""

    result: bytes
    confinement: tuple[str, ...]
    course: str
    seconds: float = 0.0


@dataclass(frozen=True)
class Published:
    """What a student was last told, under which rules: `exercises` are the points of each."""

    fingerprint: str
    rules: str
    seed: int
    points: float
    max_points: float
    exercises: Mapping[str, float]


@contextlib.contextmanager
def opened(folder: Path) -> Iterator[Ledger]:
    """The ledger of `folder`, to read and write, for as long as the block lasts.

    Raises `RequestError` if somebody else is at it, or if it cannot be written.
    """
    with (
        locked(folder),
        told_of(folder),
        contextlib.closing(_connected(folder / FILE)) as connection,
    ):
        ledger = Ledger(connection)
        ledger.restore()  # what a trial that was killed had set aside
        yield ledger


def settings_of(ledger: Path) -> dict[str, str]:
    """The settings in a ledger that somebody else may be writing, as JSON."""
    try:
        place = f"{ledger.absolute().as_uri()}?mode=ro"
        with contextlib.closing(sqlite3.connect(place, uri=True)) as connection:
            return dict(connection.execute("SELECT key, value FROM settings"))
    except sqlite3.Error as error:
        raise RequestError(
            f"the ledger in {ledger.parent}: {error}", "grade that class anew, in another folder"
        ) from None


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Nobody else works in `folder`, for as long as the block lasts; `RequestError` if one does."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = (folder / LOCK).open("a+")
    except OSError as error:
        raise RequestError(f"cannot write in {folder}: {error.strerror}", "--out DIR") from None
    with lock:
        _take(lock, folder)
        yield


def existing(folder: Path) -> Path:
    """The folder, if a class was graded into it; `RequestError` otherwise."""
    if not (folder / FILE).is_file():
        raise RequestError(
            f"no class was graded into {folder}: there is no {FILE}",
            f"grader batch SUBMISSIONS --out {folder}",
        )
    return folder


def _take(lock: IO[str], folder: Path) -> None:
    """Lock the folder: the kernel lets go when this process ends, however it ends."""
    import fcntl

    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        lock.seek(0)
        holder = lock.read().strip() or "of another machine"
        raise RequestError(
            f"another grader, process {holder}, is at work in {folder}",
            "wait for it, or give another --out DIR",
        ) from None
    with contextlib.suppress(OSError):  # on a full disk it is locked all the same
        os.ftruncate(lock.fileno(), 0)
        os.write(lock.fileno(), f"{os.getpid()}\n".encode())


@contextlib.contextmanager
def told_of(folder: Path) -> Iterator[None]:
    """Say of what the disk refuses that nothing is lost, and what to do."""
    try:
        yield
    except (sqlite3.OperationalError, sqlite3.DatabaseError) as error:
        remedy = "what was graded is kept; mend that, and run the same command again"
        raise RequestError(f"the ledger in {folder}: {error}", remedy) from error


def _connected(path: Path) -> sqlite3.Connection:
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
    """Bring the tables up to date; a ledger from the future is not touched."""
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if version > len(MIGRATIONS):
        raise RequestError(
            f"{path} was written by a newer attention-grader", "pip install -U attention-grader"
        )
    for number, script in enumerate(MIGRATIONS[version:], start=version + 1):
        connection.executescript(f"BEGIN; {script}; PRAGMA user_version = {number}; COMMIT;")


class Ledger:
    """What is known of a class. Every method that writes is one transaction."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._db = connection
        self._run = 0

    # --- settings and runs ------------------------------------------------------------------------

    def get(self, key: str) -> Any:
        """A setting, or None."""
        row = self._db.execute("SELECT value FROM settings WHERE key = ?", [key]).fetchone()
        return json.loads(row[0]) if row else None

    def put(self, key: str, value: Any) -> None:
        """Keep a setting."""
        self.put_text(key, json.dumps(value))

    def put_text(self, key: str, text: str) -> None:
        """Keep a setting that is JSON already."""
        self._db.execute("INSERT OR REPLACE INTO settings VALUES (?, ?)", [key, text])

    def begin(self, course: str, key: Key) -> None:
        """Note that a run begins: results are its own from now on."""
        cursor = self._db.execute(
            "INSERT INTO runs (started, course, versions, seed) VALUES (?, ?, ?, ?)",
            [_now(), course, key.versions, key.seed],
        )
        self._run = cursor.lastrowid or 0

    def finish(self) -> None:
        """Note that the run came to its end."""
        self._db.execute("UPDATE runs SET finished = ? WHERE run = ?", [_now(), self._run])

    # --- what was handed in -----------------------------------------------------------------------

    @contextlib.contextmanager
    def taking_in(self) -> Iterator[None]:
        """Take in a whole class at once: within, what `take` is not told of is no longer there."""
        with self._writing():
            self._db.execute("UPDATE attempts SET present = 0")
            self._db.execute("DELETE FROM missing")
            yield

    def take(self, entry: Entry, files: Mapping[str, str]) -> None:
        """Keep an attempt and its files."""
        self._db.execute(
            "INSERT OR IGNORE INTO submissions VALUES (?, ?)",
            [entry.hash, zlib.compress(json.dumps(files).encode("utf-8", "surrogatepass"))],
        )
        self._db.execute(
            "INSERT OR REPLACE INTO attempts VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 1)",
            [
                *(entry.student, entry.number, entry.hash, json.dumps(asdict(entry.person))),
                *(_written(entry.submitted), _written(entry.due), int(entry.late)),
                *(json.dumps(dict(entry.paths)), json.dumps(dict(entry.problems))),
                *(json.dumps(entry.notes), int(entry.graded)),
            ],
        )

    def miss(self, student: str, person: Person) -> None:
        """Keep that a student of the roster has handed in nothing."""
        self._db.execute(
            "INSERT OR REPLACE INTO missing VALUES (?, ?)", [student, json.dumps(asdict(person))]
        )

    def missing(self) -> list[tuple[str, Person]]:
        """Who has handed in nothing."""
        rows = self._db.execute("SELECT student, person FROM missing ORDER BY student")
        return [(student, Person(**json.loads(person))) for student, person in rows]

    def students(self) -> list[str]:
        """Everybody who has handed in, in order."""
        rows = self._db.execute("SELECT DISTINCT student FROM attempts WHERE present")
        return sorted(student for (student,) in rows)

    def attempts(self, student: str) -> list[Entry]:
        """A student's attempts that are to be graded, the oldest first."""
        rows = self._db.execute(
            f"SELECT {_ENTRY} FROM attempts WHERE student = ? AND present AND graded "
            "ORDER BY number",
            [student],
        )
        return [_entry(row) for row in rows]

    def to_grade(self) -> Iterator[Entry]:
        """Of each submission that is to be graded one attempt, in the students' order."""
        chosen = self._db.execute(
            "SELECT min(rowid) FROM attempts WHERE present AND graded "
            "GROUP BY hash ORDER BY min(student), number"
        ).fetchall()
        for row in chosen:
            query = f"SELECT {_ENTRY} FROM attempts WHERE rowid = ?"
            yield _entry(self._db.execute(query, row).fetchone())

    def has_results(self) -> bool:
        """Whether anything was ever graded."""
        return self._db.execute("SELECT 1 FROM results LIMIT 1").fetchone() is not None

    def handed_in_by(self, digest: str) -> list[str]:
        """The students whose submission this is."""
        rows = self._db.execute(
            "SELECT DISTINCT student FROM attempts WHERE hash = ? AND present AND graded "
            "ORDER BY student",
            [digest],
        )
        return [student for (student,) in rows]

    def graded_now(self) -> list[str]:
        """Of whom this run has found something."""
        rows = self._db.execute(
            "SELECT DISTINCT student FROM attempts JOIN results USING (hash) "
            "WHERE run = ? AND present AND graded ORDER BY student",
            [self._run],
        )
        return [student for (student,) in rows]

    def submission(self, entry: Entry) -> Submission:
        """An attempt with its files, under the names by which they are graded.

        What a student called a file is theirs: another, who hands in the same, must not read it.
        """
        (packed,) = self._db.execute(
            "SELECT files FROM submissions WHERE hash = ?", [entry.hash]
        ).fetchone()
        files = json.loads(zlib.decompress(packed).decode("utf-8", "surrogatepass"))
        paths = {name: path_as_graded(name, path) for name, path in entry.paths.items()}
        return Submission(entry.student, files, paths, entry.problems, entry.notes)

    # --- results ----------------------------------------------------------------------------------

    def record(
        self,
        digest: str,
        courses: Mapping[str, str],
        key: Key,
        results: Mapping[str, bytes],
        confinement: Sequence[str],
        seconds: float,
    ) -> None:
        """Keep what was found of some exercises of a submission; `courses` has their hashes.

        A result that is there already stays: it counts once, however often it was found.
        """
        now = _now()
        with self._writing():
            self._db.executemany(
                "INSERT OR IGNORE INTO results VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                [
                    (
                        *(digest, name, courses[name], key.versions, key.seed, result.decode()),
                        *(json.dumps(confinement), seconds / len(results), self._run, now),
                    )
                    for name, result in results.items()
                ],
            )

    def set_aside(self, student: str) -> None:
        """Have a student's submissions graded anew; `restore` or `settle` ends the trial."""
        of = "hash IN (SELECT hash FROM attempts WHERE student = ?)"
        with self._writing():
            self._db.execute(f"INSERT INTO set_aside SELECT * FROM results WHERE {of}", [student])
            self._db.execute(f"DELETE FROM results WHERE {of}", [student])

    def restore(self) -> None:
        """Put back what was set aside."""
        with self._writing():
            self._db.execute("INSERT OR REPLACE INTO results SELECT * FROM set_aside")
            self._db.execute("DELETE FROM set_aside")

    def settle(self) -> None:
        """Let go of what was set aside: the new results stay."""
        self._db.execute("DELETE FROM set_aside")

    def results(self, digest: str, courses: Mapping[str, str], key: Key) -> dict[str, Kept]:
        """What is known of a submission's exercises, for the course as it is now."""
        rows = self._db.execute(
            "SELECT exercise, course, result, confinement, seconds FROM results "
            "WHERE hash = ? AND versions = ? AND seed = ?",
            [digest, key.versions, key.seed],
        )
        return {
            name: Kept(result.encode(), tuple(json.loads(confinement)), course, seconds)
            for name, course, result, confinement, seconds in rows
            if courses.get(name) == course
        }

    # --- a teacher's word -------------------------------------------------------------------------

    def adjust(self, student: str, exercise: str, points: float, why: str) -> None:
        """Adjust a student's points of an exercise, in place of any earlier adjustment of it."""
        self._db.execute(
            "INSERT INTO adjustments (student, exercise, points, why, at) VALUES (?, ?, ?, ?, ?)",
            [student, exercise, points, why, _now()],
        )

    def adjustments(self, student: str) -> dict[str, Adjustment]:
        """A student's adjustments that count, by exercise."""
        rows = self._db.execute(
            "SELECT exercise, points, why FROM adjustments WHERE student = ? ORDER BY at, id",
            [student],
        )
        latest = {exercise: Adjustment(points, why) for exercise, points, why in rows}
        return {name: adjustment for name, adjustment in latest.items() if adjustment.points}

    # --- what students were told ------------------------------------------------------------------

    def publish(self, student: str, told: Published) -> None:
        """Keep what a student is told."""
        self._db.execute(
            "INSERT OR REPLACE INTO published VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            [
                *(student, told.fingerprint, told.rules, told.seed),
                *(told.points, told.max_points, json.dumps(dict(told.exercises)), _now()),
            ],
        )

    def published(self, student: str) -> Published | None:
        """What a student was last told, if anything."""
        row = self._db.execute(
            "SELECT fingerprint, rules, seed, points, max_points, exercises FROM published "
            "WHERE student = ?",
            [student],
        ).fetchone()
        if row is None:
            return None
        fingerprint, rules, seed, points, max_points, exercises = row
        return Published(fingerprint, rules, seed, points, max_points, json.loads(exercises))

    def class_fingerprint(self) -> str:
        """A hash over what everybody in the class was told, and over who is missing."""
        told = self._db.execute(
            "SELECT student, fingerprint FROM published "
            "WHERE student IN (SELECT student FROM attempts WHERE present) ORDER BY student"
        ).fetchall()
        return hashlib.sha256(repr((told, self.missing())).encode("utf-8", "replace")).hexdigest()

    def published_under(self) -> list[tuple[str, int]]:
        """The rules (a hash) and the seeds under which marks were published here."""
        rows = self._db.execute(
            "SELECT DISTINCT rules, seed FROM published "
            "WHERE student IN (SELECT student FROM attempts WHERE present)"
        )
        return [(rules, seed) for rules, seed in rows]

    # --- merging ----------------------------------------------------------------------------------

    def absorb(self, other: Path) -> None:
        """Take in everything that another ledger holds; what both hold is kept once.

        Of an attempt that both hold, theirs counts: it is the one that was graded over there.
        """
        self._db.execute("ATTACH DATABASE ? AS other", [str(other)])
        try:
            with self._writing():
                for table, columns in _ABSORBED.items():
                    self._db.execute(
                        f"INSERT OR IGNORE INTO main.{table} SELECT {columns} FROM other.{table}"
                    )
                self._db.execute(  # those that were not taken in before
                    "INSERT INTO main.adjustments (student, exercise, points, why, at) "
                    "SELECT student, exercise, points, why, at FROM other.adjustments EXCEPT "
                    "SELECT student, exercise, points, why, at FROM main.adjustments ORDER BY at"
                )
                for table in ("attempts", "missing"):
                    self._db.execute(f"REPLACE INTO main.{table} SELECT * FROM other.{table}")
        finally:
            self._db.execute("DETACH DATABASE other")

    @contextlib.contextmanager
    def _writing(self) -> Iterator[None]:
        self._db.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            with contextlib.suppress(sqlite3.OperationalError):  # a full disk has rolled back
                self._db.execute("ROLLBACK")
            raise
        self._db.execute("COMMIT")


_ABSORBED = {  # of runs, every ledger knows its own: 0 is another's
    "submissions": "*",
    "results": "hash, exercise, course, versions, seed, result, confinement, seconds, 0, at",
}
_ENTRY = "student, number, hash, person, submitted, due, late, paths, problems, notes, graded"


def _entry(row: Sequence[Any]) -> Entry:
    student, number, digest, person, submitted, due, late, paths, problems, notes, graded = row
    return Entry(
        student=student,
        number=number,
        hash=digest,
        person=Person(**json.loads(person)),
        submitted=_read(submitted),
        due=_read(due),
        late=bool(late),
        paths=json.loads(paths),
        problems=json.loads(problems),
        notes=tuple(json.loads(notes)),
        graded=bool(graded),
    )


def path_as_graded(name: str, path: str) -> str:
    """What an exercise's file is called while it is graded, whatever its student calls it."""
    return f"{name}{NOTEBOOK if path.endswith(NOTEBOOK) else '.py'}"


def _written(time: datetime | None) -> str | None:
    return None if time is None else time.isoformat()


def _read(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")
