"""Power cuts, kills and full disks: what was published is repaired, and no ledger is in the way."""

from __future__ import annotations

import contextlib
import os
import shutil
import sqlite3
import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from classroom import TINY, Instant, hand_in, marks, rows
from commandline import Cli, Said

from grader import files
from grader.classroom import ledger as ledgers
from grader.classroom import storage
from grader.classroom.ledger import open_ledger
from grader.classroom.stored.marks import PublishedMark

PRIVATE, CLOSED = 0o600, 0o700


def batch(cli: Cli, place: Path, out: Path | None = None) -> Said:
    out = out or place / "out"
    return cli("batch", place / "class", "--out", out, "--course", TINY, "--seed", 5)


@pytest.fixture
def place(instant: Instant, tmp_path: Path) -> Path:
    texts = {f"s{n:03}/scale.py": f"# {n} points" for n in range(1, 9)}
    hand_in(tmp_path / "class", texts)
    return tmp_path


def pages(out: Path) -> dict[str, bytes]:
    """Everything that was published."""
    found = (path for path in out.rglob("*") if path.is_file() and "ledger" not in path.name)
    return {str(path.relative_to(out)): path.read_bytes() for path in found}


# --- what was published ---------------------------------------------------------------------------


@pytest.mark.slow
def test_pages_that_a_power_cut_emptied_are_written_again(cli: Cli, place: Path) -> None:
    batch(cli, place)
    whole = pages(place / "out")
    assert len(whole) == 8 * 4 + 3
    for name in whole:
        os.truncate(place / "out" / name, 0)
    batch(cli, place)
    assert pages(place / "out") == whole


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["reports/s002.html", "reports/s003.json", "code/s004.html", "grades.csv", "index.html"]
)
def test_a_page_that_was_changed_or_removed_is_written_again(
    name: str, cli: Cli, place: Path
) -> None:
    batch(cli, place)
    whole, page = pages(place / "out"), place / "out" / name
    page.write_bytes(page.read_bytes().replace(b"s", b"z"))  # of the same length
    batch(cli, place)
    assert pages(place / "out") == whole
    page.unlink()
    batch(cli, place)
    assert pages(place / "out") == whole


def test_what_is_right_is_not_written_again(cli: Cli, place: Path) -> None:
    batch(cli, place)
    before = {path: path.stat().st_ino for path in (place / "out").rglob("*.*")}
    batch(cli, place)
    after = {path: path.stat().st_ino for path in (place / "out").rglob("*.*")}
    assert before == after


@pytest.mark.parametrize("is_known", [True, False])
def test_nothing_is_recorded_as_published_before_it_is_on_the_disk(
    is_known: bool, cli: Cli, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether the system knows how to sync a whole disk at once or not."""
    synced: set[str] = set()  # the drafts that are on the disk, and the folders whose names are
    recorded: list[str] = []
    real, publish, reports = os.fsync, ledgers.Ledger.publish, place / "out" / "reports"

    def fsync(descriptor: int) -> None:
        synced.add(os.readlink(f"/proc/self/fd/{descriptor}"))
        real(descriptor)

    def syncfs(descriptor: int) -> int:
        synced.update(map(str, reports.glob(".*")))
        return 0

    def publishing(ledger: ledgers.Ledger, published: dict[str, PublishedMark]) -> None:
        drafts = [path for path in synced if "/reports/." in path]
        assert len(drafts) >= 3 * len(published)
        assert str(reports) in synced
        assert all((reports / f"{student}.html").is_file() for student in published)
        recorded.extend(published)
        synced.clear()
        publish(ledger, published)

    monkeypatch.setattr(os, "fsync", fsync)
    monkeypatch.setattr(files, "LIBC", SimpleNamespace(syncfs=syncfs) if is_known else None)
    monkeypatch.setattr(ledgers.Ledger, "publish", publishing)
    batch(cli, place)
    assert sorted(recorded) == [f"s{n:03}" for n in range(1, 9)]
    assert str(place / "out") in synced  # the pages of the class come last


def tried(*command: object) -> subprocess.CompletedProcess[str]:
    """Run a command that may not be allowed here."""
    return subprocess.run(list(map(str, command)), check=False, capture_output=True, text=True)


@contextlib.contextmanager
def mounted(image: Path, at: Path) -> Iterator[None]:
    """Mount an image of ext4; skip the test where that is not allowed."""
    at.mkdir()
    done = tried("mount", "-o", "loop", image, at)
    if done.returncode:
        pytest.skip(f"mounting is not allowed here: {done.stderr.strip()}")
    try:
        yield
    finally:
        subprocess.run(["umount", at], check=True)


@pytest.mark.slow
@pytest.mark.parametrize("moment", ["at the end", "in the middle"])
def test_after_a_power_cut_the_same_command_completes_the_class(
    moment: str, cli: Cli, instant: Instant, place: Path
) -> None:
    if shutil.which("mkfs.ext4") is None or shutil.which("mount") is None:
        pytest.skip("mkfs.ext4 or mount is not installed")
    image, later = place / "image", place / "later"
    with image.open("wb") as file:
        file.truncate(64 << 20)
    subprocess.run(["mkfs.ext4", "-q", "-F", image], check=True)

    def cut() -> None:
        """What the disk holds at this moment: a copy, taken without a sync."""
        shutil.copyfile(image, later)

    with mounted(image, place / "disk"):
        if moment == "in the middle":
            instant.before = lambda job: cut() if job.submission.name == "s005" else None
        batch(cli, place, place / "disk" / "out")
        if moment == "at the end":
            cut()
        whole = pages(place / "disk" / "out")
    instant.before = lambda job: None
    with mounted(later, place / "after"):
        out = place / "after" / "out"
        if moment == "at the end":
            assert pages(out) == whole
            instant.jobs.clear()
        batch(cli, place, out)
        assert pages(out) == whole
        assert rows(out, "PRAGMA integrity_check") == [("ok",)]
        if moment == "at the end":
            assert not instant.jobs


# --- an unfinished ledger -------------------------------------------------------------------------


def unfinished(out: Path) -> Iterator[None]:
    """Leave what a kill leaves at each step of the creation of a ledger."""
    steps = ["", "PRAGMA journal_mode=WAL", *storage.MIGRATIONS]
    for count in range(len(steps) + 1):
        shutil.rmtree(out, ignore_errors=True)
        out.mkdir()
        with contextlib.closing(sqlite3.connect(out / storage.FILE, isolation_level=None)) as db:
            for number, step in enumerate(steps[:count], start=-1):
                version = f"PRAGMA user_version = {number}" if number > 0 else ""
                db.executescript(f"{step}; {version}")
            if count == 0:
                (out / storage.FILE).touch()
        yield
    for name in (f"{storage.FILE}-wal", f"{storage.FILE}-journal", storage.LOCK):
        shutil.rmtree(out)
        hand_in(out, {name: "x" * 100})
        yield
    hand_in(out, {f"{storage.FILE}-journal": "x" * 100})  # beside a whole ledger
    yield


@pytest.mark.slow
def test_a_ledger_whose_creation_was_cut_off_is_a_new_one(cli: Cli, place: Path) -> None:
    for _ in unfinished(place / "out"):
        said = batch(cli, place)
        assert said.code == 1, said.err
        assert len(marks(place / "out")) == 8


def test_other_commands_say_that_an_unfinished_ledger_has_no_class(cli: Cli, place: Path) -> None:
    (place / "out").mkdir()
    (place / "out" / storage.FILE).touch()
    for command in (("regrade",), ("export", "csv")):
        said = cli(*command, "--in", place / "out", "--course", TINY)
        assert said.code == 2
        assert "no run over the class has graded anything" in said.err


@pytest.mark.slow
def test_a_full_disk_while_the_ledger_is_made_is_not_in_the_way_later(
    cli: Cli, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = storage._migrate
    for room in (1, 2, 5, 20):

        def full(db: sqlite3.Connection, path: Path, room: int = room) -> None:
            db.execute(f"PRAGMA max_page_count = {room}")
            real(db, path)

        with monkeypatch.context() as patched:
            patched.setattr(storage, "_migrate", full)
            said = batch(cli, place)
        assert said.code == 2
        assert "database or disk is full" in said.err
        assert batch(cli, place).code == 1
        shutil.rmtree(place / "out")


# --- folders that cannot be written ---------------------------------------------------------------


def test_an_output_folder_that_is_removed_meanwhile_is_said(
    cli: Cli, instant: Instant, place: Path
) -> None:
    def remove(job: object) -> None:
        shutil.rmtree(place / "out", ignore_errors=True)

    instant.before = remove
    said = batch(cli, place)
    assert said.code == 2, said.err
    assert str(place / "out") in said.err
    assert "try: " in said.err
    instant.before = lambda job: None
    assert batch(cli, place).code == 1
    assert len(marks(place / "out")) == 8


@contextlib.contextmanager
def read_only(folder: Path) -> Iterator[None]:
    """Make a folder read-only, also for root."""
    bind = tried("mount", "--bind", folder, folder)
    if bind.returncode:
        pytest.skip(f"mounting is not allowed here: {bind.stderr.strip()}")
    try:
        subprocess.run(["mount", "-o", "remount,bind,ro", folder], check=True)
        yield
    finally:
        subprocess.run(["umount", folder], check=True)


def test_a_folder_that_cannot_be_written_is_said_in_a_sentence(cli: Cli, place: Path) -> None:
    batch(cli, place)
    with read_only(place / "out"):
        for said in (
            batch(cli, place),
            cli("regrade", "--in", place / "out", "--course", TINY),
            cli("export", "csv", "--in", place / "out", "--course", TINY),
        ):
            assert said.code == 2, said.err
            assert f"in {place / 'out'}: " in said.err
            assert "make the folder and its files writable" in said.err


def test_a_ledger_that_cannot_be_written_is_said_in_a_sentence(
    cli: Cli, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    batch(cli, place)
    real = storage.connect

    def refusing(folder: Path) -> sqlite3.Connection:
        db = real(folder)
        db.execute("PRAGMA query_only = ON")
        return db

    monkeypatch.setattr(ledgers, "connect", refusing)
    said = batch(cli, place)
    assert said.code == 2
    assert f"the ledger in {place / 'out'}: attempt to write a readonly database" in said.err
    assert "make the folder and its files writable" in said.err


# --- whose eyes only ------------------------------------------------------------------------------


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o777])
def test_what_tells_about_students_is_for_its_owner_alone(
    umask: int, cli: Cli, place: Path
) -> None:
    before = os.umask(umask)
    try:
        log = place / "log" / "events.jsonl"
        log.parent.mkdir(0o755)
        log.parent.chmod(0o755)
        deep = place / "results" / "first" / "class"
        with open_ledger(deep):
            pass
        cli("batch", place / "class", "--out", deep, "--course", TINY, "--log", log)
        cli("export", "csv", "--in", deep, "--course", TINY)
        with open_ledger(deep):
            found = {path: path.stat().st_mode for path in (place / "results").rglob("*")}
    finally:
        os.umask(before)
    assert len(found) > 30
    for path, mode in found.items():
        assert stat.S_IMODE(mode) == (CLOSED if stat.S_ISDIR(mode) else PRIVATE), path
    assert stat.S_IMODE(log.stat().st_mode) == PRIVATE
    assert stat.S_IMODE(log.parent.stat().st_mode) == 0o755  # it was there before
