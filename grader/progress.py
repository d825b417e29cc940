"""What a student's copy remembers between commands: hints shown, last results, kept copies.

It lies in `.grader/` beside `exercises/`. Losing it loses nothing that cannot be had again.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import shutil
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from grader.files import write_whole

FOLDER = ".grader"


class Progress:
    """A small JSON file: `hints` shown by exercise, `checked` results by file."""

    def __init__(self, root: Path) -> None:
        self._path = root / FOLDER / "progress.json"
        self._data: dict[str, Any] = {"hints": {}, "checked": {}}
        with contextlib.suppress(OSError, ValueError):
            loaded = json.loads(self._path.read_text("utf-8"))
            if isinstance(loaded, dict):
                self._data.update({k: v for k, v in loaded.items() if isinstance(v, dict)})

    def hints_shown(self, name: str) -> int:
        """How many hints of an exercise were shown."""
        return int(self._data["hints"].get(name, 0))

    def show_hints(self, name: str, count: int) -> None:
        """Remember that the first `count` hints were shown."""
        self._data["hints"][name] = count
        self._save()

    def checked(self, file: Path, text: str) -> tuple[int, int] | None:
        """Points and maximum of the last check, if the file is still the one that was checked."""
        last = self._data["checked"].get(str(file.absolute()))
        if not last or last.get("hash") != _hash(text):
            return None
        return int(last["points"]), int(last["max_points"])

    def remember(self, results: Mapping[Path, tuple[str, int, int]]) -> None:
        """Keep results: file to (its text, points, maximum)."""
        for file, (text, points, worth) in results.items():
            self._data["checked"][str(file.absolute())] = {
                "hash": _hash(text),
                "points": points,
                "max_points": worth,
            }
        self._save()

    def _save(self) -> None:
        """Whole or not at all; a folder that cannot be written to costs only the memory."""
        with contextlib.suppress(OSError):
            write_whole(self._path, json.dumps(self._data, indent=1))


def keep_copy(root: Path, file: Path) -> Path:
    """A copy of `file` under `.grader/kept/`, named by the time it was made."""
    folder = root / FOLDER / "kept"
    folder.mkdir(parents=True, exist_ok=True)
    stamp = datetime.now().strftime("%Y%m%d-%H%M%S-%f")
    copy = folder / f"{file.stem}-{stamp}{file.suffix}"
    shutil.copy2(file, copy)
    return copy


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:16]
