"""One broken row of the ledger costs one student, who is named; the rest of the class comes out.

A broken row is planted in each column of each table, as the schema lists them.
"""

from __future__ import annotations

import contextlib
import math
import os
import random
import re
import shutil
import sqlite3
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from classroom import TINY, Instant, hand_in, marks, report_of
from commandline import Cli, Said

from grader.classroom import storage
from grader.classroom.storage import COLUMNS, checksum

HUGE = "x" * 1_000_000
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

    def run(self, command: str) -> Said:
        return self.cli(*COMMANDS[command](self.place), "--course", TINY)


@pytest.fixture
def graded(cli: Cli, instant: Instant, tmp_path: Path) -> Graded:
    place = tmp_path / "whole"
    texts = {"s001": 8, "s002": 4, "s003": 3}
    hand_in(place / "class", {f"{n}/scale.py": f"# {p} points" for n, p in texts.items()})
    (place / "roster.csv").write_text("id,name\ns001,One\ns002,Two\ns003,Three\ns009,Nine\n")
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
        if "hash" in own and "student" not in own:
            whose = "hash = (SELECT hash FROM attempts WHERE student = 's002')"
        found = db.execute(f"SELECT rowid FROM {table} WHERE {whose}").fetchone()
        if found is None:  # `missing`
            found = db.execute(f"SELECT rowid FROM {table}").fetchone()
        try:
            db.execute(f"UPDATE {table} SET {column} = ? WHERE rowid = ?", [value, *found])
        except sqlite3.IntegrityError:  # the number of a row is always a number
            return False
        if reseal and table in COLUMNS:
            values = db.execute(f"SELECT {COLUMNS[table]} FROM {table} WHERE rowid = ?", found)
            with contextlib.suppress(sqlite3.OperationalError, TypeError):
                seal = checksum(values.fetchone())
                db.execute(f"UPDATE {table} SET checksum = ? WHERE rowid = ?", [seal, *found])
        _set_schema(db, table, schema)
    return True


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


def check_rest_comes_out(graded: Graded, case: tuple[str, str, Any, bool], command: str) -> None:
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


def test_a_broken_row_in_any_column_costs_nobody_else(graded: Graded) -> None:
    names = list(COMMANDS)
    for number, case in enumerate(CASES[::29]):
        check_rest_comes_out(graded, case, names[number % len(names)])


def sample(table: str, command: str) -> list[tuple[str, str, Any, bool]]:
    """Some of a table's cases, the same in every run; all of them if that is asked for."""
    cases = [case for case in CASES if case[0] == table]
    if os.environ.get("GRADER_ALL_BROKEN_ROWS"):
        return cases
    return random.Random(f"{table}/{command}").sample(cases, min(len(cases), 10))


@pytest.mark.slow
@pytest.mark.parametrize("table", sorted({case[0] for case in CASES}))
@pytest.mark.parametrize("command", COMMANDS)
def test_every_broken_value_costs_nobody_else(command: str, table: str, graded: Graded) -> None:
    for case in sample(table, command):
        check_rest_comes_out(graded, case, command)


# --- numbers --------------------------------------------------------------------------------------

PICTURE = """
import torch

TOKENS = ("one", "two")


def weights(module):
    return module.scale(torch.ones(1, 2, 2, dtype=torch.float64), 2.0)
"""


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
