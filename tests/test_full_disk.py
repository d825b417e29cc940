"""A full disk loses nothing: it is said, and the same command goes on."""

from __future__ import annotations

import errno
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from classroom import (
    Instant,
    hand_in,
    marks,
    rows,
)
from commandline import Cli
from forty import AGAIN, STUDENTS, batch, check_consistent
from refusing_disk import failing

from grader.classroom import ledger as ledgers
from grader.classroom import storage
from grader.errors import RequestError
from grader.submissions.reader.template import ReaderTemplate

pytestmark = pytest.mark.in_turn


@pytest.mark.slow
@pytest.mark.parametrize("room", [0, 1, 8, 12])
def test_a_full_disk_under_the_ledger_loses_nothing(
    room: int,
    cli: Cli,
    instant: Instant,
    forty: Path,
    whole: bytes,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    out = forty.parent / "out"
    real = storage.connect

    def full(path: Path) -> sqlite3.Connection:
        connection = real(path)
        (pages,) = connection.execute("PRAGMA page_count").fetchone()
        connection.execute(f"PRAGMA max_page_count = {pages + room}")
        return connection

    with monkeypatch.context() as patched:
        patched.setattr(ledgers, "connect", full)
        said = batch(cli, forty)
    assert said.code == 2
    assert f"the ledger in {out}: database or disk is full" in said.err
    assert AGAIN in said.err
    kept = rows(out, "SELECT count(*) FROM results")[0][0]
    assert kept < 40
    assert (room < 8) or kept > 0
    for name in marks(out) if kept else ():
        assert rows(out, "SELECT 1 FROM results JOIN attempts USING (hash) WHERE student = ?", name)
    assert batch(cli, forty).code == 1
    assert (out / "grades.csv").read_bytes() == whole
    assert rows(out, "SELECT count(*) FROM results") == [(40,)]
    assert rows(out, "PRAGMA integrity_check") == [("ok",)]


@pytest.mark.slow
@pytest.mark.parametrize("page", ["s011.html", "s011.json", "s040.md"])
def test_a_full_disk_under_a_report_loses_nothing(
    page: str,
    cli: Cli,
    instant: Instant,
    forty: Path,
    whole: bytes,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    out = forty.parent / "out"
    with monkeypatch.context() as patched:
        failing(patched, OSError(errno.ENOSPC, "No space left"), lambda path: path.name == page)
        for _ in range(2):  # it says so each time, and grades nothing twice
            said = batch(cli, forty)
            assert said.code == 2
            assert f"cannot write {out / 'reports' / page}: No space left" in said.err
            assert AGAIN in said.err
    assert not (out / "reports" / page).exists()
    assert not [path for path in out.rglob(".*") if path.is_file()]
    assert batch(cli, forty).code == 1
    assert (out / "grades.csv").read_bytes() == whole
    for name in STUDENTS:
        check_consistent(out, name)


@pytest.mark.slow
@pytest.mark.parametrize("page", ["grades.csv", "results.jsonl", "index.html"])
def test_a_full_disk_under_the_pages_of_the_class_loses_nothing(
    page: str,
    cli: Cli,
    instant: Instant,
    forty: Path,
    whole: bytes,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    out = forty.parent / "out"
    with monkeypatch.context() as patched:
        failing(patched, OSError(errno.ENOSPC, "No space left"), lambda path: path.name == page)
        said = batch(cli, forty)
        assert (said.code, f"cannot write {out / page}: No space left" in said.err) == (2, True)
    graded = len(instant.jobs)
    assert graded == 40
    assert batch(cli, forty).code == 1
    assert len(instant.jobs) == graded
    assert (out / "grades.csv").read_bytes() == whole
    assert len((out / "results.jsonl").read_text().splitlines()) == 40
    assert (out / "index.html").exists()


@pytest.mark.slow
def test_a_full_disk_while_a_class_is_read_blames_no_student(
    cli: Cli, instant: Instant, forty: Path, whole: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    batch(cli, forty)
    (forty / "s020.py").write_text((forty / "s020" / "scale.py").read_text())
    (forty / "s020" / "scale.py").unlink()
    (forty / "s020").rmdir()

    real = ReaderTemplate.ask

    def full(template: ReaderTemplate, job: Any, *more: Any, **options: Any) -> Any:
        if job.student == b"s020":
            raise RequestError("cannot read what s020 handed in: No space left", "fix that")
        return real(template, job, *more, **options)

    with monkeypatch.context() as patched:
        patched.setattr(ReaderTemplate, "ask", full)
        said = batch(cli, forty)
    assert said.code == 2
    assert "cannot read what s020 handed in: No space left" in said.err
    assert rows(forty.parent / "out", "SELECT count(*) FROM attempts WHERE present") == [(40,)]
    hand_in(forty, {"s020/scale.py": (forty / "s020.py").read_text()})
    (forty / "s020.py").unlink()
    assert batch(cli, forty).code == 1
    assert (forty.parent / "out" / "grades.csv").read_bytes() == whole
