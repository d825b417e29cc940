"""The content of a submission's folders: a limited number of files and folders, through no link.

`grader.trees` opens them.
"""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Literal

from grader.sandbox.cells import NOTEBOOK
from grader.trees import NotOpened, listable

MAX_ENTRIES = 10_000  # files and folders examined in one submission
# Names that operating systems, editors and git add to a folder; no student hands in such a file.
CLUTTER = {
    *("__MACOSX", "Thumbs.db", "desktop.ini", "$RECYCLE.BIN", "__pycache__"),
    *(".DS_Store", ".localized", ".directory", ".fseventsd", ".Spotlight-V100", ".Trashes"),
    *(".git", ".gitignore", ".gitattributes", ".gitkeep", ".gitmodules", ".github", ".hg", ".svn"),
    *(".idea", ".vscode", ".ipynb_checkpoints", ".venv", ".cache"),
    *(".mypy_cache", ".pytest_cache", ".ruff_cache", ".TemporaryItems"),
}

# What a file of code may end in: editors and browsers add to a suffix that they do not know.
ENDS = {".py": (".py", ".py.txt"), NOTEBOOK: (NOTEBOOK, ".ipynb.txt", ".ipynb.json")}


def code_suffix(name: str) -> str:
    """Return `.py` or `.ipynb` if a file has such a name, in upper or lower case; else ""."""
    return next((suffix for suffix, ends in ENDS.items() if name.lower().endswith(ends)), "")


def code_stem(name: str) -> str:
    """Return the name of a file of code without the suffix, also without one that was added."""
    return name[: name.lower().rindex(code_suffix(name))]


def is_clutter(name: str) -> bool:
    """Return whether a tool left a file or folder of this name; no student hands it in."""
    return name in CLUTTER or name.startswith("._")


@dataclass(frozen=True)
class Entry:
    """A file or folder as its folder lists it; links are not followed."""

    folder: Path
    name: str
    kind: Literal["file", "folder", "link", "other"]

    @property
    def path(self) -> Path:
        """Where it is."""
        return self.folder / self.name

    @property
    def suffix(self) -> str:
        """The suffix of its name in lower case, without a `Path`, which takes ten times as long."""
        return os.path.splitext(self.name)[1].lower()

    @property
    def is_folder(self) -> bool:
        """Whether it is a folder, and not a link to one."""
        return self.kind == "folder"


class OwnFolder:
    """The folder of one submission, which lists a limited number of files and folders in all."""

    def __init__(self, within: Path, most: int = MAX_ENTRIES) -> None:
        self.within = within
        self._most, self._left = most, most
        self._listed: dict[Path, list[Entry]] = {}

    def entries(self, folder: Path) -> list[Entry]:
        """Return the entries of a folder, by name; raise `NotOpened` if too many, or for a link."""
        if folder not in self._listed:
            self._listed[folder] = self._list(folder)
        return self._listed[folder]

    @property
    def listed(self) -> list[Entry]:
        """Everything in the folders that were listed so far."""
        return [entry for entries in self._listed.values() for entry in entries]

    def _list(self, folder: Path) -> list[Entry]:
        try:
            with listable(folder, self.within) as place, os.scandir(place) as entries:
                listed = islice(entries, self._left + 1)
                found = [Entry(folder, one.name, _kind(one)) for one in listed]
        except OSError as error:
            raise OSError(error.errno, error.strerror, str(folder)) from None
        self._left -= len(found)
        if self._left < 0:
            raise NotOpened(f"holds more than {self._most} files and folders")
        return sorted(found, key=lambda entry: entry.name)


def _kind(entry: os.DirEntry[str]) -> Literal["file", "folder", "link", "other"]:
    with contextlib.suppress(OSError):  # it was removed meanwhile
        if entry.is_symlink():
            return "link"
        if entry.is_dir(follow_symlinks=False):
            return "folder"
        if entry.is_file(follow_symlinks=False):
            return "file"
    return "other"
