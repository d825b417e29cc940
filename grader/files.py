"""Atomic file writes, and backups of files that a command replaces."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterator
from datetime import datetime
from io import TextIOWrapper
from pathlib import Path

STATE = ".grader"  # the folder beside exercises/ where commands keep their state


@contextlib.contextmanager
def writing_whole(path: Path) -> Iterator[TextIOWrapper]:
    """Open a file for writing that replaces `path` in one step when the block ends.

    A reader sees either the old file or the new one. If the block fails, the old file stays.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_name(f".{os.getpid()}{path.suffix}")
    try:
        with fresh.open("w", encoding="utf-8", errors="replace", newline="") as file:
            yield file
        fresh.replace(path)
    finally:
        fresh.unlink(missing_ok=True)


def write_whole(path: Path, text: str) -> None:
    """Write `text` to `path` in one step."""
    with writing_whole(path) as file:
        file.write(text)


def keep_copy(root: Path, file: Path) -> Path:
    """Copy `file` into `.grader/kept/` with the time in its name; return the copy's path."""
    folder = root / STATE / "kept"
    folder.mkdir(parents=True, exist_ok=True)
    stamp = datetime.now().strftime("%Y%m%d-%H%M%S-%f")
    copy = folder / f"{file.stem}-{stamp}{file.suffix}"
    shutil.copy2(file, copy)
    return copy
