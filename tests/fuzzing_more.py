"""Fuzzers that need the grader's own machinery: a ledger, a reader, answers on the wire."""

from __future__ import annotations

import contextlib
import functools
import json
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import msgspec
from fuzzing import SOUND_ZIPS, Fuzzer, a_notebook, mutated
from fuzzing_trees import CONFINED_TREES, TREES

from grader.classroom import storage
from grader.classroom.ledger import Ledger, open_ledger
from grader.classroom.standings import Standings
from grader.classroom.storage import COLUMNS, FILE, checksum
from grader.classroom.stored.submissions import AttemptRow
from grader.classroom.workers.messages import GradedJob, encode_result
from grader.course.course import Course, load_course
from grader.grading.seeds import secret_from
from grader.report import ExerciseResult, Frame, HeadView, Outcome, Person
from grader.reports import render
from grader.submissions.layouts import Attempt, collect
from grader.submissions.layouts.attempt import AttemptPart
from grader.submissions.reader import messages
from grader.submissions.reader.exchange import ReadingFailed
from grader.submissions.submission import accepted

TINY = Path(__file__).parent / "tiny"
BROKEN, WHOLE = "s001", "s002"


@functools.cache
def course() -> Course:
    """The course of a class whose rows are broken."""
    return load_course(TINY)


# --- rows of the ledger -------------------------------------------------------------------------


def result(name: str) -> ExerciseResult:
    """A result with something in every part that a report shows."""
    exercise = course()[name]
    frame = Frame(f"{name}.py", 1, "x = 1", 0, name)
    test = Outcome("test_a", "It adds.", "failed", 0, 1, "differs", "Mismatch", where=frame)
    view = HeadView(("a", "b"), (((0.5, 0.5), (0.1, 0.9)),), (((1.0, 0.0), (0.0, 1.0)),))
    return ExerciseResult(
        name, exercise.title, 0, 1, "every check fails", (test,), head_view=view, hints=("look",)
    )


@functools.cache
def sound_ledger() -> bytes:
    """The ledger of a class of two, as the bytes of its file."""
    names = course().names
    with TemporaryDirectory() as name:
        with open_ledger(Path(name)) as ledger:
            standings = Standings(course(), ledger, secret_from(1))
            ledger.begin(course().hash, standings.key)
            with ledger.taking_in():
                for number, student in enumerate((BROKEN, WHOLE)):
                    paths = {each: f"{each}.py" for each in names}
                    row = AttemptRow(student, 1, f"{number}" * 32, Person("A B"), paths=paths)
                    ledger.take(row, dict.fromkeys(names, f"# {student}\n"))
            for number in range(2):
                done = {each: encode_result(result(each)) for each in names}
                ledger.record(
                    f"{number}" * 32, course().hashes, standings.key, GradedJob(done, (), 0.1)
                )
            for student in (BROKEN, WHOLE):
                standing = standings.standing(student)
                assert standing is not None
        with contextlib.closing(sqlite3.connect(Path(name) / FILE)) as db:
            db.execute("PRAGMA journal_mode=DELETE")
            return db.serialize()


PLACES = [
    (table, column)
    for table, columns in COLUMNS.items()
    if table in ("results", "attempts", "submissions")
    for column in columns.split(", ")
    if (table, column) not in (("attempts", "student"), ("attempts", "hash"))
]


@functools.cache
def sound_value(table: str, column: str) -> bytes:
    """What the first row of a table holds in a column."""
    with contextlib.closing(_opened(sound_ledger())) as db:
        (value,) = db.execute(f"SELECT {column} FROM {table} LIMIT 1").fetchone()
    return value if isinstance(value, bytes) else str(value).encode()


def a_row(rng: Random) -> bytes:
    """Which cell is broken, whether its checksum is right, wrong or missing, and what it holds."""
    table, column = rng.choice(PLACES)
    seal = rng.choice(("right", "wrong", "none"))
    data = sound_value(table, column)
    broken = mutated(rng, data or b"x", rng.choice((data or b"x", b'{"a": [1e999, null]}')))
    return json.dumps([table, column, seal]).encode() + b"\n" + broken


def _opened(data: bytes) -> sqlite3.Connection:
    db = sqlite3.connect(":memory:", isolation_level=None)
    db.deserialize(data)
    return db


@functools.cache
def broken_class() -> Standings:
    """One class for all cases, whose ledger gets another file for each of them."""
    return Standings(course(), Ledger(_opened(sound_ledger())), secret_from(1))


def survives_row(root: Path, case: bytes) -> bool:
    """Whether the broken row's student still has a standing; the other one always has."""
    head, _, value = case.partition(b"\n")
    table, column, seal = json.loads(head)
    standings = broken_class()
    ledger = standings.ledger
    with contextlib.closing(_opened(sound_ledger())) as db:
        key = "student = 's001'" if table == "attempts" else f"hash = '{'0' * 32}'"
        ((rowid, kind),) = db.execute(
            f"SELECT rowid, typeof({column}) FROM {table} WHERE {key} LIMIT 1"
        ).fetchall()
        cast = "?" if kind == "blob" else "CAST(? AS TEXT)"
        with contextlib.suppress(sqlite3.IntegrityError):  # a text where numbers belong
            db.execute(f"UPDATE {table} SET {column} = {cast} WHERE rowid = ?", [value, rowid])
        _seal(db, table, rowid, seal)
        db.text_factory = storage._text
        ledger._db = db
        ledger.set_damaged_rows_apart()
        assert standings.standing(WHOLE) is not None
        with ledger.review.errors_of(BROKEN):  # as every loop over students does
            if standing := standings.standing(BROKEN):
                render(standing.report, "json")
                return True
        return False


def _seal(db: sqlite3.Connection, table: str, rowid: int, seal: str) -> None:
    if seal == "wrong":
        return
    value = None
    if seal == "right":
        try:
            row = db.execute(f"SELECT {COLUMNS[table]} FROM {table} WHERE rowid = ?", [rowid])
            value = checksum(row.fetchone())
        except (sqlite3.OperationalError, TypeError):
            return
    db.execute(f"UPDATE {table} SET checksum = ? WHERE rowid = ?", [value, rowid])


# --- answers of a reader, and readers themselves ------------------------------------------------


def _answers() -> list[bytes]:
    names = course().names
    digests = dict.fromkeys(names, "a" * 64)
    paths = {name: f"{name}.py" for name in names}
    some = messages.FilesRead("s001", {"a" * 64: "x = 1"}, digests, paths, {}, ("a note",))
    none = messages.FilesRead("s001", {}, {}, {}, dict.fromkeys(names, "it is empty"), ())
    return [messages.encode(one) for one in (some, none, messages.ReadingRefused("no", "try", 28))]


def accepts_answer(root: Path, data: bytes) -> bool:
    """Whether a reader's answer is taken for a submission."""
    try:
        answer = messages.decode_answer(data)
        if not isinstance(answer, messages.FilesRead):
            return False
        submission = accepted(answer, course())
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError, ReadingFailed):
        return False  # what the host that asks a reader catches
    assert set(submission.files) <= set(course().names)
    assert submission.hash
    return True


def an_upload(rng: Random) -> bytes:
    """A notebook, a zip, or a damaged Python file, with its ending before it."""
    kind = rng.choice((b"ipynb", b"zip", b"py"))
    if kind == b"ipynb":
        return kind + b"\n" + a_notebook(rng)
    text = b"# -*- coding: x -*-\ndef scale(x):\n    return f'{x!r:{x}}'\n" * 3
    samples = SOUND_ZIPS if kind == b"zip" else [text]
    return kind + b"\n" + mutated(rng, rng.choice(samples), rng.choice(samples))


def is_collected(root: Path, case: bytes) -> bool:
    """Whether any exercise of a hand-in can be graded; nothing of it stays."""
    kind, _, data = case.partition(b"\n")
    home = root / "s001"
    home.mkdir()
    (home / f"{course().names[0]}.{kind.decode()}").write_bytes(data)
    try:
        submission = collect(Attempt("s001", (AttemptPart(home, "s001"),)), course())
        assert submission.name == "s001"
        assert {*submission.files, *submission.problems} <= set(course().names)
        return bool(submission.files)
    finally:
        shutil.rmtree(home)


# --- the wire -----------------------------------------------------------------------------------


def _a_frame() -> Callable[[Random], bytes]:
    from test_fuzz import hostile_frames

    frames: Iterator[bytes] = hostile_frames(1 << 40)
    return lambda rng: next(frames)


def _reads_frame(root: Path, body: bytes) -> bool:
    from test_fuzz import read

    return read(body)


def fuzzers() -> dict[str, Fuzzer]:
    """Every fuzzer that is here."""
    answers = _answers()
    return {
        "rows": Fuzzer(a_row, survives_row),
        "answers": Fuzzer(
            lambda rng: mutated(rng, rng.choice(answers), rng.choice(answers)), accepts_answer
        ),
        "uploads": Fuzzer(an_upload, is_collected),
        "wire": Fuzzer(_a_frame(), _reads_frame),
        "trees": TREES,
        "confined_trees": CONFINED_TREES,
    }
