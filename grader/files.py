"""Writing a file whole or not at all."""

from __future__ import annotations

import os
from pathlib import Path


def write_whole(path: Path, text: str) -> None:
    """Put `text` at `path` in one step: whoever reads it sees the old file or the new one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_name(f".{os.getpid()}{path.suffix}")
    try:
        fresh.write_text(text, "utf-8", errors="replace")
        fresh.replace(path)
    finally:
        fresh.unlink(missing_ok=True)
