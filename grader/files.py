"""Writing a file whole or not at all."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from io import TextIOWrapper
from pathlib import Path


@contextlib.contextmanager
def writing_whole(path: Path) -> Iterator[TextIOWrapper]:
    """A file to write to, which is put at `path` in one step at the end of the block.

    Whoever reads there sees the old file or the new one; if the block fails, the old one.
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
    """Put `text` at `path` in one step."""
    with writing_whole(path) as file:
        file.write(text)
