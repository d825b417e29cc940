"""The ledger of a class: one writer, every result whole and once, and nothing mixed."""

from __future__ import annotations

import contextlib
import fcntl
import json
import sqlite3
import subprocess
import sys
import threading
import zlib
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TextIO

import pytest
from classroom import TINY, Instant, hand_in, marks, report_of, rows
from commandline import Cli

from grader.classroom import storage
from grader.classroom.ledger import Ledger, open_ledger
from grader.classroom.stored.marks import PublishedMark
from grader.classroom.stored.results import ResultKey
from grader.classroom.stored.submissions import AttemptRow
from grader.classroom.workers.messages import GradedJob, encode_result
from grader.errors import RequestError
from grader.grading.seeds import secret_from, seed_of_epoch
from grader.report import ExerciseResult, Person

LATEST = len(storage.MIGRATIONS)

KEY = ResultKey("versions", 5)
ENTRY = AttemptRow("s001", 1, "hash-1")
COURSES = {"scale": "course-1", "shift": "course-2"}
BOTH = GradedJob({"scale": b"{}", "shift": b"{}"}, (), 1.0)

DIGITS = "0123456789abcdef"  # of a draft's name


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with open_ledger(tmp_path / "out") as one:
        yield one


def take(ledger: Ledger, *entries: AttemptRow) -> None:
    with ledger.taking_in():
        for entry in entries:
            ledger.take(entry, {"scale": f"text of {entry.hash}"})


def batch(cli: Cli, folder: Path, *more: object) -> Any:
    out = folder / "out"
    return cli("batch", folder / "class", "--out", out, "--course", TINY, "--seed", 5, *more)


# --- the file -------------------------------------------------------------------------------------


def test_what_is_written_is_on_the_disk_and_readers_wait_for_nobody(tmp_path: Path) -> None:
    with open_ledger(tmp_path) as ledger:
        asked = {
            name: ledger._db.execute(f"PRAGMA {name}").fetchone()[0]
            for name in ("journal_mode", "synchronous", "user_version")
        }
        # 2 is FULL.
        assert asked == {"journal_mode": "wal", "synchronous": 2, "user_version": LATEST}
        with ledger.taking_in():
            ledger.take(ENTRY, {})
            assert rows(tmp_path, "SELECT * FROM attempts") == []
        assert rows(tmp_path, "SELECT student FROM attempts") == [("s001",)]


def test_every_table_is_strict(ledger: Ledger, tmp_path: Path) -> None:
    tables = rows(
        tmp_path / "out", "SELECT name, strict FROM pragma_table_list WHERE schema='main'"
    )
    assert {name for name, strict in tables if not strict} == {"sqlite_schema"}
    assert len(tables) == 1 + len(storage.COLUMNS) + len({"runs", "damaged"})
    with pytest.raises(sqlite3.IntegrityError):
        ledger._db.execute("INSERT INTO adjustments VALUES (1, 's001', 'scale', 'two', '', '', '')")


def test_an_older_ledger_is_brought_up_to_date(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with open_ledger(tmp_path) as ledger:
        take(ledger, ENTRY)
    more = "CREATE TABLE notes (text TEXT) STRICT; INSERT INTO notes VALUES ('new')"
    monkeypatch.setattr(storage, "MIGRATIONS", (*storage.MIGRATIONS, more))
    for _ in range(2):
        with open_ledger(tmp_path) as ledger:
            assert ledger.students() == ["s001"]
    assert rows(tmp_path, "SELECT text FROM notes") == [("new",)]
    assert rows(tmp_path, "PRAGMA user_version") == [(LATEST + 1,)]


def test_a_migration_that_fails_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with open_ledger(tmp_path) as ledger:
        take(ledger, ENTRY)
    with monkeypatch.context() as patched:
        broken = "CREATE TABLE notes (text TEXT) STRICT; INSERT INTO nowhere VALUES (1)"
        patched.setattr(storage, "MIGRATIONS", (*storage.MIGRATIONS, broken))
        with pytest.raises(RequestError, match="no such table: nowhere"), open_ledger(tmp_path):
            pass
    assert rows(tmp_path, "PRAGMA user_version") == [(LATEST,)]
    with open_ledger(tmp_path) as ledger:
        assert ledger.students() == ["s001"]


VERSION_1 = """
    PRAGMA journal_mode=WAL;
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
    INSERT INTO settings VALUES ('seed', '5'), ('request', '{"attempt": "latest"}'),
        ('class', '"0123"');
    INSERT INTO runs VALUES (1, 'then', 'then', 'course', '{}', 5);
    INSERT INTO missing VALUES ('s009', '{"name": "Nine"}');
    INSERT INTO adjustments VALUES (1, 's002', 'scale', 1.0, 'near', 'then');
    PRAGMA user_version = 1;
"""


@pytest.fixture
def older(tmp_path: Path) -> Path:
    """The ledger of two students as version 1 of its tables had it: no checksums, no secret."""
    out = tmp_path / "out"
    out.mkdir()
    with contextlib.closing(sqlite3.connect(out / "ledger.sqlite")) as db:
        db.executescript(VERSION_1)
        for student, points, mark in (("s001", 8, 8), ("s002", 4, 5)):
            files = zlib.compress(json.dumps({"scale": f"# {points} points\n"}).encode())
            paths, of = json.dumps({"scale": "scale.py"}), f"hash of {student}"
            db.execute("INSERT INTO submissions VALUES (?, ?)", [of, files])
            row = (student, 1, of, "{}", None, None, 0, paths, "{}", "[]", 1, 1)
            db.execute(f"INSERT INTO attempts VALUES ({', '.join('?' * 12)})", row)
            graded = ExerciseResult("scale", "Scale", points, 8, "", ())
            stored = encode_result(graded).decode()
            result = (of, "scale", "course", "{}", 5, stored, "[]", 0.5, 1, "then")
            db.execute(f"INSERT INTO results VALUES ({', '.join('?' * 10)})", result)
            published = (student, "0123", "rules", 5, mark, 8, json.dumps({"scale": mark}), "then")
            db.execute(f"INSERT INTO published VALUES ({', '.join('?' * 8)})", published)
        db.commit()
    return out


def test_a_ledger_of_version_1_opens_and_gets_its_checksums(older: Path) -> None:
    with open_ledger(older) as ledger:
        assert ledger.students() == ["s001", "s002"]
        assert ledger.adjustments("s002")["scale"].points == 1
        assert ledger.missing() == [("s009", Person("Nine"))]
        (row,) = ledger.attempts("s001")
        assert ledger.submission(row).files == {"scale": "# 8 points\n"}
        mark = ledger.published("s002")
        assert mark is not None
        assert (mark.points, mark.pages) == (5, {})
        assert not ledger.review.reasons
    assert rows(older, "PRAGMA user_version") == [(LATEST,)]
    for table in ("settings", "attempts", "missing", "adjustments", "published"):
        assert rows(older, f"SELECT count(*) FROM {table} WHERE checksum IS NULL") == [(0,)]


@pytest.mark.parametrize("said_again", [(), ("--seed", 5)])
def test_a_class_with_a_ledger_of_version_1_is_regraded_under_its_own_seed(
    said_again: tuple[object, ...], cli: Cli, instant: Instant, older: Path
) -> None:
    refused = cli("batch", "--resume", "--out", older, "--course", TINY, *said_again)
    assert refused.code == 2
    assert "under other rules; changed since: the course, its rules or the grader" in refused.err
    said = cli("regrade", "--publish", "--in", older, "--course", TINY, *said_again)
    assert (said.code, "0 change, 2 stay as they were" in said.out) == (0, True), said
    secret = secret_from(5)
    assert [job.seed for job in instant.jobs] == [seed_of_epoch(secret, 1)] * 2
    assert rows(older, "SELECT DISTINCT epoch FROM submissions") == [(1,)]
    assert marks(older) == {"s001": "8", "s002": "5"}
    assert cli("batch", "--resume", "--out", older, "--course", TINY).code == 1
    assert len(instant.jobs) == 2


def test_a_flipped_result_is_graded_again_and_said(
    cli: Cli, instant: Instant, tmp_path: Path
) -> None:
    texts = {f"s00{n}/scale.py": f"# {n} points" for n in (1, 2, 3)}
    hand_in(tmp_path / "class", texts)
    batch(cli, tmp_path)
    out, whole = tmp_path / "out", marks(tmp_path / "out")
    with contextlib.closing(sqlite3.connect(out / "ledger.sqlite")) as db:
        db.execute(  # another digit, as a flipped bit makes of it
            "UPDATE results SET result = replace(result, '\"points\":2', '\"points\":6') "
            "WHERE hash = (SELECT hash FROM attempts WHERE student = 's002')"
        )
        db.commit()
    instant.jobs.clear()
    said = batch(cli, tmp_path)
    assert said.code == 1
    assert "! s002: the stored result of scale was damaged" in said.err
    assert instant.graded == [("s002", ("scale",))]
    assert marks(out) == whole
    (flag,) = report_of(out, "s002")["flags"]
    assert "the stored result of scale was damaged" in flag
    assert not report_of(out, "s001")["flags"]
    again = batch(cli, tmp_path)
    assert "damaged" not in again.err
    assert len(instant.jobs) == 1


def test_a_ledger_from_the_future_is_refused_and_left_as_it_is(
    cli: Cli, instant: Instant, tmp_path: Path
) -> None:
    hand_in(tmp_path / "class", {"s001/scale.py": "# 3 points"})
    batch(cli, tmp_path)
    with contextlib.closing(sqlite3.connect(tmp_path / "out" / "ledger.sqlite")) as connection:
        connection.execute("PRAGMA user_version = 99")
    for command in (
        ("batch", tmp_path / "class", "--out", tmp_path / "out"),
        ("regrade", "--in", tmp_path / "out"),
        ("adjust", "s001", "scale", "+1", "--why", "x", "--in", tmp_path / "out"),
    ):
        said = cli(*command, "--course", TINY)
        assert said.code == 2
        assert "ledger.sqlite was written by a newer attention-grader" in said.err
        assert "pip install --upgrade ./attention_grader-….whl" in said.err
        assert "attention-grader==" not in said.err
    assert rows(tmp_path / "out", "PRAGMA user_version") == [(99,)]
    assert rows(tmp_path / "out", "SELECT count(*) FROM adjustments") == [(0,)]
    assert len(instant.jobs) == 1


def test_what_is_no_ledger_is_named(cli: Cli, instant: Instant, tmp_path: Path) -> None:
    hand_in(tmp_path / "class", {"s001/scale.py": "# 3 points"})
    hand_in(tmp_path / "out", {"ledger.sqlite": "this is no database" * 100})
    said = batch(cli, tmp_path)
    assert said.code == 2
    assert f"the ledger in {tmp_path / 'out'}: file is not a database" in said.err
    assert (tmp_path / "out" / "ledger.sqlite").read_text().startswith("this is no database")


@pytest.mark.parametrize(
    "command",
    [("regrade",), ("adjust", "s001", "scale", "+1", "--why", "x")],
)
def test_a_folder_without_a_ledger_is_no_class_that_was_graded(
    command: tuple[str, ...], cli: Cli, tmp_path: Path
) -> None:
    said = cli(*command, "--in", tmp_path, "--course", TINY)
    assert said.code == 2
    assert f"no class was graded into {tmp_path}" in said.err
    assert f"grader batch SUBMISSIONS --out {tmp_path}" in said.err
    assert not list(tmp_path.iterdir())


def test_a_class_that_was_never_graded_cannot_be_regraded(cli: Cli, tmp_path: Path) -> None:
    with open_ledger(tmp_path):
        pass  # as after a batch that was killed while it read what was handed in
    said = cli("regrade", "--in", tmp_path, "--course", TINY)
    assert said.code == 2
    assert "no run over the class has graded anything" in said.err
    assert f"grader batch SUBMISSIONS --out {tmp_path}" in said.err


# --- one writer -----------------------------------------------------------------------------------

HOLD = """
import sys, time
from pathlib import Path
from grader.classroom.ledger import open_ledger
with open_ledger(Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(600)
"""


@pytest.mark.slow
def test_a_second_grader_is_told_who_is_at_work_and_the_lock_goes_with_its_process(
    cli: Cli, instant: Instant, tmp_path: Path
) -> None:
    hand_in(tmp_path / "class", {"s001/scale.py": "# 3 points"})
    out = tmp_path / "out"
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(out)], stdout=subprocess.PIPE, text=True
    )
    try:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        for said in (batch(cli, tmp_path), cli("regrade", "--in", out, "--course", TINY)):
            assert said.code == 2
            assert f"another grader, process {holder.pid}, is at work in {out}" in said.err
            assert "machine" not in said.err
            assert "wait for it, or give another --out DIR" in said.err
        other = cli("batch", tmp_path / "class", "--out", tmp_path / "other", "--course", TINY)
        assert other.code == 1
    finally:
        holder.kill()
        holder.wait()
    assert batch(cli, tmp_path).code == 1


@contextlib.contextmanager
def locked_by_another(cli: Cli, folder: Path) -> Iterator[TextIO]:
    """Grade a class, and lock what comes out as another grader would; yield the lock."""
    hand_in(folder / "class", {"s001/scale.py": "# 3 points"})
    batch(cli, folder)
    with (folder / "out" / "ledger.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield lock


@pytest.mark.parametrize(
    ("holder", "says"),
    [
        ("4711 a.example\n", "another grader, process 4711 on the machine a.example, is at"),
        ("", "another grader is at work"),
        ("nonsense", "another grader is at work"),
    ],
)
def test_who_holds_the_lock_is_said_as_far_as_it_is_known(
    holder: str, says: str, cli: Cli, instant: Instant, tmp_path: Path
) -> None:
    with locked_by_another(cli, tmp_path) as lock:
        lock.write(holder)
        lock.flush()
        said = cli("regrade", "--in", tmp_path / "out", "--course", TINY)
    assert said.code == 2
    assert says in said.err


def test_a_grader_that_has_just_locked_the_folder_is_named(
    cli: Cli, instant: Instant, tmp_path: Path
) -> None:
    with locked_by_another(cli, tmp_path) as lock:
        late = threading.Timer(0.1, lambda: Path(lock.name).write_text("4711"))
        late.start()
        said = cli("regrade", "--in", tmp_path / "out", "--course", TINY)
        late.join()
    assert "another grader, process 4711, is at work" in said.err


def test_what_killed_processes_left_half_written_is_removed_by_whoever_comes_next(
    cli: Cli, instant: Instant, tmp_path: Path
) -> None:
    hand_in(tmp_path / "class", {"s001/scale.py": "# 3 points"})
    out = tmp_path / "out"
    batch(cli, tmp_path)
    (gone := subprocess.Popen([sys.executable, "-c", ""])).wait()
    (out / "mails-reports").mkdir()
    inner = out / "homework-1"  # another class, in which another grader may be working
    inner.mkdir()
    (inner / "ledger.lock").touch()
    left = [
        *(out / f".grader-{gone.pid}-{DIGITS}{end}" for end in (".mbox", ".zip", ".csv", "")),
        out / "reports" / f".grader-{gone.pid}-{DIGITS}.html",
        out / "mails-reports" / f".grader-{gone.pid}-{DIGITS}.html",
    ]
    living = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    kept = [
        out / f".grader-{living.pid}-{DIGITS}.mbox",
        out / ".hidden-0.mbox",
        out / "12-0.csv",
        inner / f".grader-{gone.pid}-{DIGITS}.html",
    ]
    for path in left + kept:
        path.write_text("half")
    try:
        assert cli("history", "--in", out, "--course", TINY).code == 0
    finally:
        living.communicate(b"\n")
    assert [path for path in left if path.exists()] == []
    assert [path for path in kept if not path.exists()] == []
    assert marks(out) == {"s001": "3"}


def test_the_lock_says_who_holds_it_also_after_many_others(tmp_path: Path) -> None:
    hand_in(tmp_path, {"ledger.lock": "1234567890\nan older and longer text\n"})
    with open_ledger(tmp_path), pytest.raises(RequestError) as caught, open_ledger(tmp_path):
        pass
    assert caught.value.message.startswith("another grader, process ")
    assert "older" not in caught.value.message


# --- results --------------------------------------------------------------------------------------


def test_a_result_that_is_found_twice_counts_once_and_the_first_stays(
    ledger: Ledger, tmp_path: Path
) -> None:
    take(ledger, ENTRY)
    ledger.begin("course", KEY)
    ledger.record("hash-1", COURSES, KEY, GradedJob({"scale": b'{"a": 1}'}, ("one",), 1.0))
    ledger.begin("course", KEY)
    both = {"scale": b'{"a": 2}', "shift": b'{"b": 1}'}
    ledger.record("hash-1", COURSES, KEY, GradedJob(both, ("two",), 4.0))
    kept = ledger.results("hash-1", COURSES, KEY)
    assert {name: one.result for name, one in kept.items()} == {
        "scale": b'{"a": 1}',
        "shift": b'{"b": 1}',
    }
    assert {name: one.confinement for name, one in kept.items()} == {
        "scale": ("one",),
        "shift": ("two",),
    }
    found = rows(tmp_path / "out", "SELECT exercise, run, seconds FROM results ORDER BY exercise")
    assert found == [("scale", 1, 1.0), ("shift", 2, 2.0)]


def test_what_is_found_of_a_submission_is_kept_whole_or_not_at_all(
    ledger: Ledger, tmp_path: Path
) -> None:
    take(ledger, ENTRY)
    with pytest.raises(KeyError):
        ledger.record("hash-1", {"scale": "c"}, KEY, BOTH)
    broken = "CREATE TRIGGER full BEFORE INSERT ON results WHEN NEW.exercise = 'shift' "
    ledger._db.execute(broken + "BEGIN SELECT RAISE(ABORT, 'no more room'); END")
    with pytest.raises(sqlite3.DatabaseError, match="no more room"):
        ledger.record("hash-1", COURSES, KEY, BOTH)
    assert rows(tmp_path / "out", "SELECT * FROM results") == []
    ledger._db.execute("DROP TRIGGER full")
    ledger.record("hash-1", COURSES, KEY, BOTH)
    assert rows(tmp_path / "out", "SELECT count(*) FROM results") == [(2,)]


@pytest.mark.parametrize(
    ("digest", "courses", "key", "known"),
    [
        ("hash-1", COURSES, KEY, {"scale", "shift"}),
        ("hash-2", COURSES, KEY, set()),
        ("hash-1", COURSES, replace(KEY, seed=6), set()),
        ("hash-1", COURSES, replace(KEY, versions="newer"), set()),
        ("hash-1", {**COURSES, "shift": "changed"}, KEY, {"scale"}),
        ("hash-1", {"scale": "course-1"}, KEY, {"scale"}),
    ],
)
def test_another_submission_seed_version_or_course_is_another_result(
    digest: str, courses: dict[str, str], key: ResultKey, known: set[str], ledger: Ledger
) -> None:
    ledger.record("hash-1", COURSES, KEY, BOTH)
    assert set(ledger.results(digest, courses, key)) == known


def test_another_seed_never_mixes_with_the_first(
    cli: Cli, instant: Instant, tmp_path: Path
) -> None:
    hand_in(tmp_path / "class", {f"s00{n}/scale.py": f"# {n} points" for n in range(1, 6)})

    def stopping(job: Any) -> None:
        if job.submission.name == "s005":
            raise KeyboardInterrupt

    instant.before = stopping
    assert batch(cli, tmp_path).code == 130
    instant.before = lambda job: None
    said = cli(
        "batch", tmp_path / "class", "--out", tmp_path / "out", "--course", TINY, "--seed", 6
    )
    assert said.code == 2
    assert "marks were published here with another seed" in said.err
    assert "grader regrade" in said.err
    assert batch(cli, tmp_path).code == 1
    assert len(rows(tmp_path / "out", "SELECT DISTINCT seed FROM results")) == 1
    assert marks(tmp_path / "out") == {f"s00{n}": f"{n}" for n in range(1, 6)}


def test_the_first_seed_stays_when_none_is_said(cli: Cli, instant: Instant, tmp_path: Path) -> None:
    hand_in(tmp_path / "class", {"s001/scale.py": "# 1 points"})
    for student in ("s002", "s003"):
        said = cli("batch", tmp_path / "class", "--out", tmp_path / "out", "--course", TINY)
        assert said.code == 1
        hand_in(tmp_path / "class", {f"{student}/scale.py": f"# {student[-1]} points"})
    assert len(rows(tmp_path / "out", "SELECT DISTINCT seed FROM results")) == 1
    assert len(instant.jobs) == 2


# --- who handed in what ---------------------------------------------------------------------------


def test_an_attempt_comes_back_as_it_was_kept(ledger: Ledger) -> None:
    entry = AttemptRow(
        student="s001",
        number=2,
        hash="hash-1",
        person=Person(name="Student One", email="one@example.org", section="B"),
        submitted=datetime(2026, 10, 30, 12, 1, 2, 3, tzinfo=UTC),
        due=datetime(2026, 10, 31, tzinfo=UTC),
        late=True,
        paths={"scale": "scale.py"},
        problems={"shift": "shift.py is not UTF-8"},
        notes=("a note", "of \udc80 odd bytes"),
    )
    files = {"scale": 'x = "\u00e9 \U0001f600 \udc80"\n'}
    with ledger.taking_in():
        ledger.take(entry, files)
    assert ledger.attempts("s001") == [entry]
    submission = ledger.submission(entry)
    assert (submission.name, submission.files) == ("s001", files)
    assert (submission.problems, submission.notes) == (entry.problems, entry.notes)


def test_only_what_was_taken_in_last_is_there(ledger: Ledger, tmp_path: Path) -> None:
    take(ledger, ENTRY, AttemptRow("s002", 1, "hash-2"), AttemptRow("s003", 1, "hash-2"))
    assert [entry.student for entry in ledger.to_grade()] == ["s001", "s002"]
    assert ledger.handed_in_by("hash-2") == ["s002", "s003"]
    take(ledger, AttemptRow("s003", 1, "hash-2"), AttemptRow("s003", 2, "hash-3", graded=False))
    assert ledger.students() == ["s003"]
    assert [entry.hash for entry in ledger.to_grade()] == ["hash-2"]
    with pytest.raises(AttributeError):
        take(ledger, ENTRY, None)  # type: ignore[arg-type]
    assert ledger.students() == ["s003"]
    assert len(rows(tmp_path / "out", "SELECT * FROM submissions")) == 3


def test_of_those_who_have_left_nothing_stands_in_the_way(ledger: Ledger) -> None:
    take(ledger, ENTRY, AttemptRow("s002", 1, "hash-2"))
    ledger.publish({"s001": PublishedMark("f", "old course", 5, 1, 8, {})})
    ledger.publish({"s002": PublishedMark("f", "course", 5, 1, 8, {})})
    assert sorted(ledger.published_under()) == [("course", 5), ("old course", 5)]
    take(ledger, AttemptRow("s002", 1, "hash-2"))
    assert ledger.published_under() == [("course", 5)]
    assert ledger.published("s001") is not None


def test_of_several_adjustments_of_one_exercise_the_last_counts(ledger: Ledger) -> None:
    for exercise, points in (("scale", 2.0), ("shift", 1.0), ("scale", -0.5), ("shift", 0.0)):
        ledger.adjust("s001", exercise, points, f"why {points:g}")
    found = ledger.adjustments("s001")
    assert {name: (one.points, one.why) for name, one in found.items()} == {
        "scale": (-0.5, "why -0.5")
    }
    assert ledger.adjustments("s002") == {}


def test_settings_come_back(ledger: Ledger) -> None:
    assert ledger.get("request") is None
    ledger.put("request", {"attempt": "best"})
    ledger.put("seed", 7)
    assert (ledger.get("request"), ledger.get("seed")) == ({"attempt": "best"}, 7)
