"""Remembers the hints shown to a student and the last results, in `.grader/` beside `exercises/`.

The file may be deleted: it fills again.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import click
from msgspec import Struct, ValidationError, convert, to_builtins
from msgspec.structs import replace

from grader.course.settings import Count
from grader.files import STATE
from grader.report import without_controls
from grader.trees import NotOpened, read_file, write_file

MAX_BYTES = 4 << 20
MAX_FILES = 500  # files whose last checks are remembered
MAX_HINT = 4000  # characters


class LastCheck(Struct, frozen=True):
    """The points from the last check of an exercise, and the hint on its mistake, if any."""

    points: Count
    passed: bool
    hint: str = ""
    hash: str = ""  # a hash of the file's text, once it is stored


class Progress(Struct):
    """The content of the file: hints shown by exercise (as hashes), and last checks by file."""

    hints: dict[str, list[str]] = {}
    checked: dict[str, LastCheck] = {}


class Memory:
    """A student's hints and last results, kept in a small JSON file.

    It may be somebody else's, because a copy of a folder contains the file.
    """

    def __init__(self, root: Path) -> None:
        self._root, self._path = root, root / STATE / "progress.json"
        self._progress = _read(self._path, root)

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
        """Return the result of a file's last check; None if the file has changed since."""
        last = self._progress.checked.get(str(file.absolute()))
        if last is None or last.hash != _hash(text):
            return None
        return replace(last, hint=without_controls(last.hint)[:MAX_HINT])

    def remember(self, results: Mapping[Path, tuple[str, LastCheck]]) -> None:
        """Store results: each file with its text and the result of the check."""
        checked = self._progress.checked
        for file, (text, last) in results.items():
            checked.pop(str(file.absolute()), None)
            checked[str(file.absolute())] = replace(last, hash=_hash(text))
        self._progress.checked = dict([*checked.items()][-MAX_FILES:])
        self._save()

    def _save(self) -> None:
        text = json.dumps(to_builtins(self._progress), indent=1)
        with contextlib.suppress(OSError, NotOpened):  # checks work without the file
            write_file(self._path, self._root, text.encode(), private=True)


def _read(path: Path, root: Path) -> Progress:
    """Return the content of the file; print why if none of it can be used."""
    why = "is damaged"
    try:
        return convert(json.loads(read_file(path, root, MAX_BYTES)), Progress)
    except FileNotFoundError:
        return Progress()
    except NotOpened as error:
        why = str(error)
    except OSError as error:
        why = f"cannot be read ({error.strerror})"
    except (ValueError, ValidationError, RecursionError):
        pass
    _say_once(f"{path} {why}: its hints and last checks are ignored")
    return Progress()


@functools.cache
def _say_once(note: str) -> None:
    click.echo(note, err=True)


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:16]
