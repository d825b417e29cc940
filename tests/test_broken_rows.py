"""One broken row of the ledger costs one student, who is named; the rest of the class comes out.

A broken row is planted in each column of each table, as the schema lists them.
"""

from __future__ import annotations

import contextlib
import json
import math
import re
import shutil
import sqlite3
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from classroom import TINY, Instant, grade_lines, hand_in, marks, report_of
from commandline import Cli, Said

from grader.classroom import intake, storage
from grader.classroom.ledger import open_ledger
from grader.classroom.statistics import ClassTally
from grader.classroom.storage import COLUMNS, checksum
from grader.course.course import Course
from grader.reports.summary import Summary
from grader.submissions.layouts import Attempt
from grader.submissions.submission import Submission

pytestmark = pytest.mark.in_turn

Case = tuple[str, str, Any, bool]  # table, column, value, whether the checksum is made to fit
HUGE = "x" * 100_000
VALUES: dict[str, tuple[Any, ...]] = {
    "TEXT": (None, b"\xff\xfe\x00", "", '{"not": JSON', HUGE, "null", "[1]", '{"a": NaN}', "zzz"),
    "INTEGER": (None, "text", -5, 2**62, math.inf),
    "REAL": (None, "text", math.inf, -1e308),
    "BLOB": (None, "text", b"", b"junk", zlib.compress(b"[null]")),
}
COMMANDS: dict[str, Callable[[Path], tuple[object, ...]]] = {
    "batch": lambda place: (
        *("batch", place / "class", "--out", place / "out", "--roster", place / "roster.csv"),
    ),
    "resume": lambda place: ("batch", "--resume", "--out", place / "out"),
    "regrade": lambda place: ("regrade", "--publish", "--in", place / "out"),
    "export": lambda place: ("export", "csv", "--in", place / "out"),
    "adjust": lambda place: ("adjust", "s003", "scale", 0, "--why", "none", "--in", place / "out"),
}
DECIDES = ("rules", "seed", "student")  # columns that no other column contradicts
RIGHT = {"s001": "8", "s002": "5", "s003": "3"}


@dataclass(frozen=True)
class Graded:
    """A graded class in a folder of its own for each case; s002 has an adjustment."""

    cli: Cli
    place: Path

    def copy(self, name: str) -> Graded:
        """The same class, to break something in."""
        fresh = self.place.parent / f"case-{name}"
        shutil.rmtree(fresh, ignore_errors=True)
        return Graded(self.cli, shutil.copytree(self.place, fresh))

    @property
    def out(self) -> Path:
        return self.place / "out"

    def run(self, command: str, *more: object) -> Said:
        return self.cli(*COMMANDS[command](self.place), "--course", TINY, *more)


@pytest.fixture
def graded(cli: Cli, instant: Instant, tmp_path: Path) -> Graded:
    place = tmp_path / "whole"
    texts = {"s001": 8, "s002": 4, "s003": 3}
    hand_in(place / "class", {f"{n}/scale.py": f"# {p} points" for n, p in texts.items()})
    (place / "roster.csv").write_text("id,name\ns001,One\ns002,Two\ns003,Three\ns009,Two\n")
    one = Graded(cli, place)
    assert one.run("batch").code == 1
    said = cli("adjust", "s002", "scale", 1, "--why", "near", "--in", one.out, "--course", TINY)
    assert said.code == 0
    with contextlib.closing(sqlite3.connect(one.out / "ledger.sqlite")) as db:
        note = "INSERT INTO damaged VALUES (1, 'published', 's002', '', '2026-01-01')"
        db.execute(note)
        db.commit()
    assert marks(one.out) == RIGHT
    return one


# --- planting -------------------------------------------------------------------------------------


def columns() -> Iterator[tuple[str, str, str]]:
    """Every table of the ledger with each of its columns and their types."""
    with contextlib.closing(sqlite3.connect(":memory:")) as db:
        for script in storage.MIGRATIONS:
            db.executescript(script)
        tables = "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite%'"
        for (table,) in db.execute(tables).fetchall():
            for _, column, kind, *_ in db.execute(f"PRAGMA table_info({table})"):
                yield table, column, kind


def plant(out: Path, table: str, column: str, value: Any, reseal: bool) -> bool:
    """Put a value where it does not belong, of s002 if the table says of whom; say if it was.

    SQLite checks types only when it writes, so they are taken out of the schema meanwhile.
    """
    place = out / "ledger.sqlite"
    with contextlib.closing(sqlite3.connect(place, isolation_level=None)) as db:
        (schema,) = db.execute("SELECT sql FROM sqlite_schema WHERE name = ?", [table]).fetchone()
        if table == "set_aside":
            db.execute("INSERT INTO set_aside SELECT * FROM results")
        _set_schema(db, table, re.sub(r"NOT NULL|STRICT", "", schema))
    with contextlib.closing(sqlite3.connect(place, isolation_level=None)) as db:
        own = {name for _, name, *_ in db.execute(f"PRAGMA table_info({table})")}
        whose = "student = 's002'" if "student" in own else "1"
        if "about" in own:
            whose = "about = 's002'"
        elif "hash" in own and "student" not in own:
            whose = "hash = (SELECT hash FROM attempts WHERE student = 's002')"
        found = db.execute(f"SELECT rowid FROM {table} WHERE {whose}").fetchone()
        if found is None:  # `missing`
            found = db.execute(f"SELECT rowid FROM {table}").fetchone()
        try:
            _write(db, table, column, value, *found, reseal)
        except sqlite3.IntegrityError:  # the number of a row is always a number
            return False
        _set_schema(db, table, schema)
    return True


def _write(
    db: sqlite3.Connection, table: str, column: str, value: Any, rowid: int, reseal: bool
) -> None:
    """Write a value into a row, with the checksum that fits then if it is to be resealed."""
    db.execute(f"UPDATE {table} SET {column} = ? WHERE rowid = ?", [value, rowid])
    if reseal and table in COLUMNS:
        values = db.execute(f"SELECT {COLUMNS[table]} FROM {table} WHERE rowid = ?", [rowid])
        with contextlib.suppress(sqlite3.OperationalError, TypeError):
            seal = checksum(values.fetchone())
            db.execute(f"UPDATE {table} SET checksum = ? WHERE rowid = ?", [seal, rowid])


def _set_schema(db: sqlite3.Connection, table: str, sql: str) -> None:
    db.execute("PRAGMA writable_schema = ON")
    db.execute("UPDATE sqlite_schema SET sql = ? WHERE name = ?", [sql, table])
    db.execute("PRAGMA writable_schema = OFF")


CASES = [
    (table, column, value, reseal)
    for table, column, kind in columns()
    for value in VALUES[kind]
    for reseal in (False, True)
]


def check_rest_comes_out(graded: Graded, case: Case, command: str) -> None:
    """The neighbours' marks are right after any command, and whose is not is named."""
    table, column, value, reseal = case
    broken = graded.copy("one")
    if not plant(broken.out, table, column, value, reseal):
        return
    about = f"{table}.{column} = {repr(value)[:40]}, resealed {reseal}, {command}"
    said = broken.run(command)
    if reseal and column in DECIDES and said.code == 2:  # it reads as what is not published yet
        assert "grader regrade" in said.err, about
        return
    assert said.code in (0, 1), f"{about}: {said.err}"
    assert "Traceback" not in said.err, about
    place = "marks.csv" if command == "export" else "grades.csv"
    (broken.out / place).replace(broken.out / "grades.csv")
    found = marks(broken.out)
    assert {name: found.get(name) for name in ("s001", "s003")} == {"s001": "8", "s003": "3"}, about
    if found.get("s002") == RIGHT["s002"] or reseal:
        return
    says_whose = column not in ("student", "hash")
    assert ("s002" if says_whose else "damaged") in said.err, f"{about}: {found}: {said.err}"


@pytest.mark.slow
def test_a_broken_row_in_any_column_costs_nobody_else(graded: Graded) -> None:
    names = list(COMMANDS)
    for number, case in enumerate(CASES[::29]):
        check_rest_comes_out(graded, case, names[number % len(names)])


# --- every value at once --------------------------------------------------------------------------

# A class of its own for each: what is broken is of the whole class, or reads as not published.
ALONE = [
    case
    for case in CASES
    if case[0] == "settings" or (case[0] == "published" and case[1] in DECIDES and case[3])
]


def read_here(attempt: Attempt, course: Course) -> Submission:
    """Read an attempt without a reader, which no broken row concerns."""
    text = (attempt.parts[0].path / "scale.py").read_text()
    return Submission(attempt.student, {"scale": text}, {"scale": "scale.py"})


@dataclass(frozen=True)
class Crowd:
    """A class with a student for each broken value, and some more."""

    graded: Graded
    cases: dict[str, Case]
    planted: Path
    reseal: bool

    def marks_after(self, command: str) -> tuple[Said, dict[str, str]]:
        """Run a command on the class with the ledger in which everything is broken."""
        out = self.graded.out
        for name in ("ledger.sqlite-wal", "ledger.sqlite-shm"):
            (out / name).unlink(missing_ok=True)
        shutil.copyfile(self.planted, out / "ledger.sqlite")
        said = self.graded.run(command)
        if said.code == 2 and self.reseal:  # what is not damaged to all appearances is listed first
            assert "would change or go" in said.err, said.err[-2000:]
            said = self.graded.run(command, "--replace")
        assert said.code in (0, 1), f"{command}: {said.err[-2000:]}"
        assert "Traceback" not in said.err, command
        place = "marks.csv" if command == "export" else "grades.csv"
        lines = grade_lines(out, place).items()
        return said, {name: line["points"] for name, line in lines}


def crowd(cli: Cli, place: Path, reseal: bool) -> Crowd:
    """Grade a class, and plant every value in a row of a student of its own."""
    chosen = [case for case in CASES if case[3] is reseal and case not in ALONE]
    cases = {f"b{number:04}": case for number, case in enumerate(chosen)}
    absent = {name for name, case in cases.items() if case[0] == "missing"}
    sound = ("s001", "s002", "s003")
    present = (*sound, *(name for name in cases if name not in absent))
    hand_in(place / "class", {f"{name}/scale.py": f"# 4 points, {name}" for name in present})
    lines = (f"{name},Name of {name}\n" for name in (*present, *absent))
    (place / "roster.csv").write_text(f"id,name\n{''.join(lines)}")
    graded = Graded(cli, place)
    with open_ledger(graded.out) as ledger:
        for name in present:
            if name in sound or cases[name][0] == "adjustments":
                ledger.adjust(name, "scale", 1, "near")
    assert graded.run("batch").code == 1
    plant_all(graded.out, cases)
    planted = shutil.copyfile(graded.out / "ledger.sqlite", place / "planted")
    return Crowd(graded, cases, planted, reseal)


def plant_all(out: Path, cases: dict[str, Case]) -> None:
    """Plant each value in a row of its student; the row is made where a whole ledger has none."""
    with contextlib.closing(sqlite3.connect(out / "ledger.sqlite", isolation_level=None)) as db:
        schemas = dict(db.execute("SELECT name, sql FROM sqlite_schema WHERE type = 'table'"))
        tables = {case[0] for case in cases.values()}
        for table in tables:
            _set_schema(db, table, re.sub(r"NOT NULL|STRICT", "", schemas[table]))
    with contextlib.closing(sqlite3.connect(out / "ledger.sqlite", isolation_level=None)) as db:
        db.execute("BEGIN")
        for name, (table, column, value, reseal) in cases.items():
            rowid = _row_of(db, table, name)
            with contextlib.suppress(sqlite3.IntegrityError):  # a row's number is always a number
                _write(db, table, column, value, rowid, reseal)
        db.execute("COMMIT")
        for table in tables:
            _set_schema(db, table, schemas[table])


def _row_of(db: sqlite3.Connection, table: str, student: str) -> int:
    """The row of a table that is about this student."""
    digest = "(SELECT hash FROM attempts WHERE student = ?)"
    if table == "set_aside":
        db.execute(f"INSERT INTO set_aside SELECT * FROM results WHERE hash = {digest}", [student])
    if table == "damaged":
        db.execute("INSERT INTO damaged VALUES (NULL, 'published', ?, '', '2026-01-01')", [student])
    if table == "remarks":
        row = (student, "", "[]")
        db.execute("INSERT INTO remarks VALUES (?, ?, ?, ?)", [*row, checksum(row)])
    if table == "runs":
        columns = "started, finished, course, versions, seed"
        db.execute(f"INSERT INTO runs ({columns}) SELECT {columns} FROM runs WHERE run = 1")
        return int(db.execute("SELECT max(run) FROM runs").fetchone()[0])
    of_hash = table in ("results", "set_aside", "submissions")
    whose = f"hash = {digest}" if of_hash else "student = ?"
    whose = "about = ?" if table == "history" else whose
    (rowid,) = db.execute(f"SELECT rowid FROM {table} WHERE {whose}", [student]).fetchone()
    return int(rowid)


@pytest.mark.slow
@pytest.mark.parametrize("reseal", [False, True])
def test_every_broken_value_costs_nobody_else(
    reseal: bool, cli: Cli, instant: Instant, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(intake, "collect", read_here)
    everybody = crowd(cli, tmp_path / "whole", reseal)
    for command in COMMANDS:
        said, found = everybody.marks_after(command)
        assert {found.get(name) for name in ("s001", "s002")} == {"5"}, command
        assert found["s003"] == ("4" if command == "adjust" else "5")
        if reseal:
            continue
        for name, (table, column, *_) in everybody.cases.items():
            right = {"adjustments": "5", "missing": ""}.get(table, "4")
            says_whose = column not in ("student", "about", "hash") and table not in (
                "runs",
                "damaged",
            )
            if says_whose and found.get(name) != right:
                assert name in said.err, f"{name}, {table}.{column}, {command}"


@pytest.mark.slow
def test_what_is_broken_for_the_whole_class_costs_no_marks(graded: Graded) -> None:
    names = list(COMMANDS)
    for number, case in enumerate(ALONE):
        check_rest_comes_out(graded, case, names[number % len(names)])


@pytest.mark.parametrize("field", ["points", "states", "points_of", "page", "flags", "name"])
def test_a_row_of_the_class_page_that_cannot_be_shown_costs_nobody_else(
    field: str, cli: Cli, instant: Instant, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = ClassTally.summary

    def planted(tally: ClassTally, *parts: Any) -> Summary:
        summary = real(tally, *parts)
        broken = (replace(row, **{field: math.nan}) for row in summary.students)
        rows = zip(summary.students, broken)
        return replace(summary, students=tuple(b if a.id == "s002" else a for a, b in rows))

    monkeypatch.setattr(ClassTally, "summary", planted)
    names = ("s001", "s002", "s003")
    hand_in(tmp_path / "class", {f"{name}/scale.py": "# 3 points" for name in names})
    said = cli("batch", tmp_path / "class", "--out", tmp_path / "out", "--course", TINY)
    assert said.code == 1
    assert "s002: the grader failed here" in said.err
    data = re.search(
        r'"id":(\[.*?\]).*?"points":(\[.*?\])', (tmp_path / "out/index.html").read_text()
    )
    assert data is not None
    assert json.loads(data[1]) == list(names)
    assert json.loads(data[2]) == [3.0, 0.0, 3.0]
    assert marks(tmp_path / "out") == dict.fromkeys(names, "3")


# --- numbers --------------------------------------------------------------------------------------

PICTURE = """
import torch

TOKENS = ("one", "two")


def weights(module):
    return module.scale(torch.ones(1, 2, 2, dtype=torch.float64), 2.0)
"""


@pytest.mark.slow
def test_a_picture_of_the_largest_numbers_costs_nobody_else(
    cli: Cli, tmp_path: Path, tiny_copy: Path, tiny_solution: str
) -> None:
    (tiny_copy / "reference" / "scale" / "picture.py").write_text(PICTURE)
    huge = tiny_solution.replace("return x * factor", "return x.double() * 1.7e308")
    texts = {"s001": tiny_solution, "s002": huge, "s003": tiny_solution}
    hand_in(tmp_path / "class", {f"{name}/scale.py": text for name, text in texts.items()})
    out = tmp_path / "out"
    for command in (
        ("batch", tmp_path / "class", "--out", out),
        ("batch", "--resume", "--out", out),
        ("adjust", "s003", "scale", "-1", "--why", "late", "--in", out),
        ("export", "csv", "--in", out),
        ("regrade", "--again", "s002", "--publish", "--in", out),
    ):
        said = cli(*command, "--course", tiny_copy)
        assert said.code in (0, 1), said.err
        assert "review" not in said.err
    assert marks(out) == {"s001": "8", "s002": marks(out)["s002"], "s003": "7"}
    drawn = report_of(out, "s002")["exercises"][0]["head_view"]["actual"]
    assert all(math.isfinite(number) for head in drawn for row in head for number in row)
