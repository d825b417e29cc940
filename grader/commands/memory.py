"""The hints shown to a student and the last results, in `.grader/` beside `exercises/`.

Nothing is lost for good without this file: it fills again.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct, ValidationError, convert
from msgspec.structs import asdict

from grader.files import STATE, write_whole


class LastCheck(Struct, frozen=True):
    """The points from the last check of an exercise, and the hint on its mistake, if any."""

    points: int
    max_points: int
    hint: str = ""


class Memory:
    """A small JSON file: `hints` shown by exercise, `checked` results by file."""

    def __init__(self, root: Path) -> None:
        self._path = root / STATE / "progress.json"
        self._data: dict[str, Any] = {"hints": {}, "checked": {}}
        with contextlib.suppress(OSError, ValueError):
            loaded = json.loads(self._path.read_text("utf-8"))
            if isinstance(loaded, dict):
                self._data.update({k: v for k, v in loaded.items() if isinstance(v, dict)})

    def show_hints(
        self, name: str, hints: Sequence[str], *, more: int = 1
    ) -> tuple[list[str], list[str]]:
        """Show `more` hints of an exercise; return all hints shown so far, and the new ones."""
        known = self._data["hints"].get(name)
        seen = set(known) if isinstance(known, list) else set()
        fresh = [hint for hint in hints if _hash(hint) not in seen][:more]
        seen |= {_hash(hint) for hint in fresh}
        self._data["hints"][name] = sorted(seen)
        self._save()
        return [hint for hint in hints if _hash(hint) in seen], fresh

    def last_check(self, file: Path, text: str) -> LastCheck | None:
        """Return what the last check of a file found; None if the file has changed since."""
        last = self._data["checked"].get(str(file.absolute()))
        if not isinstance(last, dict) or last.get("hash") != _hash(text):
            return None
        try:
            return convert(last, LastCheck)
        except ValidationError:
            return None

    def remember(self, results: Mapping[Path, tuple[str, LastCheck]]) -> None:
        """Store results: each file with its text and what the check found."""
        for file, (text, last) in results.items():
            self._data["checked"][str(file.absolute())] = {"hash": _hash(text), **asdict(last)}
        self._save()

    def _save(self) -> None:
        with contextlib.suppress(OSError):  # without it, checks still work
            write_whole(self._path, json.dumps(self._data, indent=1))


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:16]
