"""What cannot be written or printed is said, and changes no exit code and no mark."""

from __future__ import annotations

import contextlib
import os
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from classroom import (
    TINY,
    Instant,
    hand_in,
    marks,
)
from commandline import Cli
from forty import batch

from grader.submissions.reader.template import ReaderTemplate

pytestmark = pytest.mark.in_turn

NOBODY = 65534


@contextlib.contextmanager
def ordinary() -> Iterator[None]:
    """As an ordinary user: to root, nothing is read-only.

    The process that forks readers runs already: Python may be where that user cannot start it.
    """
    if os.geteuid() != 0:
        yield
        return
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(ReaderTemplate, "_started", lambda template: template._process)
        os.seteuid(NOBODY)
        try:
            yield
        finally:
            os.seteuid(0)


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that an ordinary user can reach."""
    with tempfile.TemporaryDirectory(prefix="readonly-") as name:
        os.chmod(name, 0o755)
        yield Path(name)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("place", "said"),
    [
        ("out", "the ledger in {out}: attempt to write a readonly database"),
        ("out/reports", "cannot write {out}/reports/s001.html: Permission denied"),
        ("out/ledger.sqlite", "the ledger in {out}: attempt to write a readonly database"),
    ],
)
def test_a_read_only_folder_is_said_and_the_same_command_goes_on(
    place: str, said: str, cli: Cli, instant: Instant, open_folder: Path, forty: Path
) -> None:
    out = open_folder / "out"
    folder = hand_in(open_folder / "class", {"s001/scale.py": "# 3 points", "s002/scale.py": ""})
    batch(cli, forty)  # so that all is imported that root alone may be able to read

    def stopping(job: Any) -> None:
        raise KeyboardInterrupt

    instant.before = stopping
    command = ("batch", folder, "--out", out, "--course", TINY, "--seed", 5)
    cli(*command)  # makes the ledger
    instant.before = lambda job: None
    (out / "reports").mkdir(exist_ok=True)
    for path in (out, *out.iterdir()):
        path.chmod(0o777 if path.is_dir() else 0o666)
    (open_folder / place).chmod(0o555 if place != "out/ledger.sqlite" else 0o444)
    with ordinary():
        refused = cli(*command)
    assert refused.code == 2
    assert said.format(out=out) in refused.err
    (open_folder / place).chmod(stat.S_IRWXU)
    assert cli(*command).code == 1
    assert marks(out) == {"s001": "3", "s002": "8"}


@pytest.mark.slow
def test_a_place_where_nothing_can_be_made_is_said_at_once(
    cli: Cli, instant: Instant, open_folder: Path, forty: Path
) -> None:
    batch(cli, forty)  # so that all is imported
    instant.jobs.clear()
    folder = hand_in(open_folder / "class", {"s001/scale.py": "# 3 points"})
    open_folder.chmod(0o555)
    with ordinary():
        said = cli("batch", folder, "--out", open_folder / "out", "--course", TINY)
    assert said.code == 2
    assert f"cannot write in {open_folder / 'out'}: Permission denied" in said.err
    assert "--out DIR" in said.err
    assert instant.jobs == []


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="needs /dev/full")
@pytest.mark.parametrize("streams", ["2>/dev/full", "2>&-", ">/dev/full 2>/dev/full", ">&- 2>&-"])
@pytest.mark.parametrize(
    ("command", "code"), [("batch nowhere --out {out}", 2), ("check nowhere/scale.py", 2)]
)
def test_exit_codes_say_the_same_where_nothing_can_be_printed(
    streams: str, command: str, code: int, tmp_path: Path
) -> None:
    line = f"{sys.executable} -m grader {command.format(out=tmp_path / 'out')} {streams}"
    assert subprocess.run(line, shell=True, check=False, cwd=TINY).returncode == code
