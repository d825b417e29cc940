"""What a student's copy remembers between commands: hints shown, last results, kept copies.

It lies in `.grader/` beside `exercises/`. Losing it loses nothing that cannot be had again.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import json
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from grader.files import write_whole

FOLDER = ".grader"


@dataclass(frozen=True)
class Checked:
    """What a check of one exercise found; `hint` is the one that fits its mistake, or empty."""

    points: int
    max_points: int
    hint: str = ""


class Progress:
    """A small JSON file: `hints` shown by exercise, `checked` results by file."""

    def __init__(self, root: Path) -> None:
        self._path = root / FOLDER / "progress.json"
        self._data: dict[str, Any] = {"hints": {}, "checked": {}}
        with contextlib.suppress(OSError, ValueError):
            loaded = json.loads(self._path.read_text("utf-8"))
            if isinstance(loaded, dict):
                self._data.update({k: v for k, v in loaded.items() if isinstance(v, dict)})

    def show_hints(
        self, name: str, hints: Sequence[str], *, more: int = 1
    ) -> tuple[list[str], list[str]]:
        """Of an exercise's hints, all that were shown with `more` now, and those that are new.

        They are remembered as shown.
        """
        known = self._data["hints"].get(name)
        seen = set(known) if isinstance(known, list) else set()
        fresh = [hint for hint in hints if _hash(hint) not in seen][:more]
        seen |= {_hash(hint) for hint in fresh}
        self._data["hints"][name] = sorted(seen)
        self._save()
        return [hint for hint in hints if _hash(hint) in seen], fresh

    def checked(self, file: Path, text: str) -> Checked | None:
        """What the last check found, if the file is still the one that was checked."""
        last = self._data["checked"].get(str(file.absolute()))
        if not isinstance(last, dict) or last.get("hash") != _hash(text):
            return None
        try:
            return Checked(int(last["points"]), int(last["max_points"]), str(last.get("hint", "")))
        except (KeyError, TypeError, ValueError):
            return None

    def remember(self, results: Mapping[Path, tuple[str, Checked]]) -> None:
        """Keep what a check found: file to its text and that."""
        for file, (text, found) in results.items():
            entry = {"hash": _hash(text), **dataclasses.asdict(found)}
            self._data["checked"][str(file.absolute())] = entry
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
