"""A class of a course of two exercises that is graded, and graded again after a change."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from commandline import Cli

RIGHT = "def shift(x, by):\n    return x + by\n"
TWICE = "def shift(x, by):\n    return x + 2 * by - 1\n"  # right of one and one alone


def out(handed_in: Path) -> Path:
    return handed_in.parent / "out"


def batch(cli: Cli, handed_in: Path, course: Path, *more: object) -> Any:
    return cli("batch", handed_in, "--out", out(handed_in), "--course", course, "--seed", 5, *more)


def regrade(cli: Cli, handed_in: Path, course: Path, *more: object) -> Any:
    return cli("regrade", "--in", out(handed_in), "--course", course, *more)


def adjust(cli: Cli, handed_in: Path, course: Path, *what: object, why: str = "kind") -> Any:
    return cli("adjust", *what, "--why", why, "--in", out(handed_in), "--course", course)


def touch(course: Path, exercise: str, text: str = "\n# changed\n") -> None:
    """Change the hidden suite of an exercise."""
    suite = course / "reference" / exercise / "test_hidden.py"
    suite.write_text(suite.read_text() + text)


def pages(handed_in: Path) -> dict[str, bytes]:
    """Everything that students and teachers read."""
    folder = out(handed_in)
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and not path.name.startswith("ledger.")
    }


def add_rule(course: Path, line: str) -> None:
    """Add a setting to a course."""
    settings = course / "reference" / "course.toml"
    settings.write_text(f"{line}\n{settings.read_text()}")
