"""The hints shown to a student and the last results, in `.grader/` beside `exercises/`.

Nothing is lost for good without this file: it fills again.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from msgspec import Struct, ValidationError, convert, to_builtins
from msgspec.structs import replace

from grader.files import STATE, write_whole


class LastCheck(Struct, frozen=True):
    """The points from the last check of an exercise, and the hint on its mistake, if any."""

    points: int
    passed: bool
    hint: str = ""
    hash: str = ""  # of the file's text, once it is stored


class Progress(Struct):
    """The content of the file: hints shown by exercise (as hashes), and last checks by file."""

    hints: dict[str, list[str]] = {}
    checked: dict[str, LastCheck] = {}


class Memory:
    """A student's hints and last results, kept in a small JSON file."""

    def __init__(self, root: Path) -> None:
        self._path, self._progress = root / STATE / "progress.json", Progress()
        with contextlib.suppress(OSError, ValueError, ValidationError):
            self._progress = convert(json.loads(self._path.read_text("utf-8")), Progress)

    def show_hints(
        self, name: str, hints: Sequence[str], *, more: int = 1
    ) -> tuple[list[str], list[str]]:
        """Show `more` hints of an exercise; return all hints shown so far, and the new ones."""
        seen = set(self._progress.hints.get(name, ()))
        fresh = [hint for hint in hints if _hash(hint) not in seen][:more]
        seen |= {_hash(hint) for hint in fresh}
        self._progress.hints[name] = sorted(seen)
        self._save()
        return [hint for hint in hints if _hash(hint) in seen], fresh

    def last_check(self, file: Path, text: str) -> LastCheck | None:
        """Return what the last check of a file found; None if the file has changed since."""
        last = self._progress.checked.get(str(file.absolute()))
        return last if last is not None and last.hash == _hash(text) else None

    def remember(self, results: Mapping[Path, tuple[str, LastCheck]]) -> None:
        """Store results: each file with its text and what the check found."""
        for file, (text, last) in results.items():
            self._progress.checked[str(file.absolute())] = replace(last, hash=_hash(text))
        self._save()

    def _save(self) -> None:
        with contextlib.suppress(OSError):  # without it, checks still work
            write_whole(self._path, json.dumps(to_builtins(self._progress), indent=1))


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:16]
