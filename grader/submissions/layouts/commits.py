"""When a clone's last commit was made, without running anything that the clone says.

A clone comes with a configuration, and git runs commands that a configuration names. So the clone's
`.git` is never git's: what HEAD stands for is read here as text, and git gets an empty repository
of our own, in which only the objects are the clone's.
"""

from __future__ import annotations

import contextlib
import os
import re
import stat
import subprocess
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from pathlib import Path
from tempfile import TemporaryDirectory

MAX_TEXT = 4 * 1024 * 1024  # of a file in .git; a file of many packed refs is long
MAX_COMMIT = 64 * 1024  # of a commit with its message
SECONDS = 10  # git may take
HASH = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
REF = re.compile(r"refs/[^\x00-\x20\x7f~^:?*\[\\]{1,200}")
COMMITTER = re.compile(rb"^committer .*> ([0-9]{1,12}) ([+-])([0-9]{2})([0-9]{2})$", re.MULTILINE)


def committed(clone: Path) -> datetime | None:
    """The committer's time of the commit that is checked out; nothing if that cannot be told."""
    folder = clone / ".git"
    if folder.is_symlink() or not folder.is_dir():
        return None
    commit = _head(folder)
    try:
        return _time(_commit(folder, commit)) if commit else None
    except (OSError, subprocess.SubprocessError, ValueError, OverflowError):
        return None


def _head(folder: Path) -> str:
    """The hash of the commit that HEAD stands for, or nothing."""
    head = _text(folder / "HEAD").strip()
    if not head.startswith("ref: "):
        return head if HASH.fullmatch(head) else ""
    ref = head.removeprefix("ref: ")
    if not REF.fullmatch(ref) or ".." in ref:
        return ""
    loose = _text(folder / ref).strip()
    if HASH.fullmatch(loose):
        return loose
    for line in _text(folder / "packed-refs").splitlines():
        packed, _, name = line.partition(" ")
        if name == ref and HASH.fullmatch(packed):
            return packed
    return ""


def _text(path: Path) -> str:
    """A small regular file's text, or nothing; a pipe in its place would be waited for."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        with os.fdopen(descriptor, "rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                return ""
            return file.read(MAX_TEXT).decode("ascii", "replace")
    except (OSError, ValueError):
        return ""


def _commit(folder: Path, commit: str) -> bytes:
    """The commit's head and message; nothing if it is no commit of a usual size."""
    with _repository(folder / "objects", commit) as run:
        size = run("-s", commit).strip()
        if not size.isdigit() or int(size) > MAX_COMMIT:
            return b""
        return run("commit", commit)


class _Git:
    """Runs `git cat-file` in a repository of our own."""

    def __init__(self, home: Path, objects: Path) -> None:
        self._home = home
        self._environment = {
            "PATH": os.environ.get("PATH", os.defpath),
            "HOME": str(home),
            "LC_ALL": "C",
            "GIT_DIR": str(home),
            "GIT_OBJECT_DIRECTORY": str(objects.absolute()),
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_NO_REPLACE_OBJECTS": "1",
            "GIT_NO_LAZY_FETCH": "1",
            "GIT_TERMINAL_PROMPT": "0",
        }

    def __call__(self, *arguments: str) -> bytes:
        return subprocess.run(
            ["git", "cat-file", *arguments],
            cwd=self._home,
            env=self._environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=SECONDS,
            check=True,
        ).stdout


@contextlib.contextmanager
def _repository(objects: Path, commit: str) -> Iterator[_Git]:
    """An empty repository whose objects are those in `objects`."""
    sha256 = len(commit) == 64
    with TemporaryDirectory(prefix="grader-git-") as name:
        home = Path(name)
        (home / "objects").mkdir()
        (home / "refs").mkdir()
        (home / "HEAD").write_text("ref: refs/heads/none\n")
        (home / "config").write_text(
            f"[core]\nrepositoryformatversion = {int(sha256)}\nbare = true\n"
            + ("[extensions]\nobjectformat = sha256\n" if sha256 else "")
        )
        yield _Git(home, objects)


def _time(commit: bytes) -> datetime | None:
    match = COMMITTER.search(commit.partition(b"\n\n")[0])
    if match is None:
        return None
    seconds, sign, hours, minutes = match.groups()
    offset = timedelta(hours=int(hours), minutes=int(minutes)) * (-1 if sign == b"-" else 1)
    return datetime.fromtimestamp(int(seconds), timezone(offset))
