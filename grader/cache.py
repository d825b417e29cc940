"""A cache of results that can be computed again: the user's own trainings, proofs and verdicts.

The key of a value is a hash of everything that it depends on, so no value is ever out of date. The
cache is in a folder of the user's own, never in a course, so that nobody can pass on values with a
copy of a course. The folder can be deleted at any time. If there are too many values, the ones
unused for the longest are removed.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Iterator
from pathlib import Path

from grader.files import read_bounded, write_whole
from grader.user_folders import cache_folder

MAX_VALUE = 32 * 1024**2  # bytes of one value
MAX_BYTES = 256 * 1024**2  # of all
MAX_FILES = 20_000
KEPT = 0.75  # of both limits, after values were removed
LOOK_EVERY = 100  # values that one process stores between two looks at the whole folder
DIGEST = hashlib.sha256().digest_size

_saved = 0  # values, by this process


def key_of(*parts: str | bytes) -> str:
    """Return the key of a value that depends on these parts, and on their order."""
    digest = hashlib.sha256()
    for part in parts:
        data = part.encode("utf-8", "surrogatepass") if isinstance(part, str) else part
        digest.update(b"%d " % len(data) + data)
    return digest.hexdigest()


def load(key: str) -> bytes | None:
    """Return the value of a key; None if there is none, or if it is damaged."""
    path = _path(key)
    with contextlib.suppress(OSError):
        if path is not None:
            data = read_bounded(path, DIGEST + MAX_VALUE)
            value = data[DIGEST:]
            if data[:DIGEST] == hashlib.sha256(value).digest():
                os.utime(path)  # marks the file as used
                return value
    return None


def save(key: str, value: bytes) -> None:
    """Store a value if that is possible; otherwise it only has to be computed again."""
    global _saved
    path = _path(key)
    if path is None or len(value) > MAX_VALUE:
        return
    with contextlib.suppress(OSError):
        write_whole(path, hashlib.sha256(value).digest() + value)
        if _saved % LOOK_EVERY == 0:
            _shrink(path.parent.parent)
        _saved += 1


def _path(key: str) -> Path | None:
    folder = cache_folder()
    return None if folder is None else folder / key[:2] / key


def _shrink(folder: Path) -> None:
    """Delete the files that are unused for the longest, if there are too many."""
    there = sorted(_files(folder), reverse=True)  # the newest first
    total = sum(size for _, size, _ in there)
    if total <= MAX_BYTES and len(there) <= MAX_FILES:
        return
    left, room = int(KEPT * MAX_FILES), KEPT * MAX_BYTES
    for place, (_, size, path) in enumerate(there):
        room -= size
        if place >= left or room < 0:
            with contextlib.suppress(OSError):  # another process has deleted it
                path.unlink()


def _files(folder: Path) -> Iterator[tuple[float, int, Path]]:
    """Yield each file: the time of its last use, its size and its path."""
    for path in folder.glob("*/*"):
        with contextlib.suppress(OSError):
            state = path.stat()
            yield state.st_mtime, state.st_size, path
