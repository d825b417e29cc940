"""The commits of a clone, read by git without the clone's configuration.

A clone's configuration can name commands that git would run, so git never uses the clone's `.git`
folder. The commit that HEAD names is read here as text. Then git reads this commit in an empty
repository of our own, which shares nothing but the clone's objects.
"""

from __future__ import annotations

import contextlib
import hashlib
import heapq
import os
import re
import subprocess
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from itertools import islice
from pathlib import Path

from grader.sandbox.confinement.layers import confine_program
from grader.sandbox.confinement.limits import Confinement
from grader.scratch import scratch_folder
from grader.submissions.archives import MAX_DEPTH, is_archive
from grader.submissions.code_files import LFS, MAX_NOTEBOOK_BYTES
from grader.submissions.folders import is_searched
from grader.submissions.notes import MAX_NAMED, quoted
from grader.submissions.opening import OwnFolder, code_suffix
from grader.trees import NotOpened, read_file

MAX_TEXT = 4 * 1024 * 1024  # bytes of a file in .git; a file of packed refs can be long
MAX_COMMIT = 64 * 1024  # bytes of a commit with its message
MAX_TREE = 8 * 1024 * 1024  # bytes of the list of a commit's files
MAX_BLOBS = 64 * 1024 * 1024  # bytes of all files that are read of one commit
CPU_SECONDS = 10  # of computing, for one git command
TIMEOUT = 30  # seconds, for everything that is read of one clone
MAX_BRANCHES, MAX_HISTORY = 50, 1000  # branches, and commits before one, that are looked at
MAX_CHANGED = 200  # files whose last change is looked for
MAX_FILES = 1000  # of one commit or of one folder that are looked at
ROOM_FOR_NAMES = 1 << 20  # bytes of what git prints around the files of a commit
HASH = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
BRANCHES = ("refs/heads/", "refs/remotes/")
REF = re.compile(r"refs/[^\x00-\x20\x7f~^:?*\[\\]{1,200}")
COMMITTER = re.compile(rb"^committer .*> ([0-9]{1,12}) ([+-])([0-9]{2})([0-9]{2})$", re.MULTILINE)
LISTED = re.compile(rb"(?:100(?:644|755|664) blob|160000 (commit)) ([0-9a-f]+)\t([^\0]+)")
STORED = re.compile(rb"^oid sha256:(([0-9a-f]{2})([0-9a-f]{2})[0-9a-f]{60})$", re.MULTILINE)
SIZED = re.compile(rb"^([0-9a-f]+) blob ([0-9]{1,18})$", re.MULTILINE)
# What goes wrong when somebody else's objects are read.
NO_PART = "is a git submodule, whose files are no part of that commit"
UNREADABLE = (NotOpened, OSError, subprocess.SubprocessError, ValueError, OverflowError)


@dataclass(frozen=True)
class Head:
    """The commit that is checked out, empty if it is unknown; a detached one is on no branch."""

    commit: str = ""
    is_detached: bool = False


def head_of(clone: Path) -> Head:
    """Return the commit that HEAD names in a clone."""
    git_folder = clone / ".git"
    head = _read_text(git_folder, "HEAD").strip()
    if not head.startswith("ref: "):
        return Head(head, is_detached=True) if HASH.fullmatch(head) else Head()
    ref = head.removeprefix("ref: ")
    if not REF.fullmatch(ref) or ".." in ref:
        return Head()
    loose = _read_text(git_folder, ref).strip()
    if HASH.fullmatch(loose):
        return Head(loose)
    packed = (line.partition(" ") for line in _read_text(git_folder, "packed-refs").splitlines())
    found = (each for each, _, name in packed if name == ref and HASH.fullmatch(each))
    return Head(next(found, ""))


def branches_of(clone: Path) -> dict[str, str]:
    """Return the last commits of a clone's branches, own and remote ones, with their names."""
    git_folder = clone / ".git"
    own, folders = OwnFolder(clone.parent), [git_folder / place for place in BRANCHES]
    packed = (line.partition(" ") for line in _read_text(git_folder, "packed-refs").splitlines())
    wanted = ((ref, commit) for commit, _, ref in packed if ref.startswith(BRANCHES))
    found = dict(islice(wanted, MAX_BRANCHES))
    for folder in folders:  # those that are found in one come after it
        with contextlib.suppress(NotOpened, OSError):
            for entry in own.entries(folder):
                ref = entry.path.relative_to(git_folder).as_posix()
                if entry.is_folder:
                    folders.append(entry.path)
                elif len(found) < MAX_BRANCHES:
                    found[ref] = _read_text(git_folder, ref).strip()
    return {
        commit: ref.split("/", 2)[-1] for ref, commit in found.items() if HASH.fullmatch(commit)
    }


def _read_text(git_folder: Path, name: str) -> str:
    """Return a text in a clone's `.git`; empty if there is none that may be read."""
    try:
        data = read_file(git_folder / name, git_folder.parent.parent, MAX_TEXT)
    except (NotOpened, OSError):
        return ""
    return data.decode("ascii", "replace")


def blob_name(data: bytes, like: str) -> str:
    """Return the name that git gives to a file's bytes, by the same kind of hash as `like`."""
    digest = hashlib.sha256 if len(like) == 64 else hashlib.sha1
    return digest(b"blob %d\0" % len(data) + data).hexdigest()


@dataclass(frozen=True)
class CommitTree:
    """The names of a commit's regular files by path, and the paths of its submodules."""

    files: Mapping[str, str]
    submodules: Sequence[str] = ()


@dataclass(frozen=True)
class Commits:
    """The commits of a clone up to `head`; every method raises one of `UNREADABLE`."""

    head: str
    is_shallow: bool
    _home: Path
    _objects: Path
    _end: float

    def time(self, commit: str) -> datetime | None:
        """Return the committer's time of a commit; None if it has none."""
        header = self._git("cat-file", "commit", commit, most=MAX_COMMIT).partition(b"\n\n")[0]
        return _committer_time(header)

    def tree(self, commit: str) -> CommitTree:
        """Return what a commit holds."""
        listed = self._git("ls-tree", "-r", "-z", "--full-tree", commit, most=MAX_TREE)
        files, submodules = dict[str, str](), list[str]()
        for match in filter(None, map(LISTED.fullmatch, listed.split(b"\0"))):
            if match[1]:
                submodules.append(os.fsdecode(match[3]))
            else:
                files[os.fsdecode(match[3])] = match[2].decode()
        return CommitTree(files, submodules)

    def read(self, blobs: Sequence[str]) -> Mapping[str, bytes]:
        """Return the bytes of files by the names that `files` gives them."""
        names = dict.fromkeys(blobs)
        data = self._git("cat-file", "--batch", given="\n".join(names), most=MAX_BLOBS)
        return dict(_blobs(data)) if names else {}

    def sizes(self, blobs: Sequence[str]) -> Mapping[str, int]:
        """Return the sizes of files in bytes, by the names that `files` gives them."""
        asked = "\n".join(dict.fromkeys(blobs))
        data = self._git("cat-file", "--batch-check", given=asked, most=MAX_TREE)
        return {name.decode(): int(size) for name, size in SIZED.findall(data)}

    def last_before(self, time: datetime) -> str:
        """Return the latest commit that was made at this time or before, or an empty text."""
        until = f"--min-age={int(time.timestamp())}"
        found = self._git("rev-list", "--max-count=1", until, self.head, most=MAX_COMMIT)
        return found.decode("ascii").strip()

    def last_change(self, commit: str, paths: Sequence[str]) -> str:
        """Return the latest commit, of those up to this one, that changed one of some files.

        If there are too many files to look for, that is taken to be the commit itself.
        """
        if len(paths) > MAX_CHANGED:
            return commit
        limits = "--max-count=1", commit, "--", *paths
        found = self._git("--literal-pathspecs", "rev-list", *limits, most=MAX_COMMIT)
        return found.decode("ascii").strip()

    def backdated(self, commit: str) -> str:
        """Return the latest commit, of those up to this one, that is dated before a parent."""
        most = f"--max-count={MAX_HISTORY}"
        listed = self._git("rev-list", "--timestamp", "--parents", most, commit, most=MAX_TREE)
        lines = [line.split() for line in listed.decode("ascii").splitlines()]
        times = {name: int(seconds) for seconds, name, *_ in lines}
        return next(
            (
                name
                for _, name, *parents in lines
                if any(times[name] < times.get(parent, 0) for parent in parents)
            ),
            "",
        )

    def independent(self, commits: Sequence[str]) -> list[str]:
        """Return those commits that none of the others builds on."""
        found = self._git("merge-base", "--independent", *commits, most=MAX_COMMIT)
        return found.decode("ascii").split()

    def _git(self, *arguments: str, most: int, given: str = "") -> bytes:
        """Return the output of git, at most `most` bytes; git is ended if it prints more."""
        limits = Confinement(memory_bytes=4 << 30, cpu_seconds=CPU_SECONDS, file_bytes=most)
        with tempfile.TemporaryFile() as output:
            subprocess.run(
                ["git", *arguments],
                cwd=self._home,
                env=self._environment(),
                input=given.encode(),
                stdout=output,
                stderr=subprocess.DEVNULL,
                timeout=max(0.0, self._end - time.monotonic()),
                check=True,
                # The objects of a clone are a stranger's as well.
                preexec_fn=lambda: confine_program(limits, (self._home, self._objects)),
            )
            output.seek(0)
            return output.read()

    def _environment(self) -> dict[str, str]:
        return {
            "PATH": os.environ.get("PATH", os.defpath),
            "HOME": str(self._home),
            "LC_ALL": "C",
            "GIT_DIR": str(self._home),
            "GIT_OBJECT_DIRECTORY": str(self._objects),
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_NO_REPLACE_OBJECTS": "1",
            "GIT_NO_LAZY_FETCH": "1",
            "GIT_TERMINAL_PROMPT": "0",
        }


@contextlib.contextmanager
def open_commits(clone: Path, head: str) -> Iterator[Commits]:
    """Yield the commits of a clone. Raises one of `UNREADABLE`."""
    git_folder = clone / ".git"
    OwnFolder(clone.parent).entries(git_folder / "objects")  # a folder of the clone's own
    with scratch_folder("git") as home:
        _make_empty_repository(home, sha256=len(head) == 64)
        cut_off = filter(HASH.fullmatch, _read_text(git_folder, "shallow").split())
        (home / "shallow").write_text(shallow := "".join(f"{commit}\n" for commit in cut_off))
        objects = (git_folder / "objects").absolute()
        yield Commits(head, bool(shallow), home, objects, time.monotonic() + TIMEOUT)


def write_files(clone: Path, commit: str, into: Path) -> list[str]:
    """Write the code and archives of a commit into a folder; return flags on what is missing.

    Raises one of `UNREADABLE`.
    """
    with open_commits(clone, commit) as commits:
        tree = commits.tree(commit)
        files = {path: blob for path, blob in tree.files.items() if _is_wanted(path)}
        near = {path: files[path] for path in nearest(files)}
        sizes, room = commits.sizes(list(near.values())) if near else {}, MAX_BLOBS - ROOM_FOR_NAMES
        kept = {}
        for path, blob in near.items():
            if (size := sizes.get(blob, 0)) <= room:
                kept[path] = blob
                room -= size
        contents = commits.read(list(kept.values())) if kept else {}
    for path, blob in kept.items():
        if blob in contents:
            (into / path).parent.mkdir(parents=True, exist_ok=True)
            (into / path).write_bytes(_fetched(clone, contents[blob]))
    left = len(files) - len(kept)
    flags = [f"{left} files of that commit were left out, because it is too large"] if left else []
    return [*flags, *(f"{quoted(path)} {NO_PART}" for path in tree.submodules[:MAX_NAMED])]


def nearest(paths: Iterable[str]) -> list[str]:
    """Return so many paths as are looked at: those with the fewest folders on the way."""
    return heapq.nsmallest(MAX_FILES, paths, key=lambda path: path.count("/"))


def _fetched(clone: Path, data: bytes) -> bytes:
    """Return a file that Git LFS keeps, if the clone has it, in place of a pointer to it."""
    match = STORED.search(data) if data.startswith(LFS) else None
    if match is None:
        return data
    name, first, second = (part.decode() for part in match.groups())
    with contextlib.suppress(NotOpened, OSError):
        place = clone / ".git/lfs/objects" / first / second / name
        found = read_file(place, clone.parent, MAX_NOTEBOOK_BYTES)
        return found if hashlib.sha256(found).hexdigest() == name else data
    return data


def _is_wanted(path: str) -> bool:
    """Return whether a file of a commit can be part of a submission; git allows any names."""
    parts = path.split("/")
    is_inside = all(part not in ("", ".", "..") for part in parts) and len(parts) <= MAX_DEPTH
    is_wanted = code_suffix(path) != "" or is_archive(path)
    return is_inside and is_wanted and all(map(is_searched, parts[:-1]))


def _make_empty_repository(home: Path, sha256: bool) -> None:
    (home / "objects").mkdir()
    (home / "refs").mkdir()
    (home / "HEAD").write_text("ref: refs/heads/none\n")
    (home / "config").write_text(
        f"[core]\nrepositoryformatversion = {int(sha256)}\nbare = true\n"
        + ("[extensions]\nobjectformat = sha256\n" if sha256 else "")
    )


def _blobs(data: bytes) -> Iterator[tuple[str, bytes]]:
    """Yield the names and bytes in the output of `git cat-file --batch`."""
    at = 0
    while at < len(data):
        end = data.index(b"\n", at)
        name, kind, *size = data[at:end].decode("ascii").split()
        at = end + 1
        if kind == "missing":
            continue
        length = int(size[0])
        if kind == "blob":
            yield name, data[at : at + length]
        at += length + 1


def _committer_time(header: bytes) -> datetime | None:
    match = COMMITTER.search(header)
    if match is None:
        return None
    seconds, sign, hours, minutes = match.groups()
    offset = timedelta(hours=int(hours), minutes=int(minutes)) * (-1 if sign == b"-" else 1)
    return datetime.fromtimestamp(int(seconds), timezone(offset))
