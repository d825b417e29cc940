"""A class of forty whose run is stopped, and what must hold of what it leaves."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from classroom import (
    TINY,
    marks,
    report_of,
)
from commandline import Cli

STUDENTS = [f"s0{n:02}" for n in range(1, 41)]
AGAIN = "what was graded is kept; fix that, and run the same command again"


def batch(cli: Cli, forty: Path, out: str = "out", *more: object) -> Any:
    """Grade the class into a folder beside it."""
    place = forty.parent / out
    return cli("batch", forty, "--out", place, "--course", TINY, "--seed", 5, *more)


def check_consistent(out: Path, name: str) -> None:
    """Of a student whose line is in grades.csv there is a whole report."""
    report = report_of(out, name)
    assert f"{report['mark']['points']:g}" == marks(out)[name]
    assert (out / "reports" / f"{name}.html").read_text().rstrip().endswith("</html>")


def waiting_for(file: Path) -> str:
    """Return code that hangs until a file exists: student code cannot read it, but can see it."""
    return f"import os, time\nwhile not os.path.exists({str(file)!r}):\n    time.sleep(0.01)\n"
